"""The spans of a trace, each with what happened within it, and values of a log as spans hold them.

Times are microseconds since 1970.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeGuard

from cogcli.base.canonical import span_of
from cogcli.base.jsonvalue import object_of, text_of
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event

INTERNAL: Final = 1
CLIENT: Final = 3

Attributes = dict[str, Any]
"""Texts, whole numbers, booleans and lists of texts by name."""


class Moment(NamedTuple):
    """Something that happened within a span."""

    name: str
    at: int
    attributes: Attributes


class TraceSpan:
    """One operation with a beginning and an end."""

    __slots__ = (
        "attributes", "end", "error", "id", "is_open", "kind", "message", "moments", "name", "parent", "start",
    )  # fmt: skip

    def __init__(self, id: str, parent: str, name: str, start: int, attributes: Attributes) -> None:
        self.id = id
        self.parent = parent
        """The id of the span around it, empty for the outermost one."""
        self.name = name
        self.kind = INTERNAL
        self.start = start
        self.end = start
        self.attributes = attributes
        self.moments: list[Moment] = []
        self.error = ""
        """The code of what went wrong, empty where nothing did."""
        self.message = ""
        self.is_open = True

    def close(self, at: int) -> None:
        """End it at a time, never before it began."""
        self.end = max(self.start, at)
        self.is_open = False

    def cut_off(self, at: int) -> None:
        """End it where it is open: no event says when it ended."""
        if self.is_open:
            self.close(at)
            self.attributes["cogcli.incomplete"] = True

    def fail(self, code: str, message: str = "") -> None:
        """Note the error that it ended with."""
        self.error, self.message = code, message
        self.attributes["error.type"] = code


class Trace(NamedTuple):
    """The spans of a log, outermost first, in the order in which they were opened."""

    id: str
    resource: Attributes
    spans: list[TraceSpan]


class OpenSpans:
    """The spans of a log while it is read, in the order in which they were opened; `now` is the time of the event
    read."""

    def __init__(self) -> None:
        self.now = 0
        self.count = 0
        """Events read so far."""
        self.spans: list[TraceSpan] = []
        self.runs: dict[str, TraceSpan] = {}
        self.steps: dict[tuple[str, str], TraceSpan] = {}
        self.around: dict[str, TraceSpan] = {}
        """By run the span within it that is around its steps."""
        self.openings: dict[str, str] = {}
        """Span id -> the id of the event that opened it: attempts are named by it."""
        self._used: set[str] = set()

    def open(
        self, event: Event, parent: str, name: str, attributes: Attributes, *, part: str = ""
    ) -> TraceSpan:
        """A span that begins with this event; `part` keeps several of one event apart."""
        opening = (text_of(event.id) or f"{event.episode_id}/{self.count}") + part
        id = span_of(opening)
        if id in self._used:  # a log that names two events alike; a span must not be its own parent
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

    def near(self, run_id: str, step_id: str) -> TraceSpan:
        """The span that is open around something of a step: the step's, its owner's, a turn's part, else the run's."""
        while step_id:
            span = self.steps.get((run_id, step_id))
            if span is not None and span.is_open:
                return span
            step_id = StepPath(step_id).owner
        around = self.around.get(run_id)
        return around if around is not None and around.is_open else self.runs[run_id]

    def cut_off(self, at: int) -> None:
        """End the steps that were open when a run stopped: they begin anew, if at all."""
        for span in self.steps.values():
            span.cut_off(at)

    def end(self) -> None:
        """End whatever is open at the end of the log."""
        for span in self.spans:
            span.cut_off(self.now)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_WHOLE: Final = 2**53


def microseconds_of(timestamp: Any) -> int | None:
    """Microseconds since 1970 of an RFC 3339 text, None if it is none."""
    try:
        at = datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        return None
    return max(0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND)


def duration_of(metrics: Any) -> int:
    """Microseconds that something took, as its closing event measured it."""
    ms = object_of(metrics).get("duration_ms")
    return ms * 1000 if is_count(ms) else 0


def is_count(value: Any) -> TypeGuard[int]:
    """Whether it is a whole number that every reader can hold."""
    return type(value) is int and 0 <= value < _WHOLE


def json_text(value: Any) -> str:
    """Compact JSON, the empty text for nothing."""
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def some(attributes: Attributes) -> Attributes:
    """The attributes that say something."""
    return {name: value for name, value in attributes.items() if value not in ("", None)}
