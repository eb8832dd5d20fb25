"""One episode as bytes that travel: an archive without an index that has this episode alone.

What is read was written by another machine: every size is compared with its limit before memory is taken for it, and
nothing but the files of the expected episode is accepted.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from cogcli.episode.archive import format
from cogcli.episode.archive.format import (
    BLOB,
    EPISODE,
    HEAD,
    LIMIT,
    ArchiveFault,
    Deflater,
    Header,
    RecordHead,
)
from cogcli.episode.archive.writer import EpisodeBytes

if TYPE_CHECKING:
    from collections.abc import Iterator

INFLATED: Final = 2 * LIMIT
"""The most bytes that all records of a parcel inflate to."""
_TOO_LARGE: Final = "a parcel has at most {:,} bytes"


def pack(episode_id: str, episode: EpisodeBytes, *, batch: str, line: int) -> bytes:
    """Return an episode as a parcel."""
    header = Header(batch, b"")
    base, deflater = format.sum_base(header), Deflater(b"")
    content = format.encode_episode(
        episode.files, {name: len(data) for name, data in episode.blobs.items()}
    )
    records = [(format.key_of_blob(name), data) for name, data in sorted(episode.blobs.items())]
    records.append((format.key_of_episode(episode_id), content))
    parts = [header.line]
    for key, data in records:
        kind = format.kind_of_key(key)
        stored = deflater.deflate(data)
        parts.append(format.encode_record(base, kind, key[1:], stored, len(data), line=line))
    return b"".join(parts)


def unpack(parcel: bytes, episode_id: str, *, batch: str) -> EpisodeBytes:
    """Return the episode in a parcel. Raise ArchiveFault for anything but the parcel of this episode."""
    if len(parcel) > LIMIT:
        raise ArchiveFault(_TOO_LARGE.format(LIMIT))
    header = format.parse_header(parcel)
    if header != Header(batch, b""):
        raise ArchiveFault("it is of another batch")
    blobs: dict[str, bytes] = {}
    content = b""
    for head, data in _read_records(parcel, header):
        if content:
            raise ArchiveFault("bytes follow the episode")
        if head.kind == BLOB:
            blobs[head.name.hex()] = data
        elif head.key == format.key_of_episode(episode_id):
            content = data
        else:
            raise ArchiveFault("it has another episode")
    if not content:
        raise ArchiveFault("it has no episode")
    files, sizes = format.parse_episode(content)
    _check_blobs(blobs, sizes)
    return EpisodeBytes(files, blobs)


def _read_records(parcel: bytes, header: Header) -> Iterator[tuple[RecordHead, bytes]]:
    """Yield each record with its inflated bytes. Raise ArchiveFault."""
    base = format.sum_base(header)
    offset, left = header.size, INFLATED
    while offset < len(parcel):
        head = format.parse_head(parcel[offset : offset + HEAD])
        end = offset + HEAD + head.stored
        left -= head.size
        if left < 0:
            raise ArchiveFault(f"it inflates to more than {INFLATED:,} bytes")
        if head.kind not in (EPISODE, BLOB) or end > len(parcel):
            raise ArchiveFault("a record is cut off")
        record = parcel[offset:end]
        format.check_record(base, record, record[HEAD:])
        yield head, format.inflate(record[HEAD:], head.size, header.dictionary)
        offset = end


def _check_blobs(blobs: dict[str, bytes], sizes: dict[str, int]) -> None:
    """Raise ArchiveFault unless these are the blobs that the episode names, each the content of its name."""
    if {name: len(data) for name, data in blobs.items()} != sizes:
        raise ArchiveFault("its blobs are not those that the episode names")
    for name, data in blobs.items():
        if sha256(data).hexdigest() != name:
            raise ArchiveFault(f"blob `{name}` is not the content of its name")
