"""Removing episodes for good, but for those that are pinned.

1. The lock is taken first, shared: no run can begin to write while it is held, and a run that writes keeps it away.
2. With the lock held the episode is looked at again: whether it may go is judged by what it is then.
3. The directory gets another name inside the runs directory before anything in it goes: nobody sees half an episode.
   What a crash leaves under such a name is removed by the next who comes.
4. An episode whose first event is not there yet is just being made, unless it has been like that for a while.
5. A pin is a file in `.pins/` of the runs directory, outside the episode, which is sealed. What cannot be read as pins
   is an error: who cannot know the pins removes nothing.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from cogcli.base.errors import CogcliError
from cogcli.base.file_lock import is_free
from cogcli.base.files import FileRefused
from cogcli.episode.folder import Folder, disk_errors
from cogcli.episode.layout import EVENTS, is_episode_id
from cogcli.episode.listing.episode_row import EpisodeRow, read_row

PINS: Final = ".pins"
REMOVED: Final = ".gc-"
"""How the names of directories begin that are no episodes any more."""
_BEING_MADE: Final = 60.0
"""Seconds."""


def size_of(directory: Path) -> int:
    """The bytes of all files in an episode, links not followed."""
    total = 0
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                total += size_of(Path(entry.path))
            else:
                total += entry.stat(follow_symlinks=False).st_size
    return total


def is_being_made(row: EpisodeRow) -> bool:
    """Whether an episode has no event yet and is not old (rule 4)."""
    if row.started_at is not None:
        return False
    try:
        return time.time() - os.stat(row.directory).st_mtime < _BEING_MADE
    except OSError:
        return True


def remove(directory: Path, may_go: Callable[[EpisodeRow], bool]) -> bool:
    """Remove an episode if it may still go when nobody can change it any more. Raises EnvironmentRefusal `env.disk`."""
    with (
        disk_errors(directory),
        suppress(FileNotFoundError),
        Folder.open(directory.parent) as runs,
        runs.sub(directory.name) as folder,
        _locked(folder) as locked,
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
        _delete(runs, name)
        return True
    return False


def remove_leftovers(runs_dir: Path) -> None:
    """Remove what an earlier removal did not finish. Raises EnvironmentRefusal `env.disk`."""
    with disk_errors(runs_dir), suppress(FileNotFoundError), Folder.open(runs_dir) as runs:
        names = [name for name in runs.names() if name.startswith(REMOVED)]
        for name in filter(runs.holds_directory, names):
            with suppress(FileNotFoundError), runs.sub(name) as folder, _locked(folder) as locked:
                if locked:
                    _delete(runs, name)


@contextmanager
def _locked(folder: Folder) -> Iterator[bool]:
    """Whether the log could be locked against writers; a directory without one needs no lock."""
    try:
        fd = folder.open_file(EVENTS)
    except FileRefused as error:
        yield error.reason == "missing"
        return
    try:
        yield is_free(fd)
    finally:
        os.close(fd)


def _delete(parent: Folder, name: str) -> None:
    """Delete a directory tree, links themselves and not what they lead to. Another may do the same. Raises OSError."""
    with suppress(FileNotFoundError):
        with parent.sub(name) as folder:
            for entry, found in folder.entries().items():
                if stat.S_ISDIR(found.st_mode):
                    _delete(folder, entry)
                else:
                    with suppress(FileNotFoundError):
                        folder.unlink(entry)
        parent.remove_directory(name)


# -- pins --------------------------------------------------------------------------------------------------------------


def read_pins(runs_dir: Path) -> frozenset[str]:
    """The ids of all pinned episodes, those that are gone among them. Raises EnvironmentRefusal `env.disk`."""
    with disk_errors(runs_dir / PINS), suppress(FileNotFoundError), _open_pins(runs_dir) as pins:
        return frozenset(filter(is_episode_id, pins.names()))
    return frozenset()


def _open_pins(runs_dir: Path) -> Folder:
    with Folder.open(runs_dir) as runs:
        return runs.sub(PINS)


def pin(runs_dir: Path, episode_id: str) -> None:
    """Pin an episode; once or more often is the same. Raises EnvironmentRefusal `env.disk`."""
    with disk_errors(runs_dir / PINS / episode_id), Folder.open(runs_dir) as runs:
        with suppress(FileExistsError):
            runs.make(PINS).close()
        with runs.sub(PINS) as pins, suppress(FileExistsError):
            os.close(pins.create(episode_id, os.O_WRONLY))


def unpin(runs_dir: Path, episode_id: str) -> None:
    """Take a pin away, if there is one. Raises EnvironmentRefusal `env.disk`."""
    with (
        disk_errors(runs_dir / PINS / episode_id),
        suppress(FileNotFoundError),
        _open_pins(runs_dir) as pins,
    ):
        pins.unlink(episode_id)
