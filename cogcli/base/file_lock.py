"""Locks on open files. A lock lasts until its descriptor is closed or its process ends.

On Windows the lock covers one byte beyond the end of any log, because Windows blocks reads of
locked bytes.
"""

from __future__ import annotations

import os
import sys

if sys.platform == "win32":
    import msvcrt

    _PLACE = 2**31 - 2  # the C library takes offsets of 31 bits

    def lock(fd: int, *, wait: bool) -> None:
        """Acquire the exclusive lock of a file. Raise BlockingIOError if another process holds it and `wait` is false.
        Raise OSError.
        """
        while True:
            try:
                return _lock_byte(fd, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK)
            except OSError as error:  # a waiting lock tries for ten seconds
                if not wait:
                    raise BlockingIOError(error.errno, error.strerror) from error

    def is_free(fd: int) -> bool:
        """Return whether no other process has the lock.

        If it is free, no process can take it before the descriptor is closed.
        """
        try:
            lock(fd, wait=False)
        except OSError:
            return False
        return True

    def _lock_byte(fd: int, mode: int) -> None:
        position = os.lseek(fd, 0, os.SEEK_CUR)
        os.lseek(fd, _PLACE, os.SEEK_SET)
        try:
            msvcrt.locking(fd, mode, 1)
        finally:
            os.lseek(fd, position, os.SEEK_SET)

else:
    import fcntl

    def lock(fd: int, *, wait: bool) -> None:
        """Take the exclusive lock of a file.

        Raise BlockingIOError if another process has it and `wait` is false. Raise OSError.
        """
        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)

    def is_free(fd: int) -> bool:
        """Return whether no other process has the lock.

        If it is free, no process can take it before the descriptor is closed.
        """
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
