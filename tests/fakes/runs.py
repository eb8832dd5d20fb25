"""Running a skill in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from fakes.runner import ScriptedRunner
from fakes.sink import MemorySink

from cogcli.base.system import FakeClock, FakeIds, SystemClock
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Event
from cogcli.declarations.options import RunOptions
from cogcli.declarations.skill_spec import Skill
from cogcli.policy.approvals import Approvals
from cogcli.run.engine.context import Engine
from cogcli.run.engine.outcome import RunOutcome
from cogcli.run.engine.ports import CallPolicy
from cogcli.run.engine.run import FinishedRun, Request, execute
from cogcli.run.launch import build_engine
from cogcli.specs.catalog import Catalog
from cogcli.state.execution import ExecutionState
from cogcli.state.reducer import apply, initial_state

RUN_ID = "run_000000000000000a"


class Ran(NamedTuple):
    """A finished run with everything a test may look at."""

    finished: FinishedRun
    sink: MemorySink
    runner: ScriptedRunner
    seconds: float

    @property
    def outcome(self) -> RunOutcome:
        return self.finished.outcome

    @property
    def state(self) -> ExecutionState:
        return self.finished.state

    @property
    def steps(self) -> dict[str, str]:
        return self.finished.steps

    @property
    def code(self) -> str | None:
        return self.outcome.error.code if self.outcome.error else None

    def reason(self, step_id: str) -> str | None:
        """Why a step ended as it did, as its closing event says."""
        reason: str | None = self.closing(step_id).payload.get("reason")
        return reason

    def closing(self, step_id: str) -> Event:
        """A step's closing event."""
        (event,) = [e for e in self.sink.of(step_id) if "step_status" in e.payload and closes(e)]
        return event


def closes(event: Event) -> bool:
    """Whether an event ends a step."""
    return str(event.event_type).startswith("step.") and event.event_type not in (
        "step.started",
        "step.answered",
    )


def engine_for(
    runner: Any,
    capabilities: Iterable[Capability],
    skills: Iterable[Skill] = (),
    *,
    sink: Any = None,
    lines: Any = None,
    fast: bool = True,
    policy: CallPolicy | None = None,
    approvals: Approvals | None = None,
    **options: Any,
) -> Engine:
    """An engine over fakes. Time is real unless `fast`, then every reading is a millisecond later."""
    catalog = Catalog(
        capabilities={capability.id: capability for capability in capabilities},
        skills={skill.id: skill for skill in skills},
    )
    return build_engine(
        catalog,
        sink=sink if sink is not None else MemorySink(),
        lines=lines,
        runner=runner,
        clock=FakeClock(1_700_000_000) if fast else SystemClock(),
        ids=FakeIds(0),
        options=RunOptions(**options),
        policy=policy,
        approvals=approvals,
    )


SOON = 20.0
"""Seconds that only a hang exceeds: a gate of a test holds a call for 60, and a stuck call has 30."""


def request(inputs: dict[str, Any] | None = None, frame: dict[str, Any] | None = None) -> Request:
    """What a caller asks."""
    return Request("a task", inputs or {}, frame or {}, 0, {}, {})


def run(
    skill: Skill,
    runner: ScriptedRunner,
    *capabilities: Capability,
    nested: Iterable[Skill] = (),
    inputs: dict[str, Any] | None = None,
    frame: dict[str, Any] | None = None,
    fast: bool = True,
    **options: Any,
) -> Ran:
    """Run a skill to its end."""
    engine = engine_for(runner, capabilities, [skill, *nested], fast=fast, **options)
    started = time.monotonic()
    finished = execute(engine, engine.plan_of(skill.id), request(inputs, frame), RUN_ID)
    seconds = time.monotonic() - started
    assert isinstance(engine.sink, MemorySink)
    return Ran(finished, engine.sink, runner, seconds)


class Running:
    """A run in a thread of its own, for tests that act on it from outside."""

    def __init__(
        self, skill: Skill, runner: ScriptedRunner, *capabilities: Capability, **options: Any
    ) -> None:
        nested = options.pop("nested", ())
        inputs = options.pop("inputs", None)
        self.engine = engine_for(runner, capabilities, [skill, *nested], **options)
        self.runner = runner
        self._ran: list[Any] = []
        self._thread = threading.Thread(target=self._run, args=(skill, inputs))
        self._thread.start()

    def _run(self, skill: Skill, inputs: dict[str, Any] | None) -> None:
        started = time.monotonic()
        try:
            finished = execute(self.engine, self.engine.plan_of(skill.id), request(inputs), RUN_ID)
            self._ran.append(
                Ran(finished, self.engine.sink, self.runner, time.monotonic() - started)
            )
        except BaseException as error:
            self._ran.append(error)

    def interrupt(self, signal: str = "SIGINT") -> None:
        self.engine.loop.interrupt(signal)

    def result(self, timeout: float = 15.0) -> Ran:
        """How it ended. Fails where it does not."""
        self._thread.join(timeout)
        assert self._ran, "the run does not end"
        if isinstance(self._ran[0], BaseException):
            raise self._ran[0]
        ran: Ran = self._ran[0]
        return ran


def replayed(events: list[Event]) -> dict[str, ExecutionState]:
    """The states that a log folds to, by run id."""
    states: dict[str, ExecutionState] = {}
    for event in events:
        assert event.run_id is not None
        if event.event_type == "run.started":
            states[event.run_id] = initial_state(event)
        else:
            apply(states[event.run_id], event)
    return states
