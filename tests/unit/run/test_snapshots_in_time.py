"""Who takes a snapshot: the coordinator between completions, or the thread that watches a call that it makes itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from cogcli.run.engine.effects import Effects, Next, Spawn, WorkerCall, WorkerSlot
from cogcli.run.engine.tasks import Loop


class Recorder:
    """Snapshots that are due until they were taken."""

    def __init__(self) -> None:
        self.threads: list[str] = []
        self.taken = threading.Event()

    def begin(self) -> None: ...

    def is_due(self, now: float) -> bool:
        return not self.taken.is_set()

    def take(self) -> None:
        self.threads.append(threading.current_thread().name)
        self.taken.set()


def call(work: Callable[[], Any]) -> Effects:
    yield WorkerSlot()
    return (yield WorkerCall(work, time.monotonic() + 60, lambda: TimeoutError()))


def children(work: Callable[[], Any], count: int) -> Effects:
    for number in range(count):
        yield Spawn(call(work), number)
    for _ in range(count):
        yield Next()


@pytest.mark.parametrize(("calls", "by"), [(1, "MainThread"), (2, "coordinator")])
def test_a_long_call_does_not_hold_up_the_snapshot(calls: int, by: str) -> None:
    snapshots = Recorder()
    Loop(4, snapshots=snapshots).run(Spawn(children(lambda: snapshots.taken.wait(20), calls)))
    assert snapshots.threads == [by]


def test_quick_calls_are_interrupted_for_it() -> None:
    snapshots = Recorder()

    def many() -> Effects:
        while not snapshots.taken.is_set():
            yield from call(lambda: None)

    Loop(4, snapshots=snapshots).run(Spawn(many()))
    assert len(snapshots.threads) == 1
