"""Values that other threads pass to the root task of a loop."""

from __future__ import annotations

import threading
import time
from typing import Any

from cogcli.run.engine.effects import Effects, Next, Posted, Spawn, Task, WorkerCall
from cogcli.run.engine.tasks import Loop


def _wait_for_gate(gate: threading.Event) -> Effects:
    def work() -> bool:
        return gate.wait(30)

    return (yield WorkerCall(work, time.monotonic() + 60, TimeoutError))


def test_posts_reach_the_root_in_order_while_a_call_runs() -> None:
    gate, loop = threading.Event(), Loop(2)
    seen: list[Any] = []

    def root() -> Effects:
        yield Spawn(_wait_for_gate(gate))
        while True:
            event: Task | Posted | None = yield Next(posts=True)
            assert event is not None
            if isinstance(event, Task):
                return seen
            seen.append(event.value)
            if len(seen) == 3:
                gate.set()

    loop.post(0)  # before the loop runs
    threading.Thread(target=lambda: [loop.post(number) for number in (1, 2)]).start()
    assert loop.run(Spawn(root())) == [0, 1, 2]


def test_a_wait_for_posts_goes_on_without_children_and_ends_at_its_time() -> None:
    loop = Loop(2)

    def root() -> Effects:
        timed_out: object = yield Next(posts=True, until=time.monotonic())
        timer = threading.Timer(0.01, loop.post, ("late",))
        timer.start()
        late: object = yield Next(posts=True)
        return timed_out, late

    assert loop.run(Spawn(root())) == (None, Posted("late"))
