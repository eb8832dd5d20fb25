"""One episode between its folder and an archive, byte by byte the same.

1. A folder is removed only after the archive is on disk and was read back: every file is compared under the lock of the
   episode's log.
2. A written folder appears at once: it is made under another name, synced, and renamed. The archive keeps the episode.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from cogcli.base.errors import CogcliError, UnusableEnvironment, UsageError
from cogcli.base.file_lock import lock
from cogcli.base.files import UnreadableFile
from cogcli.episode.archive.format import ArchiveFault
from cogcli.episode.archive.locator import open_cached_archive
from cogcli.episode.archive.reader import Archive, read_contents
from cogcli.episode.archive.writer import EpisodeBytes, read_folder
from cogcli.episode.folder import Folder, disk_errors
from cogcli.episode.layout import BLOBS
from cogcli.episode.listing.episode_row import EpisodeRow
from cogcli.episode.removal import remove

_MADE: Final = ".extract-"
"""The prefix of folders that are being written. `remove_unfinished_folders` removes those of a kill."""


def read_archived_episode(archive: Archive, episode_id: str) -> EpisodeBytes:
    """Return all bytes of an archived episode. Raise UnusableEnvironment `archive.unreadable`."""
    files, blobs = archive.read_episode(episode_id)
    return EpisodeBytes(files, {name: archive.read_blob(name) for name in blobs})


def is_archived_as(directory: Path, archive: Path) -> bool:
    """Return whether an archive has exactly the bytes of an episode's folder."""
    try:
        with Folder.open(directory) as folder, open_cached_archive(archive) as opened:
            return read_folder(folder) == read_archived_episode(opened, directory.name)
    except (CogcliError, UnreadableFile, OSError):
        return False


def remove_archived_folder(directory: Path, archive: Path) -> bool:
    """Remove the folder of a sealed episode that an archive has. Return whether it was removed.

    The archive must be synced. Raise UnusableEnvironment `env.disk`.
    """

    def may_go(row: EpisodeRow) -> bool:
        return row.sealed and not row.fault and is_archived_as(directory, archive)

    return remove(directory, may_go)


def drop_archive(path: Path, may_go: Callable[[list[str]], bool]) -> bool:
    """Remove an archive if `may_go` accepts the ids of all its episodes, read under its lock. Return whether the
    archive was removed. A damaged archive and one that a process writes are kept. Raise UnusableEnvironment `env.disk`.
    """
    with (
        disk_errors(path),
        suppress(FileNotFoundError, UnreadableFile),
        Folder.open(path.parent) as folder,
    ):
        fd = folder.open_file(path.name, appending=True)
        try:
            lock(fd, wait=False)
            contents = read_contents(fd)
            if contents.fault or not may_go(contents.records.episode_ids()):
                return False
            folder.unlink(path.name)
            folder.sync()
            return True
        except (BlockingIOError, ArchiveFault):
            return False
        finally:
            os.close(fd)
    return False


def write_folder(directory: Path, episode: EpisodeBytes, *, shared: bool = False) -> None:
    """Write the folder of an episode, for this user alone or `shared` with the group. Raise UsageError `output.exists`
    and UnusableEnvironment `env.disk`.
    """
    with disk_errors(directory), Folder.open(directory.parent, make=True, shared=shared) as parent:
        if directory.name in parent.names():
            raise _exists_error(directory)
        name = f"{_MADE}{os.urandom(8).hex()}"
        try:
            with parent.make(name) as folder:
                _write_files(folder, episode)
            if directory.name in parent.names():
                raise _exists_error(directory)
            parent.rename(name, directory.name)
        finally:
            _remove_new_folder(parent, name)
        parent.sync()


def _exists_error(directory: Path) -> UsageError:
    return UsageError(
        "output.exists",
        f"`{directory}` exists",
        hint="its folder is read, the archive is not needed for it",
        next=(f"cogcli verify {directory.name}",),
    )


def _write_files(folder: Folder, episode: EpisodeBytes) -> None:
    for name, data in episode.files.items():
        folder.replace(name, data)
    if episode.blobs:
        with folder.make(BLOBS) as kept:
            for name, data in episode.blobs.items():
                kept.replace(name, data)
    folder.sync()


def remove_unfinished_folders(directory: Path) -> None:
    """Remove the folders that a kill left while they were written. Raise UnusableEnvironment `env.disk`."""
    with disk_errors(directory), suppress(FileNotFoundError), Folder.open(directory) as parent:
        for name in parent.names():
            if name.startswith(_MADE):
                _remove_new_folder(parent, name)


def _remove_new_folder(parent: Folder, name: str) -> None:
    """Remove a folder that was not renamed. Raise OSError."""
    with suppress(FileNotFoundError):
        with parent.sub(name) as folder:
            folder.remove_files()
            with suppress(FileNotFoundError):
                with folder.sub(BLOBS) as kept:
                    kept.remove_files()
                folder.remove_directory(BLOBS)
        parent.remove_directory(name)


def find_conflict(directory: Path, archive: Path) -> UnusableEnvironment | None:
    """Return the error for an archive that has another episode under the id of a folder. None if it has the same."""
    if is_archived_as(directory, archive):
        return None
    return UnusableEnvironment(
        "archive.refused",
        f"`{directory.name}` is not archived: `{archive.name}` has another episode under this id",
        hint="compare both: the id of an episode is used once",
        next=(f"cogcli verify {directory.name} {archive}/{directory.name}",),
    )
