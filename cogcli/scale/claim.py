"""The claim of a line's episode: the only way to run a line (docs/reference/batch.md#claim).

1. The folder of the episode may exist already: of a killed process, or of one that is alive.
2. Creating the log and locking it are two steps, so the log is read after it is locked.
3. A log without a committed event means that nothing happened. The run starts there, as in a new folder.
4. A folder that was removed between opening and locking is made again.
5. A sealed episode may be in an archive. Its folder is removed after it is archived, so archives are read after a new
   folder is made and locked.
6. Closed lines begin no episode: their folders, and later their archives, may have been removed. So this is read after
   a new folder is made and locked, too, and before the first event.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from enum import Enum
from pathlib import Path
from stat import S_ISREG
from typing import Final, Unpack

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.file_lock import lock
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json
from cogcli.episode.archive.access import open_archives
from cogcli.episode.folder import TEMPORARY, Folder, read_at
from cogcli.episode.journal import End, Journal, JournalPorts
from cogcli.episode.layout import BALLAST, BLOBS, CHECKPOINT, EVENTS, LEARN, MANIFEST
from cogcli.episode.log_lines import FIRST, first_link

_TRIES: Final = 10
_WAIT: Final = 0.01
"""Readers hold the lock for a moment, to see whether a run is alive."""
_OPEN: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)


class ClaimState(Enum):
    """The state of the episode whose id was claimed."""

    FREE = "free"
    BEGUN = "begun"
    SEALED = "sealed"
    BUSY = "busy"
    CLOSED = "closed"


class Claim(NamedTuple):
    """The result of a claim. If `state` is free, the claim owns the folder and the locked, empty log."""

    state: ClaimState
    folder: Folder | None = None
    log: int = -1

    def open_journal(self, trace_id: str, **ports: Unpack[JournalPorts]) -> Journal:
        """Return the journal of a free claim. The journal then owns the folder and the log. Raise
        UnusableEnvironment.
        """
        if self.folder is None:
            raise ValueError("the claim is not free")
        name = self.folder.path.name
        end = End(0, first_link(name), "", 0, "", "", FIRST)
        try:
            return Journal(
                self.folder, episode_id=name, trace_id=trace_id, resumed=(self.log, end), **ports
            )
        except OSError as error:
            self.release()
            raise _runs_dir_error(self.folder.path, error) from error

    def release(self) -> None:
        """Unlock the log of a free claim."""
        if self.folder is not None:
            os.close(self.log)
            self.folder.close()


def _is_never_closed() -> bool:
    return False


def claim(
    runs_dir: Path, episode_id: str, is_closed: Callable[[], bool] = _is_never_closed
) -> Claim:
    """Claim an episode. `is_closed` returns whether the episode's line has ended; it may raise OSError. Raise
    UnusableEnvironment `env.runs-dir`.
    """
    try:
        while (found := _claim_once(runs_dir, episode_id, is_closed)) is None:
            pass
    except OSError as error:
        raise _runs_dir_error(runs_dir / episode_id, error) from error
    return found


def _claim_once(runs_dir: Path, episode_id: str, is_closed: Callable[[], bool]) -> Claim | None:
    """Return the claim; None if another process removed the folder in the meantime. Raise OSError."""
    with Folder.open(runs_dir, make=True) as runs:
        try:
            folder = _open_or_make(runs, episode_id)
        except FileNotFoundError:
            return None
    with ExitStack() as opened:
        opened.callback(folder.close)
        if folder.holds(MANIFEST):
            return Claim(ClaimState.SEALED)
        try:
            fd = folder.descriptor(EVENTS, _OPEN)
        except FileNotFoundError:  # the folder was removed
            return None
        opened.callback(os.close, fd)
        state = _lock_log(folder, fd)
        if state is not ClaimState.FREE:
            return Claim(state) if state else None
        _discard_leftovers(folder, fd)
        if ended := _find_end(runs_dir, episode_id, is_closed):
            _remove_empty_folder(runs_dir, folder)
            return Claim(ended)
        opened.pop_all()
        return Claim(ClaimState.FREE, folder, fd)


def _open_or_make(runs: Folder, episode_id: str) -> Folder:
    """Return the folder of an episode. Raise OSError, FileNotFoundError if another process removed it meanwhile."""
    try:
        return runs.make(episode_id)
    except FileExistsError:
        return runs.sub(episode_id)


def _find_end(runs_dir: Path, episode_id: str, is_closed: Callable[[], bool]) -> ClaimState | None:
    """Return the end state of an episode that has no folder; None if the episode never began. Raise OSError."""
    archives = open_archives(runs_dir)
    if archives is not None and archives.has(episode_id):
        return ClaimState.SEALED
    return ClaimState.CLOSED if is_closed() else None


def _remove_empty_folder(runs_dir: Path, folder: Folder) -> None:
    """Remove a folder without events whose log this process has locked. Raise OSError.

    If another process creates a log in the folder at this moment, that process removes the folder.
    """
    folder.remove_files()
    with suppress(OSError):
        folder.remove_directory(BLOBS)
    with Folder.open(runs_dir) as runs, suppress(OSError):
        runs.remove_directory(folder.path.name)


def _lock_log(folder: Folder, fd: int) -> ClaimState | None:
    """Lock a log, and return the state of its episode. Return None if the log was removed. Raise OSError."""
    if not _take_lock(fd):
        return ClaimState.BUSY
    found = os.fstat(fd)
    if not S_ISREG(found.st_mode):
        raise OSError(f"{EVENTS} is not a regular file")
    if not found.st_nlink:
        return None
    if folder.holds(MANIFEST):
        return ClaimState.SEALED
    return ClaimState.BEGUN if _has_committed_event(fd) else ClaimState.FREE


def _take_lock(fd: int) -> bool:
    """Lock a log without waiting for a run. Return whether it is locked now."""
    for left in reversed(range(_TRIES)):
        try:
            lock(fd, wait=False)
        except BlockingIOError:
            if left:
                time.sleep(_WAIT)
        else:
            return True
    return False


def _has_committed_event(fd: int) -> bool:
    offset = 0
    while chunk := read_at(fd, 1 << 16, offset):
        if b"\n" in chunk:
            return True
        offset += len(chunk)
    return False


def _discard_leftovers(folder: Folder, log: int) -> None:
    """Remove the files of a process that was killed before its first event. Raise OSError."""
    os.ftruncate(log, 0)
    folder.remove_files(TEMPORARY)
    for name in (BALLAST, CHECKPOINT):
        with suppress(FileNotFoundError):
            folder.unlink(name)
    with suppress(FileNotFoundError), folder.sub(BLOBS) as blobs:
        blobs.remove_files()
    if not folder.holds(LEARN):
        os.close(folder.create(LEARN, os.O_WRONLY))


def _runs_dir_error(path: Path, error: OSError) -> UnusableEnvironment:
    text = f"no episode can be made at `{path}`: {error.strerror or error}"
    return UnusableEnvironment("env.runs-dir", text, hint="name another directory with --runs-dir")


def collision_error(directory: Path, expected: Json, found: Json) -> UnusableEnvironment:
    """Return the error for an episode that another line, try or input has under the same id."""
    return UnusableEnvironment(
        "batch.collision",
        f"`{directory.name}` exists and is the run of something else",
        expected=_describe_tags(expected),
        found=_describe_tags(found),
        hint="run the batch under another --batch-name",
    )


def closed_error(episode_id: str) -> UnusableEnvironment:
    """Return the error for a line that ended before, and whose episode was removed since."""
    return UnusableEnvironment(
        "episode.unreadable",
        f"`{episode_id}` was removed after its line had ended: the line does not run twice",
        hint="`--retry-failed` runs a line again, as another try",
    )


def _describe_tags(tags: Json) -> str:
    names = ("batch", "line", "try", "input")
    return ", ".join(f"{name} {tags.get(name)!s:.40}" for name in names)
