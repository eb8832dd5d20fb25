"""`state.json` while its run is alive (docs/reference/episode.md#snapshots).

1. The log is read from disk, from the end of the last snapshot on, so that a document holds what the disk holds.
2. A snapshot comes at least a second after the one before and after 100 times the duration of that one, and only if all
   snapshots together then take at most 1 % of the time of the run so far. Its duration is estimated from the bytes of
   the log that were not folded yet and from the size of the last document.
3. A value that only the state holds becomes a new blob for each snapshot. So the next snapshot waits until the log has
   grown by the size of these blobs: together they take no more space than the log.
4. After a failed snapshot no more are taken, and the run continues. If the log is at fault, the next event is refused.
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import Final

from cogcli.base.errors import CogcliError
from cogcli.base.files import UnreadableFile
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.events import StateDigest, StateProjected
from cogcli.episode.blobs import BlobFolder
from cogcli.episode.journal import Journal
from cogcli.episode.large_values import BlobReader
from cogcli.episode.layout import EVENTS, STATE
from cogcli.episode.log_fold import LogFold, decision_files
from cogcli.episode.log_lines import FIRST, Lines, parse_line, rules_of_line
from cogcli.episode.log_reader import event_of
from cogcli.episode.projection import snapshot_outcomes, state_text

INTERVAL: Final = 1.0
"""Seconds between two snapshots."""
SHARE: Final = 100
"""The least duration of the run, in durations of all its snapshots."""
_FOLD_SPEED: Final = 25_000_000
_WRITE_SPEED: Final = 500_000_000
"""Bytes a second that are folded and written, until a snapshot has measured it."""
_MEASURED: Final = 0.05
"""The minimum seconds for comparing an estimate with the duration. Shorter times depend mainly on other costs."""
_LONG: Final = 4 * 1024 * 1024
"""The size of a log that a resume does not fold before it continues."""


class Snapshots:
    """Writes the snapshots of one run. Only the thread that appends events may call it: the coordinator, or the thread
    that holds its baton.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._fold = LogFold()
        self._read = 0
        """Folded bytes of the log."""
        self._rules = 0
        """The rules of the log; 0 before its first line was read."""
        self._events = 0
        """The number of events of the log after the last snapshot."""
        self._due = 0.0
        self._began = time.monotonic()
        self._taken = 0.0
        """The seconds of all snapshots so far."""
        self._slowness = 1.0
        """The ratio of the last snapshot's duration to the duration by the speeds above."""
        self._written = 0
        """The size of the last document."""
        self._min_size = 0
        self._given_up = False

    def begin(self) -> None:
        """Take the first snapshot, unless one was taken already, or the log to resume is long."""
        if not self._events:
            if self._journal.size < _LONG:
                self.take()
            else:
                self._events = 1  # its `state.json` exists; later snapshots follow the usual rules
        # Most runs end before another snapshot is due; until then a second copy of large inputs is not kept.
        self._fold, self._read = LogFold(), 0

    def is_due(self, now: float) -> bool:
        """Return whether the log changed since the last snapshot and enough time has passed; `now` is monotonic."""
        if now < self._due or self._given_up:
            return False
        if SHARE * (self._taken + self._estimate_seconds() * self._slowness) > now - self._began:
            return False
        journal = self._journal
        return (
            bool(self._events) and journal.count > self._events and journal.size >= self._min_size
        )

    def take(self) -> None:
        """Write a snapshot. It never raises (rule 4)."""
        if self._given_up:
            return
        began, estimate = time.monotonic(), self._estimate_seconds()
        try:
            self._write_snapshot()
        except (CogcliError, UnreadableFile, InvalidJson, OSError):
            self._given_up = True
        ended = time.monotonic()
        self._taken += ended - began
        if estimate > _MEASURED:
            self._slowness = (ended - began) / estimate
        self._due = ended + max(INTERVAL, SHARE * (ended - began))

    def _estimate_seconds(self) -> float:
        """Return the estimated seconds of the next snapshot at the usual speeds."""
        backlog = self._journal.size - self._read
        return backlog / _FOLD_SPEED + self._written / _WRITE_SPEED

    def _write_snapshot(self) -> None:
        journal, fold = self._journal, self._fold
        self._fold_new_events()
        if fold.projection.terminated is not None:
            return
        stored = journal.stored
        document = fold.projection.result(journal.put_large)
        data = state_text(document, fold.projection.rules)
        payload = StateProjected(
            status=document["outcomes"]["status"],
            outcomes=snapshot_outcomes(document["outcomes"]),
            links=document["links"],
            state=StateDigest(sha256=data.sha256, size_bytes=data.size),
            snapshot=True,
        )
        journal.append_snapshot(draft_of(payload, fold.projection.root or ""))
        for name, text in decision_files(fold).items():
            journal.replace_unsynced(name, text)
        journal.replace_unsynced(STATE, data.chunks())
        self._written = data.size
        self._events = journal.count
        self._min_size = journal.size + journal.stored - stored

    def _fold_new_events(self) -> None:
        """Fold the new events. Raise OSError for a log that is shorter than the written bytes, or for an unreadable
        blob, because the snapshot would not match the log.
        """
        folder = self._journal.folder
        with closing(BlobFolder(folder)) as kept:

            def get(name: str) -> bytes:
                found = kept.get(name)
                if found is None:
                    raise OSError(f"the blob {name} cannot be read")
                return found

            reader = BlobReader(get)
            for _, line in Lines(folder.read_range(EVENTS, self._read, self._journal.size)):
                value = parse_line(line)
                self._rules = self._rules or rules_of_line(value) or FIRST
                self._fold.apply(event_of(value, line, reader, self._rules))
        self._read = self._journal.size
