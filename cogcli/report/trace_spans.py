"""What a trace is made of: spans, each with what happened within it. Times are microseconds since 1970."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

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
        """It ends now; never before it began."""
        self.end = max(self.start, at)
        self.is_open = False

    def fail(self, code: str, message: str = "") -> None:
        """What it was did not work."""
        self.error, self.message = code, message
        self.attributes["error.type"] = code


class Trace(NamedTuple):
    """The spans of a log, outermost first, in the order in which they were opened."""

    id: str
    resource: Attributes
    spans: list[TraceSpan]
