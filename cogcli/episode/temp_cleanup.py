"""What a writer that failed or was killed leaves behind, and taking it away. Only for who holds the lock."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from cogcli.episode.folder import TEMPORARY, Folder
from cogcli.episode.layout import BALLAST, BLOBS, EVENTS, LEARN


def remove_temporaries(folder: Folder) -> None:
    """Remove files that were never put in place. Raises OSError."""
    _remove(folder, TEMPORARY)
    with suppress(FileNotFoundError, NotADirectoryError), folder.sub(BLOBS) as kept:
        _remove(kept, TEMPORARY)


def unmake(folder: Folder) -> None:
    """Remove an episode in which no event was committed, as far as that goes."""
    with suppress(OSError):
        with suppress(FileNotFoundError), folder.sub(BLOBS) as kept:
            _remove(kept, "")
            os.rmdir(BLOBS, dir_fd=folder.fd)
        for name in (EVENTS, LEARN, BALLAST):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder.fd)
        os.rmdir(folder.path)


def _remove(folder: Folder, beginning: str) -> None:
    for name, found in folder.entries().items():
        if name.startswith(beginning) and stat.S_ISREG(found.st_mode):
            os.unlink(name, dir_fd=folder.fd)
