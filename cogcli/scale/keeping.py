"""How the episodes of a batch are kept: in folders, or in archives (docs/reference/batch.md#keep).

An episode moves from its folder to an archive in this order. A kill in between is finished by the same command.

1. The lines up to a number are closed: from now on none of them begins an episode (`closed_lines`).
2. The episodes of ended lines are appended to an archive, which is synced.
3. The ledger has a `moved` entry of each, and is synced.
4. Each folder is removed under the lock of its log, if it is sealed and the archive has the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.episode.archive.locator import open_cached_archive
from cogcli.episode.archive.transfer import (
    is_archived_as,
    read_archived_episode,
    remove_archived_folder,
    write_folder,
)
from cogcli.episode.folder import Folder, disk_errors
from cogcli.episode.layout import is_own_id
from cogcli.episode.listing.episode_row import read_row
from cogcli.episode.removal import remove_leftovers
from cogcli.scale.batch_folder import BatchFolder, Shard
from cogcli.scale.closed_lines import close_lines, read_last_closed_line
from cogcli.scale.identity import BatchKey, line_of_episode
from cogcli.scale.ledger import Ledger, LedgerEntry, LedgerLine, MovedEntry, archive_of_location
from cogcli.scale.line_archive import LineArchive
from cogcli.scale.line_set import LineSet
from cogcli.scale.totals import Totals

AUTO: Final = "auto"
FOLDERS: Final = "folders"
ARCHIVED: Final = "archived"
MOST_FOLDERS: Final = 1000
"""With `auto`: lines up to which all have folders, and lines that did not end well and keep theirs."""
_TOGETHER: Final = 200
"""Lines that move at a time: each move of several costs some syncs."""


def uses_archives(keep: str, line_count: int) -> bool:
    """Return whether a batch of `line_count` lines keeps its episodes in archives."""
    return keep == ARCHIVED or (keep == AUTO and line_count > MOST_FOLDERS)


class FolderQuota:
    """With `auto`, the first lines that did not end well keep folders, to be looked at."""

    def __init__(self, keep: str) -> None:
        self._left = MOST_FOLDERS if keep == AUTO else 0

    def takes(self, entry: LedgerEntry) -> bool:
        """Return whether a line keeps its folder. Call it once for each final entry, in the order of the ledger."""
        if entry.status == "ok" or entry.episode is None:
            return False
        self._left -= 1
        return self._left >= 0


class _MovableEpisode(NamedTuple):
    """An ended line whose episode may move."""

    attempt: int
    episode: str
    is_found: bool
    """Whether an earlier process recorded its end, and may have archived it."""


class RetainedShard(NamedTuple):
    """The shard whose episodes are kept."""

    shard: Shard
    key: BatchKey
    totals: Totals
    ledger: Ledger
    lines: int
    """The lines of the input."""
    selects: Callable[[int], bool]
    """Returns whether a line is one of the shard that runs."""
    is_durable: bool
    """Whether ended lines survive a power loss."""


class BatchKeeper:
    """Stores the episodes of one shard in archives. The caller holds the ledger."""

    def __init__(self, runs_dir: Path, batch: BatchFolder, keep: str, shard: RetainedShard) -> None:
        self._runs_dir = runs_dir
        self._folder = batch.folder
        self._shard = shard.shard
        self._key = shard.key
        self._totals = shard.totals
        self._lines = shard.lines
        self._selects = shard.selects
        self._ledger = shard.ledger
        self._is_durable = shard.is_durable
        self._quota = FolderQuota(keep)
        self._archive = LineArchive(runs_dir, shard.key.id)
        self._candidates: dict[int, _MovableEpisode] = {}
        self._moved = LineSet()
        self._closed = read_last_closed_line(batch.folder, shard.shard)
        self._ended_up_to = 0
        """The lines up to this one have ended or wait."""
        self._moved_up_to = 0

    # -- the ledger of earlier processes -------------------------------------------------------------------------------

    def replay(self, line: LedgerLine) -> None:
        """Apply a line that an earlier process wrote."""
        if line.moved is not None:
            self._candidates.pop(line.moved.line, None)
            self._moved.add(line.moved.line)
        if line.ended is not None and line.ended.is_final:
            self._index_entry(line.ended, is_found=True, keeps=self._quota.takes(line.ended))

    def find_unrecorded_lines(self) -> dict[int, str]:
        """Return the place in the archive of each archived line that has no final entry in the ledger, by line.

        This happens if a process is killed between the two writes.
        """
        done = self._totals.done
        lines = self._archive.lines(self._key)
        return {line: place for line, place in lines if line not in done and self._shard.has(line)}

    def remove_moved_folders(self) -> None:
        """Remove the folders of lines that moved before a kill. Raise UnusableEnvironment `env.disk`."""
        remove_leftovers(self._runs_dir)
        with disk_errors(self._runs_dir), Folder.open(self._runs_dir) as runs:
            names = [name for name in runs.names() if is_own_id(name)]
        for name in names:
            if line_of_episode(self._key, name) in self._moved:
                self._remove_episode(name, self._archive.find(name))

    # -- each line -----------------------------------------------------------------------------------------------------

    def sync(self, archives: set[str]) -> None:
        """Sync the data that workers appended to these archives to disk. Raise UnusableEnvironment `env.disk`."""
        if self._is_durable:
            with disk_errors(self._archive.directory):
                self._archive.sync_files(archives)

    def prepare_episode(self, entry: LedgerEntry) -> None:
        """Extract the episode of a failed line to a folder, or mark it as movable.

        Raise UnusableEnvironment `env.disk`.
        """
        if not entry.is_final:
            return
        keeps = self._quota.takes(entry)
        if keeps and entry.archive and entry.episode is not None:
            self._extract_episode(entry.archive, entry.episode)
        self._index_entry(entry, is_found=False, keeps=keeps)

    def _index_entry(self, entry: LedgerEntry, *, is_found: bool, keeps: bool) -> None:
        if keeps or entry.archive or entry.episode is None or entry.error is not None:
            return
        if line_of_episode(self._key, entry.episode) != entry.line:
            return  # the episode of an earlier batch, which may claim it
        self._candidates[entry.line] = _MovableEpisode(entry.attempt, entry.episode, is_found)

    def _extract_episode(self, archive: str, episode: str) -> None:
        try:
            with open_cached_archive(self._archive.directory / archive) as opened:
                write_folder(self._runs_dir / episode, read_archived_episode(opened, episode))
        except CogcliError as error:
            if error.code == "env.disk":
                raise

    # -- moves ---------------------------------------------------------------------------------------------------------

    def move(self, *, all: bool = False) -> None:
        """Move the episodes of ended lines, if there are enough of them, or `all`.

        Raise UnusableEnvironment `env.disk`.
        """
        while self._ended_up_to < self._lines and self._has_ended(self._ended_up_to + 1):
            self._ended_up_to += 1
        if not self._candidates or (self._ended_up_to - self._moved_up_to < _TOGETHER and not all):
            return
        self._moved_up_to = self._ended_up_to
        ended = [line for line in self._candidates if line <= self._ended_up_to]
        for first in range(0, len(ended), _TOGETHER):
            self._move_together(ended[first : first + _TOGETHER])

    def _has_ended(self, line: int) -> bool:
        totals = self._totals
        return line in totals.done or line in totals.pending or not self._selects(line)

    def _move_together(self, lines: list[int]) -> None:
        if self._closed < self._ended_up_to:
            self._closed = self._ended_up_to
            close_lines(self._folder, self._shard, self._ended_up_to)
        moved = list(self._append_episodes(lines))
        self._archive.sync()
        self._ledger.append_moved(moved)
        for entry in moved:
            self._moved.add(entry.line)
            self._remove_episode(entry.episode, entry.at)

    def _append_episodes(self, lines: list[int]) -> Iterator[MovedEntry]:
        """Append the episodes of these lines to an archive. An episode that is not sealed, or differs, keeps its
        folder.
        """
        for line in lines:
            candidate = self._candidates.pop(line)
            at = self._append_one(line, candidate)
            if at:
                yield MovedEntry(line, candidate.attempt, candidate.episode, at)

    def _append_one(self, line: int, candidate: _MovableEpisode) -> str:
        directory = self._runs_dir / candidate.episode
        if candidate.is_found and (at := self._archive.find(candidate.episode)):
            archive = self._archive.directory / archive_of_location(at)
            return at if not directory.is_dir() or is_archived_as(directory, archive) else ""
        try:
            row = read_row(directory)
            if not row.sealed or row.fault:
                return ""
            with Folder.open(directory) as folder:
                return self._archive.append_folder(folder, line)
        except UnusableEnvironment as error:
            if error.code == "env.disk":
                raise
            return ""
        except OSError:  # it was removed
            return ""

    def _remove_episode(self, episode: str, at: str) -> None:
        if at:
            archive = self._archive.directory / archive_of_location(at)
            remove_archived_folder(self._runs_dir / episode, archive)

    # -- the end -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Write the index of each archive that has none, and close them. Raise UnusableEnvironment `env.disk`."""
        self._archive.close()
        self._archive.index_files()

    def digests(self) -> list[str]:
        """Return name and hash of each archive of the batch."""
        return self._archive.digests()
