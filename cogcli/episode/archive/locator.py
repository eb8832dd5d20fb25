"""The archives of a runs directory, and which of them has an episode.

1. Archives are in `.archives/` and, for the lines of a batch, in `.batches/ba_.../archives/`. No link is followed.
2. A folder comes first: an episode with a folder is not looked for here.
3. A file that cannot be read as an archive is passed over; `find_faults` lists it. What it has is not found.
4. What an archive has is kept for its last state, and read on from there when it has grown.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.episode.archive.archived_folder import ArchivedFolder, open_in_archive
from cogcli.episode.archive.directories import archive_paths
from cogcli.episode.archive.format import ArchiveFault
from cogcli.episode.archive.reader import (
    Archive,
    ArchiveContents,
    FileState,
    archive_error,
    describe_fault,
    is_archive_file,
    open_archive_file,
    peek_range,
    read_contents,
    state_of,
)
from cogcli.episode.layout import is_own_id

_KEPT: Final = 8
"""Archives whose contents are kept in memory: 2 MB each at most."""


class _CachedArchive(NamedTuple):
    state: FileState
    contents: ArchiveContents


@cache
def _archive_cache() -> dict[str, _CachedArchive]:
    """Return this process's cache of archives, by path, the latest last."""
    return {}


@cache
def _verified_archives() -> dict[str, FileState]:
    """Return the state of each archive in which this process found no fault, by path."""
    return {}


def open_cached_archive(path: Path) -> Archive:
    """Open an archive, whose contents are read only if they changed. Raise UnusableEnvironment `archive.unreadable`."""
    fd = open_archive_file(path)
    kept = _archive_cache()
    try:
        state = state_of(os.fstat(fd))
        before = kept.pop(str(path), None)
        if before is not None and before.state == state:
            contents = before.contents
        else:
            is_same = before is not None and before.state.inode == state.inode
            contents = read_contents(fd, before.contents if before and is_same else None)
    except (ArchiveFault, OSError) as error:
        os.close(fd)
        raise archive_error(path, describe_fault(error)) from error
    kept[str(path)] = _CachedArchive(state, contents)
    if not contents.fault:
        _verified_archives()[str(path)] = state
    while len(kept) > _KEPT:
        del kept[next(iter(kept))]
    return Archive(path, fd, contents)


class ArchivePlace(NamedTuple):
    """The place of an episode: the archive file, and the offset of its record."""

    path: Path
    offset: int


class ArchivedEpisode(NamedTuple):
    """An archived episode: its path in the archive, and a mark that changes whenever one of its files changes."""

    path: Path
    mark: str


class RunsArchives:
    """The archives of one runs directory, as they were listed when this was made."""

    def __init__(self, runs_dir: Path | str) -> None:
        self._paths = archive_paths(runs_dir)
        self._latest: Archive | None = None

    def archives(self) -> Iterator[Archive]:
        """Yield each archive that can be read, open for as long as it is the current one."""
        for path in self._paths:
            with suppress(UnusableEnvironment), open_cached_archive(path) as archive:
                yield archive

    def find_faults(self) -> list[UnusableEnvironment]:
        """Return the errors of archives that cannot be read as a whole. An empty file has no fault."""
        return [fault for path in self._paths if (fault := _find_fault(path)) is not None]

    def episode_ids(self) -> set[str]:
        """Return the ids of all archived episodes."""
        return {episode_id for archive in self.archives() for episode_id in archive.episode_ids()}

    def find(self, episode_id: str) -> Archive | None:
        """Return the open archive that has an episode; the caller closes it. None if no archive has it."""
        if not is_own_id(episode_id):
            return None
        return find_archive(self._paths, episode_id)

    def has(self, episode_id: str) -> bool:
        """Return whether an archive has an episode."""
        found = self.find(episode_id)
        if found is not None:
            found.close()
        return found is not None

    def locate(self, episode_id: str) -> ArchivedEpisode | None:
        """Return the place of an episode and its mark. None if no archive has it, or if its record cannot be read.

        The archive stays open, since the next episode is probably in it. Close this object afterwards.
        """
        archive = self._latest
        if archive is None or not archive.find(episode_id):
            self.close()
            archive = self._latest = self.find(episode_id)
        if archive is None:
            return None
        try:
            mark = f"archived.{archive.record_sum(episode_id)}"
        except UnusableEnvironment:
            return None
        return ArchivedEpisode(archive.path / episode_id, mark)

    def close(self) -> None:
        """Close the archive that `locate` left open."""
        if self._latest is not None:
            self._latest.close()
            self._latest = None


def _find_fault(path: Path) -> UnusableEnvironment | None:
    """Return why an archive cannot be read as a whole. None if it can, and if a kill left it without a byte."""
    try:
        state = state_of(os.lstat(path))
    except OSError:
        return None  # it was removed in the meantime
    if not state.size or _verified_archives().get(str(path)) == state:
        return None
    try:
        with open_cached_archive(path) as archive:
            fault = archive.contents.fault
    except UnusableEnvironment as error:
        return error
    return archive_error(path, fault) if fault else None


def find_archive(paths: Iterable[Path], episode_id: str) -> Archive | None:
    """Return the open archive among these that has an episode; the caller closes it. None if no archive has it."""
    for path in paths:
        try:
            # Most archives are passed over by the first and the last name of their index.
            if str(path) not in _archive_cache() and not peek_range(path, episode_id):
                continue
            archive = open_cached_archive(path)
        except UnusableEnvironment:
            continue
        if archive.find(episode_id):
            return archive
        archive.close()
    return None


def find_place(paths: Iterable[Path], episode_id: str) -> ArchivePlace | None:
    """Return the place of an episode in one of these archives. None if no archive has it."""
    archive = find_archive(paths, episode_id)
    if archive is None:
        return None
    with archive:
        record = archive.find(episode_id)
        return None if record is None else ArchivePlace(archive.path, record.offset)


def open_archived_episode(path: Path) -> ArchivedFolder | None:
    """Return the archived episode with this path; None if a folder or nothing has the path. The path is `ARCHIVE/ID`,
    or `RUNS/ID` for an archive of that runs directory. Raise UnusableEnvironment `archive.unreadable`.
    """
    if not is_own_id(path.name):
        return None
    archive: Archive | None
    if is_archive_file(path.parent):
        archive = open_cached_archive(path.parent)
        if archive.find(path.name) is None:
            archive.close()
            return None
    else:
        archive = RunsArchives(path.parent).find(path.name)
    return None if archive is None else open_in_archive(archive, path)
