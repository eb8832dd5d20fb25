"""An episode's folder in memory: the journal writes to it as to one on disk, and a kill leaves nothing of it.

1. Open files are descriptors of the kernel without a name, so that the journal needs no other way to write.
2. Closing the folder ends the writing. Its bytes stay, to be read or archived.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Final

from cogcli.base.files import UnreadableFile
from cogcli.episode.folder import Folder, write_all
from cogcli.episode.listed_folder import ListedFolder

_CHUNK: Final = 1 << 20
HAS_FILES_IN_MEMORY: Final = sys.platform == "linux" and hasattr(os, "memfd_create")
"""Whether the system has files without a name."""

if sys.platform == "linux":

    def _create_file(flags: int) -> int:
        """Return the descriptor of a new file in memory. Raise OSError."""
        import fcntl

        fd = os.memfd_create("episode", os.MFD_CLOEXEC)
        if flags & os.O_APPEND:
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
        return fd

else:

    def _create_file(flags: int) -> int:
        """Refuse: the caller looks at `HAS_FILES_IN_MEMORY` first."""
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


class MemoryFolder(ListedFolder):
    """A folder in memory. `path` is where its directory would be."""

    def __init__(self, path: Path) -> None:
        self._folders: dict[str, Folder] = {}
        super().__init__(path, self._folders)
        self._files: dict[str, bytes] = {}
        self._open: dict[str, int] = {}
        """The descriptors of files that are being written."""

    def _file_sizes(self) -> Mapping[str, int]:
        sizes = {name: len(data) for name, data in self._files.items()}
        return sizes | {name: os.fstat(fd).st_size for name, fd in self._open.items()}

    def _has_file(self, name: str) -> bool:
        return name in self._files or name in self._open

    # -- reading -------------------------------------------------------------------------------------------------------

    def holds(self, name: str) -> bool:
        return self._has_file(name)

    def size(self, name: str) -> int:
        fd = self._open.get(name)
        return super().size(name) if fd is None else os.fstat(fd).st_size

    def chunks(
        self, name: str, wait: Callable[[], None] | None = None
    ) -> Generator[bytes, None, None]:
        if not self._has_file(name):
            raise UnreadableFile(str(self.path / name), "missing", "does not exist")
        fd = self._open.get(name)
        if fd is None:
            yield self._files[name]
            return
        offset = 0
        while chunk := os.pread(fd, _CHUNK, offset):
            yield chunk
            offset += len(chunk)

    def open_file(self, name: str, *, appending: bool = False) -> int:
        if not self._has_file(name):
            raise UnreadableFile(str(self.path / name), "missing", "does not exist")
        return self.descriptor(name, os.O_APPEND if appending else os.O_RDONLY)

    # -- writing -------------------------------------------------------------------------------------------------------

    def descriptor(self, name: str, flags: int) -> int:
        if not self._has_file(name):
            if not flags & os.O_CREAT:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            self._open[name] = _create_file(flags)
        if name not in self._open:
            fd = self._open[name] = _create_file(flags)
            write_all(fd, self._files.pop(name))
        return os.dup(self._open[name])

    def create(self, name: str, flags: int) -> int:
        if self._has_file(name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        return self.descriptor(name, flags | os.O_CREAT)

    def replace(self, name: str, data: bytes | Iterable[bytes], *, sync: bool = True) -> None:
        whole = data if isinstance(data, bytes) else b"".join(data)
        self._drop_file(name)
        self._files[name] = whole

    def unlink(self, name: str) -> None:
        if not self._has_file(name):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        self._drop_file(name)

    def _drop_file(self, name: str) -> None:
        self._files.pop(name, None)
        if name in self._open:
            os.close(self._open.pop(name))

    def rename(self, name: str, new: str) -> None:
        data = b"".join(self.chunks(name))
        self.unlink(name)
        self.replace(new, data)

    def make(self, name: str) -> Folder:
        if name in self._folders:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        made = self._folders[name] = MemoryFolder(self.path / name)
        return made

    def remove_directory(self, name: str) -> None:
        self.sub(name)
        del self._folders[name]

    def sync(self) -> None:
        """Do nothing, since memory needs no sync."""

    def sync_with_parent(self) -> None:
        """Do nothing, since memory needs no sync."""

    def close(self) -> None:
        """Stop accepting writes. The bytes stay readable. May be called twice."""
        for name in list(self._open):
            data = b"".join(self.chunks(name))
            self._drop_file(name)
            self._files[name] = data
