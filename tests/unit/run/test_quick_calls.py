"""A quick call is made by the task itself, and handed to a child as soon as anything else has to happen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.runner import ScriptedRunner
from fakes.runs import RUN_ID, engine_for, request
from fakes.specs import capability, skill, step

from cogcli.base.calls import Answer
from cogcli.base.errors import TransportError
from cogcli.base.redact import Redactor
from cogcli.base.system import FakeIds, SystemClock
from cogcli.episode.journal import Journal
from cogcli.episode.store import Store
from cogcli.episode.verify.check import verify
from cogcli.run.engine.context import Engine
from cogcli.run.engine.effects import (
    AwaitedCall,
    Cancel,
    Cancelled,
    Effects,
    Next,
    QuickCall,
    QuickCalls,
    Sleep,
    Spawn,
    StartedCall,
    WorkerCall,
)
from cogcli.run.engine.graph import GraphDriver
from cogcli.run.engine.plain_invocation import find_plain_call
from cogcli.run.engine.run import SKILL, FinishedRun, RootRun, execute
from cogcli.run.engine.tasks import Loop

SLOW = 60.0


def late() -> Exception:
    return TimeoutError("late")


class Quick(QuickCall):
    def __init__(self, call: WorkerCall) -> None:
        super().__init__(call.deadline)
        self._call = call

    def perform(self) -> Any:
        return self._call.work()

    def build_effect(self) -> WorkerCall:
        return self._call


def quick(work: Callable[[], Any], limit: float = SLOW, abandoned: Any = None) -> QuickCall:
    return Quick(WorkerCall(work, time.monotonic() + limit, late, abandoned, is_quick=True))


def call_of(work: Callable[[], Any]) -> WorkerCall:
    return WorkerCall(work, time.monotonic() + SLOW, late)


def waiting_for(effect: WorkerCall | StartedCall) -> Effects:
    return (yield effect)


def test_the_task_gets_the_result_on_its_own_thread() -> None:
    def root() -> Effects:
        return (yield quick(threading.current_thread))

    assert Loop(1).run(Spawn(root())).name == "coordinator"


def test_the_task_gets_the_error() -> None:
    def root() -> Effects:
        with pytest.raises(ZeroDivisionError):
            yield quick(lambda: 1 / 0)
        return "went on"

    assert Loop(1).run(Spawn(root())) == "went on"


class Series(QuickCalls):
    """Calls in order. `answers` are their results."""

    def __init__(self, *work: Callable[[], Any], most: int = 100) -> None:
        self.open = list(work)
        self.answers: list[Any] = []
        self._most = most

    def begin(self) -> QuickCall | None:
        return quick(self.open.pop(0)) if self.open else None

    def end(self, answer: Any) -> bool:
        self.answers.append(answer)
        return len(self.answers) < self._most


@pytest.mark.parametrize(("most", "left"), [(100, 0), (2, 1)])
def test_a_series_ends_when_there_is_no_call_or_none_is_wanted(most: int, left: int) -> None:
    series = Series(int, str, list, most=most)

    def root() -> Effects:
        return (yield series)

    assert Loop(1).run(Spawn(root())) is None
    assert series.answers == [0, "", []][: 3 - left]
    assert len(series.open) == left


def test_a_series_ends_with_the_error_of_a_call() -> None:
    series = Series(int, lambda: 1 / 0, str)

    def root() -> Effects:
        with pytest.raises(ZeroDivisionError):
            yield series
        return (yield series)

    assert Loop(1).run(Spawn(root())) is None
    assert series.answers == [0, ""]


def test_an_error_between_the_calls_of_a_series_is_raised_in_the_task() -> None:
    series = Series(int)
    series.open.append(None)  # type: ignore[arg-type]
    series.begin = lambda: quick(series.open.pop(0) or series.missing)  # type: ignore[method-assign, attr-defined]

    def root() -> Effects:
        with pytest.raises(AttributeError):
            yield series
        return "went on"

    assert Loop(1).run(Spawn(root())) == "went on"


def test_two_series_take_turns() -> None:
    order: list[str] = []

    def child(name: str) -> Effects:
        series = Series(*[lambda: order.append(name)] * 3)
        while series.open:
            yield series

    def root() -> Effects:
        yield Spawn(child("one"))
        yield Spawn(child("other"))
        yield Next()
        yield Next()

    Loop(2).run(Spawn(root()))
    assert order == ["one", "one", "other", "one", "other", "other"]  # the second begins later


def test_a_series_hands_a_call_that_becomes_slow_to_a_child() -> None:
    release = threading.Event()
    series = Series(int, lambda: release.wait(SLOW), str)

    def root() -> Effects:
        outstanding = yield series
        assert type(outstanding) is AwaitedCall
        yield Spawn(waiting_for(outstanding.effect), at_once=True)
        release.set()
        child = yield Next()
        yield series
        return child.result

    assert Loop(1).run(Spawn(root())) is True
    assert series.answers == [0, ""]


def test_a_call_that_becomes_slow_is_waited_for_by_a_child_with_a_slot() -> None:
    loop, release = Loop(1), threading.Event()

    def root() -> Effects:
        outstanding = yield quick(lambda: release.wait(SLOW))
        assert type(outstanding) is AwaitedCall
        assert type(outstanding.effect) is StartedCall
        yield Spawn(waiting_for(outstanding.effect), at_once=True)
        taken = loop.slot_free
        release.set()
        child = yield Next()
        return taken, child.result, loop.slot_free

    assert loop.run(Spawn(root())) == (False, True, True)


@pytest.mark.parametrize("how", ["deadline", "cancel"])
def test_a_slow_call_is_given_up_like_any_other(how: str) -> None:
    release, abandoned = threading.Event(), threading.Event()

    def root() -> Effects:
        limit = 0.1 if how == "deadline" else SLOW
        outstanding = yield quick(lambda: release.wait(SLOW), limit, abandoned.set)
        child = yield Spawn(waiting_for(outstanding.effect), at_once=True)
        if how == "cancel":
            yield Cancel(child)
        ended = yield Next()
        return type(ended.error)

    error = Loop(1).run(Spawn(root()))
    release.set()
    assert error is (TimeoutError if how == "deadline" else Cancelled)
    assert abandoned.is_set()


def test_a_task_that_is_cancelled_before_it_passed_the_call_on_gives_it_up() -> None:
    release, abandoned = threading.Event(), threading.Event()

    def caller() -> Effects:
        yield quick(lambda: release.wait(SLOW), SLOW, abandoned.set)
        yield Sleep(time.monotonic() + SLOW)

    def root() -> Effects:
        task = yield Spawn(caller())
        yield Sleep(time.monotonic() + 0.001)
        yield Cancel(task)
        return type((yield Next()).error)

    error = Loop(1).run(Spawn(root()))
    release.set()
    assert error is Cancelled
    assert abandoned.is_set()


def test_results_that_have_come_are_passed_on_before_a_call_begins() -> None:
    seen: list[str] = []

    def child(release: threading.Event) -> Effects:
        yield call_of(release.set)
        seen.append("child")

    def root() -> Effects:
        first, second = threading.Event(), threading.Event()
        for event in (first, second):
            yield Spawn(child(event))
        yield Sleep(time.monotonic() + 0.2)
        assert first.is_set()
        yield quick(lambda: seen.append("quick"))
        return list(seen)

    assert sorted(Loop(2).run(Spawn(root()))) == ["child", "child", "quick"]


def test_calls_of_other_tasks_begin_before_a_quick_call() -> None:
    def root() -> Effects:
        yield Spawn(waiting_for(call_of(lambda: None)))
        outstanding = yield quick(lambda: None)
        return type(outstanding.effect)

    assert Loop(2).run(Spawn(root())) is WorkerCall


def test_a_call_does_not_begin_after_a_signal() -> None:
    loop, begun = Loop(2), []

    def root() -> Effects:
        yield Spawn(waiting_for(WorkerCall(lambda: "first", time.monotonic() + SLOW, late)))
        other = threading.Event()
        yield Spawn(waiting_for(WorkerCall(other.wait, time.monotonic() + SLOW, late)))
        yield Sleep(time.monotonic() + 0.2)
        loop.interrupt("SIGINT")
        outstanding = yield quick(lambda: begun.append("second"))
        assert type(outstanding.effect) is WorkerCall
        other.set()
        return list(begun)

    assert loop.run(Spawn(root())) == []


def test_a_call_does_not_begin_when_a_limit_is_near() -> None:
    def root() -> Effects:
        outstanding = yield quick(lambda: None)
        return type(outstanding.effect)

    steps = Spawn(root(), deadline=time.monotonic() + 0.001, timeout_error=late)
    assert Loop(1).run(steps) is WorkerCall


A = capability("c.a", "x", "y")
STEPS = [step(f"s{n}", "c.a", {"x": n}, output={"y": f"vars.y{n}"}) for n in range(300)]
ITEMS = [
    step(
        "s",
        "c.a",
        {"x": "it"},
        output={"y": "vars.ys"},
        foreach={"items": [*range(300)], "as": "it"},
    )
]
ROUNDS = [
    step(
        "s",
        "c.a",
        {"x": 1},
        output={"y": "vars.y"},
        **{"while": {"condition": "true", "max_iterations": 300}},
    )
]
EACH = pytest.mark.parametrize("steps", [STEPS, ITEMS, ROUNDS], ids=["steps", "items", "rounds"])


def new_journal(folder: Path) -> Journal:
    return Store(str(folder)).create(
        "ep_0000000000000000000000000A",
        trace_id="0" * 31 + "1",
        clock=SystemClock(),
        ids=FakeIds(0),
        redactor=Redactor(()),
        durability="none",
    )


def run_many(
    folder: Path,
    called: Callable[[Engine, int], Any],
    *,
    steps: list[dict[str, Any]] | None = None,
    **options: Any,
) -> tuple[FinishedRun, int]:
    """Run 300 steps whose calls are quick. Return how the run ended, and the number of calls."""

    def answer(values: dict[str, Any]) -> Any:
        called(engine, len(runner.attempts))
        return Answer({"y": values["x"]})

    runner = ScriptedRunner({"c.a": answer})
    main = skill(*(steps or STEPS))
    journal = new_journal(folder)
    engine = engine_for(
        runner,
        [A],
        [main],
        sink=journal,
        lines=journal,
        fast=False,
        **{"max_workers": 1, **options},
    )
    finished = execute(engine, engine.plan_of(main.id), request({}), RUN_ID)
    journal.close()
    errors = {each.code for each in verify(journal.directory) if each.severity == "error"}
    assert errors == {"episode.unsealed"}
    return finished, len(runner.attempts)


@EACH
def test_a_signal_between_quick_calls_ends_the_run(
    tmp_path: Path, steps: list[dict[str, Any]]
) -> None:
    def called(engine: Engine, count: int) -> None:
        if count == 50:
            engine.loop.interrupt("SIGINT")

    finished, calls = run_many(tmp_path, called, steps=steps)
    assert (finished.outcome.status, calls) == ("aborted", 50)


def test_the_time_limit_of_a_run_ends_quick_steps(tmp_path: Path) -> None:
    def called(engine: Engine, count: int) -> None:
        if count == 50:
            time.sleep(0.5)

    finished, calls = run_many(tmp_path, called, timeout=0.4)
    assert finished.outcome.error is not None
    assert finished.outcome.error.code == "run.timeout"
    assert calls <= 50


@EACH
def test_a_run_goes_on_after_a_quick_call_that_became_slow(
    tmp_path: Path, steps: list[dict[str, Any]]
) -> None:
    def called(engine: Engine, count: int) -> None:
        if count in (20, 60, 61):
            time.sleep(0.15)

    finished, calls = run_many(tmp_path, called, steps=steps)
    assert (finished.outcome.status, calls) == ("ok", 300)
    if steps is STEPS:
        assert finished.state.vars == {f"y{n}": n for n in range(300)}
    else:
        assert finished.state.vars == ({"ys": [*range(300)]} if steps is ITEMS else {"y": 1})
    assert finished.state.trace.metrics.tool_calls == 300


@EACH
def test_a_signal_reaches_a_run_whose_quick_call_hangs(
    tmp_path: Path, steps: list[dict[str, Any]]
) -> None:
    release = threading.Event()

    def called(engine: Engine, count: int) -> None:
        if count == 60:
            engine.loop.interrupt("SIGINT")
            threading.Timer(0.1, engine.loop.interrupt, ["SIGINT"]).start()
            release.wait(SLOW)

    finished, calls = run_many(tmp_path, called, steps=steps)
    release.set()
    assert (finished.outcome.status, calls) == ("aborted", 60)
    last = finished.state.step_results["s59" if steps is STEPS else "s"]
    assert last.status == "skipped"


def test_a_failure_of_a_quick_step_skips_what_depends_on_it(tmp_path: Path) -> None:
    def called(engine: Engine, count: int) -> None:
        if count == 60:
            raise TransportError("call.transport", "gone", left=True)

    finished, calls = run_many(tmp_path, called)
    assert finished.outcome.status == "error"
    assert calls == 60


def test_a_fan_out_of_quick_steps_needs_no_more_tasks_than_workers(tmp_path: Path) -> None:
    most = 0

    def called(engine: Engine, count: int) -> None:
        nonlocal most
        most = max(most, len(engine.loop._root.children))

    steps = [
        step(f"s{n}", "c.a", {"x": n}, output={"y": f"vars.y{n}"}, depends_on=[])
        for n in range(300)
    ]
    finished, calls = run_many(tmp_path, called, steps=steps, max_workers=4)
    assert (finished.outcome.status, calls) == ("ok", 300)
    assert most <= 4


def test_a_run_that_is_cancelled_during_a_quick_call_starts_no_further_step(tmp_path: Path) -> None:
    main = skill(*STEPS[:3])
    journal = new_journal(tmp_path)
    runner = ScriptedRunner({"c.a": lambda given: Answer({"y": 1})})
    engine = engine_for(runner, [A], [main], sink=journal, lines=journal)
    plan = engine.plan_of(main.id)
    run = RootRun(engine, plan, request({}), RUN_ID, SKILL).run
    assert find_plain_call(run, plan.steps[0], plan.steps[0].plain_key) is None
    for _ in range(4):
        engine.find_call_speed("c.a").note(0.0)
    driver = GraphDriver(run)
    driving = driver.drive()
    assert next(driving) is driver
    assert isinstance(driver.begin(), QuickCall)
    with pytest.raises(Cancelled):
        driving.throw(Cancelled(external=True))
    journal.close()
    assert {place: each.reason for place, each in driver.endings.items()} == {0: "cancelled"}
    log = (journal.directory / "events.jsonl").read_text()
    assert log.count('"event_type":"step.started"') == 1
