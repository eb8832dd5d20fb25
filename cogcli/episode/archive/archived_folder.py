"""An archived episode as a folder: what reads a folder reads it as well. Nothing can be written to it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import NoReturn

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile
from cogcli.episode.archive.reader import Archive
from cogcli.episode.folder import Folder
from cogcli.episode.layout import BLOBS
from cogcli.episode.listed_folder import ListedFolder


class ArchivedFolder(ListedFolder):
    """A folder whose files are bytes of an archive. `path` is where the episode's folder would be."""

    def __init__(
        self,
        path: Path,
        archive: Path,
        sizes: Mapping[str, int],
        load: Callable[[str], bytes],
        inner: Mapping[str, ArchivedFolder] | None = None,
        close: Callable[[], None] | None = None,
    ) -> None:
        """`sizes` are those of its files, which `load` returns; `inner` are its folders."""
        super().__init__(path, inner or {})
        self.archive = archive
        self._size_by_name = sizes
        self._load = load
        self._close = close

    # -- reading -------------------------------------------------------------------------------------------------------

    def _file_sizes(self) -> Mapping[str, int]:
        return self._size_by_name

    def chunks(
        self, name: str, wait: Callable[[], None] | None = None
    ) -> Generator[bytes, None, None]:
        self.size(name)
        try:
            yield self._load(name)
        except UnusableEnvironment as error:
            raise UnreadableFile(str(self.path / name), "unreadable", error.message) from error

    def open_file(self, name: str, *, appending: bool = False) -> int:
        self.size(name)
        raise UnreadableFile(str(self.path / name), "unreadable", "is in an archive")

    def close(self) -> None:
        if self._close is not None:
            self._close()

    # -- what an archive does not do -----------------------------------------------------------------------------------

    def descriptor(self, name: str, flags: int) -> int:
        self._refuse_write(name)

    def unlink(self, name: str) -> None:
        self._refuse_write(name)

    def remove_directory(self, name: str) -> None:
        self._refuse_write(name)

    def rename(self, name: str, new: str) -> None:
        self._refuse_write(name)

    def make(self, name: str) -> Folder:
        self._refuse_write(name)

    def create(self, name: str, flags: int) -> int:
        self._refuse_write(name)

    def sync(self) -> None:
        self._refuse_write("")

    def sync_with_parent(self) -> None:
        self._refuse_write("")

    def _refuse_write(self, name: str) -> NoReturn:
        raise OSError(errno.EROFS, "is in an archive", str(self.path / name))


def open_in_archive(archive: Archive, path: Path) -> ArchivedFolder:
    """Return the episode of an archive whose id is the name of `path`. Closing it closes the archive.

    Raise UnusableEnvironment `archive.unreadable`, after which the archive is closed.
    """
    try:
        files, blobs = archive.read_episode(path.name)
    except UnusableEnvironment:
        archive.close()
        raise
    inner = {}
    if blobs:
        inner[BLOBS] = ArchivedFolder(path / BLOBS, archive.path, blobs, archive.read_blob)
    sizes = {name: len(data) for name, data in files.items()}
    return ArchivedFolder(path, archive.path, sizes, files.__getitem__, inner, close=archive.close)
