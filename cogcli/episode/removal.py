"""The removal of episodes that are not pinned.

1. The shared lock is taken first. No run can begin to write under it, and it cannot be taken from a run that writes.
2. Under the lock the episode is read again. This reading decides whether it is removed.
3. The directory is renamed inside the runs directory before any file in it is removed, so that no reader sees a part of
   an episode. The next removal deletes what a crash leaves under such a name.
4. An episode without a first event is being created, unless it is older than a minute.
5. A pin is a file in `.pins/` of the runs directory, outside the sealed episode. If the pins cannot be read, that is an
   error and nothing is removed.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from cogcli.base.errors import CogcliError
from cogcli.base.file_lock import is_free
from cogcli.base.files import UnreadableFile
from cogcli.episode.folder import Folder, disk_errors
from cogcli.episode.layout import EVENTS, is_episode_id
from cogcli.episode.listing.episode_row import EpisodeRow, read_row

if TYPE_CHECKING:
    from pathlib import Path

PINS: Final = ".pins"
REMOVED: Final = ".gc-"
"""The prefix of directories of removed episodes."""
_BEING_MADE: Final = 60.0
"""Seconds."""


def size_of(directory: Path | str) -> int:
    """Return the bytes of all files in an episode, links not followed."""
    total = 0
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                total += size_of(entry.path)
            else:
                total += entry.stat(follow_symlinks=False).st_size
    return total


def is_being_made(row: EpisodeRow) -> bool:
    """Return whether an episode has no event yet and is less than a minute old (rule 4)."""
    if row.started_at is not None:
        return False
    try:
        return time.time() - os.stat(row.place).st_mtime < _BEING_MADE
    except OSError:
        return True


def remove(directory: Path, may_go: Callable[[EpisodeRow], bool]) -> bool:
    """Remove an episode if `may_go` accepts its row under the lock. Raise UnusableEnvironment `env.disk`."""
    with (
        disk_errors(directory),
        suppress(FileNotFoundError),
        Folder.open(directory.parent) as runs,
        runs.sub(directory.name) as folder,
        _lock_log(folder) as locked,
    ):
        if not locked:
            return False
        try:
            row = read_row(directory)
        except CogcliError:
            return False
        if is_being_made(row) or not may_go(row):
            return False
        name = f"{REMOVED}{directory.name}-{os.urandom(4).hex()}"
        runs.rename(directory.name, name)
        _delete_tree(runs, name)
        return True
    return False


def remove_leftovers(runs_dir: Path) -> None:
    """Finish interrupted removals. Raise UnusableEnvironment `env.disk`."""
    with disk_errors(runs_dir), suppress(FileNotFoundError), Folder.open(runs_dir) as runs:
        names = [name for name in runs.names() if name.startswith(REMOVED)]
        for name in filter(runs.holds_directory, names):
            with suppress(FileNotFoundError), runs.sub(name) as folder, _lock_log(folder) as locked:
                if locked:
                    _delete_tree(runs, name)


@contextmanager
def _lock_log(folder: Folder) -> Iterator[bool]:
    """Lock the log against writers, and yield whether that succeeded. Without a log no lock is needed."""
    try:
        fd = folder.open_file(EVENTS)
    except UnreadableFile as error:
        yield error.reason == "missing"
        return
    try:
        yield is_free(fd)
    finally:
        os.close(fd)


def _delete_tree(parent: Folder, name: str) -> None:
    """Delete a directory tree without following links. Another process may delete the same tree. Raise OSError."""
    with suppress(FileNotFoundError):
        with parent.sub(name) as folder:
            for entry, found in folder.entries().items():
                if stat.S_ISDIR(found.st_mode):
                    _delete_tree(folder, entry)
                else:
                    with suppress(FileNotFoundError):
                        folder.unlink(entry)
        parent.remove_directory(name)


# -- pins --------------------------------------------------------------------------------------------------------------


def read_pins(runs_dir: Path) -> frozenset[str]:
    """Return the ids of all pinned episodes, also of removed ones. Raise UnusableEnvironment `env.disk`."""
    with disk_errors(runs_dir / PINS), suppress(FileNotFoundError), _open_pins(runs_dir) as pins:
        return frozenset(filter(is_episode_id, pins.names()))
    return frozenset()


def _open_pins(runs_dir: Path) -> Folder:
    with Folder.open(runs_dir) as runs:
        return runs.sub(PINS)


def pin(runs_dir: Path, episode_id: str) -> None:
    """Pin an episode, if it is not pinned yet. Raise UnusableEnvironment `env.disk`."""
    with disk_errors(runs_dir / PINS / episode_id), Folder.open(runs_dir) as runs:
        with suppress(FileExistsError):
            runs.make(PINS).close()
        with runs.sub(PINS) as pins, suppress(FileExistsError):
            os.close(pins.create(episode_id, os.O_WRONLY))


def unpin(runs_dir: Path, episode_id: str) -> None:
    """Remove the pin of an episode, if there is one. Raise UnusableEnvironment `env.disk`."""
    with (
        disk_errors(runs_dir / PINS / episode_id),
        suppress(FileNotFoundError),
        _open_pins(runs_dir) as pins,
    ):
        pins.unlink(episode_id)
