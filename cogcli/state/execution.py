"""The state of a run in memory (docs/reference/execution.md#state), and its trace (docs/reference/execution.md#trace).

The trace has an entry for each step that has ended, and totals. Times are RFC 3339 texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cogcli.base.jsonvalue import NOTHING, copy_writable
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json

STATE_VERSION: Final = "1.0.0"


class TraceStep(NamedTuple):
    """The trace entry of a step that has ended: its status, times, reads, and the writes that were applied.

    A step that never started has no `started_at`.
    """

    step_id: str
    capability_id: str
    status: str
    started_at: str | None = None
    ended_at: str | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    latency_ms: int | None = None

    def to_payload(self) -> Json:
        """Return the entry as a JSON object."""
        return {**self._asdict(), "reads": list(self.reads), "writes": list(self.writes)}


class TraceMetrics:
    """Totals over the steps that have ended. `elapsed_ms` is in milliseconds."""

    def __init__(self) -> None:
        self.step_count = 0
        self.llm_calls = 0
        self.tool_calls = 0
        self.tokens_in = 0
        self.tokens_out = 0
        self.elapsed_ms = 0

    def to_payload(self) -> dict[str, int]:
        """Return the totals as a JSON object."""
        return dict(vars(self))


class TraceState:
    """The trace of a run: its entries, in the order in which the steps ended, and the totals."""

    def __init__(self) -> None:
        self.steps: list[TraceStep] = []
        self.metrics = TraceMetrics()


class ExecutionState:
    """The state of one run. Only `state.reducer` changes it.

    It contains no events, since the episode's log has them. A copy would make memory grow with the length of the run.
    """

    def __init__(
        self,
        run_id: str,
        trace_id: str,
        skill_id: str,
        skill_version: str | None = None,
        parent_run_id: str | None = None,
        inputs: Json | None = None,
        frame: FrameState | None = None,
        updated_at: str | None = None,
    ) -> None:
        self.run_id = run_id
        self.trace_id = trace_id
        self.skill_id = skill_id
        self.skill_version = skill_version
        self.parent_run_id = parent_run_id
        self.inputs = {} if inputs is None else inputs
        self.frame = FrameState() if frame is None else frame
        self.vars: Json = {}
        self.outputs: Json = {}
        self.extensions: Json = {}
        self.working = WorkingState()
        self.output = OutputState()
        self.trace = TraceState()
        self.step_results: dict[str, TraceStep] = {}
        """The last trace entry of each step."""
        self.status = "pending"
        self.iteration = 0
        self.plan_order: dict[str, int] = {}
        self.running: dict[str, int] = {}
        """Running steps with their position in plan order (nested runs: in order of starting)."""
        self.updated_at = updated_at
        self.state_version = STATE_VERSION

    @property
    def current_step(self) -> str | None:
        """The first running step in plan order, or None if no step is running."""
        return min(self.running, key=self.running.__getitem__) if self.running else None


class RunState(NamedTuple):
    """The parts of a run's state that rules may read when a call is evaluated."""

    inputs: Mapping[str, object]
    vars: Mapping[str, object]
    outputs: Mapping[str, object]
    now: str
    inside: tuple[str, ...] = ()
    """The skill tools that the call is nested in."""


def fork(state: ExecutionState) -> ExecutionState:
    """Return a copy of a state with independent writable namespaces. A `while` step changes such a copy."""
    fork = ExecutionState.__new__(ExecutionState)
    vars(fork).update(vars(state))
    fork.vars = copy_writable(state.vars)
    fork.outputs = copy_writable(state.outputs)
    fork.extensions = copy_writable(state.extensions)
    fork.working = WorkingState(**copy_writable(to_payload(state.working)))
    fork.output = OutputState(**copy_writable(to_payload(state.output)))
    return fork


def snapshot(state: ExecutionState) -> Json:
    """Return the state as the JSON object `x-cognitive` of `state.json`. The object shares values with the state."""
    return {
        "inputs": state.inputs,
        "frame": to_payload(state.frame),
        "working": to_payload(state.working),
        "output": to_payload(state.output),
        "vars": state.vars,
        "outputs": state.outputs,
        "extensions": state.extensions,
        "trace": {
            "steps": [step.to_payload() for step in state.trace.steps],
            "metrics": state.trace.metrics.to_payload(),
        },
        "state_version": state.state_version,
        "skill_version": state.skill_version,
        "iteration": state.iteration,
        "current_step": state.current_step,
        "parent_run_id": state.parent_run_id,
        "updated_at": state.updated_at,
    }


class FrameState(NamedTuple):
    """The goal, context, constraints, criteria, assumptions and priority of a run. They are fixed when it starts."""

    goal: str | None = None
    context: Json = NOTHING
    constraints: Json = NOTHING
    success_criteria: Json = NOTHING
    assumptions: tuple[str, ...] = ()
    priority: str | None = None


class WorkingState:
    """The working memory of a run: ten typed slots."""

    def __init__(self, **given: object) -> None:
        self.artifacts: Json = {}
        self.entities: list[Json] = []
        self.options: list[Json] = []
        self.criteria: list[Json] = []
        self.evidence: list[Json] = []
        self.risks: list[Json] = []
        self.hypotheses: list[Json] = []
        self.uncertainties: list[Json] = []
        self.intermediate_decisions: list[Json] = []
        self.messages: list[Json] = []
        for slot, value in given.items():
            setattr(self, slot, value)


class OutputState:
    """Metadata of the run's result: its value, type, summary and status reason.

    The outputs themselves are in `ExecutionState.outputs`.
    """

    def __init__(
        self,
        result: object = None,
        result_type: str | None = None,
        summary: str | None = None,
        status_reason: str | None = None,
    ) -> None:
        self.result = result
        self.result_type = result_type
        self.summary = summary
        self.status_reason = status_reason


def to_payload(block: FrameState | WorkingState | OutputState) -> Json:
    """Return a block as a JSON object with members in declared order. It shares values; tuples become lists."""
    if isinstance(block, FrameState):
        return {**block._asdict(), "assumptions": list(block.assumptions)}
    return dict(vars(block))


def frame_from(raw: Json) -> FrameState:
    """Parse the frame from a checked object, which has at most the six fields."""
    given = {k: v for k, v in raw.items() if v is not None}
    if "assumptions" in given:
        given["assumptions"] = tuple(given["assumptions"])
    return FrameState(**given)
