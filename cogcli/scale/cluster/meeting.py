"""Whether client and worker share the files of a batch and their locks (docs/reference/batch.md#dask).

Each side makes a file with a secret name in the folder of the batch and locks it. The other side must read the right
text in it, and must not get its lock. So two directories with the same path, and a file system without locks, are told
apart.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cogcli.base.file_lock import lock

_LARGEST = 1000


class RendezvousFile:
    """A locked file of this process. Close it to remove it."""

    def __init__(self, folder: str, nonce: str) -> None:
        """Make the file. Raise OSError."""
        self._path = _path_of(folder, nonce)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        self._fd = os.open(self._path, flags, 0o600)
        try:
            lock(self._fd, wait=False)
            os.write(self._fd, nonce.encode())
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Remove the file and its lock."""
        with suppress(OSError):
            os.unlink(self._path)
        os.close(self._fd)


def _path_of(folder: str, nonce: str) -> str:
    return os.path.join(folder, f"meet-{nonce}")


def sees_locked_file(folder: str, nonce: str) -> bool:
    """Return whether the file of the other side is here, and locked."""
    with suppress(OSError), _open_file(folder, nonce) as fd:
        if os.read(fd, _LARGEST) != nonce.encode():
            return False
        try:
            lock(fd, wait=False)
        except BlockingIOError:
            return True
    return False


@contextmanager
def _open_file(folder: str, nonce: str) -> Iterator[int]:
    fd = os.open(_path_of(folder, nonce), os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        yield fd
    finally:
        os.close(fd)
