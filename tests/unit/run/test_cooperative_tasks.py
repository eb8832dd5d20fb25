from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from fakes.runs import SOON

from cogcli.run.engine.effects import (
    AwaitWake,
    Cancel,
    Cancelled,
    Effects,
    Next,
    Sleep,
    Spawn,
    Task,
    Wake,
    WorkerCall,
    WorkerSlot,
)
from cogcli.run.engine.tasks import Loop


def late() -> Exception:
    return TimeoutError("late")


def call(work: Any, limit: float = 10.0) -> WorkerCall:
    return WorkerCall(work, time.monotonic() + limit, late)


def driven(steps: Effects, workers: int = 4, limit: float | None = None) -> Any:
    deadline = None if limit is None else time.monotonic() + limit
    return Loop(workers).run(Spawn(steps, deadline=deadline, timeout_error=late))


def calling(work: Any, limit: float = 10.0) -> Effects:
    yield WorkerSlot()
    return (yield call(work, limit))


def test_a_call_alone_runs_on_the_coordinators_thread_and_others_do_not() -> None:
    names: list[str] = []

    def work() -> None:
        names.append(threading.current_thread().name)
        time.sleep(0.02)

    def root() -> Effects:
        yield from calling(work)
        for _ in range(2):
            yield Spawn(calling(work))
        for _ in range(2):
            yield Next()

    driven(root())
    assert names == ["coordinator", "call", "call"]


def test_errors_of_calls_are_raised_in_their_task() -> None:
    def fails() -> None:
        raise ValueError("boom")

    def root() -> Effects:
        with pytest.raises(ValueError, match="boom"):
            yield from calling(fails)
        task: Task = yield Spawn(calling(fails))
        ended = yield Next()
        assert ended is task
        return type(task.error)

    assert driven(root()) is ValueError


def test_the_roots_error_is_raised_by_run() -> None:
    def root() -> Effects:
        raise KeyError("bug")
        yield

    with pytest.raises(KeyError):
        driven(root())


def test_a_late_inline_call_passes_the_baton_and_its_result_is_dropped() -> None:
    release = threading.Event()

    def root() -> Effects:
        try:
            yield from calling(lambda: release.wait(60), 0.1)
        except TimeoutError:
            release.set()
            time.sleep(0.1)
            return (yield from calling(lambda: "next"))

    started = time.monotonic()
    assert driven(root(), workers=1) == "next"
    assert time.monotonic() - started < SOON


def test_a_deadline_cancels_children_first_and_then_raises() -> None:
    order: list[str] = []

    def child(name: str) -> Effects:
        try:
            yield Sleep(time.monotonic() + 10)
        except Cancelled:
            order.append(name)
            raise

    def parent() -> Effects:
        yield Spawn(child("a"))
        yield Spawn(child("b"))
        try:
            yield Next()
        except TimeoutError:
            order.append("parent")

    def root() -> Effects:
        yield Spawn(parent(), deadline=time.monotonic() + 0.1, timeout_error=late)
        yield Next()

    driven(root())
    assert order == ["a", "b", "parent"]


def test_next_gives_children_as_they_end_and_none_when_there_are_none() -> None:
    begun = time.monotonic()

    def child(seconds: float) -> Effects:
        yield Sleep(begun + seconds)
        return seconds

    def root() -> Effects:
        for seconds in (0.3, 0.1, 0.2):
            yield Spawn(child(seconds))
        results = []
        while (task := (yield Next())) is not None:
            results.append(task.result)
        return results

    assert driven(root()) == [0.1, 0.2, 0.3]


def test_next_may_end_at_a_time() -> None:
    def child() -> Effects:
        yield Sleep(time.monotonic() + 60)

    def root() -> Effects:
        yield Spawn(child())
        return (yield Next(until=time.monotonic() + 0.05))

    started = time.monotonic()
    assert driven(root()) is None
    assert time.monotonic() - started < SOON


def test_a_parked_task_goes_on_when_woken_and_has_no_deadline_meanwhile() -> None:
    def child() -> Effects:
        yield AwaitWake()
        return "woken"

    def root() -> Effects:
        task = yield Spawn(child(), deadline=time.monotonic() + 0.05, timeout_error=late)
        yield Sleep(time.monotonic() + 0.15)
        yield Wake(task)
        yield Wake(task)
        return (yield Next()).result

    assert driven(root()) == "woken"


def test_a_shielded_call_survives_cancel_but_not_force() -> None:
    loop = Loop(4)
    release = threading.Event()

    def child() -> Effects:
        yield WorkerSlot()
        loop.shield(True)
        return (yield call(lambda: release.wait(60)))

    def root() -> Effects:
        soft, hard = (yield Spawn(child())), (yield Spawn(child()))
        yield Sleep(time.monotonic() + 0.02)
        yield Cancel(soft)
        yield Cancel(hard, force=True)
        first = yield Next()
        release.set()
        second = yield Next()
        assert first is hard
        return type(first.error), second.result

    assert loop.run(Spawn(root())) == (Cancelled, True)


def test_a_cancelled_parent_waits_for_shielded_children_and_goes_on_with_nothing_else() -> None:
    loop = Loop(4)
    first, second = threading.Event(), threading.Event()
    seen: list[str] = []

    def child(release: threading.Event) -> Effects:
        yield WorkerSlot()
        loop.shield(True)
        yield call(lambda: release.wait(60))
        seen.append("child")

    def plain() -> Effects:
        try:
            yield Sleep(time.monotonic() + 5)
        finally:
            seen.append("plain")

    def parent() -> Effects:
        for steps in (child(first), child(second), plain()):
            yield Spawn(steps)
        try:
            while True:
                yield Next()
                seen.append("parent went on")
        except Cancelled:
            seen.append("parent")
            raise

    def root() -> Effects:
        task = yield Spawn(parent())
        yield Sleep(time.monotonic() + 0.02)
        seen.clear()
        yield Cancel(task)
        first.set()
        yield Sleep(time.monotonic() + 0.05)
        second.set()
        yield Next()

    loop.run(Spawn(root()))
    assert seen == ["plain", "child", "child", "parent"]


def test_slots_are_given_first_come_first_served() -> None:
    order: list[int] = []

    def child(n: int) -> Effects:
        yield from calling(lambda: (order.append(n), time.sleep(0.002)))

    def root() -> Effects:
        for n in range(6):
            yield Spawn(child(n))
        while (yield Next()) is not None:
            pass

    driven(root(), workers=1)
    assert order == list(range(6))


def test_a_base_exception_of_a_call_is_raised_in_its_task_not_in_the_loop() -> None:
    class Odd(BaseException):
        pass

    def odd() -> None:
        raise Odd

    def root() -> Effects:
        try:
            yield from calling(odd)
        except Odd:
            return "caught"

    assert driven(root()) == "caught"


def test_pool_threads_end_with_the_run() -> None:
    def root() -> Effects:
        for _ in range(4):
            yield Spawn(calling(lambda: time.sleep(0.01)))
        while (yield Next()) is not None:
            pass

    before = threading.active_count()
    driven(root())
    for _ in range(100):
        if threading.active_count() <= before:
            break
        time.sleep(0.01)
    assert threading.active_count() <= before
