"""Lists the entries below a root.

Every entry is counted, and a directory that contains itself through a link is entered once.
"""

from __future__ import annotations

import os
import stat

from cogcli.base.errors import UnusableEnvironment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_ENTRIES = 100_000
"""The limit entries below one root before the walk ends with an error."""

Mark = tuple[int, int]
"""Device and inode of a directory."""


class FolderWalk:
    """A walk below one root. It lists at most `limit` entries in all of its calls together."""

    def __init__(self, root: str, limit: int = MAX_ENTRIES) -> None:
        self.root = root
        self._limit = limit
        self._entries_left = limit

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        """Return the entries of a folder, sorted by name; empty if it cannot be listed.

        Raise UnusableEnvironment `registry.size`."""
        found: list[os.DirEntry[str]] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._entries_left -= 1
                    if self._entries_left < 0:
                        raise self._size_error()
                    found.append(entry)
        except OSError:
            return []
        return sorted(found, key=lambda entry: entry.name)

    def files(
        self,
        folder: str = "",
        *,
        enters: Callable[[os.DirEntry[str]], bool],
        links: bool = False,
        _inside: tuple[Mark, ...] = (),
    ) -> Iterator[os.DirEntry[str]]:
        """Yield the entries below a folder, by default the root, that are not directories.

        `enters` decides which directories are entered. With `links`, directories that are links may
        be entered. A directory is never entered inside itself. Raise UnusableEnvironment
        `registry.size`.
        """
        folder = folder or self.root
        mark = directory_mark(folder)
        if mark is None or mark in _inside:
            return
        for entry in self.entries(folder):
            if not _is_directory(entry):
                yield entry
            elif enters(entry) and (links or not entry.is_symlink()):
                yield from self.files(
                    entry.path, enters=enters, links=links, _inside=(*_inside, mark)
                )

    def _size_error(self) -> UnusableEnvironment:
        return UnusableEnvironment(
            "registry.size",
            f"`{self.root}` has more than {self._limit:,} entries where specs are looked for",
            expected=f"at most {self._limit:,} files and folders",
            hint="move away what is not a spec; look for links that lead to large folders",
            file=self.root,
        )


def directory_mark(path: str) -> Mark | None:
    """Return the identity of a directory, links followed; None for anything else."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False
