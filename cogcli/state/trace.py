"""What a run did: one entry per ended step, and sums (cognitive-state-v1). Times are RFC 3339 texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class TraceStep(NamedTuple):
    """One ended step: status, when, what it read and really wrote. A step never begun has no `started_at`."""

    step_id: str
    capability_id: str
    status: str
    started_at: str | None = None
    ended_at: str | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    latency_ms: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The entry as a JSON object."""
        return {**self._asdict(), "reads": list(self.reads), "writes": list(self.writes)}


@dataclass(slots=True)
class TraceMetrics:
    """Sums over ended steps, kept up to date while the run goes on."""

    step_count: int = 0
    llm_calls: int = 0
    tool_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    elapsed_ms: int = 0

    def as_dict(self) -> dict[str, int]:
        """The sums as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class TraceState:
    """Entries in order of ending, and the sums."""

    steps: list[TraceStep] = field(default_factory=list)
    metrics: TraceMetrics = field(default_factory=TraceMetrics)
