"""A whole run: first event, program, outcome, last event.

This one driver serves live runs, resume and replay, for a skill's plan and for an agent's turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from cogcli.base.errors import (
    CogcliError,
    InternalError,
    RuntimeErrorBase,
    RunTimeoutError,
    out_of_memory,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.call_records import RunError
from cogcli.declarations.envelope import Draft, draft_of
from cogcli.declarations.events import (
    PlanCreated,
    RunAborting,
    RunPaused,
    RunStarted,
    RunTerminated,
    SkillRef,
)
from cogcli.run.engine.context import Engine, Fallback, Run
from cogcli.run.engine.effects import Cancelled, Effects, Interrupted, Spawn
from cogcli.run.engine.graph import GraphDriver
from cogcli.run.engine.outcome import RunOutcome, decide_outcome, describe_outcome
from cogcli.run.engine.plan import StepPlan, plan_entry
from cogcli.run.engine.step import spawn_step
from cogcli.run.engine.tasks import GRACE_SECONDS
from cogcli.state.execution import ExecutionState
from cogcli.state.reducer import initial_state


class Request(NamedTuple):
    """The request of a root run, checked and with defaults applied."""

    task: str
    inputs: dict[str, Any]
    frame: dict[str, Any]
    seed: int
    tags: Mapping[str, str]
    pins: Mapping[str, Any]
    selection: Mapping[str, Any] = {}
    """By capability id: the pinned chain and the reason for its choice."""
    taken_over: Mapping[str, Any] = {}
    """By step: the earlier result that it reuses. Recorded in the first event, so that a resume reuses it too."""
    policy: Mapping[str, Any] = {}
    """The payload of the run's PolicyRequest. Empty for the default policy."""
    agent: Mapping[str, Any] = {}
    """The request to an agent, and the data that its stores supplied for it. Empty for the run of a skill."""
    effects: Mapping[str, Any] = {}
    """By step path: the calls of the source run and the decisions about them. Recorded in the first event."""
    approvals: Mapping[str, Any] = {}
    """By id: the unused approvals of the source run. Recorded in the first event."""
    gateway: Mapping[str, Any] = {}
    """The session of a gateway. Empty for any other run."""
    typed: Sequence[str] = ()
    """The inputs whose typed paths allow the run to read files that are otherwise forbidden."""
    files: Sequence[dict[str, Any]] = ()
    """The files that the run may send, as payloads of PinnedFile."""


class FinishedRun(NamedTuple):
    """A root run that ended or waits for a person, with its outcome, its state, and the status of each step by id."""

    outcome: RunOutcome
    state: ExecutionState
    steps: dict[str, str]
    fallbacks: tuple[Fallback, ...] = ()
    not_stored: CogcliError | None = None
    """The error that kept a part of the learned facts out of the store. None if all are stored."""


class Limit(NamedTuple):
    """The remaining seconds of a root run, and the error to raise after them."""

    seconds: float
    timeout_error: Callable[[], RuntimeErrorBase]

    @property
    def is_gone(self) -> bool:
        """Whether no time remains."""
        return self.seconds <= 0


def run_limit(engine: Engine) -> Limit | None:
    """Return the remaining part of the run's time limit, or None without a limit."""
    seconds = engine.timeout_seconds
    if seconds is None:
        return None
    return Limit(
        max(0.0, seconds - engine.timed_ms / 1000),
        lambda: RunTimeoutError("run.timeout", f"exceeded {seconds:g} s"),
    )


class RunProgram(Protocol):
    """The work that a root run does between its first and its last event."""

    def limit(self, engine: Engine) -> Limit | None:
        """Return the time limit of the run, or None."""
        ...

    def run(self, root: RootRun) -> Effects:
        """Execute the program and return the RunOutcome. May raise RuntimeErrorBase."""
        ...

    def end(self, root: RootRun, outcome: RunOutcome) -> RunOutcome:
        """Append the events that precede the last one, and return the final outcome. Not called for a run that
        waits.
        """
        ...


class SkillProgram:
    """The `RunProgram` of a skill: drives its plan once."""

    def limit(self, engine: Engine) -> Limit | None:
        return run_limit(engine)

    def run(self, root: RootRun) -> Effects:
        run = root.run
        outcome = yield from root.drive(run.plan, _plan_event(run))
        return describe_outcome(outcome, run.state.skill_id)

    def end(self, root: RootRun, outcome: RunOutcome) -> RunOutcome:
        return outcome


SKILL: Final = SkillProgram()


def execute(
    engine: Engine, plan: StepPlan, request: Request, run_id: str, program: RunProgram = SKILL
) -> FinishedRun:
    """Run a program until `run.terminated` or `run.paused` is appended, and return the finished run. Blocks until then;
    `engine.loop.interrupt` ends it early. Raise the errors of the sink, since no run continues without a log.
    """
    root = RootRun(engine, plan, request, run_id, program)
    limit = program.limit(engine)
    if limit is not None and limit.is_gone and engine.spent_ms is not None:
        limit = None  # the log is replayed, and `run.resume` blocks new calls
    deadline = None if limit is None else time.monotonic() + limit.seconds
    timeout_error = limit.timeout_error if limit else None
    try:
        finished: FinishedRun = engine.loop.run(
            Spawn(root.steps(), deadline=deadline, timeout_error=timeout_error)
        )
    finally:
        engine.runner.close(0.0 if engine.loop.grace_over else GRACE_SECONDS)
    engine.append_service_changes(run_id, has_ended=True)
    return finished


class RootRun:
    """A root run while its program drives it. All its plans share the state of `run`."""

    def __init__(
        self, engine: Engine, plan: StepPlan, request: Request, run_id: str, program: RunProgram
    ) -> None:
        self.engine = engine
        self._program = program
        self._started = engine.clock.monotonic()
        self._started_at = engine.clock.now()
        self.first = engine.append(_first_event(engine, plan, request, run_id))
        if engine.spent_ms is not None:
            self._started_at = self.first.timestamp
        self.run = Run(engine, plan, initial_state(self.first), "", 0, spawn_step)
        self._graph: GraphDriver | None = None

    def steps(self) -> Effects:
        run = self.run
        outcome = yield from self._run_program()
        if outcome.status == "pending":
            reason = (
                f"{outcome.error.code}: {outcome.error.message}"
                if outcome.error
                else "a step waits"
            )
            run.emit(draft_of(RunPaused(reason=reason), run.state.run_id), durable=True)
        else:
            self.engine.append_deferred()
            outcome = self._program.end(self, outcome)
            self._append_end(outcome)
        results = run.state.step_results
        ids = dict.fromkeys((*run.state.plan_order, *results))
        statuses = {name: results[name].status if name in results else "pending" for name in ids}
        return FinishedRun(
            outcome,
            run.state,
            statuses,
            tuple(self.engine.fallbacks),
            self.engine.not_stored,
        )

    def drive(self, plan: StepPlan, created: Draft) -> Effects:
        """Append the event of a plan, run its steps on the state of this run, and return the RunOutcome. Raise
        Interrupted after a signal.
        """
        run = self.run
        run.emit(created)
        del created  # else the records of all steps would live as long as the run
        if plan is not run.plan:
            run = Run(self.engine, plan, run.state, "", 0, spawn_step)
        self._graph = GraphDriver(run)
        self.begin_snapshots()
        yield from self._graph.drive()
        if self.engine.loop.signal is not None:
            raise Interrupted(self.engine.loop.signal)
        return decide_outcome(
            self._graph.endings,
            run.state.outputs,
            plan.skill.outputs,
            keep_going=self.engine.options.keep_going,
            lenient=run.is_lenient,
        )

    def begin_snapshots(self) -> None:
        """Write the first `state.json` of the run."""
        if self.engine.snapshots is not None:
            self.engine.snapshots.begin()

    def _run_program(self) -> Effects:
        try:
            return (yield from self._program.run(self))
        except Interrupted as interruption:
            return (yield from self._abort_after_signal(interruption.signal))
        except Cancelled:  # the log is closed: the program may not even start a model call
            if self.engine.loop.signal is None:
                raise
            return (yield from self._abort_after_signal(self.engine.loop.signal))
        except RuntimeErrorBase as error:
            return self._pending_outcome() or self._failed_outcome(error)
        except CogcliError:
            raise
        except Exception as bug:
            if self._graph is not None:
                yield from self._graph.wind_down(force=True)
            return self._failed_outcome(_internal_error(bug), bug)

    def _failed_outcome(
        self, error: RuntimeErrorBase, cause: Exception | None = None
    ) -> RunOutcome:
        error.__cause__ = cause
        return RunOutcome("error", error, dict(self.run.state.outputs))

    def _abort_after_signal(self, signal: str) -> Effects:
        """Start no further work, give running calls the grace period to end, then finish as aborted."""
        self.engine.loop.begin_shutdown()
        reason = f"{signal} received" if signal.startswith("SIG") else "closed: nothing more begins"
        self.run.emit(draft_of(RunAborting(reason=reason, signal=signal), self.run.state.run_id))
        if self._graph is not None:
            yield from self._graph.wait(until=self.engine.loop.grace_until)
            yield from self._graph.wind_down(force=True)
            yield from self._graph.drive()
        return self._pending_outcome() or RunOutcome("aborted", None, dict(self.run.state.outputs))

    def _pending_outcome(self) -> RunOutcome | None:
        """Return the outcome `pending` if the run was interrupted with an effect in doubt and must wait for a
        person.

        Return None otherwise.
        """
        engine = self.engine
        doubt = engine.in_doubt or (engine.doubts.first_open() if engine.doubts else None)
        if doubt is None or not engine.waits_in_doubt:
            return None
        return describe_outcome(
            RunOutcome("pending", doubt, dict(self.run.state.outputs)), self.run.state.skill_id
        )

    def _append_end(self, outcome: RunOutcome) -> None:
        engine, error = self.engine, outcome.error
        took = max(0, round((engine.clock.monotonic() - self._started) * 1000)) + (
            engine.spent_ms or 0
        )
        payload = RunTerminated(
            status=outcome.status,
            status_reason=error.code if error else None,
            outputs=outcome.outputs,
            error=_recorded_error(error),
            required_missing=list(outcome.required_missing),
            contradictions=list(outcome.contradictions),
        )
        completed_at = engine.clock.now()
        metrics = {
            "started_at": self._started_at,
            "completed_at": completed_at,
            "duration_ms": took,
        }
        self.run.emit(draft_of(payload, self.run.state.run_id, metrics=metrics), durable=True)


def _internal_error(bug: Exception) -> InternalError:
    """Return the error of a run that an unexpected exception ended."""
    if isinstance(bug, MemoryError):
        return out_of_memory(str(bug))
    return InternalError("internal", f"{type(bug).__name__}: {bug}")


def _first_event(engine: Engine, plan: StepPlan, request: Request, run_id: str) -> Any:
    skill = plan.skill
    payload = RunStarted(
        task=request.task,
        skill=SkillRef(id=skill.id, version=skill.version),
        inputs=request.inputs,
        frame=request.frame,
        options=engine.options.to_payload(),
        seed=request.seed,
        tags=dict(request.tags),
        pins=dict(request.pins),
        selection=dict(request.selection),
        taken_over=dict(request.taken_over),
        effects=dict(request.effects),
        contracts=engine.contradictions.to_payload(),
        policy=dict(request.policy) or None,
        agent=dict(request.agent) or None,
        gateway=dict(request.gateway) or None,
        typed=list(request.typed),
        approvals=dict(request.approvals),
        files=list(request.files),
        intuition_mode=engine.policy.intuition_mode if engine.policy else None,
        using=_find_kind(request),
        parent_run_id=None,
    )
    return draft_of(payload, run_id)


def _find_kind(request: Request) -> str:
    """Return the kind of the run's program: an agent, the client of a gateway, or the plan of a skill."""
    if request.gateway:
        return "gateway"
    return "agent" if request.agent else "runner"


def _plan_event(run: Run) -> Draft:
    """Return the draft of `plan.created`. A separate function frees the step records before the first step runs."""
    records = [plan_entry(step) for step in run.plan.steps]
    labels = [f"{each.json['kind']}:{each.json['description']}" for each in records]
    rationale = f"steps of {run.plan.skill.id} in plan order"
    source = "planner.skill"
    payload = PlanCreated(source=source, rationale=rationale, step_records=records, steps=labels)
    return draft_of(payload, run.state.run_id, speaker=source)


def _recorded_error(error: RuntimeErrorBase | None) -> RunError | None:
    if error is None:
        return None
    return RunError(
        code=error.code,
        message=error.message,
        step=error.step_id,
        capability=error.capability_id,
        binding=error.binding_id,
        service=error.service_id,
        retryable=error.retryable,
        hint=error.hint,
        reason=error.reason or None,
        effect=error.effect or None,
        say=error.say or None,
    )
