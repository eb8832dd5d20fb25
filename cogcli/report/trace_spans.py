"""The spans of a trace with the moments inside them, and log values converted for spans.

Times are microseconds since 1970.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeGuard

from cogcli.base.canonical import span_of
from cogcli.base.jsonvalue import text_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event
from cogcli.declarations.value_types import Json
from cogcli.episode.document_bytes import duration_in

INTERNAL: Final = 1
CLIENT: Final = 3

Attributes = Json
"""Texts, whole numbers, booleans and lists of texts by name."""


class Moment(NamedTuple):
    """An event within a span."""

    name: str
    at: int
    attributes: Attributes


class TraceSpan:
    """One operation with a start and an end."""

    __slots__ = (
        "attributes", "end", "error", "id", "is_open", "kind", "message", "moments", "name", "parent", "start",
    )  # fmt: skip

    def __init__(self, id: str, parent: str, name: str, start: int, attributes: Attributes) -> None:
        self.id = id
        self.parent = parent
        """The id of the span around it, empty for the outermost span."""
        self.name = name
        self.kind = INTERNAL
        self.start = start
        self.end = start
        self.attributes = attributes
        self.moments: list[Moment] = []
        self.error = ""
        """The code of the error, empty without one."""
        self.message = ""
        self.is_open = True

    def close(self, time: int) -> None:
        """End the span at a time, or at its start if the time is earlier."""
        self.end = max(self.start, time)
        self.is_open = False

    def close_incomplete(self, at: int) -> None:
        """End the span if it is open, and mark it as incomplete, because no event records its
        end."""
        if self.is_open:
            self.close(at)
            self.attributes["cogcli.incomplete"] = True

    def fail(self, code: str, message: str = "") -> None:
        """Record the error with which the span ended."""
        self.error, self.message = code, message
        self.attributes["error.type"] = code


class Trace(NamedTuple):
    """The spans of a log, outermost first, in the order in which they were opened."""

    id: str
    resource: Attributes
    spans: list[TraceSpan]


class OpenSpans:
    """The spans of a log while it is read, in the order in which they were opened.

    `now` is the time of the current event."""

    def __init__(self) -> None:
        self.now = 0
        self.count = 0
        """The number of events read so far."""
        self.spans: list[TraceSpan] = []
        self.runs: dict[str, TraceSpan] = {}
        self.steps: dict[tuple[str, str], TraceSpan] = {}
        self.enclosing: dict[str, TraceSpan] = {}
        """By run: the span within it that encloses its steps."""
        self.openings: dict[str, str] = {}
        """By span id: the id of the event that opened it. Ids of attempt spans are made from it."""
        self._used: set[str] = set()

    def advance(self, event: Event) -> None:
        """Set the current time to the time of the next event. It never decreases, even if timestamps do."""
        self.now = max(self.now, microseconds_of(event.timestamp) or 0)
        self.count += 1

    def open(
        self, event: Event, parent: str, name: str, attributes: Attributes, *, part: str = ""
    ) -> TraceSpan:
        """Open and return a span that starts with this event. `part` distinguishes spans that start
        with the same event."""
        opening = (text_of(event.id) or f"{event.episode_id}/{self.count}") + part
        id = span_of(opening)
        if id in self._used:  # a log with two equal event ids: a span must not be its own parent
            opening = f"{opening}/{event.episode_id}/{self.count}"
            id = span_of(opening)
        span = TraceSpan(id, parent, name, self.now, attributes)
        self.openings[id] = opening
        self.keep(span)
        return span

    def keep(self, span: TraceSpan) -> None:
        """Add a span."""
        self._used.add(span.id)
        self.spans.append(span)

    def find_enclosing(self, run_id: str, step_id: str) -> TraceSpan:
        """Return the open span that contains an event of a step.

        It is the span of the step, of the step that owns it, of a part of a turn, or of the run."""
        while step_id:
            span = self.steps.get((run_id, step_id))
            if span is not None and span.is_open:
                return span
            step_id = StepPath(step_id).owner
        enclosing = self.enclosing.get(run_id)
        return enclosing if enclosing is not None and enclosing.is_open else self.runs[run_id]

    def close_incomplete(self, at: int) -> None:
        """End the spans that are open when a run stops. Resuming the run opens new spans."""
        for span in self.steps.values():
            span.close_incomplete(at)

    def end(self) -> None:
        """End all spans that are open at the end of the log."""
        for span in self.spans:
            span.close_incomplete(self.now)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_WHOLE: Final = 2**53


def microseconds_of(timestamp: Any) -> int | None:
    """Return microseconds since 1970 for an RFC 3339 text, or None if the text is not one."""
    try:
        at = datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        return None
    return max(0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND)


def duration_of(metrics: Json | None) -> int:
    """Return the duration in the metrics of a closing event, in microseconds; 0 without a duration."""
    ms = duration_in(metrics)
    return ms * 1000 if is_count(ms) else 0


def is_count(value: object) -> TypeGuard[int]:
    """Return whether a value is a whole number that every JSON reader can represent."""
    return type(value) is int and 0 <= value < _WHOLE


def json_text(value: object) -> str:
    """Return compact JSON, or an empty text for None."""
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def drop_empty(attributes: Attributes) -> Attributes:
    """Return the attributes without empty strings and None."""
    return {name: value for name, value in attributes.items() if value not in ("", None)}
