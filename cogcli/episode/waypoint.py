"""`waypoint.json`: where the log has the events that a resume still needs (docs/reference/episode.md#waypoints).

1. A round of a loop that is done needs no more than its closing event: what lies inside it is left out, if all of it is
   usual: calls without effect that succeeded at their first binding. Anything else is kept as a whole.
2. The file names each line that is kept, by its place and its hash, so that it stays small and holds no values.
3. It follows from the log alone. The event `run.waypoint` has its hash, so the chain of the log vouches for it, and
   `verify` derives it again. A file that differs in any way is not used: then a resume reads the whole log.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

import orjson

from cogcli.base.jsonvalue import object_of
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath

SCHEMA: Final = "waypoint/1"
MAX_LINES: Final = 20_000
"""Lines that are kept. With more, the file would save too little."""
MAX_BYTES: Final = 8 * 1024 * 1024
"""The size of a file that is read: `MAX_LINES` take less."""
_HEAD: Final = lazy_pattern(
    rb'\{"seq":(\d+),"id":"[^"\\]*","timestamp":"([^"\\]*)","episode_id":"[^"\\]*","run_id":"[^"\\]*",'
    rb'"trace_id":(?:"[^"\\]*"|null),"phase":"[^"\\]*","event_type":"([^"\\]*)"(?:,"step_id":"([^"\\]*)")?'
)
_EFFECT: Final = b'"side_effects":"'
_HARMLESS: Final = b'"side_effects":"none"'
_SUM: Final = len(b',"sum":"00000000"}')
_LINK: Final = len("sha256:") + 64
_LEFT_OUT: Final = frozenset((b"run.state_projection", b"run.waypoint"))
"""Events that no resume needs, wherever they are."""


class ResumeLine(NamedTuple):
    """One line of the log that a resume needs."""

    sequence: int
    offset: int
    size: int
    """Its bytes, without the newline."""
    digest: str
    folded: bool
    """Whether the events inside the step that it closes are left out."""


class Waypoint(NamedTuple):
    """A waypoint file."""

    episode_id: str
    events: int
    """The number of events that it replaces."""
    size: int
    """Their bytes in the log."""
    head: str
    """The hash of the last of them."""
    last: str
    """The time of the last of them that counts as active time."""
    times: tuple[tuple[int, str], ...]
    """For each `run.resumed`: its `seq`, and the time of the last event before it that counts."""
    lines: tuple[ResumeLine, ...]

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        lines = [[*line] for line in self.lines]
        return orjson.dumps({"schema_version": SCHEMA, **self._asdict(), "lines": lines})


def parse_waypoint(data: bytes) -> Waypoint | None:
    """Return the waypoint in a file; None if cogcli did not write it."""
    try:
        value = object_of(orjson.loads(data))
        if value.pop("schema_version", None) != SCHEMA:
            return None
        lines = tuple(ResumeLine._make(line) for line in value.pop("lines"))
        times = tuple((int(seq), str(time)) for seq, time in value.pop("times"))
        found = Waypoint(**value, times=times, lines=lines)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    # Written again it is the same bytes: so each member has the type that a writer gives it.
    return found if _is_sound(found) and found.to_bytes() == data else None


def _is_sound(found: Waypoint) -> bool:
    numbers = [found.events, found.size, *(n for line in found.lines for n in line[:3])]
    if any(type(number) is not int or number < 0 for number in numbers):
        return False
    texts = [found.episode_id, found.head, found.last, *(line.digest for line in found.lines)]
    return all(type(text) is str for text in texts) and _are_in_order(found)


def _are_in_order(found: Waypoint) -> bool:
    """Return whether the first line starts the log, and each line ends before the next one and before the waypoint."""
    ends = [line.offset + line.size for line in found.lines]
    starts = [line.offset for line in found.lines]
    in_order = all(end < start for end, start in zip(ends, starts[1:], strict=False))
    return in_order and bool(ends) and starts[0] == 0 and ends[-1] < found.size


class _Part:
    """An item or a round that is not done, or with the empty path the whole log."""

    __slots__ = ("lines", "unusual")

    def __init__(self) -> None:
        self.lines: list[list[int | str | bool]] = []
        self.unusual = False


class WaypointFold:
    """Folds the lines of a log to a waypoint: the lines that a resume still needs."""

    def __init__(self) -> None:
        self.events = 0
        self.size = 0
        self.kept = 0
        self.broken = False
        """Whether a line is not one that cogcli writes: then there is no waypoint."""
        self._parts: dict[str, _Part] = {"": _Part()}
        self._times: list[tuple[int, str]] = []
        self._last = ""
        self._open_line: list[int | str | bool] | None = None
        """The last line, whose hash the next line names."""

    def apply(self, line: bytes) -> None:
        """Add the next line, without its newline."""
        offset = self.size
        self.size += len(line) + 1
        self.events += 1
        match = _HEAD.match(line)
        if match is None or int(match[1]) != self.events - 1:
            self.broken = True
            return
        if self._open_line is not None:
            self._open_line[3] = _previous_hash(line)
        kept: list[int | str | bool] = [self.events - 1, offset, len(line), "", False]
        self._open_line = kept
        if match[3] in _LEFT_OUT:
            return
        self._add_time(match)
        self._add_to_part(kept, line, match[3], (match[4] or b"").decode())

    def restore(self, waypoint: Waypoint, lines: list[bytes]) -> None:
        """Begin with the lines that a waypoint kept."""
        for kept, line in zip(waypoint.lines, lines, strict=True):
            match = _HEAD.match(line)
            entry: list[int | str | bool] = [*kept]
            if match is None:
                self.broken = True
                return
            path = (match[4] or b"").decode()
            if kept.folded:
                self._open_part(StepPath(StepPath(path).parent).innermost_item).lines.append(entry)
                self.kept += 1
            else:
                self._add_to_part(entry, line, match[3], path)
        self.events, self.size = waypoint.events, waypoint.size
        self._times, self._last = list(waypoint.times), waypoint.last

    def result(self, episode_id: str, head: str) -> Waypoint | None:
        """Return the waypoint after the lines so far. `head` is the hash of the last one. None if the waypoint would
        keep too many lines.
        """
        if self.broken or self.kept > MAX_LINES or not self.events:
            return None
        if self._open_line is not None:
            self._open_line[3] = head
        lines = sorted(line for part in self._parts.values() for line in part.lines)
        kept = tuple(ResumeLine._make(line) for line in lines)
        return Waypoint(
            episode_id, self.events, self.size, head, self._last, tuple(self._times), kept
        )

    def _add_time(self, match: re.Match[bytes]) -> None:
        if match[3] == b"run.resumed":
            self._times.append((self.events - 1, self._last))
        self._last = match[2].decode()

    def _add_to_part(
        self, kept: list[int | str | bool], line: bytes, event_type: bytes, path: str
    ) -> None:
        """Add a line to the innermost item or round that contains it. If the line closes that part, the part's inner
        lines are dropped.
        """
        name = StepPath(path).innermost_item
        part = self._open_part(name)
        if name and not _is_redundant(line, event_type, path):
            part.unusual = True
        part.lines.append(kept)
        self.kept += 1
        if event_type != b"step.completed" or path != name or not name:
            return
        del self._parts[name]
        owner = self._open_part(StepPath(StepPath(path).parent).innermost_item)
        if part.unusual:
            owner.lines += part.lines
            owner.unusual = owner is not self._parts[""]
            return
        kept[4] = True
        owner.lines.append(kept)
        self.kept -= len(part.lines) - 1

    def _open_part(self, name: str) -> _Part:
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = _Part()
        return part


def _is_redundant(line: bytes, event_type: bytes, path: str) -> bool:
    """Return whether an event inside an item or a round adds nothing to its closing event."""
    if StepPath(path).in_call or b'"fallback_used":true' in line or b'"reused_from"' in line:
        return False
    if event_type == b"step.started":
        # The first such key is that of the event: all members before it are texts and numbers.
        effect = line.find(_EFFECT)
        return effect < 0 or line.startswith(_HARMLESS, effect)
    if event_type == b"step.skipped":
        return b'"reason":"condition"' in line
    if event_type == b"run.terminated":
        return b'"payload":{"status":"ok"' in line
    return event_type in (b"step.completed", b"run.started")


def _previous_hash(line: bytes) -> str:
    """Return the hash of the previous line, as contained in this line."""
    link = line[-_SUM - 1 - _LINK : -_SUM - 1]
    if link.startswith(b"sha256:"):
        return link.decode()
    return str(object_of(orjson.loads(line)).get("prev"))  # a line with further members


def link_of(line: bytes) -> str:
    """Return the hash of a line, in the form used by the next line."""
    return f"sha256:{sha256(line).hexdigest()}"
