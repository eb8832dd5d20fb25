"""Encodes the constant members of an event once, as a line with placeholders for the other members.

The constants come from an event that was built like any other, so that no member is spelled here
(docs/adr/0028-plain-steps.md).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import orjson

from cogcli.declarations.envelope import Event, to_json

_MARK: Final = "\x1f"
"""No id, path or text of a spec has this character."""
_HOLE: Final = re.compile(rb'"\\u001f([a-z_]+)\\u001f"')
_ENVELOPE: Final = ("seq", "id", "timestamp", "prev")
_ENVELOPE_SIZE: Final = 160
"""The most bytes that the JSON of these four has."""


class EventLine(NamedTuple):
    """The line of an event without its checksum, as a bytes format with named placeholders."""

    format: bytes
    size: int
    """The most bytes of a line, without what fills the holes of the payload."""


class PlacedLine(NamedTuple):
    """An event in the log that was built from an `EventLine`: id, timestamp, and text without
    checksum.
    """

    id: str
    timestamp: str
    text: bytes


def hole(name: str) -> str:
    """Return the placeholder text for a member that differs from line to line."""
    return f"{_MARK}{name}{_MARK}"


def line_of(event: Event) -> EventLine:
    """Return the line of an event with placeholders for `seq`, `id`, `timestamp` and `prev`.

    Placeholders that the event already contains are kept.
    """
    placed = event._replace(**{name: hole(name) for name in _ENVELOPE})  # type: ignore[arg-type]
    text = orjson.dumps(to_json(placed)).replace(b"%", b"%%")
    return EventLine(_HOLE.sub(rb"%(\1)b", text), len(text) + _ENVELOPE_SIZE)
