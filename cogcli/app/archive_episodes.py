"""`episodes archive` and `episodes extract` (docs/reference/archive.md#commands)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from cogcli.app.episodes import store_of
from cogcli.app.settings import Settings
from cogcli.app.verify_episodes import trusted_of
from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.batch_records import BatchTags
from cogcli.declarations.reading import read_record
from cogcli.episode.archive.access import open_archives
from cogcli.episode.archive.directories import ARCHIVES, BATCH_ARCHIVES, BATCHES, archives_in
from cogcli.episode.archive.locator import RunsArchives, open_cached_archive
from cogcli.episode.archive.reader import archive_error, is_archive_file
from cogcli.episode.archive.transfer import (
    find_conflict,
    read_archived_episode,
    remove_archived_folder,
    remove_unfinished_folders,
    write_folder,
)
from cogcli.episode.archive.writer import ArchiveSeries, refused_error
from cogcli.episode.folder import Folder
from cogcli.episode.layout import MANIFEST, is_own_id
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow, read_row
from cogcli.episode.refusals import unreadable
from cogcli.episode.removal import remove_leftovers, size_of
from cogcli.episode.verify.check import verify

_TOGETHER: Final = 200
"""Episodes between two syncs: each sync costs milliseconds, and no folder is removed before one."""
_BATCH: Final = r"ba_[0-7][0-9A-HJKMNP-TV-Z]{25}"

IsClaimable = Callable[[str, str], bool]
"""Whether a batch may still claim an episode, by the ids of both: then its folder must stay."""


class Transfer(NamedTuple):
    """The result for one episode: where it is now, the bytes of its folder, or the error."""

    episode_id: str
    place: Path | None
    bytes: int = 0
    error: CogcliError | None = None


class _UnsyncedTransfer(NamedTuple):
    """An episode whose archive is not known to be on disk yet."""

    directory: Path
    archive: Path


class EpisodeArchiver:
    """Moves sealed episodes of a runs directory into archives."""

    def __init__(self, settings: Settings, is_claimable: IsClaimable) -> None:
        self._settings = settings
        self._runs_dir = Path(settings.runs_dir)
        self._trusted = trusted_of(settings)
        self._is_claimable = is_claimable
        self._series: dict[str, ArchiveSeries] = {}
        self._archived: dict[str, Path] = {}
        """The archives of episodes that were archived before."""

    def archive(self, directories: Sequence[Path]) -> Iterator[Transfer]:
        """Archive each episode, and yield the results in order. An episode that cannot be archived has an error, and
        its folder is kept. Raise UnusableEnvironment `env.disk`.
        """
        remove_leftovers(self._runs_dir)
        self._archived = self._find_archives_of_episodes(
            {directory.name for directory in directories}
        )
        rest = iter(directories)
        try:
            while together := list(islice(rest, _TOGETHER)):
                yield from self._archive_together(together)
        finally:
            for series in self._series.values():
                series.close()

    def _find_archives_of_episodes(self, wanted_ids: set[str]) -> dict[str, Path]:
        """Return the archives that have any of these episodes, by id."""
        archives = open_archives(self._runs_dir)
        archive_by_id: dict[str, Path] = {}
        for archive in archives.archives() if archives is not None else ():
            archive_by_id |= dict.fromkeys(
                wanted_ids.intersection(archive.episode_ids()), archive.path
            )
        return archive_by_id

    def _archive_together(self, directories: list[Path]) -> Iterator[Transfer]:
        placed = [self._append_if_new(directory) for directory in directories]
        for series in self._series.values():
            series.sync()
        for one in placed:
            yield one if isinstance(one, Transfer) else self._remove_folder(one)

    def _append_if_new(self, directory: Path) -> _UnsyncedTransfer | Transfer:
        """Append an episode, unless an archive already has it. Return the transfer, which is an unsynced one if the
        append must still be synced.
        """
        name = directory.name
        found = self._archived.get(name)
        try:
            if not directory.is_dir():
                return Transfer(name, directory if found is None else found / name)
            if found is not None:
                if conflict := find_conflict(directory, found):
                    raise conflict
                return _UnsyncedTransfer(directory, found)
            row = self._require_fit(directory)
            with Folder.open(directory) as folder:
                series, line = self._series_of(row)
                return _UnsyncedTransfer(directory, series.append_folder(folder, line=line).path)
        except OSError as error:
            refused = unreadable(directory, error.strerror or "cannot be opened")
            return Transfer(name, None, error=refused)
        except UnusableEnvironment as error:
            if error.code == "env.disk":
                raise
            return Transfer(name, None, error=error)

    def _require_fit(self, directory: Path) -> EpisodeRow:
        """Return the row of a sealed episode that verifies. Raise UnusableEnvironment."""
        name = directory.name
        if directory.parent != self._runs_dir:
            raise refused_error(name, f"it is not in `{self._runs_dir}`")
        row = read_row(directory, self._trusted.owner)
        if not row.sealed:
            raise refused_error(name, f"it has no {MANIFEST}: it is not sealed")
        fault = next(
            (each for each in verify(directory, self._trusted) if each.severity == "error"), None
        )
        if fault is not None:
            raise refused_error(name, f"it does not verify: {fault.file}: {fault.message}")
        batch = self._batch_of(row)
        if batch and self._is_claimable(batch, name):
            hint = f"`cogcli resume {batch}` finishes the batch"
            raise refused_error(name, f"`{batch}` runs, or has not recorded its end", hint=hint)
        return row

    def _batch_of(self, row: EpisodeRow) -> str:
        """Return the batch of an episode that this runs directory has. Empty for another one."""
        batch = read_record(BatchTags, row.tags).batch
        if not re.fullmatch(_BATCH, batch):
            return ""
        return batch if (self._runs_dir / BATCHES / batch).is_dir() else ""

    def _series_of(self, row: EpisodeRow) -> tuple[ArchiveSeries, int]:
        """Return the archives that take an episode, and its line of the batch, 0 without one."""
        batch = self._batch_of(row)
        if batch not in self._series:
            own = self._runs_dir / BATCHES / batch / BATCH_ARCHIVES
            self._series[batch] = ArchiveSeries(
                own if batch else self._runs_dir / ARCHIVES,
                batch=batch,
                shared=self._settings.shares_episodes,
            )
        line = read_record(BatchTags, row.tags).line if batch else ""
        return self._series[batch], int(line) if re.fullmatch(r"[1-9]\d{0,11}", line) else 0

    def _remove_folder(self, transfer: _UnsyncedTransfer) -> Transfer:
        """Remove the folder of an archived episode."""
        directory, archive = transfer
        size = size_of(directory)
        if remove_archived_folder(directory, archive):
            return Transfer(directory.name, archive / directory.name, size)
        error = refused_error(
            directory.name,
            f"its folder changed, or is in use: it is kept, and a copy is in `{archive.name}`",
        )
        return Transfer(directory.name, None, error=error)


def _find_archive(archives: RunsArchives, episode_id: str) -> Path | None:
    found = archives.find(episode_id)
    if found is None:
        return None
    with found:
        return found.path


def sealed_folders(settings: Settings, batch: str = "") -> list[Path]:
    """Return the folders of all sealed episodes of cogcli, oldest first. With `batch`, return only
    the episodes of its lines."""
    runs_dir = Path(settings.runs_dir)
    wanted = EpisodeFilter(tags=(("batch", batch),) if batch else ())
    rows = store_of(settings).episode_rows(wanted)
    found = [
        row.directory
        for row in rows
        if row.sealed and row.directory.parent == runs_dir and is_own_id(row.id)
    ]
    return found[::-1]


class EpisodeExtractor:
    """Writes the folders of archived episodes."""

    def __init__(self, settings: Settings, target: Path | None = None) -> None:
        """`target` is the directory of the folders. None means the runs directory."""
        self._settings = settings
        self._runs_dir = Path(settings.runs_dir)
        self._target = target or self._runs_dir

    def extract(self, places: Iterable[Path]) -> Iterator[Transfer]:
        """Write the folder of each episode, `ARCHIVE/ID` or `RUNS/ID`, and yield the results in order.

        Raise UnusableEnvironment `env.disk`.
        """
        remove_unfinished_folders(self._target)
        for place in places:
            try:
                yield self._extract_one(place)
            except CogcliError as error:
                if error.code == "env.disk":
                    raise
                yield Transfer(place.name, None, error=error)

    def _extract_one(self, place: Path) -> Transfer:
        directory = self._target / place.name
        if place == directory and place.is_dir():
            return Transfer(place.name, directory)  # it has its folder
        archive = self._archive_of(place)
        if archive is None:
            raise unreadable(place, "is in no archive")
        with open_cached_archive(archive) as opened:
            is_shared = self._target == self._runs_dir and self._settings.shares_episodes
            write_folder(directory, read_archived_episode(opened, place.name), shared=is_shared)
        return Transfer(place.name, directory, size_of(directory))

    def _archive_of(self, place: Path) -> Path | None:
        """Return the archive of an episode; None if no archive has it."""
        if is_archive_file(place.parent):
            return place.parent
        archives = open_archives(place.parent)
        return None if archives is None else _find_archive(archives, place.name)


class ArchiveListing(NamedTuple):
    """The places of the episodes of archives, in order, and the errors of unreadable parts."""

    places: list[Path]
    faults: list[UnusableEnvironment]


def list_archives(paths: Iterable[Path]) -> ArchiveListing:
    """Return the contents of archives. Raise UnusableEnvironment `archive.unreadable` for a file that is not an
    archive.
    """
    places: list[Path] = []
    faults = []
    for path in paths:
        with open_cached_archive(path) as opened:
            places += [path / episode_id for episode_id in opened.episode_ids()]
            if opened.contents.fault:
                faults.append(archive_error(path, opened.contents.fault))
    return ArchiveListing(places, faults)


def batch_archives(settings: Settings, batch: str) -> list[Path]:
    """Return the archives of a batch, in order."""
    return archives_in(Path(settings.runs_dir) / BATCHES / batch / BATCH_ARCHIVES)
