"""Encodes the constant members of an event once, as a line with holes for the other members.

The constants come from an event that was built like any other, so that no member is spelled here
(docs/adr/0028-plain-steps.md).
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from cogcli.base.errors import InternalError
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Event, to_json

_MARK: Final = "\x1f"
"""No id, path or text of a spec has this character."""
_HOLE: Final = lazy_pattern(rb'"\\u001f([a-z_]+)\\u001f"')
_FIRST: Final = ("seq", "id", "timestamp")
_LAST: Final = "prev"
_ENVELOPE_SIZE: Final = 160
"""The most bytes that the JSON of these four has."""


class EventLine(NamedTuple):
    """The line of an event without its checksum, as a bytes format with a hole for each member that differs.

    The first holes are those of `seq` (`%d`), `id` and `timestamp`, the last is that of `prev`: bytes without their
    quotation marks. All others take the JSON of their member.
    """

    format: bytes
    members: tuple[str, ...]
    """The members in the other holes, in order."""
    size: int
    """The most bytes of a line, without what fills the holes of the members."""
    event_type: str | None
    phase: str


PlacedLine = tuple[str, str, bytes]
"""An event in the log that was built from an `EventLine`: id, timestamp, and text without checksum."""


def hole(name: str) -> str:
    """Return the text that marks the place of a member which differs from line to line."""
    return f"{_MARK}{name}{_MARK}"


def line_of(event: Event) -> EventLine:
    """Return the line of an event with holes for `seq`, `id`, `timestamp` and `prev`.

    Holes that the event already contains are kept.
    """
    placed = event._replace(**{name: hole(name) for name in (*_FIRST, _LAST)})  # type: ignore[arg-type]
    text = orjson.dumps(to_json(placed)).replace(b"%", b"%%")
    names = tuple(name.decode() for name in _HOLE.findall(text))
    if names[: len(_FIRST)] != _FIRST or names[-1] != _LAST:
        raise InternalError("internal", f"the envelope of an event has another order: {names}")
    members = names[len(_FIRST) : -1]
    return EventLine(
        _HOLE.sub(_place_of, text),
        members,
        len(text) + _ENVELOPE_SIZE,
        event.event_type,
        event.phase,
    )


def _place_of(hole: re.Match[bytes]) -> bytes:
    """Return the place for a hole in a bytes format."""
    name = hole[1].decode()
    if name in (*_FIRST, _LAST):
        return b"%d" if name == "seq" else b'"%b"'
    return b"%b"
