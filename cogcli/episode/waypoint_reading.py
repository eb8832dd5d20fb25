"""The log of an interrupted run from its waypoint on (docs/reference/episode.md#waypoints).

A waypoint is used only if nothing about it is unknown:

1. The line after its events is the `run.waypoint` with the hash of the file.
2. A record of the user, or a signature with the user's key, vouches for that line. The chain binds all before it.
3. Each line that it keeps has the hash that it names, and each line after it fits the chain.

Otherwise the whole log is read, with the errors that this finds.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import closing
from hashlib import sha256

from cogcli.base.errors import CogcliError
from cogcli.base.files import UnreadableFile
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import WaypointSet
from cogcli.declarations.reading import read_record
from cogcli.episode.blobs import BlobFolder
from cogcli.episode.checkpoint import Checkpoint, TrustedEvents, compare
from cogcli.episode.folder import Folder, read_at
from cogcli.episode.large_values import BlobReader
from cogcli.episode.layout import EVENTS, WAYPOINT
from cogcli.episode.log_lines import Lines, parse_line, rules_of_line
from cogcli.episode.log_reader import event_of
from cogcli.episode.verify.lines import LineCheck
from cogcli.episode.waypoint import MAX_BYTES, Waypoint, WaypointFold, link_of, parse_waypoint


class WaypointUnusable(Exception):
    """A waypoint that is not used."""


class LogFromWaypoint(NamedTuple):
    """A log without the events that its waypoint leaves out."""

    waypoint: Waypoint
    events: list[Event]
    """Those that the waypoint keeps, then all after it."""
    fold: WaypointFold
    """After the last event."""
    check: LineCheck
    size: int
    """The bytes of the committed lines."""
    rules: int
    vouched: TrustedEvents

    @property
    def folded(self) -> frozenset[int]:
        """The `seq` of the closing events whose steps have no other event here."""
        return frozenset(line.sequence for line in self.waypoint.lines if line.folded)


def read_from_waypoint(folder: Folder, known: Collection[Checkpoint]) -> LogFromWaypoint | None:
    """Return the log of an episode from its waypoint on, or None if the whole log has to be read. Raise OSError."""
    try:
        data = folder.read(WAYPOINT, limit=MAX_BYTES)
        waypoint = parse_waypoint(data)
        if waypoint is None:
            return None
        return _read_from_waypoint(folder, waypoint, sha256(data).hexdigest(), known)
    except (WaypointUnusable, UnreadableFile, InvalidJson, CogcliError):
        return None


def _read_from_waypoint(
    folder: Folder, waypoint: Waypoint, digest: str, known: Collection[Checkpoint]
) -> LogFromWaypoint:
    kept = _kept_lines(folder, waypoint)
    fold = WaypointFold()
    fold.restore(waypoint, kept)
    with closing(BlobFolder(folder)) as blobs:

        def get(name: str) -> bytes:
            found = blobs.get(name)
            if found is None:
                raise WaypointUnusable("a blob does not exist")
            return found

        reader = BlobReader(get)
        values = [parse_line(line) for line in kept]
        rules = rules_of_line(values[0])
        events = [
            event_of(value, line, reader, rules) for value, line in zip(values, kept, strict=True)
        ]
        check = LineCheck()
        _require_usable(not list(check.check(1, kept[0], values[0])) and check.chained)
        check.skip_to(waypoint.events, waypoint.head, events)
        heads = {waypoint.events: waypoint.head}
        size = waypoint.size
        for event, line in _read_tail(folder, waypoint.size, check, reader, rules):
            if check.count == waypoint.events + 1:
                _require_usable(event.event_type == WaypointSet.event.name)
                _require_usable(read_record(WaypointSet, event.payload).sha256 == digest)
            events.append(event)
            fold.apply(line)
            heads[check.count] = check.head
            size += len(line) + 1
    later = [record for record in known if record.events >= waypoint.events]
    vouched = compare(later, waypoint.episode_id, heads)
    _require_usable(vouched.covers(waypoint.events) and not vouched.differs)
    _require_usable(check.episode == waypoint.episode_id and not fold.broken)
    return LogFromWaypoint(waypoint, events, fold, check, size, rules, vouched)


def _kept_lines(folder: Folder, waypoint: Waypoint) -> list[bytes]:
    """Return the lines that a waypoint keeps. Raise WaypointUnusable for a line that differs from the recorded one."""
    fd = folder.open_file(EVENTS)
    try:
        lines = [read_at(fd, line.size, line.offset) for line in waypoint.lines]
    finally:
        os.close(fd)
    for line, kept in zip(lines, waypoint.lines, strict=True):
        _require_usable(link_of(line) == kept.digest)
    return lines


def _read_tail(
    folder: Folder, start: int, check: LineCheck, reader: BlobReader, rules: int
) -> Iterator[tuple[Event, bytes]]:
    """Yield the committed events from an offset on. Raise WaypointUnusable for an invalid line."""
    lines = Lines(folder.read_range(EVENTS, start, folder.size(EVENTS)))
    for _, raw, value in lines.objects():
        _require_usable(not list(check.check(check.count + 1, raw, value)))
        yield event_of(value, raw, reader, rules), raw
    _require_usable(not (lines.refused and not lines.torn) and not list(check.end()))


def _require_usable(fits: bool) -> None:
    if not fits:
        raise WaypointUnusable("a line does not fit")
