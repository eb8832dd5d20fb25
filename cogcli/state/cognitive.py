"""The cognitive blocks of a run: frame, working memory, output metadata (docs/reference/execution.md#state)."""

from __future__ import annotations

from typing import Any, NamedTuple

from cogcli.core.jsonvalue import NOTHING


class FrameState(NamedTuple):
    """Goal, context, constraints, criteria, assumptions and priority of a run. Fixed when the run is created."""

    goal: str | None = None
    context: dict[str, Any] = NOTHING
    constraints: dict[str, Any] = NOTHING
    success_criteria: dict[str, Any] = NOTHING
    assumptions: tuple[str, ...] = ()
    priority: str | None = None


class WorkingState:
    """Ten typed slots of working memory, one per run."""

    def __init__(self, **given: Any) -> None:
        self.artifacts: dict[str, Any] = {}
        self.entities: list[dict[str, Any]] = []
        self.options: list[dict[str, Any]] = []
        self.criteria: list[dict[str, Any]] = []
        self.evidence: list[dict[str, Any]] = []
        self.risks: list[dict[str, Any]] = []
        self.hypotheses: list[dict[str, Any]] = []
        self.uncertainties: list[dict[str, Any]] = []
        self.intermediate_decisions: list[dict[str, Any]] = []
        self.messages: list[dict[str, Any]] = []
        for slot, value in given.items():
            setattr(self, slot, value)


class OutputState:
    """Metadata of the result: its value, type, summary and status reason. The outputs themselves are beside it."""

    def __init__(
        self,
        result: Any = None,
        result_type: str | None = None,
        summary: str | None = None,
        status_reason: str | None = None,
    ) -> None:
        self.result = result
        self.result_type = result_type
        self.summary = summary
        self.status_reason = status_reason


def to_payload(block: FrameState | WorkingState | OutputState) -> dict[str, Any]:
    """A block as a JSON object in declared order; values are shared, tuples become lists."""
    if isinstance(block, FrameState):
        return {**block._asdict(), "assumptions": list(block.assumptions)}
    return dict(vars(block))


def frame_from(raw: dict[str, Any]) -> FrameState:
    """A frame from a checked object holding at most the six fields."""
    given = {k: v for k, v in raw.items() if v is not None}
    if "assumptions" in given:
        given["assumptions"] = tuple(given["assumptions"])
    return FrameState(**given)
