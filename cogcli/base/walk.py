"""Listing of the entries below a root.

Every entry is counted, and a directory that contains itself through a link is entered once."""

from __future__ import annotations

import os
import stat

from cogcli.base.errors import EnvironmentRefusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_ENTRIES = 100_000
"""The most entries below one root before the walk ends with an error."""

Mark = tuple[int, int]
"""Device and inode of a directory."""


class Walk:
    """The walk below one root. It lists at most `most` entries, in all of its calls together."""

    def __init__(self, root: str, most: int = MOST_ENTRIES) -> None:
        self.root = root
        self._most = most
        self._left = most

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        """Return the entries of a folder, sorted by name; empty if it cannot be listed.

        Raise EnvironmentRefusal `registry.size`."""
        found: list[os.DirEntry[str]] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._left -= 1
                    if self._left < 0:
                        raise self._too_much()
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
        """The entries below a folder, by default the root, that are no directories.

        `enters` decides which directories are entered; `links` permits those that are links. A directory is never
        entered inside itself. Raises EnvironmentRefusal `registry.size`.
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

    def _too_much(self) -> EnvironmentRefusal:
        return EnvironmentRefusal(
            "registry.size",
            f"`{self.root}` has more than {self._most:,} entries where specs are looked for",
            expected=f"at most {self._most:,} files and folders",
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
