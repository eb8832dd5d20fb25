"""The files in the directory of an episode (docs/reference/episode.md#files).

An episode of another tool may have any regular file, also in folders. A file is opened only if its name matches its
pattern, whatever a document names.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Final

from cogcli.base.files import UnreadableFile
from cogcli.episode.blobs import MAX_BLOB
from cogcli.episode.folder import TEMPORARY, Folder
from cogcli.episode.layout import (
    BALLAST,
    BLOBS,
    CHECKPOINT,
    FILES,
    MANIFEST,
    WAYPOINT,
    Finding,
    error_finding,
    is_blob_name,
)
from cogcli.episode.manifest import measure

_DEEPEST: Final = 16
"""Levels of folders in another tool's episode."""


class EpisodeFileScan:
    """The regular files in the directory of an episode, and findings about all other entries."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        """Sizes by name, as in a manifest."""
        self.findings: list[Finding] = []
        self._refused: set[str] = set()

    def _add_finding(
        self, code: str, name: str, message: str, expected: str = "", found: str = ""
    ) -> None:
        self._refused.add(name)
        self.findings.append(error_finding(code, name, 0, message, expected=expected, found=found))

    def _is_plain(self, name: str, found: os.stat_result) -> bool:
        """Return whether an entry is a regular file with one name. If not, add a finding with the reason."""
        if not stat.S_ISREG(found.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no regular file"
            self._add_finding("file.kind", name, f"is {kind}")
            return False
        if found.st_nlink > 1:
            message = f"has {found.st_nlink} names: it can be changed under another one"
            self._add_finding("file.hard-link", name, message)
            return False
        return True

    def is_refused(self, name: str) -> bool:
        """Return whether a finding refuses this name or a folder around it."""
        return any(name == other or name.startswith(f"{other}/") for other in self._refused)

    def blobs(self) -> Iterator[str]:
        """Yield the digests of the existing blobs."""
        for name in self.files:
            folder, _, blob = name.rpartition("/")
            if folder == BLOBS and is_blob_name(blob):
                yield f"sha256:{blob}"


class EpisodeFiles(EpisodeFileScan):
    """The files of an episode that cogcli wrote."""

    def __init__(self, folder: Folder) -> None:
        super().__init__()
        for name, found in folder.entries().items():
            if name == BLOBS and stat.S_ISDIR(found.st_mode):
                self._look_into_blobs(folder)
            elif stat.S_ISREG(found.st_mode) and (why := _temporary_reason(folder, name)):
                self.findings.append(Finding("file.temporary", "info", name, 0, why))
            elif name in (CHECKPOINT, WAYPOINT):
                self._is_plain(name, found)  # no manifest names it
            elif name not in FILES:
                self._add_finding("file.extra", name, "no file of an episode")
            else:
                self._add_file(name, found)

    def _look_into_blobs(self, folder: Folder) -> None:
        with folder.sub(BLOBS) as kept:
            for name, found in kept.entries().items():
                path = f"{BLOBS}/{name}"
                if name.startswith(TEMPORARY):
                    continue
                if not is_blob_name(name):
                    self._add_finding("file.extra", path, "not the name of a blob")
                elif self._add_file(path, found):
                    self._check_content(kept, name, path, found.st_size)

    def _add_file(self, name: str, found: os.stat_result) -> bool:
        """Add a regular file to `files`, and return whether it was added. A file with a second name
        is reported, but still compared."""
        if self._is_plain(name, found) or stat.S_ISREG(found.st_mode):
            self.files[name] = found.st_size
        return name in self.files

    def _check_content(self, kept: Folder, name: str, path: str, size: int) -> None:
        if size > MAX_BLOB:
            self._add_finding(
                "blob.altered", path, f"has {size:,} bytes, and no blob more than {MAX_BLOB:,}"
            )
            return
        try:
            content, _ = measure(kept, name)
        except UnreadableFile as error:
            self._add_finding("file.unreadable", path, error.message)
            return
        if content != name:
            message = "its content is not what its name says"
            self._add_finding("blob.altered", path, message, f"sha256 {name}", f"sha256 {content}")


def _temporary_reason(folder: Folder, name: str) -> str:
    """Return why a temporary file exists. Empty for another file."""
    if name.startswith(TEMPORARY):
        return "left behind by a writer that was killed"
    if name == BALLAST and not folder.holds(MANIFEST):
        return "room kept for the end of a run, which is alive or was killed"
    return ""


class ForeignFiles(EpisodeFileScan):
    """The files of another tool's episode, by path."""

    def __init__(self, folder: Folder) -> None:
        super().__init__()
        self._scan_folder(folder, "", 1)

    def _scan_folder(self, folder: Folder, above: str, depth: int) -> None:
        for name, found in folder.entries().items():
            path = f"{above}{name}"
            if not stat.S_ISDIR(found.st_mode):
                if self._is_plain(path, found):
                    self.files[path] = found.st_size
            elif depth == _DEEPEST:
                self._add_finding("file.kind", path, "its folders are nested too deeply")
            else:
                try:
                    inner = folder.sub(name)
                except OSError as error:
                    self._add_finding(
                        "file.unreadable", path, f"cannot be opened: {error.strerror}"
                    )
                    continue
                with inner:
                    self._scan_folder(inner, f"{path}/", depth + 1)
