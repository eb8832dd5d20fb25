"""The run in memory: CognitiveState v1."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from cogcli.core.jsonvalue import copied
from cogcli.state.cognitive import FrameState, OutputState, WorkingState, as_dict
from cogcli.state.trace import TraceState

STATE_VERSION: Final = "1.0.0"


class StepResult(NamedTuple):
    """How one step ended. `status` is done, failed, skipped or vetoed; `reason` says why it was skipped."""

    step_id: str
    status: str
    reason: str | None
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    latency_ms: int | None
    error: dict[str, Any] | None


@dataclass(slots=True)
class ExecutionState:
    """All that a run knows. Only `mapping.apply` changes it.

    The seed's `events` list is the episode's log: keeping it here too would make a run's memory grow with its length.
    """

    run_id: str
    trace_id: str
    skill_id: str
    skill_version: str | None = None
    parent_run_id: str | None = None
    inputs: dict[str, Any] = field(default_factory=dict)
    frame: FrameState = field(default_factory=FrameState)
    vars: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    extensions: dict[str, Any] = field(default_factory=dict)
    working: WorkingState = field(default_factory=WorkingState)
    output: OutputState = field(default_factory=OutputState)
    trace: TraceState = field(default_factory=TraceState)
    step_results: dict[str, StepResult] = field(default_factory=dict)
    status: str = "pending"
    iteration: int = 0
    plan_order: dict[str, int] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    """Steps begun and not ended, with their position in plan order (nested runs: in order of starting)."""
    updated_at: str | None = None
    state_version: str = STATE_VERSION

    @property
    def current_step(self) -> str | None:
        """The running step that comes first in plan order."""
        return min(self.running, key=self.running.__getitem__) if self.running else None


def forked(state: ExecutionState) -> ExecutionState:
    """A copy whose writable namespaces share nothing with `state`; for what only one step may see."""
    return replace(
        state,
        vars=copied(state.vars),
        outputs=copied(state.outputs),
        extensions=copied(state.extensions),
        working=WorkingState(**copied(as_dict(state.working))),
        output=OutputState(**copied(as_dict(state.output))),
    )


def snapshot(state: ExecutionState) -> dict[str, Any]:
    """The state as the JSON object that stands in `state.json` under `x-cognitive`; values are shared."""
    return {
        "inputs": state.inputs,
        "frame": as_dict(state.frame),
        "working": as_dict(state.working),
        "output": as_dict(state.output),
        "vars": state.vars,
        "outputs": state.outputs,
        "extensions": state.extensions,
        "trace": {
            "steps": [step.as_dict() for step in state.trace.steps],
            "metrics": state.trace.metrics.as_dict(),
        },
        "state_version": state.state_version,
        "skill_version": state.skill_version,
        "iteration": state.iteration,
        "current_step": state.current_step,
        "parent_run_id": state.parent_run_id,
        "updated_at": state.updated_at,
    }
