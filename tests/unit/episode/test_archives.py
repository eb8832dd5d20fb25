"""Archives: what is written is read, after any kill, and each byte is stored once."""

from __future__ import annotations

import os
import tracemalloc
import zlib
from hashlib import sha256
from pathlib import Path

import pytest
from sample_archive import BLOB, files_with_blob, sample_files, write_archive
from support.examples import LONG

from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.episode.archive import format, writer
from cogcli.episode.archive.format import RecordPlace
from cogcli.episode.archive.reader import Archive
from cogcli.episode.archive.writer import (
    ArchiveFull,
    ArchiveSeries,
    ArchiveWriter,
    EpisodeBytes,
    read_folder,
)
from cogcli.episode.folder import Folder

SEEDS = (100, 200, 300)


def assert_holds(path: Path, *seeds: int) -> None:
    """Fail unless the archive has exactly these sample episodes, byte by byte."""
    with Archive.open(path) as archive:
        assert archive.episode_ids() == sorted(sample_files(seed)[0] for seed in seeds)
        for seed in seeds:
            episode_id, episode = sample_files(seed)
            assert archive.read_episode(episode_id).files == episode.files


def test_what_is_archived_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    write_archive(path, *SEEDS)
    assert_holds(path, *SEEDS)
    with Archive.open(path) as archive:
        assert archive.contents.indexed
        assert archive.find("ep_01HF7YAT00000000000000ZZZZ") is None


def test_the_page_describes_the_bytes(tmp_path: Path) -> None:
    """A reader that follows docs/reference/archive.md alone, with the standard library, gets the files."""
    path = tmp_path / "a.cogarchive"
    write_archive(path, *SEEDS)
    data = path.read_bytes()
    from json import loads
    from struct import unpack_from

    header, _, rest = data.partition(b"\n")
    size = loads(header)["dictionary"]["bytes"]
    dictionary, at = rest[:size], len(header) + 1 + size
    kind, name, line, stored, inflated = unpack_from(">4s32sQII", data, at)
    body = data[at + 88 : at + 88 + stored]
    payload = zlib.decompressobj(-15, zdict=dictionary).decompress(body)
    table, _, files = payload.partition(b"\n")
    episode_id, episode = sample_files(SEEDS[0])
    assert (kind, name.rstrip(b"\0").decode(), line) == (b"EPIS", episode_id, 1)
    assert len(payload) == inflated
    first = next(iter(loads(table)["files"]))
    assert first == "events.jsonl"
    assert files.startswith(episode.files[first])


def test_an_episode_takes_a_fraction_of_its_files(tmp_path: Path) -> None:
    """The dictionary makes the second episode small."""
    path = tmp_path / "a.cogarchive"
    write_archive(path, 100)
    one = path.stat().st_size
    write_archive(tmp_path / "b.cogarchive", *range(100, 1100, 100))
    more = (tmp_path / "b.cogarchive").stat().st_size - one
    plain = sum(map(len, sample_files(100)[1].files.values()))
    assert more / 9 < plain / 6


def test_a_blob_is_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    ids = write_archive(path, *SEEDS, blobs=True)
    with Archive.open(path) as archive:
        records = [key for key, _ in archive.contents.records.items()]
        assert len(records) == len(ids) + 1
        for episode_id in ids:
            ((name, size),) = archive.read_episode(episode_id).blobs.items()
            assert (archive.read_blob(name), size) == (BLOB, len(BLOB))


def test_a_closed_archive_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    for seed in SEEDS:
        write_archive(path, seed)
    assert_holds(path, *SEEDS)
    write_archive(tmp_path / "b.cogarchive", *SEEDS)
    # The lines of a batch are the only difference.
    assert path.stat().st_size == (tmp_path / "b.cogarchive").stat().st_size


def test_opening_without_appending_changes_no_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    write_archive(path, *SEEDS)
    before = path.read_bytes()
    ArchiveWriter(path).close()
    assert path.read_bytes() == before


def test_a_reader_sees_what_a_live_writer_has_written(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    with ArchiveWriter(path) as live:
        for count, seed in enumerate(SEEDS, 1):
            live.append(*sample_files(seed))
            assert_holds(path, *SEEDS[:count])
        with pytest.raises(UnusableEnvironment) as refused:
            ArchiveWriter(path)
        assert refused.value.code == "archive.busy"
    assert_holds(path, *SEEDS)


def _places(whole: int, closed: int) -> list[int]:
    """Where a file is cut: everywhere in a long run, else at some places of each part."""
    if LONG:
        return list(range(closed))
    near = [place + off for place in (whole, closed) for off in range(-40, 0, 3)]
    return sorted({*range(0, closed, 997), *near, 0, 1, 511, 512, whole})


def test_cut_at_any_byte_a_file_has_its_whole_records_and_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    write_archive(path, *SEEDS)
    data = path.read_bytes()
    whole = data.rindex(b"INDX")
    with Archive.open(path) as archive:
        spans = sorted(span.end for _, span in archive.contents.records.items())
        first = archive.contents.header.size
    for cut in _places(whole, len(data)):
        path.write_bytes(data[:cut])
        kept = sum(end <= cut for end in spans)
        if cut < first:
            with pytest.raises(UnusableEnvironment) as refused:
                Archive.open(path)
            assert refused.value.code == "archive.unreadable"
        else:
            assert_holds(path, *SEEDS[:kept])
        with ArchiveWriter(path) as continued:
            for seed in SEEDS[kept:]:
                continued.append(*sample_files(seed))
        assert_holds(path, *SEEDS)


@pytest.mark.parametrize("nuls", [1, 60, 88, 700, 5000])
def test_blocks_that_never_reached_the_disk_are_a_torn_tail(tmp_path: Path, nuls: int) -> None:
    path = tmp_path / "a.cogarchive"
    write_archive(path, 100, 200, closed=False)
    data = path.read_bytes()
    for keep in (0, 3, 30, 70):
        path.write_bytes(data + _record_beginning(data, keep) + bytes(nuls))
        assert_holds(path, 100, 200)
        with ArchiveWriter(path) as continued:
            continued.append(*sample_files(300))
        assert_holds(path, 100, 200, 300)


def _record_beginning(data: bytes, size: int) -> bytes:
    return data[data.rindex(b"EPIS") :][:size]


def test_a_damaged_size_is_not_taken_for_a_torn_tail(tmp_path: Path) -> None:
    """Else the next writer would cut all whole records after it."""
    path = tmp_path / "a.cogarchive"
    write_archive(path, *SEEDS, closed=False)
    data = bytearray(path.read_bytes())
    with Archive.open(path) as archive:
        span = archive.find(sample_files(200)[0])
    assert span is not None
    data[span.offset + 4 + 32 + 8 + 1] ^= 0x10  # of the deflated size
    path.write_bytes(data)
    assert_holds(path, 100)
    with Archive.open(path) as archive:
        assert archive.contents.fault
    with pytest.raises(UnusableEnvironment) as refused:
        ArchiveWriter(path)
    assert refused.value.code == "archive.unreadable"
    assert path.read_bytes() == bytes(data)


def test_a_damaged_index_is_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    write_archive(path, *SEEDS)
    data = path.read_bytes()
    index = data.rindex(b"INDX")
    for place in (index + 50, index + 100, len(data) - 20, len(data) - 3):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert_holds(path, *SEEDS)


def test_a_second_writer_of_a_directory_writes_a_file_of_its_own(tmp_path: Path) -> None:
    with ArchiveSeries(tmp_path) as one, ArchiveSeries(tmp_path) as other:
        first = one.append(*sample_files(100))
        second = other.append(*sample_files(200))
    assert first.path.name == "000001.cogarchive"
    assert second.path.name == "000002.cogarchive"
    assert_holds(first.path, 100)
    assert_holds(second.path, 200)


def test_a_series_finds_what_any_of_its_files_has(tmp_path: Path) -> None:
    with ArchiveSeries(tmp_path) as one, ArchiveSeries(tmp_path) as other:
        places = [one.append(*sample_files(100)), other.append(*sample_files(200))]
        for series in (one, other):
            assert [series.find(sample_files(seed)[0]) for seed in (100, 200)] == places
            assert series.find(sample_files(300)[0]) is None
    with ArchiveSeries(tmp_path) as closed:
        assert closed.find(sample_files(100)[0]) == places[0]


def test_a_full_file_is_followed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_archive(tmp_path / "sample", 100, 200)
    size = (tmp_path / "sample").stat().st_size
    (tmp_path / "sample").unlink()
    monkeypatch.setattr(format, "LIMIT", size)
    with ArchiveSeries(tmp_path) as series:
        places = [series.append(*sample_files(seed)) for seed in SEEDS]
    assert [place.path.name for place in places] == ["000001.cogarchive"] * 2 + [
        "000002.cogarchive"
    ]
    for path in {place.path for place in places}:
        assert path.stat().st_size <= size
    with ArchiveWriter(tmp_path / "000001.cogarchive") as full, pytest.raises(ArchiveFull):
        full.append(*sample_files(400))
    assert_holds(tmp_path / "000001.cogarchive", 100, 200)


def test_a_damaged_file_is_left_and_the_next_is_begun(tmp_path: Path) -> None:
    (tmp_path / "000001.cogarchive").write_bytes(b"something of a user")
    with ArchiveSeries(tmp_path) as series:
        place = series.append(*sample_files(100))
    assert place.path.name == "000002.cogarchive"
    assert (tmp_path / "000001.cogarchive").read_bytes() == b"something of a user"


def test_an_archive_of_a_batch_takes_no_other_episode(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    batch = "ba_01HF7YAT0000000000000000AA"
    with ArchiveWriter(path, batch=batch) as made:
        made.append(*sample_files(100))
    with Archive.open(path) as archive:
        assert archive.contents.header.batch == batch
    with pytest.raises(UnusableEnvironment) as refused:
        ArchiveWriter(path)
    assert refused.value.code == "archive.unreadable"


def _refused(path: Path, episode_id: str, episode: EpisodeBytes) -> CogcliError:
    with ArchiveWriter(path) as made, pytest.raises(UnusableEnvironment) as refused:
        made.append(episode_id, episode)
    return refused.value


def test_a_file_that_got_no_episode_does_not_stay(tmp_path: Path) -> None:
    with ArchiveSeries(tmp_path) as series, pytest.raises(UnusableEnvironment):
        series.append("ep_of-another-tool", sample_files(100)[1])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "000001.cogarchive").touch()  # as a kill leaves it
    with ArchiveSeries(tmp_path) as series:
        series.append(*sample_files(100))
    assert_holds(tmp_path / "000001.cogarchive", 100)


def test_what_no_reader_takes_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.cogarchive"
    episode_id, episode = sample_files(100)
    write_archive(path, 100)
    before = path.read_bytes()
    with_other = EpisodeBytes({**episode.files, "notes.txt": b""}, {})
    with_blob = EpisodeBytes(episode.files, {"../x": b""})
    refused = [
        _refused(path, episode_id, episode),
        _refused(path, "ep_of-another-tool", episode),
        _refused(path, sample_files(200)[0], with_other),
        _refused(path, sample_files(200)[0], with_blob),
    ]
    monkeypatch.setattr(format, "INFLATED", 4000)
    refused.append(_refused(path, *sample_files(200)))
    assert [error.code for error in refused] == ["archive.refused"] * 5
    assert path.read_bytes() == before


def test_a_full_disk_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.cogarchive"
    write_archive(path, 100)

    def write_half(fd: int, data: bytes) -> None:
        os.write(fd, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    with ArchiveWriter(path) as made:
        with monkeypatch.context() as full:
            full.setattr(writer, "write_all", write_half)
            with pytest.raises(UnusableEnvironment) as refused:
                made.append(*sample_files(200))
        assert refused.value.code == "env.disk"
        assert_holds(path, 100)
        made.append(*sample_files(300))
    assert_holds(path, 100, 300)


def test_a_folder_with_another_file_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / sample_files(100)[0]
    directory.mkdir()
    (directory / "events.jsonl").write_bytes(b"")
    (directory / ".tmp-1").write_bytes(b"")
    with Folder.open(directory) as folder, pytest.raises(UnusableEnvironment) as refused:
        read_folder(folder)
    assert refused.value.code == "archive.refused"


def test_too_large_a_folder_is_refused_before_it_is_read(tmp_path: Path) -> None:
    directory = tmp_path / sample_files(100)[0]
    directory.mkdir()
    for name in ("events.jsonl", "state.json"):
        with (directory / name).open("wb") as file:
            file.truncate(format.INFLATED // 2 + 1)
    with Folder.open(directory) as folder, pytest.raises(UnusableEnvironment) as refused:
        read_folder(folder)
    assert f"{format.INFLATED + 2:,} bytes" in refused.value.message


def test_blobs_are_part_of_a_folder(tmp_path: Path) -> None:
    _, episode = files_with_blob(100)
    assert list(episode.blobs.values()) == [BLOB]


def test_an_index_takes_little_memory() -> None:
    """A batch reads the archives of a million lines, and its memory stays flat."""
    many, records, end = 5_000, format.RecordList(), 100
    for number in range(many):
        place = RecordPlace(end, 50)
        records.add(format.key_of_episode(f"ep_{(7 * number) % many:026d}"), place)
        end = place.end
    tracemalloc.start()
    try:
        index = records.to_index()
        made = tracemalloc.get_traced_memory()[1]
        stored = format.encode_index(sha256(), index, end)[format.HEAD : -format.END]
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        assert format.parse_index(stored, 100, end) == index
        read = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert made < 200 * many
    assert read < 200 * many
