"""Where the archives of a runs directory are. Commands without archives load nothing more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX: Final = ".cogarchive"
ARCHIVES: Final = ".archives"
"""The directory of archives of single episodes, in the runs directory."""
BATCHES: Final = ".batches"
"""The directory of the folders of batches, in the runs directory."""
BATCH_ARCHIVES: Final = "archives"
"""The directory of archives in the folder of a batch."""


def archive_paths(runs_dir: Path | str) -> list[Path]:
    """Return the archives of a runs directory, in order: those of single episodes, then those of batches."""
    directories = [os.path.join(runs_dir, ARCHIVES)]
    batches = os.path.join(runs_dir, BATCHES)
    directories += [os.path.join(batches, name, BATCH_ARCHIVES) for name in _archive_names(batches)]
    return [path for directory in directories for path in archives_in(directory)]


def archives_in(directory: Path | str) -> list[Path]:
    """Return the archives in one directory, in order."""
    names = [name for name in _archive_names(directory) if name.endswith(SUFFIX)]
    if not names:
        return []
    from pathlib import Path  # most runs directories have no archives

    return [Path(directory, name) for name in names]


def _archive_names(directory: Path | str) -> list[str]:
    try:
        return [] if os.path.islink(directory) else sorted(os.listdir(directory))
    except OSError:
        return []


def archives_stamp(runs_dir: Path | str) -> str:
    """Return the state of all archives of a runs directory. Empty without any."""
    states = []
    for path in archive_paths(runs_dir):
        try:
            found = os.lstat(path)
        except OSError:
            continue
        states.append(f"{found.st_ino}.{found.st_size}.{found.st_ctime_ns}")
    return "-".join(states)
