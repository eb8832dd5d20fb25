"""Which files an episode consists of, and whether each is one (docs/reference/episode.md#files).

1. Regular files of known names, and `blobs/` with files named by their content. Anything else is a finding.
2. No symbolic link, no FIFO, no second name for a file.
3. Nothing is opened by a name that does not match its pattern, whatever a document says.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from cogcli.core.files import FileRefused
from cogcli.episode.blobs import MAX_BLOB
from cogcli.episode.findings import Finding
from cogcli.episode.folder import TEMPORARY, Folder
from cogcli.episode.layout import BALLAST, BLOBS, FILES, MANIFEST, is_blob_name
from cogcli.episode.manifest import measure


class EpisodeFiles:
    """What is in an episode's directory. `files`: the regular ones, by the names that a manifest gives them."""

    def __init__(self, folder: Folder) -> None:
        self.files: dict[str, int] = {}
        """Size by name."""
        self.findings: list[Finding] = []
        self._look(folder)

    def _look(self, folder: Folder) -> None:
        for name, found in folder.entries().items():
            if name == BLOBS and stat.S_ISDIR(found.st_mode):
                self._look_into_blobs(folder)
            elif name.startswith(TEMPORARY) and stat.S_ISREG(found.st_mode):
                message = "left behind by a writer that was killed"
                self.findings.append(Finding("file.temporary", "info", name, 0, message))
            elif name == BALLAST and stat.S_ISREG(found.st_mode) and not folder.holds(MANIFEST):
                message = "room kept for the end of a run, which is alive or was killed"
                self.findings.append(Finding("file.temporary", "info", name, 0, message))
            elif name not in FILES:
                self._error("file.extra", name, "no file of an episode")
            else:
                self._take(name, found)

    def _look_into_blobs(self, folder: Folder) -> None:
        with folder.sub(BLOBS) as kept:
            for name, found in kept.entries().items():
                shown = f"{BLOBS}/{name}"
                if name.startswith(TEMPORARY):
                    continue
                if not is_blob_name(name):
                    self._error("file.extra", shown, "not the name of a blob")
                elif self._take(shown, found):
                    self._check_content(kept, name, shown, found.st_size)

    def _take(self, name: str, found: os.stat_result) -> bool:
        if not stat.S_ISREG(found.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no regular file"
            self._error("file.kind", name, f"is {kind}")
            return False
        if found.st_nlink > 1:
            self._error(
                "file.hard-link", name, f"has {found.st_nlink} names: it can be changed under another one"
            )
        self.files[name] = found.st_size
        return True

    def _check_content(self, kept: Folder, name: str, shown: str, size: int) -> None:
        if size > MAX_BLOB:
            self._error("blob.altered", shown, f"has {size:,} bytes, and no blob more than {MAX_BLOB:,}")
            return
        try:
            content, _ = measure(kept, name)
        except FileRefused as error:
            self._error("file.unreadable", shown, error.message)
            return
        if content != name:
            self._error("blob.altered", shown, "its content is not what its name says")

    def _error(self, code: str, name: str, message: str) -> None:
        self.findings.append(Finding(code, "error", name[:200], 0, message))

    def blobs(self) -> Iterator[str]:
        """The digests of the blobs there."""
        for name in self.files:
            if name.startswith(f"{BLOBS}/"):
                yield f"sha256:{name[len(BLOBS) + 1 :]}"
