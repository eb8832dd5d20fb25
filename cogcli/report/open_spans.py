"""The spans of a trace while its log is read: which are open, and around what."""

from __future__ import annotations

from cogcli.core.step_path import StepPath
from cogcli.core.trace_ids import span_of
from cogcli.events.envelope import Event
from cogcli.report.payload_values import word
from cogcli.report.trace_spans import Attributes, TraceSpan


class OpenSpans:
    """Spans in the order in which they were opened; `now` is the time of the event that is read."""

    def __init__(self) -> None:
        self.now = 0
        self.count = 0
        """Events read so far."""
        self.spans: list[TraceSpan] = []
        self.runs: dict[str, TraceSpan] = {}
        self.steps: dict[tuple[str, str], TraceSpan] = {}
        self.openings: dict[str, str] = {}
        """Span id -> the id of the event that opened it: attempts are named by it."""
        self._used: set[str] = set()

    def open(self, event: Event, parent: str, name: str, attributes: Attributes) -> TraceSpan:
        """A span that begins with this event."""
        opening = word(event.id) or f"{event.episode_id}/{self.count}"
        id = span_of(opening)
        if id in self._used:  # a log that names two events alike; a span must not be its own parent
            opening = f"{opening}/{event.episode_id}/{self.count}"
            id = span_of(opening)
        span = TraceSpan(id, parent, name, self.now, attributes)
        self.openings[id] = opening
        self.keep(span)
        return span

    def keep(self, span: TraceSpan) -> None:
        """One span more."""
        self._used.add(span.id)
        self.spans.append(span)

    def near(self, run_id: str, step_id: str) -> TraceSpan:
        """The span that is open around something of a step: the step's, its owner's, else the run's."""
        while step_id:
            span = self.steps.get((run_id, step_id))
            if span is not None and span.is_open:
                return span
            step_id = StepPath(step_id).owner
        return self.runs[run_id]

    def cut_off(self, at: int) -> None:
        """Steps that were under way when a run stopped: they begin anew, if at all."""
        for span in self.steps.values():
            incomplete(span, at)

    def end(self) -> None:
        """The log is over, and with it whatever is open."""
        for span in self.spans:
            incomplete(span, self.now)


def incomplete(span: TraceSpan, at: int) -> None:
    """End a span whose end no event tells."""
    if span.is_open:
        span.close(at)
        span.attributes["cogcli.incomplete"] = True
