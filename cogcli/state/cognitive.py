"""The cognitive blocks of a run: frame, working memory, output metadata (cognitive-state-v1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class FrameState:
    """Why this run exists and what bounds it. Fixed when the run is created."""

    goal: str | None = None
    context: dict[str, Any] = field(default_factory=dict)
    constraints: dict[str, Any] = field(default_factory=dict)
    success_criteria: dict[str, Any] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    priority: str | None = None


@dataclass(slots=True)
class WorkingState:
    """Ten typed slots of working memory. It dies with the run."""

    artifacts: dict[str, Any] = field(default_factory=dict)
    entities: list[dict[str, Any]] = field(default_factory=list)
    options: list[dict[str, Any]] = field(default_factory=list)
    criteria: list[dict[str, Any]] = field(default_factory=list)
    evidence: list[dict[str, Any]] = field(default_factory=list)
    risks: list[dict[str, Any]] = field(default_factory=list)
    hypotheses: list[dict[str, Any]] = field(default_factory=list)
    uncertainties: list[dict[str, Any]] = field(default_factory=list)
    intermediate_decisions: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class OutputState:
    """What kind of result this is, beside the outputs themselves."""

    result: Any = None
    result_type: str | None = None
    summary: str | None = None
    status_reason: str | None = None


def as_dict(block: FrameState | WorkingState | OutputState) -> dict[str, Any]:
    """A block as a JSON object in declared order; values are shared, tuples become lists."""
    return {
        name: list(value) if type(value := getattr(block, name)) is tuple else value
        for name in block.__slots__
    }


def frame_from(raw: dict[str, Any]) -> FrameState:
    """A frame from a checked object holding at most the six fields."""
    given = {k: v for k, v in raw.items() if v is not None}
    if "assumptions" in given:
        given["assumptions"] = tuple(given["assumptions"])
    return FrameState(**given)
