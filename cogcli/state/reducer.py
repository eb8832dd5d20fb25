"""The only reducer: it applies events to the state of their run, live, on resume and on replay.

1. A run's state begins with its `run.started` event.
2. `step.started` makes a step running. A closing event ends it, applies its writes in order, and adds its trace entry.
3. `step_count` and `elapsed_ms` include only steps that ended done, failed or vetoed. Calls and tokens of all steps are
   added.
4. `iteration` increases with each retry by a step and each `while` round after the first.
5. A step id whose last part contains `@` or `#` names a call inside a step. Such events are ignored: only the closing
   event of the step changes the state.
6. Every event of the run updates `updated_at`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from cogcli.base.errors import OutputMappingError
from cogcli.base.jsonvalue import copy_writable, kind_of
from cogcli.base.merge import merge
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.refs import Target, parse_target
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event, row_of
from cogcli.declarations.events import TYPES_OF_SKILL_RUNS, Written
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.state.execution import ExecutionState, TraceStep, frame_from


class Write(NamedTuple):
    """One write of a step. `value` is the value before merging."""

    target: Target
    strategy: str
    value: Any

    def to_payload(self) -> Json:
        """Return the write as a closing event records it."""
        return {"target": self.target.text, "strategy": self.strategy, "value": self.value}

    def to_written(self) -> Written:
        """Return the record of the write."""
        return Written.of(self.to_payload())


class ReusedResult(NamedTuple):
    """The result of a step in an earlier episode, used instead of running the step. `origin` contains the episode, the
    event and its time (`at`).
    """

    output: dict[str, Any]
    writes: tuple[Write, ...]
    origin: dict[str, str]

    def to_payload(self) -> dict[str, Any]:
        """Return the result as JSON, as the first event of the new run records it."""
        writes = [write.to_payload() for write in self.writes]
        return {"output": self.output, "writes": writes, "reused_from": self.origin}


_COUNTED: Final = frozenset(("done", "failed", "vetoed"))


class _SkillOfRun(Record):
    """The skill in a start event."""

    id: str = ""
    version: str | None = None


class _StartOfRun(Record):
    """The members of a start event that begin a state. The start of another tool may lack any of them."""

    skill: Json | None = None
    parent_run_id: str | None = None
    inputs: Json | None = None
    frame: Json | None = None


def initial_state(event: Event) -> ExecutionState:
    """Return the state of a run after its `run.started` event."""
    start = _StartOfRun.of(event.payload)
    skill = _SkillOfRun.of(start.skill or {})
    return ExecutionState(
        run_id=event.run_id or "",
        trace_id=event.trace_id or "",
        skill_id=skill.id,
        skill_version=skill.version,
        parent_run_id=start.parent_run_id,
        inputs=copy_writable(start.inputs or {}),
        frame=frame_from(copy_writable(start.frame or {})),
        updated_at=event.timestamp,
    )


def apply(state: ExecutionState, event: Event) -> None:
    """Apply an event of a run to its state. `run.started` is excluded.

    An unknown event type only updates `updated_at`.
    """
    reducer = REDUCERS.get(event.event_type or "")
    if reducer is not None:
        reducer(state, event)
    state.updated_at = event.timestamp


RunStates = dict[str | None, ExecutionState]
"""The states of a log's runs by id, the root's first."""


class RebuiltStates(NamedTuple):
    """The states of all runs of an episode: the state of the root run, and the states of child runs
    by run id."""

    root: ExecutionState
    children: dict[str, ExecutionState]


def rebuild(events: Iterable[Event]) -> RebuiltStates:
    """Return the states of all runs after these events of a log. Raise ValueError if the log starts no run."""
    states: RunStates = {}
    for event in events:
        apply_to_runs(states, event)
    if not states:
        raise ValueError("no run begins in this log")
    root, *children = states.values()
    return RebuiltStates(root, {state.run_id: state for state in children})


def apply_to_runs(states: RunStates, event: Event) -> None:
    """Apply the next event of a log to the state of its run. `run.started` creates that state."""
    row, state = row_of(event.event_type), states.get(event.run_id)
    if row.phase == "start" and state is None:
        states[event.run_id] = initial_state(event)
    elif state is not None and not (row.projected or row.cached):
        apply(state, event)


def _start_step(state: ExecutionState, event: Event) -> None:
    step_id = event.payload["step_id"]
    state.iteration += event.payload.get("round", 0) > 0
    if StepPath(step_id).is_step:
        begin_step(state, step_id)


def count_round(state: ExecutionState, number: int) -> None:
    """Count a round of a loop whose `step.started` is left out by a waypoint."""
    state.iteration += number > 0


def begin_step(state: ExecutionState, step_id: str) -> None:
    """Mark a step of this run as running."""
    state.running[step_id] = state.plan_order.get(step_id, len(state.running))


def _set_plan_order(state: ExecutionState, event: Event) -> None:
    state.plan_order = {record["id"]: n for n, record in enumerate(event.payload["step_records"])}


def _count_retry(state: ExecutionState, event: Event) -> None:
    state.iteration += event.payload.get("reason") == "retry"


def _apply_end(state: ExecutionState, event: Event) -> None:
    state.status = event.payload["status"]
    state.running.clear()


def _finish_step(state: ExecutionState, event: Event) -> None:
    payload = event.payload
    step_id, status = payload["step_id"], payload["step_status"]
    if not StepPath(step_id).is_step:
        return
    written = payload.get("writes") or ()
    writes = [
        Write(target, write["strategy"], copy_writable(write["value"]))
        for write in written
        if (target := parse_target(write["target"])) is not None
    ]
    metrics = event.metrics or {}
    entry = TraceStep(
        step_id=step_id,
        capability_id=payload.get("capability") or payload.get("uses") or "",
        status=status,
        started_at=metrics.get("started_at"),
        ended_at=metrics.get("completed_at"),
        reads=tuple(payload.get("reads") or ()),
        writes=tuple(dict.fromkeys(write["target"] for write in written)),
        latency_ms=payload.get("latency_ms"),
    )
    end_step(state, entry, writes, payload.get("usage"))


def end_step(
    state: ExecutionState,
    entry: TraceStep,
    writes: Iterable[Write],
    usage: dict[str, int] | None,
) -> None:
    """End a step of this run: apply its writes and record its result. The state takes ownership of the values."""
    for target, strategy, value in writes:
        write_value(state, target, strategy, value)
    step_id, trace = entry.step_id, state.trace
    state.running.pop(step_id, None)
    trace.steps.append(entry)
    state.step_results[step_id] = entry
    totals = trace.metrics
    if entry.status in _COUNTED:
        totals.step_count += 1
        totals.elapsed_ms += entry.latency_ms or 0
    if usage:
        _add_usage(state, usage)


def end_tool_step(state: ExecutionState, entry: TraceStep, writes: Iterable[Write]) -> None:
    """End a step of this run like `end_step`, whose only call was one of a tool without usage of tokens."""
    end_step(state, entry, writes, None)
    state.trace.metrics.tool_calls += 1


def _add_model_usage(state: ExecutionState, event: Event) -> None:
    _add_usage(state, event.payload["usage"])


REDUCERS: Final[dict[str, Callable[[ExecutionState, Event], None]]] = {
    "plan.created": _set_plan_order,
    "step.started": _start_step,
    "call.retried": _count_retry,
    "model.answered": _add_model_usage,
    "run.terminated": _apply_end,
    **{event_type: _finish_step for event_type, row in TYPES_OF_SKILL_RUNS.items() if row.closes},
}
"""The function that `apply` calls, by event type. `run.started` is handled by `initial_state`."""


def _add_usage(state: ExecutionState, usage: dict[str, int]) -> None:
    sums = state.trace.metrics
    sums.llm_calls += usage["llm_calls"]
    sums.tool_calls += usage["tool_calls"]
    sums.tokens_in += usage["tokens_in"]
    sums.tokens_out += usage["tokens_out"]


def write_value(state: ExecutionState, target: Target, strategy: str, value: Any) -> None:
    """Write a value to a target. The state takes ownership of the value. Raise OutputMappingError `output.path`."""
    root, path = getattr(state, target.namespace), target.path
    if len(path) == 1 and type(root) is dict:
        name = path[0]
        root[name] = merge(strategy, root[name], value) if name in root else value
        return
    *middle, last = path
    if target.namespace in ("working", "output"):
        if not middle:
            setattr(root, last, merge(strategy, getattr(root, last), value))
            return
        slot = middle.pop(0)
        if getattr(root, slot) is None:
            setattr(root, slot, {})
        root = _require_object(getattr(root, slot), target)
    for segment in middle:
        root = _require_object(root.setdefault(segment, {}), target)
    root[last] = merge(strategy, root.get(last), value)


def _require_object(value: Any, target: Target) -> dict[str, Any]:
    if type(value) is not dict:
        raise OutputMappingError("output.path", f"`{target.text}`: leads through {kind_of(value)}")
    return value


def find_present_kind(state: ExecutionState, target: Target) -> str | None:
    """Return the kind of the present value of a target, or None if it has none.

    Raise OutputMappingError `output.path`.
    """
    value: Any = getattr(state, target.namespace)
    for n, segment in enumerate(target.path):
        if n == 0 and target.namespace in ("working", "output"):
            value = getattr(value, segment)
        else:
            value = _require_object(value, target).get(segment, _ABSENT)
        if value is _ABSENT or (value is None and n == 0 and target.namespace == "output"):
            return None
    return kind_of(value)


_ABSENT: Final = object()
