"""Where a limit of time ended something, a replay ends it there, too: by the log, not by the times that it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.runner import Gate, ScriptedRunner, gives, member
from fakes.runs import RUN_ID, Ran, request, run
from fakes.specs import capability, skill, step

from cogcli.base.errors import TransportError
from cogcli.base.redact import Redactor
from cogcli.base.system import FakeClock, FakeIds
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.options import RunOptions
from cogcli.declarations.skill_spec import Skill
from cogcli.episode.log_lines import LATEST
from cogcli.run.engine import call, context, step_recorder, tasks
from cogcli.run.engine import run as engine_run
from cogcli.run.engine.effects import (
    CallNeverAnswered,
    Effects,
    Next,
    Sleep,
    Spawn,
    Task,
    WorkerCall,
)
from cogcli.run.engine.run import execute
from cogcli.run.engine.tasks import Loop
from cogcli.run.launch import build_engine
from cogcli.run.log_index import LogIndex
from cogcli.run.replay_adapters import ReplayDifference, ReplaySink
from cogcli.run.results import Control
from cogcli.specs.catalog import Catalog


class Time:
    """A monotonic clock that stands still until something takes time; waiting for nothing takes all of it at once."""

    def __init__(self) -> None:
        self.now = 100.0

    def takes(self, seconds: float, then: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def script(given: Any) -> Any:
            self.now += seconds
            return then(given)

        return script


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()

    class Inbox(SimpleQueue):  # type: ignore[type-arg]
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            try:
                return super().get(timeout=0 if timeout is not None else None)
            except Empty:
                clock.now += timeout or 0.0
                raise

    monkeypatch.setattr(tasks, "SimpleQueue", Inbox)
    for module in (call, context, engine_run, step_recorder, tasks):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def never() -> Iterator[Gate]:
    gate = Gate(y=1)
    yield gate
    gate.open.set()


def replay(
    ran: Ran, plan: Skill, *capabilities: Capability, nested: tuple[Skill, ...] = (), **options: Any
) -> ReplayDifference | None:
    first, *events = ran.sink.events
    events = [first._replace(payload={**first.payload, "rules": LATEST}), *events]
    sink = ReplaySink(LogIndex(events), Redactor(()), Control())
    sink.chain = ran.runner.chain  # type: ignore[method-assign]
    engine = build_engine(
        Catalog(
            capabilities={c.id: c for c in capabilities}, skills={s.id: s for s in (plan, *nested)}
        ),
        sink=sink,
        runner=sink,
        clock=FakeClock(0),
        ids=FakeIds(0),
        options=RunOptions(**options),
        dispatcher=sink.dispatcher,
    )
    execute(engine, engine.plan_of(plan.id), request(), RUN_ID)
    return sink.find_missing()


def unreachable(given: Any) -> Any:
    raise TransportError("call.transport", "refused", left=False)


A, B = capability("c.a"), capability("c.b")


@pytest.mark.parametrize("by", ["binding", "step"])
def test_a_wait_before_a_repeat_that_its_limit_cut_off_is_cut_off(clock: Time, by: str) -> None:
    runner = ScriptedRunner({"c.a": clock.takes(0.4, unreachable)})
    runner.members["c.a"] = (member("b", retries=3 if by == "binding" else 0, base=0.2),)
    retry = {"max_attempts": 4, "backoff_seconds": 0.2} if by == "step" else None
    plan = skill(step("a", "c.a", timeout_seconds=0.5, retry=retry))
    ran = run(plan, runner, A)
    assert (ran.code, len(runner.attempts)) == ("step.timeout", 1)
    assert replay(ran, plan, A) is None


def test_an_attempt_and_its_step_may_reach_their_limits_at_once(clock: Time, never: Gate) -> None:
    runner = ScriptedRunner({"c.a": clock.takes(0.6, never)})
    runner.members["c.a"] = (member("b", timeout=0.5, retries=9, base=0.0),)
    plan = skill(step("a", "c.a", timeout_seconds=0.5))
    ran = run(plan, runner, A)
    assert (ran.code, len(runner.attempts)) == ("step.timeout", 1)
    assert [each["code"] for each in ran.closing("a").payload["attempts"]] == ["call.timeout"]
    assert replay(ran, plan, A) is None


@pytest.mark.parametrize("inner", ["attempt", "step", "none"])
@pytest.mark.parametrize("outer", ["nested", "run"])
def test_what_an_outer_limit_cut_off_does_not_reach_its_own(
    clock: Time, never: Gate, outer: str, inner: str
) -> None:
    runner = ScriptedRunner({"c.a": clock.takes(0.4, gives(y=1)), "c.b": clock.takes(0.2, never)})
    runner.members["c.b"] = (member("b", timeout=0.3 if inner == "attempt" else 30.0),)
    child = skill(
        step("a", "c.a"),
        step("b", "c.b", timeout_seconds=0.3 if inner == "step" else None),
        id="test.child",
    )
    plan = skill(step("n", "skill:test.child", timeout_seconds=0.5 if outer == "nested" else None))
    options = {"timeout": 0.5} if outer == "run" else {}
    ran = run(plan, runner, A, B, nested=[child], **options)
    assert ran.code == ("step.timeout" if outer == "nested" else "run.timeout")
    assert replay(ran, plan, A, B, nested=(child,), **options) is None


@pytest.mark.parametrize("waits", ["sleep", "call"])
def test_a_limit_is_reached_before_what_came_after_it(waits: str) -> None:
    ended: list[str] = []

    def cut_off() -> Effects:
        sleep = Sleep(130.0, position=10)
        yield sleep if waits == "sleep" else WorkerCall(unanswered, 100.1, late, position=10)

    def answered() -> Effects:
        yield WorkerCall(lambda: 1, 100.1, late, position=12)

    def unanswered() -> None:
        raise CallNeverAnswered

    def late() -> TimeoutError:
        return TimeoutError()

    def root() -> Effects:
        yield Spawn(cut_off(), "cut off", 100.5, late)
        yield Spawn(answered(), "answered", 100.2, late)
        for _ in range(2):
            task: Task = yield Next()
            ended.append(f"{task.label} {type(task.error).__name__}")

    Loop(2, live=False).run(Spawn(root()))
    assert ended == ["cut off TimeoutError", "answered NoneType"]
