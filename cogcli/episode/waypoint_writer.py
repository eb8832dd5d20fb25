"""The waypoints of a run that is alive (docs/reference/episode.md#waypoints).

1. The log is read from disk, from the last waypoint on. A waypoint comes after each MiB of log, and after four times
   its own size, so that writing them costs a few per cent at most and a resume has little log to read after it.
2. The event comes first, then the file: a crash between the two leaves the earlier file, whose event is in the log.
3. If a waypoint cannot be written, no more are, and the run continues: without it a resume reads the whole log.
"""

from __future__ import annotations

from hashlib import sha256
from time import monotonic
from typing import Final

from cogcli.base.errors import CogcliError
from cogcli.base.files import UnreadableFile
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.events import WaypointSet
from cogcli.episode.journal import Journal
from cogcli.episode.layout import EVENTS, WAYPOINT
from cogcli.episode.log_lines import Lines
from cogcli.episode.snapshot import Snapshots
from cogcli.episode.waypoint import WaypointFold

STEP: Final = 1024 * 1024
"""Bytes of log between two waypoints."""
_SPARE: Final = 4
"""Bytes of log for each byte of a waypoint."""


class Waypoints:
    """Writes the waypoints of one run. Only the coordinator may call `take`."""

    def __init__(self, journal: Journal, run_id: str, fold: WaypointFold | None = None) -> None:
        """Begin with an empty log, or with the fold of the lines that a resume found."""
        self._journal = journal
        self._run_id = run_id
        self._fold = fold or WaypointFold()
        self._due = self._fold.size + STEP

    def is_due(self) -> bool:
        """Return whether the log has grown enough."""
        return self._journal.size >= self._due

    def take(self) -> None:
        """Write a waypoint. It never raises (rule 3)."""
        try:
            self._write_waypoint()
        except (CogcliError, UnreadableFile, OSError):
            self._due = 1 << 62

    def _write_waypoint(self) -> None:
        journal, fold = self._journal, self._fold
        for _, line in Lines(journal.folder.read_range(EVENTS, fold.size, journal.size)):
            fold.apply(line)
        waypoint = fold.result(journal.episode_id, journal.head)
        if waypoint is None:
            self._due = journal.size * 2
            return
        data = waypoint.to_bytes()
        payload = WaypointSet(sha256=sha256(data).hexdigest(), size_bytes=len(data))
        journal.append_snapshot(draft_of(payload, self._run_id))
        journal.replace_unsynced(WAYPOINT, data)
        self._due = journal.size + max(STEP, _SPARE * len(data))


class LiveFiles:
    """The files that a run writes while it is alive: snapshots and, where it has them, waypoints."""

    def __init__(self, snapshots: Snapshots, waypoints: Waypoints | None) -> None:
        self._snapshots = snapshots
        self._waypoints = waypoints

    def begin(self) -> None:
        """Write the first snapshot, unless one exists."""
        self._snapshots.begin()

    def is_due(self, now: float) -> bool:
        """Return whether a file is due at this monotonic time."""
        has_waypoint = self._waypoints is not None and self._waypoints.is_due()
        return has_waypoint or self._snapshots.is_due(now)

    def take(self) -> None:
        """Write the snapshot and the waypoint if they are due."""
        if self._waypoints is not None and self._waypoints.is_due():
            self._waypoints.take()
        if self._snapshots.is_due(monotonic()):
            self._snapshots.take()
