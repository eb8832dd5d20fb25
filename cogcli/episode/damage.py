"""The repair of the damaged newest line of an unfinished log: `verify --repair`, under the lock.

1. An altered newline is restored: the checksums of the lines next to it vouch for all other bytes.
2. A damaged line without a sound line after it is moved to `events.torn`, like a torn one. The log must not continue as
   if the line had never existed. If it was the intent of a call, that call may have happened: the intent is appended
   again, without a result. Any other line was the end of a call, which is in doubt without it, or follows again from
   the rest of the log.
3. A damaged line is identified by its checksum if one byte is altered, else by its readable part. If neither identifies
   it, or sound lines follow, it is refused and nothing is changed.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.checksum import (
    corrections,
    has_valid_checksum,
    looks_complete,
    valid_prefix,
)
from cogcli.declarations.envelope import from_json, row_of
from cogcli.declarations.event_table import EVENT_TYPES
from cogcli.declarations.events import UNKNOWN
from cogcli.declarations.value_types import Json
from cogcli.episode.folder import Folder, fdatasync
from cogcli.episode.layout import EVENTS
from cogcli.episode.log_lines import Lines, parse_line

_TEXT: Final = rb'"(?:[^"\\]|\\.)*"'
_TYPE: Final = re.compile(
    rb'\{"seq":\d+,"id":%b,"timestamp":%b,"episode_id":%b,"run_id":%b,"trace_id":%b,"phase":%b,"event_type":"([a-z._-]+)"'
    % ((_TEXT,) * 6)
)


class Damage(NamedTuple):
    """The first damaged line of a log, with its offset and all bytes from that offset on."""

    offset: int
    number: int
    rest: bytes

    @property
    def corrupted_newline(self) -> int:
        """The offset of the altered newline of a sound line; -1 without one."""
        size = valid_prefix(self.rest)
        return self.offset + size if 0 < size < len(self.rest) else -1

    @property
    def can_be_mended(self) -> bool:
        """Whether rules 1 to 3 appear to apply."""
        was_whole = any(map(looks_complete, self.rest.split(b"\n")))
        return self.corrupted_newline >= 0 or (self.number > 1 and self.is_last and was_whole)

    @property
    def is_last(self) -> bool:
        """Whether the damage is a single line that no sound line follows."""
        lines = self.rest.split(b"\n")
        return (
            not any(map(has_valid_checksum, lines[1:]))
            and sum(map(looks_complete, lines[:-1])) <= 1
        )


def find_damage(folder: Folder) -> Damage | None:
    """Return the first line that no cogcli process can have written, or None. Raise UnreadableFile."""
    lines, offset = Lines(folder.chunks(EVENTS)), 0
    for _, raw, _ in lines.objects(sound=True):
        offset += len(raw) + 1
    if lines.refused is None or lines.torn or lines.too_long:
        return None
    return Damage(offset, lines.refused.number, read_log_from(folder, offset))


def read_log_from(folder: Folder, offset: int) -> bytes:
    """Return the bytes of an episode's log from an offset on. Raise UnreadableFile, OSError."""
    with os.fdopen(folder.open_file(EVENTS), "rb") as file:
        file.seek(offset)
        return file.read()


def write_newline(folder: Folder, place: int) -> None:
    """Write a newline over one byte of the log. The caller must hold its lock. Raise OSError."""
    # A new descriptor, since the caller's appends to the end.
    fd = folder.descriptor(EVENTS, os.O_RDWR)
    try:
        os.lseek(fd, place, os.SEEK_SET)
        os.write(fd, b"\n")
        fdatasync(fd)
    finally:
        os.close(fd)


class LostIntent(NamedTuple):
    """A damaged line as it was before the damage, with its object if it is an intent."""

    intent: Json | None
    line: bytes


def identify_lost(data: bytes, heads: tuple[str | None, ...]) -> LostIntent | None:
    """Return the original of the damaged line in these bytes, or None. Its `prev` must be one of `heads`."""
    lost = data[: data.rfind(b"\n")] if b"\n" in data else data
    for line in corrections(lost):
        with suppress(InvalidJson):
            value = parse_line(line)
            if from_json(value).prev in heads:
                return _lost_intent(value, line)
    with suppress(InvalidJson):
        return _lost_intent(parse_line(lost), lost)
    found = _TYPE.match(lost)
    row = row_of(found[1].decode()) if found else UNKNOWN
    return LostIntent(None, lost) if row is not UNKNOWN and not row.write_ahead else None


def _lost_intent(value: Json, line: bytes) -> LostIntent | None:
    from cogcli.declarations.checked import problem_of

    event = from_json(value)
    kind = event.event_type
    if type(kind) is not str or kind not in EVENT_TYPES:
        return None
    if not EVENT_TYPES[kind].write_ahead:
        return LostIntent(None, line)
    if type(event.step_id) is not str or problem_of(kind, event.payload):
        return None
    return LostIntent(value, line)
