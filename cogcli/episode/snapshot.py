"""`state.json` while its run is alive (docs/reference/episode.md#snapshots).

1. The log is read from disk, from the end of the last snapshot on, so that a document holds what the disk holds.
2. A snapshot comes at least a second after the one before, and after 100 times the duration of that one. So snapshots
   take at most 1 % of the time of a run.
3. A value that only the state holds becomes a new blob for each snapshot. So the next snapshot waits until the log has
   grown by the size of these blobs: together they take no more space than the log.
4. After a failed snapshot no more are taken, and the run continues. If the log is at fault, the next event is refused.
"""

from __future__ import annotations

import os
import time
from contextlib import closing
from hashlib import sha256
from typing import Final

from cogcli.base.errors import CogcliError
from cogcli.base.files import FileRefused
from cogcli.base.strict_json import JsonRefused
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.events import StateDigest, StateProjected
from cogcli.episode.blobs import BlobFolder
from cogcli.episode.folder import read_at
from cogcli.episode.journal import Journal
from cogcli.episode.large_values import BlobReader
from cogcli.episode.layout import EVENTS, STATE
from cogcli.episode.log_fold import LogFold, decision_files
from cogcli.episode.log_lines import FIRST, parse_line, rules_of
from cogcli.episode.log_reader import event_of
from cogcli.episode.projection import snapshot_outcomes, state_bytes

INTERVAL: Final = 1.0
"""Seconds between two snapshots."""
SHARE: Final = 100
"""The least time until the next snapshot, in durations of the last one."""


class Snapshots:
    """Writes the snapshots of one run. Only the coordinator may call it, so that no event is
    appended meanwhile."""

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
        self._min_size = 0
        self._given_up = False

    def begin(self) -> None:
        """Take the first snapshot, unless one was taken."""
        if not self._events:
            self.take()
        # Most runs end before another snapshot is due; until then a second copy of large inputs is not kept.
        self._fold, self._read = LogFold(), 0

    def is_due(self, now: float) -> bool:
        """Return whether the log changed since the last snapshot and enough time has passed; `now` is monotonic."""
        if now < self._due or self._given_up:
            return False
        journal = self._journal
        return (
            bool(self._events) and journal.count > self._events and journal.size >= self._min_size
        )

    def take(self) -> None:
        """Write a snapshot. It never raises (rule 4)."""
        if self._given_up:
            return
        began = time.monotonic()
        try:
            self._write()
        except (CogcliError, FileRefused, JsonRefused, OSError):
            self._given_up = True
        ended = time.monotonic()
        self._due = ended + max(INTERVAL, SHARE * (ended - began))

    def _write(self) -> None:
        journal, fold = self._journal, self._fold
        self._fold_new_events()
        if fold.projection.terminated is not None:
            return
        stored = journal.stored
        document = fold.projection.result(journal.put_large)
        data = state_bytes(document, fold.projection.rules)
        payload = StateProjected(
            status=document["outcomes"]["status"],
            outcomes=snapshot_outcomes(document["outcomes"]),
            links=document["links"],
            state=StateDigest(sha256=sha256(data).hexdigest(), size_bytes=len(data)),
            snapshot=True,
        )
        journal.append_snapshot(draft_of(payload, fold.projection.root or ""))
        for name, text in decision_files(fold).items():
            journal.replace_unsynced(name, text)
        journal.replace_unsynced(STATE, data)
        self._events = journal.count
        self._min_size = journal.size + journal.stored - stored

    def _fold_new_events(self) -> None:
        """Fold the new events. Raise OSError for a log that is shorter than what was written."""
        folder, size = self._journal.folder, self._journal.size
        fd = folder.open_file(EVENTS)
        try:
            data = b""
            while len(data) < size - self._read:
                more = read_at(fd, size - self._read - len(data), self._read + len(data))
                if not more:
                    raise OSError("the log is shorter than what was written")
                data += more
        finally:
            os.close(fd)
        with closing(BlobFolder(folder)) as kept:
            reader = BlobReader(kept.get)
            for line in data.split(b"\n")[:-1]:
                value = parse_line(line)
                self._rules = self._rules or rules_of(value.get("payload")) or FIRST
                self._fold.apply(event_of(value, line, reader, self._rules))
        self._read = size
