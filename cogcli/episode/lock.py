"""Whether a run is alive: its process holds the lock on its log."""

from __future__ import annotations

import fcntl
import os

from cogcli.core.files import FileRefused
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS


def is_locked(folder: Folder) -> bool:
    """Whether the run of an episode is alive: its process holds the lock."""
    try:
        fd = folder.open_file(EVENTS)
    except FileRefused:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
