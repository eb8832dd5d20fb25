"""Space reserved for the end of a run, so that its terminal event fits on a full disk
(docs/reference/episode.md#disk-full).

1. The file exists while its run is alive, and is freed when its end is written, the run pauses or its log is closed.
   Only a killed process leaves it behind; reopening the episode replaces it.
2. Its first line names the process that holds the log, for the message about a locked log. It is not trusted for
   anything else.
3. If the file system has no room for it, no episode is created. If it cannot reserve room, the run has no reserve.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack, suppress
from typing import Final

from cogcli.base.files import UnreadableFile
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.episode.folder import Folder, write_all
from cogcli.episode.layout import BALLAST

SIZE: Final = 64 * 1024
FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""The errors of a write to a full disk, or beyond a user's quota."""
_HOLDER = lazy_pattern(rb"pid (\d{1,10}) on ([A-Za-z0-9._-]{1,64})\n")


class DiskReserve:
    """The disk reserve of one open episode. The caller holds the episode's lock."""

    def __init__(self, folder: Folder, *, anew: bool = False) -> None:
        """Reserve the space. `anew` replaces a file that another process may have left. Raise OSError if the disk
        is full.
        """
        self._folder = folder
        self.held = True
        if anew:
            with suppress(FileNotFoundError):
                folder.unlink(BALLAST)
        fd = folder.create(BALLAST, os.O_WRONLY)
        with ExitStack() as undo:
            undo.callback(self.free)
            try:
                write_all(fd, f"pid {os.getpid()} on {_host_name()[:64]}\n".encode())
                _allocate(fd)
            finally:
                os.close(fd)
            undo.pop_all()

    def free(self) -> bool:
        """Free the space. Return whether there was any. May be called again."""
        held = self.held
        try:
            self.remove()
        except OSError:
            return False
        return held

    def remove(self) -> None:
        """Free the space. Raise OSError."""
        if self.held:
            with suppress(FileNotFoundError):
                self._folder.unlink(BALLAST)
            self.held = False


def _host_name() -> str:
    return (
        os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "this-host")
    )


def _allocate(fd: int) -> None:
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(fd, 0, SIZE)
    except OSError as error:
        if error.errno in FULL:
            raise


def describe_holder(folder: Folder) -> str:
    """Return a description of the process that holds the log of an episode."""
    with suppress(OSError, UnreadableFile):
        for chunk in folder.chunks(BALLAST):
            if match := _HOLDER.match(chunk):
                return f"process {match[1].decode()} on {match[2].decode()}"
            break
    return "another process"
