"""Sealed episodes in archives, made without a run."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from sample_episode import new_journal, sealed_episode, write_run

from cogcli.episode.archive.writer import ArchiveWriter, EpisodeBytes, read_folder
from cogcli.episode.folder import Folder
from cogcli.episode.seal import seal


@cache
def sample_files(seed: int) -> tuple[str, EpisodeBytes]:
    """The id and the bytes of a sealed episode; another one for each hundred."""
    with TemporaryDirectory() as runs:
        directory = sealed_episode(Path(runs).resolve(), seed=seed)
        with Folder.open(directory) as folder:
            return directory.name, read_folder(folder)


BLOB = b'"' + b"a large value " * 500 + b'"'


@cache
def files_with_blob(seed: int) -> tuple[str, EpisodeBytes]:
    """The same, with a blob that is equal in each."""
    with TemporaryDirectory() as runs:
        journal = new_journal(Path(runs).resolve(), seed=seed)
        journal.put_blob(BLOB)
        write_run(journal)
        seal(journal)
        journal.close()
        with Folder.open(journal.directory) as folder:
            return journal.directory.name, read_folder(folder)


def write_archive(path: Path, *seeds: int, blobs: bool = False, closed: bool = True) -> list[str]:
    """Write an archive of these sample episodes, and return their ids. Without `closed` as a kill leaves it."""
    make = files_with_blob if blobs else sample_files
    writer = ArchiveWriter(path)
    for line, seed in enumerate(seeds, 1):
        writer.append(*make(seed), line=line)
    before = path.read_bytes()
    writer.close()
    if not closed:
        path.write_bytes(before)
    return [make(seed)[0] for seed in seeds]
