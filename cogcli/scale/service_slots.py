"""The slots of a service: how many lines of batches on this machine may reach it at a time.

A slot is a locked file. The kernel frees it when its batch ends or dies, so that no slot is ever lost.
"""

from __future__ import annotations

import os
from pathlib import Path

from cogcli.base.file_lock import lock
from cogcli.episode.folder import Folder, disk_errors


class ServiceSlots:
    """The slots of one service that this batch has locked."""

    def __init__(self, folder: Path, name: str, count: int) -> None:
        self._folder = folder
        self._name = name
        self._count = count
        self._next = -1
        """The descriptor of the slot for the next line."""
        self._taken: dict[int, int] = {}

    def take(self) -> bool:
        """Lock a slot for the next line. Return False if all slots are locked. Raise UnusableEnvironment `env.disk`."""
        if self._next < 0 and len(self._taken) < self._count:
            with (
                disk_errors(self._folder / self._name),
                Folder.open(self._folder, make=True) as folder,
            ):
                self._next = self._lock_any(folder)
        return self._next >= 0

    def _lock_any(self, folder: Folder) -> int:
        """Lock a free slot, and return its descriptor; -1 if all slots are locked. Raise OSError."""
        for number in range(self._count):
            fd = folder.descriptor(f"{self._name}.{number}", os.O_RDWR | os.O_CREAT)
            try:
                lock(fd, wait=False)
            except BlockingIOError:
                os.close(fd)
                continue
            return fd
        return -1

    def reserve(self, line: int) -> None:
        """Assign the slot that was just locked to a line."""
        if self._next >= 0:
            self._taken[line], self._next = self._next, -1

    def release(self, line: int) -> None:
        """Unlock the slot of a line."""
        fd = self._taken.pop(line, -1)
        if fd >= 0:
            os.close(fd)

    def rest(self) -> None:
        """Unlock the slot that is assigned to no line."""
        if self._next >= 0:
            os.close(self._next)
            self._next = -1
