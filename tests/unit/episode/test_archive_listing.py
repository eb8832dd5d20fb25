"""Archived episodes in lists: with the index of a runs directory, and as archives grow, change and go."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_archive import files_with_blob, sample_files, write_archive
from sample_episode import sealed_episode

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile
from cogcli.episode.archive import locator
from cogcli.episode.archive.locator import RunsArchives, open_archived_episode
from cogcli.episode.archive.writer import ArchiveWriter, read_folder
from cogcli.episode.blobs import BlobFolder
from cogcli.episode.listing import episode_listing
from cogcli.episode.listing.episode_listing import list_rows
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow
from cogcli.episode.refusals import open_episode
from cogcli.episode.store import Store
from cogcli.episode.verify.check import verify


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The place of an archive in a runs directory."""
    return tmp_path / ".archives/000001.cogarchive"


def rows(runs: Path) -> list[EpisodeRow]:
    """The rows by an index that is made at once."""
    return list(list_rows(runs, EpisodeFilter(), Store(runs).ids, worth=1))


def test_rows_of_an_index_are_those_of_the_archive(tmp_path: Path, archive: Path) -> None:
    ids = write_archive(archive, 100, 200)
    folder = sealed_episode(tmp_path, seed=300)
    read = rows(tmp_path)
    assert [row.id for row in read] == sorted([*ids, folder.name], reverse=True)
    assert [row.directory for row in read] == [folder, archive / ids[1], archive / ids[0]]
    indexed = rows(tmp_path)
    assert [row._asdict() for row in indexed] == [row._asdict() for row in read]


def test_an_indexed_row_is_read_again_only_if_its_record_changed(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_archive(archive, 100, 200)
    rows(tmp_path)
    with ArchiveWriter(archive) as grown:
        grown.append(*sample_files(300))
    read: list[str] = []
    real = episode_listing.read_row

    def counted(directory: str, owner: bytes | None, *, thorough: bool) -> EpisodeRow:
        read.append(directory)
        return real(directory, owner, thorough=thorough)

    monkeypatch.setattr(episode_listing, "read_row", counted)
    assert len(rows(tmp_path)) == 3
    assert [Path(each).name for each in read] == [sample_files(300)[0]]


def test_an_archive_that_is_gone_leaves_no_row(tmp_path: Path, archive: Path) -> None:
    write_archive(archive, 100, 200)
    assert len(rows(tmp_path)) == 2
    archive.unlink()
    assert rows(tmp_path) == []
    assert Store(tmp_path).ids() == []


def test_an_empty_file_is_no_fault(tmp_path: Path, archive: Path) -> None:
    archive.parent.mkdir()
    archive.touch()
    archives = RunsArchives(tmp_path)
    assert archives.episode_ids() == set()
    assert archives.find_faults() == []
    archive.write_bytes(b"{")
    assert archives.episode_ids() == set()
    assert [fault.code for fault in archives.find_faults()] == ["archive.unreadable"]


def test_a_folder_comes_before_an_archive(tmp_path: Path, archive: Path) -> None:
    (episode_id,) = write_archive(archive, 100)
    folder = sealed_episode(tmp_path, seed=100)
    assert folder.name == episode_id
    assert [row.directory for row in rows(tmp_path)] == [folder]


def test_archives_of_batches_are_listed(tmp_path: Path) -> None:
    place = tmp_path / ".batches/ba_01HF7YAT0000000000000000AA/archives/000001.cogarchive"
    ids = write_archive(place, 100)
    assert Store(tmp_path).ids() == ids
    assert Store(tmp_path).resolve(ids[0]) == tmp_path / ids[0]
    assert not [finding for finding in verify(tmp_path / ids[0]) if finding.severity == "error"]


@pytest.mark.parametrize("blobs", [False, True])
def test_an_archived_folder_has_the_bytes_of_the_folder(
    tmp_path: Path, archive: Path, blobs: bool
) -> None:
    episode_id, episode = (files_with_blob if blobs else sample_files)(100)
    write_archive(archive, 100, blobs=blobs)
    with open_episode(tmp_path / episode_id) as folder:
        assert read_folder(folder) == episode
        assert folder.holds("events.jsonl")
        assert not folder.holds("blobs")
        assert folder.holds_directory("blobs") == blobs
        with folder.open_reader("events.jsonl") as file:
            file.seek(10)
            assert file.read(5) == episode.files["events.jsonl"][10:15]
        kept = BlobFolder(folder)
        for name, data in episode.blobs.items():
            assert kept.get(f"sha256:{name}") == data
        assert kept.get(f"sha256:{'0' * 64}") is None
        kept.close()


def test_nothing_is_written_to_an_archived_folder(tmp_path: Path, archive: Path) -> None:
    (episode_id,) = write_archive(archive, 100)
    before = archive.read_bytes()
    with open_episode(tmp_path / episode_id) as folder:
        with pytest.raises(UnusableEnvironment):
            folder.replace("state.json", b"")
        for write in (
            lambda: folder.create("x", 0),
            lambda: folder.make("x"),
            lambda: folder.rename("state.json", "x"),
            lambda: folder.unlink("state.json"),
            lambda: folder.remove_directory("blobs"),
            lambda: folder.descriptor("state.json", 0),
            folder.sync,
            folder.sync_with_parent,
        ):
            with pytest.raises(OSError, match="is in an archive"):
                write()
        with pytest.raises(UnreadableFile):
            folder.open_file("events.jsonl")
        with pytest.raises(UnreadableFile):
            folder.read("no.file", limit=10)
    assert archive.read_bytes() == before
    assert not (tmp_path / episode_id).exists()


def test_an_index_shows_which_archive_cannot_have_an_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 5):
        write_archive(tmp_path / f".archives/00000{number}.cogarchive", number * 100)
    opened: list[str] = []
    real = locator.open_cached_archive
    monkeypatch.setattr(
        locator, "open_cached_archive", lambda path: opened.append(path.name) or real(path)
    )
    locator._archive_cache().clear()
    found = RunsArchives(tmp_path).find(sample_files(300)[0])
    assert found is not None
    found.close()
    assert opened == ["000003.cogarchive"]
    assert open_archived_episode(tmp_path / sample_files(500)[0]) is None
    assert opened == ["000003.cogarchive"] * 2  # its contents are in memory


def test_what_a_live_writer_appends_is_read_on_from_there(tmp_path: Path, archive: Path) -> None:
    with ArchiveWriter(archive) as live:
        for count, seed in enumerate((100, 200, 300), 1):
            live.append(*sample_files(seed))
            assert len(Store(tmp_path).ids()) == count
            with open_episode(tmp_path / sample_files(seed)[0]) as folder:
                assert folder.archive == archive
    assert len(rows(tmp_path)) == 3
