"""The rows of all episodes in a runs directory, newest first, with the index as a shortcut.

1. The directories are the truth. A row of the index is shown only if the mark of its episode in the file system is
   unchanged. Any new, unsealed or changed episode is read.
2. Names are read from the directory, unless it is unchanged since every episode had its row.
3. New rows are written after the reading, which may stop at any time.
4. If the index is lost during the reading, the other rows come from the directories.
5. An archived episode without a directory is listed as well. Its mark is the hash of its record.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from cogcli.base.errors import CogcliError
from cogcli.episode.archive.access import open_archives
from cogcli.episode.archive.directories import archives_stamp
from cogcli.episode.layout import (
    CHECKPOINT,
    CONTEXT,
    DECISION,
    EVENTS,
    LEARN,
    MANIFEST,
    STATE,
    SUMMARY,
    is_episode_id,
)
from cogcli.episode.listing.episode_index import (
    FIRST,
    Index,
    IndexedRow,
    IndexUnavailable,
    place_of,
)
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow, read_row

if TYPE_CHECKING:
    from pathlib import Path

WORTH: Final = 64
"""The number of episodes from which a database is faster than reading each."""
HEAVY: Final = 32 * 1024 * 1024
"""Bytes of logs after whose reading an index is made for fewer episodes as well."""
_MARKED: Final = (EVENTS, STATE, SUMMARY, MANIFEST, LEARN, CONTEXT, DECISION, CHECKPOINT)
_NOWHERE: Final = "?"
"""The mark of an episode without a directory."""
_CHUNK: Final = 2000
"""Rows written at a time."""
_SETTLED: Final = 2_000_000_000
"""Nanoseconds after which a new change has another timestamp than an earlier one."""


def list_rows(
    runs_dir: Path | str,
    wanted: EpisodeFilter | None,
    names: Callable[[], list[str]],
    owner: bytes | None = None,
    *,
    worth: int = WORTH,
    shared: bool = False,
) -> Iterator[EpisodeRow]:
    """Yield the rows that pass the filter. `names` lists the episodes, newest first; `owner` is the user's key, and
    `shared` as in Store."""
    index = Index(runs_dir, owner, shared=shared)
    with closing(_EpisodeScan(runs_dir, wanted or EpisodeFilter(), names, owner, index)) as scan:
        yield from scan.rows(worth)


def find_indexed_ids(
    runs_dir: Path | str, beginning: str, *, skip: int = 0, limit: int = -1
) -> list[str] | None:
    """Return the ids with this prefix, newest first, or None unless the index is known to have every episode."""
    with closing(Index(runs_dir)) as index, suppress(IndexUnavailable):
        if index.open() and index.is_whole(_directory_state(runs_dir)):
            return index.ids(beginning, skip, limit)
    return None


def count_episodes(runs_dir: Path | str, names: Callable[[], list[str]]) -> int:
    """Return the number of episodes, with the archived and the unreadable ones. `names` lists them."""
    with closing(Index(runs_dir)) as index, suppress(IndexUnavailable):
        if index.open() and index.is_whole(_directory_state(runs_dir)):
            return index.count()
    return len(names())


class _EpisodeScan:
    """One reading of a runs directory."""

    def __init__(
        self,
        runs_dir: Path | str,
        wanted: EpisodeFilter,
        names: Callable[[], list[str]],
        owner: bytes | None,
        index: Index,
    ) -> None:
        self._runs_dir = runs_dir
        self._wanted = wanted
        self._names = names
        self._owner = owner
        self._index = index
        self._archives = open_archives(runs_dir)
        self._hashed = 0
        """Bytes of logs that were read because no row was valid."""
        self._indexed = False
        self._stamp = ""
        self._was_whole = False
        self._new: list[str] = []
        """Unread names without a row, the newest last."""
        self._gone: set[str] = set()
        self._lost = False

    def rows(self, worth: int) -> Iterator[EpisodeRow]:
        place = FIRST
        try:
            self._prepare_index(worth)
            for candidate, is_new in self._iterate_candidates():
                place = place_of(candidate.id)
                if (row := self._current_row(candidate, is_new)) and self._wanted.fits(row):
                    yield row
        except IndexUnavailable:
            self._lost = True
            for name in self._names():
                row = self._read_row(self._locate(name)[0]) if place_of(name) < place else None
                if row and self._wanted.fits(row):
                    yield row

    def _prepare_index(self, worth: int) -> None:
        self._stamp = _directory_state(self._runs_dir)
        self._indexed = self._index.open()
        if not self._indexed:
            names = self._names()
            if len(names) >= worth:
                self._index.create()
            self._new = names[::-1]
            return
        self._was_whole = self._index.is_whole(self._stamp)
        if not self._was_whole:
            # Ids before names: an episode that appears in between is new, never removed.
            ids = self._index.all_ids()
            self._new, self._gone = _list_changes(self._runs_dir, ids)
            self._add_archived_episodes(ids)

    def _add_archived_episodes(self, indexed: set[str]) -> None:
        """Add the archived episodes to the changes since the index was complete."""
        if self._archives is None:
            return
        archived = self._archives.episode_ids()
        self._gone -= archived
        self._new = sorted({*self._new, *(archived - indexed)}, key=place_of)

    def _iterate_candidates(self) -> Iterator[tuple[IndexedRow, bool]]:
        """Yield the candidates, newest first, and whether each is new to the index. Raise IndexUnavailable."""
        new = self._new
        for candidate in self._index.rows(self._wanted) if self._indexed else ():
            while new and place_of(new[-1]) > place_of(candidate.id):
                yield IndexedRow(new.pop(), None, ""), True
            if new and new[-1] == candidate.id:
                new.pop()  # another reader has written its row since
            if candidate.id not in self._gone:
                yield candidate, False
        while new:
            yield IndexedRow(new.pop(), None, ""), True

    def _current_row(self, candidate: IndexedRow, is_new: bool) -> EpisodeRow | None:
        """Return the current row of an episode. None if it was removed, cannot be read or does not pass the filter."""
        known = candidate.row if candidate.row is not None and candidate.row.sealed else None
        if known is not None and not self._wanted.fits(known):
            return None
        # The mark is taken before reading, so that a change during the reading gives another mark.
        directory, mark = self._locate(candidate.id)
        if is_new and mark == _NOWHERE:
            return None  # a file with the name of an episode
        if known is not None and candidate.mark == mark:
            return known if self._archives is None else known._replace(place=directory)
        row = self._read_row(directory)
        self._keep_row(row, mark, candidate, is_new)
        return row

    def _keep_row(
        self, row: EpisodeRow | None, mark: str, candidate: IndexedRow, is_new: bool
    ) -> None:
        """Add the row of an episode to the index, as it is now."""
        # Only sealed episodes of ours stay unchanged. Others are read every time.
        settled = row is not None and row.is_settled
        kept = row if row is None or settled else row._replace(sealed=False)
        seen = IndexedRow(candidate.id, kept, mark if settled else "")
        self._index.keep(seen, None if is_new else candidate)
        if self._index.waiting >= _CHUNK:
            self._index.write()

    def _locate(self, episode_id: str) -> tuple[str, str]:
        """Return the directory of an episode, or its place in an archive, and its mark."""
        directory = os.path.join(self._runs_dir, episode_id)
        mark = _change_mark(directory)
        if self._archives is None or mark != _NOWHERE:
            return directory, mark
        found = self._archives.locate(episode_id)
        return (directory, mark) if found is None else (os.fspath(found.path), found.mark)

    def _read_row(self, directory: str) -> EpisodeRow | None:
        with suppress(CogcliError):
            row = read_row(directory, self._owner, thorough=False)
            with suppress(OSError):
                self._hashed += os.lstat(os.path.join(directory, EVENTS)).st_size
            return row
        return None

    def close(self) -> None:
        """Write the new rows."""
        if self._archives is not None:
            self._archives.close()
        if not self._indexed and self._hashed > HEAVY:
            self._index.create()
        whole = self._stamp if not (self._new or self._lost) else ""
        if self._index.waiting or self._gone or (whole and not self._was_whole):
            self._index.write(gone=self._gone, whole=whole)
        self._index.close()


def _list_changes(runs_dir: Path | str, indexed: set[str]) -> tuple[list[str], set[str]]:
    """Return the new names, the newest last, and the removed names. Raise IndexUnavailable if the directory cannot be
    listed.
    """
    try:
        changed = indexed.symmetric_difference(os.listdir(runs_dir))
    except OSError as error:
        raise IndexUnavailable from error
    new = filter(is_episode_id, changed - indexed)
    return sorted(new, key=place_of), changed & indexed


def _change_mark(directory: str) -> str:
    """Return the inodes and times of a sealed episode and its files, without blobs. The text changes when a file is
    replaced, written or removed.
    """
    try:
        found = os.lstat(directory)
    except OSError:
        return _NOWHERE
    if not stat.S_ISDIR(found.st_mode):
        return _NOWHERE
    return ".".join(
        [f"{found.st_ino}.{found.st_mtime_ns}", *(_mark_of(directory, name) for name in _MARKED)]
    )


def _mark_of(directory: str, name: str) -> str:
    # `ctime` changes with every write, and no program sets it back.
    try:
        found = os.lstat(f"{directory}/{name}")
    except OSError:
        return "-"
    return f"{found.st_ino}.{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}"


def _directory_state(runs_dir: Path | str) -> str:
    """Return the state of the runs directory. Empty if it does not exist, or if a recent change may not show in its
    times.
    """
    try:
        found = os.stat(runs_dir)
    except OSError:
        return ""
    if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < _SETTLED:
        return ""
    archives = archives_stamp(runs_dir)
    return f"{found.st_ino}.{found.st_mtime_ns}.{found.st_ctime_ns}{archives and f'/{archives}'}"
