"""The deciding files of a project and their digests (docs/reference/service.md#trust).

Names are relative to the project. Every command imports this module, so it parses no spec."""

from __future__ import annotations

import os
import sys
from hashlib import sha256

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Final

MAX_FILES: Final = 20_000
MAX_BYTES: Final = 256 * 1024 * 1024
BYTECODE: Final = "__pycache__"
"""The folder of compiled Python, which no command reads from a project."""
_INSTALLED: Final = "pyvenv.cfg"
"""The file that marks a virtual environment: its packages are installed and not part of the
project."""
_ENVIRONMENT: Final = frozenset(("bin", "etc", "include", "lib", "lib64", "scripts", "share"))
"""The folders of a virtual environment. Anything else in it could be imported as part of the
project."""


class DecidingFiles:
    """The deciding files of a project, by name.

    `facts` contains the target of each link and the path of each program. `folders` contains all
    paths whose change can add a file."""

    def __init__(self, project: str) -> None:
        self.files: dict[str, str] = {}
        self.facts: dict[str, str] = {}
        self.folders: set[str] = set()
        self._project = os.path.abspath(project)
        self._real = os.path.realpath(project)

    def add_file(self, path: str) -> None:
        """Add a file, if it exists, and the links in its path. Raise UnusableEnvironment
        `trust.size`."""
        self.folders.add(path)
        if os.path.lexists(path):
            self.add_links(path)
            self._add_file(self._unique_name(path), path)

    def add_links(self, path: str) -> None:
        """Add the links in a path: the path itself, and each folder between it and the project."""
        inside = os.path.normpath(path).startswith(self._project + os.sep)
        while path not in (self._project, os.path.dirname(path)):
            if os.path.islink(path):
                self._add_link(path)
            if not inside:
                return
            path = os.path.dirname(path)

    def add_tree(
        self,
        folder: str,
        selects: Callable[[str], bool],
        enters: Callable[[str], bool],
        *,
        installed: bool = True,
    ) -> None:
        """Add the files below a folder.

        `selects` selects files by path, and `enters` selects folders by name. With `installed`,
        files of virtual environments are included. A link to a folder is followed once. Raise
        UnusableEnvironment `trust.size`."""
        self.add_links(folder)
        waiting, followed, entered = [folder], {os.path.realpath(folder)}, 0
        while waiting:
            place = waiting.pop()
            self.folders.add(place)
            entered += 1
            if entered > MAX_FILES:
                raise _size_error()
            entries = _list_entries(place)
            if not installed and place != folder:
                entries = _remove_environment_entries(entries)
            for name, is_folder, is_link in entries:
                path = os.path.join(place, name)
                if is_folder:
                    if enters(name) and self._is_new_folder(path, is_link, followed):
                        waiting.append(path)
                elif selects(path):
                    self._add_entry(path, is_link)

    def _is_new_folder(self, path: str, is_link: bool, followed: set[str]) -> bool:
        """Return whether to enter a folder. A link is added, and is entered only if its target is not in
        `followed`."""
        if not is_link:
            return True
        real = os.path.realpath(path)
        self._add_link(path)
        is_new = real not in followed
        followed.add(real)
        return is_new

    def _add_entry(self, path: str, is_link: bool) -> None:
        """Add a file, and its target if it is a link."""
        if is_link:
            self._add_link(path)
        self._add_file(self._unique_name(path), path)

    def add_program(self, name: str, place: str) -> None:
        """Add the path of a program; empty if the program is not found."""
        self.facts[name] = place

    def add_all(self, other: DecidingFiles) -> None:
        """Add everything in another collection of the same project."""
        self.files |= other.files
        self.facts |= other.facts
        self.folders |= other.folders

    def name_of(self, path: str) -> str:
        """Return a path relative to the project, as unique text."""
        return self._unique_name(path)

    def _add_file(self, name: str, path: str) -> None:
        self.files[name] = path
        if len(self.files) > MAX_FILES:
            raise _size_error()

    def _add_link(self, path: str) -> None:
        """Record the target of a link."""
        real = os.path.realpath(path)
        inside = real.startswith(self._real.rstrip(os.sep) + os.sep)
        target = os.path.relpath(real, self._real) if inside else real
        self.facts[self._unique_name(path)] = f"link to {_as_text(target)}"

    def _unique_name(self, path: str) -> str:
        """Return a path relative to the project, as unique text."""
        return _as_text(os.path.relpath(path, self._project))


def compute_digests(
    deciding_files: DecidingFiles, keep: Callable[[str, bytes], None] | None = None
) -> dict[str, str]:
    """Return the digest of each file and the target of each link, by name.

    A link to a file has both. A program has its path. `keep` receives the digest and the content of
    each file. Raise UnusableEnvironment `trust.size`."""
    left, by_name = MAX_BYTES, dict(deciding_files.facts)
    for name, path in deciding_files.files.items():
        try:
            data = read_regular(path, limit=left)
        except UnreadableFile as refused:
            if refused.reason == "too-large":
                raise _size_error() from refused
            content = str(refused.reason)
        else:
            left -= len(data)
            content = digest_of_bytes(data)
            if keep is not None:
                keep(content, data)
        by_name[name] = (
            f"{content} {deciding_files.facts[name]}" if name in deciding_files.facts else content
        )
    return by_name


def folder_name(project: str) -> str:
    """Return the name of a project's folder in the user's directories."""
    return sha256(os.fsencode(os.path.realpath(project))).hexdigest()[:32]


def digest_of_bytes(data: bytes) -> str:
    """Return the digest of a file's content."""
    return f"sha256:{sha256(data).hexdigest()}"


def digest_states(paths: Iterable[str]) -> tuple[str, int]:
    """Return a digest over the state of each path (its `stat`), and the time of the newest change
    in nanoseconds.

    The digest is empty on Windows, which does not record the time of the last change."""
    if sys.platform == "win32":
        return "", 0
    newest = 0
    states: list[tuple[str | int, ...]] = []
    for path in sorted(paths):
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            states.append((path, "missing"))
            continue
        changed, written = found.st_ctime_ns, found.st_mtime_ns
        newest = max(newest, changed, written)
        states.append(
            (path, found.st_dev, found.st_ino, found.st_mode, found.st_size, written, changed)
        )
    return sha256(repr(states).encode(errors="surrogateescape")).hexdigest(), newest


def _remove_environment_entries(
    entries: list[tuple[str, bool, bool]],
) -> list[tuple[str, bool, bool]]:
    """Return the entries of a folder without the entries of a virtual environment."""
    if all(name != _INSTALLED for name, _, _ in entries):
        return entries
    return [each for each in entries if each[0].casefold() not in _ENVIRONMENT]


def _list_entries(folder: str) -> list[tuple[str, bool, bool]]:
    """Return the sorted entries of a folder; empty if it cannot be read.

    Each entry is a name, whether it is a folder or a link to one, and whether it is a link."""
    try:
        with os.scandir(folder) as found:
            return sorted((entry.name, _is_folder(entry), entry.is_symlink()) for entry in found)
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    # `entry.is_dir()` raises for a link that leads to itself: the files next to it would not be seen.
    return os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()


def _as_text(path: str) -> str:
    """Return a path as printable text with `/` as the separator."""
    name = path.replace(os.sep, "/")
    return name if name.isprintable() and "\\" not in name else ascii(name)


def _size_error() -> UnusableEnvironment:
    """Return the error for a project with too many files or bytes."""
    return UnusableEnvironment(
        "trust.size",
        f"the project has more than can be accepted by digest: {MAX_FILES:,} files, {MAX_BYTES:,} bytes",
        hint="trust the folder, including later changes: cogcli config trust --folder",
        next=("cogcli config trust --folder",),
    )
