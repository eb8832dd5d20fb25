"""The archives of a batch: where its lines are in them, and the writing of more (docs/reference/batch.md#keep)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile
from cogcli.episode.archive.directories import BATCH_ARCHIVES, BATCHES, archives_in
from cogcli.episode.archive.format import episode_of_key
from cogcli.episode.archive.reader import Archive
from cogcli.episode.archive.writer import ArchiveSeries, ArchiveWriter
from cogcli.episode.folder import Folder, fdatasync
from cogcli.scale.identity import BatchKey, line_of_episode
from cogcli.scale.ledger import archive_location, archive_of_location


class LineArchive:
    """The archives of one batch in a runs directory."""

    def __init__(self, runs_dir: Path, batch_id: str) -> None:
        self._runs_dir = runs_dir
        self.directory = runs_dir / BATCHES / batch_id / BATCH_ARCHIVES
        self._series = ArchiveSeries(self.directory, batch=batch_id)

    def append_folder(self, folder: Folder, line: int) -> str:
        """Append a sealed episode in one write, and return its `at`.

        Raise UnusableEnvironment `archive.refused` or `env.disk`.
        """
        place = self._series.append_folder(folder, line=line)
        return archive_location(place.path.name, place.offset)

    def find(self, episode_id: str) -> str:
        """Return the `at` of an episode. Empty if no archive has it."""
        place = self._series.find(episode_id)
        return "" if place is None else archive_location(place.path.name, place.offset)

    def sync(self) -> None:
        """Make the episodes that this process appended survive a power loss. Raise UnusableEnvironment `env.disk`."""
        self._series.sync()

    def close(self) -> None:
        """Write the index of the open archive, and close it."""
        self._series.close()

    def path_of(self, at: str, episode_id: str) -> Path:
        """Return the path of an episode, according to its `at`. If the episode also has a folder, return the folder."""
        folder, archive = self._runs_dir / episode_id, archive_of_location(at)
        if not archive or folder.is_dir():
            return folder
        return self.directory / archive / episode_id

    # -- what other processes wrote ------------------------------------------------------------------------------------

    def sync_files(self, names: set[str]) -> None:
        """Sync the data that any process appended to these archives to disk. Raise OSError."""
        with Folder.open(self.directory) as folder:
            for name in names:
                with suppress(UnreadableFile):
                    _sync_file(folder, name)

    def lines(self, key: BatchKey) -> Iterator[tuple[int, str]]:
        """Yield line and `at` of each archived line of the batch."""
        for path in archives_in(self.directory):
            with suppress(UnusableEnvironment), Archive.open(path) as archive:
                for record, place in archive.contents.records.items():
                    line = line_of_episode(key, episode_of_key(record))
                    if line:
                        yield line, archive_location(path.name, place.offset)

    def index_files(self) -> None:
        """Write the index of each archive whose writer was killed. Raise UnusableEnvironment `env.disk`."""
        for path in archives_in(self.directory):
            with suppress(UnusableEnvironment), Archive.open(path) as archive:
                if archive.contents.indexed:
                    continue
            try:
                ArchiveWriter(path, batch=self.directory.parent.name).close()
            except UnusableEnvironment as error:
                if error.code == "env.disk":
                    raise

    def digests(self) -> list[str]:
        """Return name and hash of each archive, as the summary of a batch has them."""
        found: list[str] = []
        for path in archives_in(self.directory):
            with suppress(UnreadableFile, OSError), Folder.open(path.parent) as folder:
                content = sha256()
                for chunk in folder.chunks(path.name):
                    content.update(chunk)
                found.append(f"{path.name} sha256:{content.hexdigest()}")
        return found


def _sync_file(folder: Folder, name: str) -> None:
    fd = folder.open_file(name)
    try:
        fdatasync(fd)
    finally:
        os.close(fd)
