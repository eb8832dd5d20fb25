"""What a run did: one entry per ended step, and sums (docs/reference/execution.md#trace). Times are RFC 3339 texts."""

from __future__ import annotations

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

    def to_payload(self) -> dict[str, Any]:
        """The entry as a JSON object."""
        return {**self._asdict(), "reads": list(self.reads), "writes": list(self.writes)}


class TraceMetrics:
    """Sums over the steps that have ended so far; `elapsed_ms` in milliseconds."""

    def __init__(self) -> None:
        self.step_count = 0
        self.llm_calls = 0
        self.tool_calls = 0
        self.tokens_in = 0
        self.tokens_out = 0
        self.elapsed_ms = 0

    def to_payload(self) -> dict[str, int]:
        """The sums as a JSON object."""
        return dict(vars(self))


class TraceState:
    """Entries in order of ending, and the sums."""

    def __init__(self) -> None:
        self.steps: list[TraceStep] = []
        self.metrics = TraceMetrics()
