"""A folder whose entries are known to this process, and are not those of a directory on disk."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

from cogcli.base.files import UnreadableFile
from cogcli.episode.folder import Folder

_FILE: Final = stat.S_IFREG | 0o600
_DIRECTORY: Final = stat.S_IFDIR | 0o700


class ListedFolder(Folder):
    """A folder that lists its entries itself. `path` is where its directory would be."""

    def __init__(self, path: Path, inner: Mapping[str, Folder]) -> None:
        """`inner` are the folders in it, by name."""
        super().__init__(path, None)
        self._inner = inner

    def _file_sizes(self) -> Mapping[str, int]:
        """Return the size of each file in bytes, by name."""
        raise NotImplementedError

    def names(self) -> list[str]:
        return [*self._file_sizes(), *self._inner]

    def entries(self) -> dict[str, os.stat_result]:
        sizes = {**self._file_sizes(), **dict.fromkeys(self._inner, 0)}
        return {name: self._stat_result(name, size) for name, size in sorted(sizes.items())}

    def _stat_result(self, name: str, size: int) -> os.stat_result:
        return os.stat_result((self._entry_mode(name), 0, 0, 1, 0, 0, size, 0, 0, 0))

    def _entry_mode(self, name: str) -> int:
        if name in self._inner:
            return _DIRECTORY
        return _FILE if name in self._file_sizes() else 0

    def sub(self, name: str) -> Folder:
        if name not in self._inner:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return self._inner[name]

    def is_locked(self, name: str) -> bool:
        return False

    def size(self, name: str) -> int:
        size = self._file_sizes().get(name)
        if size is None:
            raise UnreadableFile(str(self.path / name), "missing", "does not exist")
        return size

    def open_reader(self, name: str) -> BinaryIO:
        return io.BytesIO(b"".join(self.chunks(name)))
