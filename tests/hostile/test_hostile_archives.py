"""Hostile archives: each is refused with a code, takes no memory beyond its limit, and reaches no file outside."""

from __future__ import annotations

import os
import random
import tracemalloc
import zlib
from array import array
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson
import pytest
from support.examples import LONG
from support.project import Project

from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.episode.archive import format
from cogcli.episode.archive.format import BLOB, EPISODE, Header, RecordIndex, RecordPlace
from cogcli.episode.archive.reader import Archive
from cogcli.episode.archive.writer import ArchiveWriter, EpisodeBytes

ID: Final = "ep_01HF7YAT00000000000000000A"
OTHER: Final = "ep_01HF7YAT00000000000000000B"
FILES: Final = {"events.jsonl": b'{"seq":0}\n', "manifest.json": b"{}\n"}
BATCH: Final = "ba_01HF7YAT00000000000000000A"


def deflated(payload: bytes, dictionary: bytes = b"") -> bytes:
    engine = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=dictionary)
    return engine.compress(payload) + engine.flush()


class Forged:
    """An archive whose every number and name may lie, while all its sums are right."""

    def __init__(self) -> None:
        self.header = Header("", b"")
        self.data = self.header.line
        self.base = format.sum_base(self.header)
        self.spans: dict[bytes, RecordPlace] = {}

    def record(
        self,
        payload: bytes,
        *,
        name: bytes = ID.encode(),
        kind: bytes = EPISODE,
        size: int | None = None,
        stored: bytes | None = None,
    ) -> Forged:
        stored = deflated(payload) if stored is None else stored
        size = len(payload) if size is None else size
        padded = name.ljust(32, b"\0")
        self.spans[kind[:1] + padded] = RecordPlace(len(self.data), len(stored))
        self.data += format.encode_record(self.base, kind, padded, stored, size)
        return self

    def episode(self, table: object, body: bytes = b"", **given: bytes) -> Forged:
        return self.record(orjson.dumps(table) + b"\n" + body, **given)  # type: ignore[arg-type]

    def index(self, index: RecordIndex | None = None) -> Forged:
        index = index or index_of(self.spans)
        columns = [array("Q", index.offsets), array("I", index.stored)]
        for column in columns:
            column.byteswap()
        stored = index.keys + b"".join(column.tobytes() for column in columns)
        end = len(self.data)
        self.data += format.encode_record(
            self.base, format.INDEX, bytes(32), stored, len(stored), line=index.size
        )
        self.data += b"cogindex" + end.to_bytes(8, "big")
        return self


def index_of(spans: dict[bytes, RecordPlace]) -> RecordIndex:
    """The index of records by key."""
    records = format.RecordList()
    for key, place in spans.items():
        records.add(key, place)
    return records.to_index()


def whole() -> Forged:
    return Forged().record(format.encode_episode(FILES, {}))


def table(files: object, blobs: object | None = None) -> object:
    return {"files": files, "blobs": {} if blobs is None else blobs}


def index_with(offsets: list[int], keys: list[bytes] | None = None) -> Forged:
    """An index whose places differ from those of the two records."""
    forged = whole().record(format.encode_episode(FILES, {}), name=OTHER.encode())
    index = index_of(forged.spans)
    moved = [offset + move for offset, move in zip(index.offsets, offsets, strict=True)]
    index = index._replace(offsets=array("Q", moved))
    return forged.index(index._replace(keys=b"".join(keys)) if keys else index)


def keys(*names: str) -> list[bytes]:
    return [EPISODE[:1] + name.encode().ljust(32, b"\0") for name in names]


EMPTY: Final = {"events.jsonl": 0}
HOSTILE: Final[dict[str, Callable[[], Forged]]] = {
    "a path above": lambda: Forged().episode(table({"../outside": 4}), b"evil"),
    "an absolute path": lambda: Forged().episode(table({"/tmp/outside": 4}), b"evil"),
    "a path in a folder": lambda: Forged().episode(table({"blobs/x": 4}), b"evil"),
    "a path of Windows": lambda: Forged().episode(table({"..\\outside": 4}), b"evil"),
    "a name with a NUL": lambda: Forged().episode(table({"events.jsonl\0": 4}), b"evil"),
    "another file": lambda: Forged().episode(table({"skill.yaml": 4}), b"evil"),
    "a blob's path": lambda: Forged().episode(table(EMPTY, {"../../outside": 4})),
    "a blob in capitals": lambda: Forged().episode(table(EMPTY, {"A" * 64: 4})),
    "no list": lambda: Forged().record(b"no list at all"),
    "a list that is none": lambda: Forged().episode([1, 2]),
    "a file twice": lambda: Forged().record(b'{"files":{"events.jsonl":0,"events.jsonl":0}}\n'),
    "files in another order": lambda: Forged().episode(table({"state.json": 0, "learn.jsonl": 0})),
    "a negative size": lambda: Forged().episode(table({"events.jsonl": -4}), b"evil"),
    "a size that is text": lambda: Forged().episode(table({"events.jsonl": "4"}), b"evil"),
    "a size that is true": lambda: Forged().episode(table({"events.jsonl": True}), b"e"),
    "too large a size": lambda: Forged().episode(table({"events.jsonl": 2**40}), b"evil"),
    "more bytes than files": lambda: Forged().episode(table({"events.jsonl": 3}), b"evil"),
    "fewer bytes than files": lambda: Forged().episode(table({"events.jsonl": 5}), b"evil"),
    "a lying size, too small": lambda: Forged().record(b"x" * 9000, size=10),
    "a lying size, too large": lambda: Forged().record(b"x" * 9000, size=10_000),
    "a size above the limit": lambda: Forged().record(b"x", size=format.INFLATED + 1),
    "a bomb": lambda: Forged().record(b"", size=100, stored=deflated(bytes(9_000_000))),
    "bytes after the end": lambda: Forged().record(b"x", stored=deflated(b"x") + b"more"),
    "no deflate": lambda: Forged().record(b"x" * 20, stored=b"\xff" * 20),
    "a name of another tool": lambda: Forged().record(b"{}\n", name=b"ep_other"),
    "a name above": lambda: Forged().record(b"{}\n", name=b"../../outside"),
    "a name that is not text": lambda: Forged().record(b"{}\n", name=b"\xff\xfe"),
    "an id twice": lambda: whole().record(format.encode_episode(FILES, {})),
    "places that overlap": lambda: index_with([0, -8]).record(b"x", name=OTHER.encode()),
    "overlapping places": lambda: index_with([0, -8]),
    "places before the records": lambda: index_with([-100, 0]),
    "places behind the file": lambda: index_with([0, 2**40]),
    "two entries of one place": lambda: index_with([0, -88]),
    "an id twice in the index": lambda: index_with([0, 0], keys(ID, ID)),
    "an index out of order": lambda: index_with([0, 0], keys(OTHER, ID)),
    "an index with another name": lambda: index_with([0, 0], keys("ep_../../etc", ID)),
    "an index that swaps": lambda: _swapped(),
    "a record in a record": lambda: _nested(),
    "an index that hides": lambda: _hidden(),
    "other bytes under a sum": lambda: _replaced(),
}


def verbatim(payload: bytes) -> bytes:
    """Deflated bytes that have the payload as it is."""
    engine = zlib.compressobj(0, zlib.DEFLATED, -15)
    return engine.compress(payload) + engine.flush()


def _nested() -> Forged:
    """A record inside the bytes of another one: both are sound, but they share bytes."""
    inner = Forged().record(format.encode_episode(FILES, {}), name=OTHER.encode())
    record = inner.data[len(Forged().data) :]
    payload = format.encode_episode({**FILES, "state.json": record}, {})
    outer = Forged().record(payload, stored=verbatim(payload))
    (place,) = inner.spans.values()
    outer.spans[keys(OTHER)[0]] = place._replace(offset=outer.data.index(record))
    return outer.index()


def _hidden() -> Forged:
    """An index that passes over one of the records."""
    forged = whole().record(format.encode_episode(FILES, {}), name=OTHER.encode())
    del forged.spans[keys(OTHER)[0]]
    return forged.index()


def _replaced() -> Forged:
    """Sound bytes in place of others, under the sum of the others."""
    payload = format.encode_episode(FILES, {})
    forged = Forged().record(payload, stored=verbatim(payload)).index()
    forged.data = forged.data.replace(b'{"seq":0}', b'{"seq":9}')
    return forged


def _swapped() -> Forged:
    """Each place is a record, but not the one that the index names."""
    forged = whole().record(format.encode_episode(FILES, {}), name=OTHER.encode())
    first, second = (forged.spans[key] for key in keys(ID, OTHER))
    forged.spans = dict(zip(keys(ID, OTHER), (second, first), strict=True))
    return forged.index()


def read_all(path: Path) -> dict[str, dict[str, bytes]]:
    """Read every byte that an archive gives. Raise CogcliError."""
    found = {}
    with Archive.open(path) as archive:
        if archive.contents.fault:
            raise UnusableEnvironment("archive.unreadable", archive.contents.fault)
        for episode_id in archive.episode_ids():
            files, blobs = archive.read_episode(episode_id)
            found[episode_id] = files | {name: archive.read_blob(name) for name in blobs}
    return found


def read_what_is_whole(path: Path) -> dict[str, dict[str, bytes]]:
    """Read the episodes that can be read."""
    found = {}
    with suppress(CogcliError), Archive.open(path) as archive:
        for episode_id in archive.episode_ids():
            with suppress(CogcliError):
                found[episode_id] = archive.read_episode(episode_id).files
    return found


def refusal_of(data: bytes, path: Path) -> str:
    """The code that refuses these bytes. Empty if they are read."""
    path.write_bytes(data)
    try:
        read_all(path)
    except CogcliError as error:
        return error.code
    return ""


def test_the_forged_archive_is_read_where_nothing_lies(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    for forged in (whole(), whole().index()):
        path.write_bytes(forged.data)
        assert read_all(path) == {ID: FILES}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    forged = HOSTILE[name]()
    assert refusal_of(forged.data, path) == "archive.unreadable"
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_command_follows_a_hostile_archive(name: str, tmp_path: Path) -> None:
    project = Project(tmp_path)
    runs = project.root / "runs"
    place = runs / ".archives/000001.cogarchive"
    place.parent.mkdir(parents=True)
    place.write_bytes(HOSTILE[name]().data)
    place_dir = ("--runs-dir", "runs")
    before = sorted(tmp_path.rglob("*"))
    for words in (
        ("ls",),
        ("trace", ID),
        ("verify", "--all"),
        ("state", "show", f"{place}/{ID}"),
        ("resume", ID),
        ("gc", "--keep", "0", "--dry-run"),
        ("episodes", "extract", ID),
        ("episodes", "extract", str(place), "--to", "out"),
    ):
        found = project.run(*words, *place_dir)
        assert found.code in (0, 1, 2, 3), found.err
        found.assert_exit(found.code)
        assert "internal" not in found.err
    assert project.run("episodes", "extract", str(place), "--to", "out").code in (2, 3)
    # A whole record before the damage may be extracted. Nothing else is written, and nothing elsewhere.
    written = {path for path in tmp_path.rglob("*") if path.is_file()} - set(before)
    written -= set(project.home.rglob("*")) | set(runs.glob(".index.db*"))
    for path in written:
        assert path.parent.parent in (runs, project.root / "out")
        assert path.parent.name in (ID, OTHER)
        assert path.read_bytes() == FILES[path.name]


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"\n",
        b"PK\x03\x04",
        b"{}\n",
        b"[]\n",
        b'{"format":"archive/2","batch":"","dictionary":{"bytes":0,"sha256":""}}\n',
        b'{"format":"archive/1","batch":"../..","dictionary":{"bytes":0,"sha256":""}}\n',
        b'{"format":"archive/1","batch":"","dictionary":{"bytes":0,"sha256":""}}\n',
        b'{"format":"archive/1","batch":"","dictionary":{"bytes":-1,"sha256":""}}\n',
        b'{"format":"archive/1","batch":"","dictionary":{"bytes":1e9,"sha256":""}}\n',
        b'{"format":"archive/1","batch":"","dictionary":{"bytes":99999999,"sha256":""}}\n',
        b'{"format":"archive/1","batch":"","dictionary":' + b"[" * 400 + b"}\n",
        b" " * 70_000,
        bytes(70_000),
    ],
)
def test_a_header_that_is_none_is_refused(header: bytes, tmp_path: Path) -> None:
    assert refusal_of(header, tmp_path / "a.cogarchive") == "archive.unreadable"


def test_a_file_above_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    path.write_bytes(whole().data)
    with path.open("r+b") as file:
        file.truncate(format.LIMIT + 1)
    with pytest.raises(UnusableEnvironment) as refused:
        Archive.open(path)
    assert refused.value.code == "archive.unreadable"


def test_a_bomb_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    data = HOSTILE["a bomb"]().data
    tracemalloc.start()
    try:
        assert refusal_of(data, path) == "archive.unreadable"
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["link", "folder", "fifo"])
def test_only_a_regular_file_is_opened(kind: str, tmp_path: Path) -> None:
    path, other = tmp_path / "a.cogarchive", tmp_path / "other"
    other.write_bytes(whole().data)
    make = {
        "link": lambda: path.symlink_to(other),
        "folder": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
    }
    make[kind]()
    for opened in (Archive.open, ArchiveWriter):
        with pytest.raises(UnusableEnvironment) as refused:
            opened(path)
        assert refused.value.code == "archive.unreadable"
    assert other.read_bytes() == whole().data


def archive_of_two(path: Path) -> bytes:
    episodes = {ID: EpisodeBytes(FILES, {}), OTHER: EpisodeBytes(FILES, {})}
    with ArchiveWriter(path) as writer:
        for episode_id, episode in episodes.items():
            writer.append(episode_id, episode)
    return path.read_bytes()


def test_cut_at_any_byte_nothing_is_read_that_was_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    data = archive_of_two(path)
    for cut in range(len(data)) if LONG else range(0, len(data), 7):
        assert refusal_of(data[:cut], path) in ("", "archive.unreadable")
        assert all(files == FILES for files in read_what_is_whole(path).values())


def test_no_flipped_bit_gives_other_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    data = archive_of_two(path)
    bits = range(len(data) * 8)
    for bit in bits if LONG else random.Random(len(data)).sample(bits, 300):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert refusal_of(bytes(flipped), path) in ("", "archive.unreadable")
        assert all(files == FILES for files in read_what_is_whole(path).values())


def test_a_record_of_another_archive_fits_nowhere(tmp_path: Path) -> None:
    """Under another dictionary it would be other bytes."""
    other = Forged()
    other.header = Header(BATCH, b"")
    other.base = format.sum_base(other.header)
    other.record(format.encode_episode(FILES, {}), name=OTHER.encode())
    moved = whole()
    moved.data += other.data[len(Forged().data) :]
    moved.data = moved.data.replace(other.header.line, b"")
    assert refusal_of(moved.data, tmp_path / "a.cogarchive") == "archive.unreadable"


def test_a_blob_is_the_content_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.cogarchive"
    name = "a" * 64
    forged = Forged().episode(table(EMPTY, {name: 2}))
    forged.record(b"42", kind=BLOB, name=bytes.fromhex(name)).index()
    assert refusal_of(forged.data, path) == "archive.unreadable"
    assert refusal_of(Forged().episode(table(EMPTY, {name: 2})).data, path) == "archive.unreadable"
