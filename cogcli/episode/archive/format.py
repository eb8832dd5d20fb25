"""The bytes of an archive: its header, its records and its index (docs/reference/archive.md). Everything here is pure.

1. The header is one line of JSON, then the dictionary. Every record is deflated with this dictionary.
2. A record is a head of fixed size, then deflated bytes. Its SHA-256 covers the header's line, the head and these
   bytes, so that a record of another archive fits nowhere.
3. An episode is one record: a line of JSON that names its files and blobs with their sizes, then the files. A blob is
   a record of its own, and every episode of the archive shares it.
4. The index is the last record. It names the episodes and blobs in order, each with its place.
5. A size is compared with its limit before memory is taken for it.
"""

from __future__ import annotations

import re
import struct
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import pairwise
from sys import byteorder
from typing import TYPE_CHECKING, Final

import orjson

from cogcli.base.jsonvalue import object_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson
from cogcli.base.strict_json import loads as strict_loads
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.episode.layout import CHECKPOINT, FILES, is_blob_name, is_own_id

if TYPE_CHECKING:
    from hashlib import _Hash as Sum

FORMAT: Final = "archive/1"
LIMIT: Final = 64 * 1024 * 1024
"""The most bytes of one archive, with its index."""
INFLATED: Final = 64 * 1024 * 1024
"""The most bytes that one record inflates to."""
DICTIONARY: Final = 32 * 1024
"""The maximum size of a dictionary in bytes: the window of deflate."""
ARCHIVED_FILES: Final = (*FILES, CHECKPOINT)
"""The files that an archived episode may have, in the order of its record."""
LEVEL: Final = 6

EPISODE: Final = b"EPIS"
BLOB: Final = b"BLOB"
INDEX: Final = b"INDX"
_KINDS: Final = (EPISODE, BLOB, INDEX)

_HEAD: Final = struct.Struct(">4s32sQII")
_CHECK: Final = struct.Struct(">I32s")
HEAD: Final = _HEAD.size + _CHECK.size
"""The bytes of a record's head: kind, name, line, deflated size, inflated size, their CRC-32, and the SHA-256."""
_NAME: Final = 32
_ID: Final = 29
KEY: Final = 1 + _NAME
"""The bytes of a key."""
_OFFSET: Final = 8
ENTRY: Final = KEY + _OFFSET + 4
"""The bytes of an entry of the index: kind and name, offset, deflated size."""
_END: Final = struct.Struct(">8sQ")
_END_MARK: Final = b"cogindex"
END: Final = _END.size
"""The bytes after the index: a mark, and where the record of the index begins."""
HEADER: Final = 512
"""The most bytes of the header's line."""
_BEGINNING: Final = b'{"format":"%s","batch":"' % FORMAT.encode()
_TABLE: Final = 16 * 1024 * 1024
_MOST_NODES: Final = 400_000
_KEYS: Final = rb"(?s:(?:B.{32})*+(?:Eep_[0-7][0-9A-HJKMNP-TV-Z]{25}\0{3})*+)"
"""All keys of an index: blobs, then episodes. Nothing is tried twice: that would take memory for each key."""
_BATCH: Final = r"(?:ba_[0-7][0-9A-HJKMNP-TV-Z]{25})?"

Key = bytes
"""The kind of a record, in one byte, and its name: an entry of the index sorts by it."""


class ArchiveFault(Exception):
    """Raised for bytes that are not a valid archive. `torn` is whether an incomplete write leaves such bytes at the end
    of a file.
    """

    def __init__(self, why: str, *, torn: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.torn = torn


# -- header ------------------------------------------------------------------------------------------------------------


class Header(NamedTuple):
    """The header of an archive. `batch` is the id of the batch whose episodes it contains, or empty."""

    batch: str
    dictionary: bytes

    @property
    def line(self) -> bytes:
        """The line of JSON, with its newline."""
        digest = sha256(self.dictionary).hexdigest()
        dictionary = {"bytes": len(self.dictionary), "sha256": digest}
        return orjson.dumps(
            {"format": FORMAT, "batch": self.batch, "dictionary": dictionary},
            option=orjson.OPT_APPEND_NEWLINE,
        )

    @property
    def size(self) -> int:
        """The offset of the first record."""
        return len(self.line) + len(self.dictionary)


class _HeaderDictionary(Record):
    """The size of the dictionary that follows a header, unchecked."""

    bytes: object = None


class _HeaderLine(Record):
    """The members of a header, unchecked."""

    format: object = None
    batch: object = None
    dictionary: _HeaderDictionary


def parse_header(data: bytes) -> Header:
    """Return the header of an archive that begins with these bytes. Raise ArchiveFault."""
    line, newline, _ = data[:HEADER].partition(b"\n")
    if not newline:
        raise ArchiveFault("has no header", torn=_begins_header(data))
    try:
        named = read_record(_HeaderLine, strict_loads(line, max_bytes=HEADER))
    except InvalidJson as error:
        raise ArchiveFault(f"its header is not JSON: {error.message}") from error
    if named.format != FORMAT:
        raise ArchiveFault(f"has the format {named.format!r:.40}, not {FORMAT!r}")
    size = named.dictionary.bytes
    if type(size) is not int or not 0 <= size <= DICTIONARY:
        raise ArchiveFault(
            f"its dictionary has {size!r:.40} bytes, at most {DICTIONARY:,} are read"
        )
    begin = len(line) + 1
    header = Header(_batch_of(named.batch), data[begin : begin + size])
    if len(header.dictionary) < size:
        raise ArchiveFault("its dictionary is cut off", torn=True)
    if header.line != data[:begin]:
        raise ArchiveFault("its header is not the one of its dictionary")
    return header


def _begins_header(data: bytes) -> bool:
    """Return whether bytes without a newline are the beginning of a header, as an incomplete write leaves them."""
    written = data.rstrip(b"\0")
    return len(written) < HEADER and written.startswith(_BEGINNING[: len(written)])


def _batch_of(value: object) -> str:
    if type(value) is not str or not re.fullmatch(_BATCH, value):
        raise ArchiveFault(f"names {value!r:.40}, which is no batch")
    return value


# -- records -----------------------------------------------------------------------------------------------------------


class RecordHead(NamedTuple):
    """The head of a record. `line` is the episode's line of a batch, from 1; 0 without one."""

    kind: bytes
    name: bytes
    line: int
    stored: int
    """The deflated bytes."""
    size: int
    """The inflated bytes."""
    sum: bytes

    @property
    def key(self) -> Key:
        """The key of the record in the index."""
        return self.kind[:1] + self.name


def key_of_episode(episode_id: str) -> Key:
    """Return the key of an episode of ours."""
    return EPISODE[:1] + episode_id.encode().ljust(_NAME, b"\0")


def key_of_blob(name: str) -> Key:
    """Return the key of a blob, named by 64 hex digits."""
    return BLOB[:1] + bytes.fromhex(name)


def kind_of_key(key: Key) -> bytes:
    """Return the kind of the record that a key names."""
    return EPISODE if key[:1] == EPISODE[:1] else BLOB


def episode_of_key(key: Key) -> str:
    """Return the episode id in a key; empty for the key of a blob."""
    return key[1:].rstrip(b"\0").decode() if key[:1] == EPISODE[:1] else ""


def sum_base(header: Header) -> Sum:
    """Return the hash of the header's line, from which the sum of every record continues."""
    return sha256(header.line)


def encode_record(
    base: Sum, kind: bytes, name: bytes, stored: bytes, size: int, *, line: int = 0
) -> bytes:
    """Return a record: its head and its deflated bytes."""
    head = _HEAD.pack(kind, name, line, len(stored), size)
    return head + _CHECK.pack(zlib.crc32(head), _record_sum(base, head, stored)) + stored


def _record_sum(base: Sum, head: bytes, stored: bytes) -> bytes:
    content = base.copy()
    content.update(head)
    content.update(stored)
    return content.digest()


def parse_head(data: bytes) -> RecordHead:
    """Return the head of a record, whose sum is not compared yet. Raise ArchiveFault."""
    if len(data) < HEAD:
        raise ArchiveFault("a record is cut off", torn=begins_record(data))
    kind, name, line, stored, size = _HEAD.unpack_from(data)
    checksum, sum = _CHECK.unpack_from(data, _HEAD.size)
    # Without its own checksum, a damaged size would look like the end of a short write.
    if kind not in _KINDS or zlib.crc32(data[: _HEAD.size]) != checksum:
        raise ArchiveFault("bytes are no record")
    head = RecordHead(kind, name, line, stored, size, sum)
    if head.stored > LIMIT or head.size > INFLATED:
        most = max(head.stored, head.size)
        raise ArchiveFault(f"a record of {most:,} bytes: at most {INFLATED:,} are read")
    if head.kind == EPISODE and not is_own_id(_id_from_name(head.name)):
        raise ArchiveFault(f"a record is named {head.name!r:.80}, which is no episode's id")
    return head


def _id_from_name(name: bytes) -> str:
    """Return the id in a name that is padded with NULs. Bytes that are not ASCII are replaced."""
    plain = name.rstrip(b"\0")
    return plain.decode("latin-1")


def begins_record(data: bytes) -> bool:
    """Return whether bytes are the beginning of a record, or NULs of blocks that were lost in a power loss."""
    return data[:4] in {kind[: len(data[:4])] for kind in _KINDS} or not data.strip(b"\0")


def check_record(base: Sum, head_bytes: bytes, stored: bytes) -> None:
    """Compare the deflated bytes of a record with its sum. Raise ArchiveFault."""
    _, expected = _CHECK.unpack_from(head_bytes, _HEAD.size)
    if _record_sum(base, head_bytes[: _HEAD.size], stored) != expected:
        raise ArchiveFault("the bytes of a record are not those of its SHA-256")


# -- deflate -----------------------------------------------------------------------------------------------------------


class Deflater:
    """Deflates each payload by itself with one dictionary."""

    def __init__(self, dictionary: bytes) -> None:
        # A copy of a prepared state is cheaper than reading the dictionary again for each record.
        self._prepared = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=dictionary)

    def deflate(self, payload: bytes) -> bytes:
        """Return the deflated bytes of a payload."""
        engine = self._prepared.copy()
        return engine.compress(payload) + engine.flush()


def inflate(stored: bytes, size: int, dictionary: bytes) -> bytes:
    """Return the payload of a record. It is never larger than `size`. Raise ArchiveFault."""
    engine = zlib.decompressobj(-zlib.MAX_WBITS, zdict=dictionary)
    try:
        payload = engine.decompress(stored, size + 1)
    except zlib.error as error:
        raise ArchiveFault(f"a record cannot be inflated: {error}") from error
    if len(payload) != size or not engine.eof or engine.unused_data:
        raise ArchiveFault(f"a record does not inflate to its {size:,} bytes")
    return payload


# -- the payload of an episode -----------------------------------------------------------------------------------------


class EpisodeTable(NamedTuple):
    """The table of an episode's payload: the sizes of its files and of its blobs, in order."""

    files: dict[str, int]
    blobs: dict[str, int]


def encode_episode(files: Mapping[str, bytes], blobs: Mapping[str, int]) -> bytes:
    """Return the payload of an episode. `files` are its files by name, `blobs` the sizes of its blobs."""
    names = [name for name in ARCHIVED_FILES if name in files]
    table = {
        "files": {name: len(files[name]) for name in names},
        "blobs": dict(sorted(blobs.items())),
    }
    return b"".join([orjson.dumps(table), b"\n", *(files[name] for name in names)])


def parse_episode(payload: bytes) -> tuple[dict[str, bytes], dict[str, int]]:
    """Return the files of an episode, and the sizes of its blobs. Raise ArchiveFault."""
    end = payload.find(b"\n", 0, _TABLE)
    if end < 0:
        raise ArchiveFault("the record of an episode does not begin with the list of its files")
    table = _parse_table(payload[:end])
    files: dict[str, bytes] = {}
    at = end + 1
    for name, size in table.files.items():
        files[name] = payload[at : at + size]
        at += size
    if at != len(payload):
        raise ArchiveFault("the record of an episode does not have the bytes of its files")
    return files, table.blobs


def _parse_table(line: bytes) -> EpisodeTable:
    try:
        table = object_of(strict_loads(line, max_bytes=_TABLE, max_nodes=_MOST_NODES))
    except InvalidJson as error:
        raise ArchiveFault(f"the list of an episode's files: {error.message}") from error
    if table.keys() != {"files", "blobs"}:
        raise ArchiveFault("the record of an episode does not list files and blobs")
    files, blobs = object_of(table["files"]), object_of(table["blobs"])
    _check_names(list(files), [name for name in ARCHIVED_FILES if name in files])
    _check_names(list(blobs), sorted(filter(is_blob_name, blobs)))
    for name, size in (*files.items(), *blobs.items()):
        if type(size) is not int or not 0 <= size <= INFLATED:
            raise ArchiveFault(f"`{name:.80}` has {size!r:.40} bytes")
    return EpisodeTable(files, blobs)


def _check_names(names: list[str], expected: list[str]) -> None:
    """Compare names with those that match their pattern, in their order. Raise ArchiveFault."""
    if names != expected:
        other = next((name for name in names if name not in expected), "")
        if other:
            raise ArchiveFault(f"lists {other!r:.80}, which is no file of an episode")
        raise ArchiveFault("lists the files of an episode in another order")


# -- index -------------------------------------------------------------------------------------------------------------


class RecordPlace(NamedTuple):
    """The place of a record: its offset, and its deflated bytes after the head."""

    offset: int
    stored: int

    @property
    def end(self) -> int:
        """The offset after the record."""
        return self.offset + HEAD + self.stored


class RecordIndex(NamedTuple):
    """The places of all records of an archive, as columns: a list of objects would take ten times the memory."""

    keys: bytes = b""
    offsets: array[int] = array("Q")
    stored: array[int] = array("I")

    @property
    def size(self) -> int:
        """The number of records."""
        return len(self.offsets)

    def key_at(self, position: int) -> Key:
        """Return the key of one entry."""
        return self.keys[position * KEY : (position + 1) * KEY]

    def find(self, key: Key) -> RecordPlace | None:
        """Return the place of a record. None if the archive does not have it."""
        position = bisect_left(range(self.size), key, key=self.key_at)
        if position == self.size or self.key_at(position) != key:
            return None
        return RecordPlace(self.offsets[position], self.stored[position])

    def episode_ids(self) -> list[str]:
        """Return the ids of all episodes, in order."""
        first = bisect_left(range(self.size), EPISODE[:1], key=self.key_at)
        starts = range(first * KEY + 1, len(self.keys), KEY)
        return [self.keys[at : at + _ID].decode() for at in starts]

    def items(self) -> Iterator[tuple[Key, RecordPlace]]:
        """Yield the key and the place of each record."""
        for position in range(self.size):
            span = RecordPlace(self.offsets[position], self.stored[position])
            yield self.key_at(position), span


class RecordList:
    """The places of records in the order in which they are found, as columns: it may have those of a whole archive."""

    def __init__(self, records: RecordIndex = RecordIndex()) -> None:  # noqa: B008  # it never changes
        self._keys = bytearray(records.keys)
        self._offsets = records.offsets[:]
        self._stored = records.stored[:]

    def add(self, key: Key, place: RecordPlace) -> None:
        """Add a record."""
        self._keys += key
        self._offsets.append(place.offset)
        self._stored.append(place.stored)

    def to_index(self) -> RecordIndex:
        """Return the index of the records. Raise ArchiveFault for a record that occurs twice."""
        keys, order = bytearray(), array("I")
        before = b""
        for key, position in self._iterate_sorted():
            if key == before:
                raise ArchiveFault(f"has {_name_of(key)} twice")
            keys += key
            order.append(position)
            before = key
        offsets, stored = self._offsets, self._stored
        return RecordIndex(
            bytes(keys),
            array("Q", map(offsets.__getitem__, order)),
            array("I", map(stored.__getitem__, order)),
        )

    def _iterate_sorted(self) -> Iterator[tuple[Key, int]]:
        """Yield key and position of each record, sorted by key. Both are packed into one text, which uses the least
        memory.
        """
        keys = bytes(self._keys)
        starts = enumerate(range(0, len(keys), KEY))
        texts = [keys[at : at + KEY] + position.to_bytes(4, "big") for position, at in starts]
        texts.sort()
        return ((text[:KEY], int.from_bytes(text[KEY:], "big")) for text in texts)


def _name_of(key: Key) -> str:
    return episode_of_key(key) or f"a blob `{key[1:].hex()}`"


def index_bytes(entries: int) -> int:
    """Return the bytes that an index of this many entries takes at the end of an archive."""
    return HEAD + entries * ENTRY + END


def encode_index(base: Sum, index: RecordIndex, offset: int) -> bytes:
    """Return the record of the index, which begins at `offset`, and the bytes after it."""
    stored = index.keys + _big_endian(index.offsets) + _big_endian(index.stored)
    record = encode_record(base, INDEX, bytes(_NAME), stored, len(stored), line=index.size)
    return record + _END.pack(_END_MARK, offset)


def _big_endian(column: array[int]) -> bytes:
    if byteorder == "little":
        column = column[:]
        column.byteswap()
    return column.tobytes()


def _index_column(code: str, data: bytes) -> array[int]:
    column = array(code, data)
    if byteorder == "little":
        column.byteswap()
    return column


def find_index_offset(end: bytes, size: int) -> int:
    """Return where the index begins according to the last bytes of a file of `size` bytes. 0 if they name no index."""
    if len(end) != END:
        return 0
    mark, offset = _END.unpack(end)
    found: int = offset
    return found if mark == _END_MARK and 0 < found <= size - HEAD - END else 0


def parse_index(stored: bytes, begin: int, end: int) -> RecordIndex:
    """Return the places of all records from an index. The records are the bytes from `begin` to `end`.

    Raise ArchiveFault unless each name occurs once, in order, and the places follow each other without a gap: then no
    two records share a byte.
    """
    count, rest = divmod(len(stored), ENTRY)
    if rest:
        raise ArchiveFault("its index is cut off")
    names, offsets = count * KEY, count * (KEY + _OFFSET)
    index = RecordIndex(
        stored[:names],
        _index_column("Q", stored[names:offsets]),
        _index_column("I", stored[offsets:]),
    )
    keys = (stored[at : at + KEY] for at in range(0, names, KEY))
    if not all(one < other for one, other in pairwise(keys)):
        raise ArchiveFault("its index names a record twice, or out of order")
    if not re.fullmatch(_KEYS, index.keys):
        raise ArchiveFault("its index has a name that no record has")
    _check_places(index, begin, end)
    return index


def _check_places(index: RecordIndex, begin: int, end: int) -> None:
    """Raise ArchiveFault unless these records fill the bytes from `begin` to `end`, each byte once."""
    expected = begin
    for position in sorted(range(index.size), key=index.offsets.__getitem__):
        if index.offsets[position] != expected:
            break
        expected += HEAD + index.stored[position]
    else:
        if expected == end:
            return
    raise ArchiveFault("its index has places that overlap, or that leave a gap")
