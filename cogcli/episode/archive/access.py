"""The door to archives for commands that read episodes: most runs directories have none, and load no more than this."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from cogcli.episode.archive.directories import archive_paths

if TYPE_CHECKING:
    from pathlib import Path

    from cogcli.episode.archive.archived_folder import ArchivedFolder
    from cogcli.episode.archive.locator import RunsArchives


def _load_locator() -> ModuleType:
    from cogcli.episode.archive import locator

    return locator


def open_archives(runs_dir: Path | str) -> RunsArchives | None:
    """Return the archives of a runs directory. None without any."""
    if not archive_paths(runs_dir):
        return None
    archives: RunsArchives = _load_locator().RunsArchives(runs_dir)
    return archives


def open_archived_episode(path: Path) -> ArchivedFolder | None:
    """Return the archived episode with this path, `ARCHIVE/ID` or `RUNS/ID`; None if no archive has it. Raise
    UnusableEnvironment `archive.unreadable`.
    """
    if not path.parent.is_file() and not archive_paths(path.parent):
        return None
    folder: ArchivedFolder | None = _load_locator().open_archived_episode(path)
    return folder


def read_archived_ids(archive: Path) -> list[str]:
    """Return the ids of the episodes of an archive. Raise UnusableEnvironment `archive.unreadable`."""
    with _load_locator().open_cached_archive(archive) as opened:
        ids: list[str] = opened.episode_ids()
    return ids
