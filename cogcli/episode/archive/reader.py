"""An archive that is read: which episodes it has, and their files.

1. The index is used if the file ends with one. Otherwise the records are read one after the other, as after a kill or
   while a writer is alive.
2. A tail that a short write leaves is not read. Any other damage is a `fault`: the records before it stay readable.
3. A record is compared with its SHA-256 and with its name each time it is read, whatever the index names.
"""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile
from cogcli.base.named_tuple import NamedTuple
from cogcli.episode.archive import format
from cogcli.episode.archive.directories import SUFFIX
from cogcli.episode.archive.format import (
    END,
    HEAD,
    ArchiveFault,
    Header,
    Key,
    RecordHead,
    RecordIndex,
    RecordPlace,
)
from cogcli.episode.folder import Folder, read_at

if TYPE_CHECKING:
    from hashlib import _Hash as Sum

_BEGIN: Final = format.HEADER + format.DICTIONARY
_NEVER_WRITTEN: Final = bytes(64)
"""The content of a block that did not reach the disk before a power loss. Deflated bytes do not contain it."""


def archive_error(path: Path, why: str) -> UnusableEnvironment:
    """Return the error for a file that is no archive, or for a damaged one."""
    return UnusableEnvironment(
        "archive.unreadable",
        f"`{path}`: {why}",
        hint="put back a copy of the file; what other archives have stays readable",
        file=str(path),
        next=("cogcli ls",),
    )


class FileState(NamedTuple):
    """The identity of a file and its state: two equal ones have the same bytes."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int


def state_of(found: os.stat_result) -> FileState:
    """Return the state of a file from its stat result."""
    return FileState(
        found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    )


class ArchiveContents(NamedTuple):
    """The contents of an archive. `end` is the offset after its records, and `indexed` whether an index follows
    there.
    """

    header: Header
    records: RecordIndex
    end: int
    indexed: bool
    torn: int = 0
    """The bytes after the records that a short write left."""
    fault: str = ""
    """The reason why nothing after `end` can be read. Empty without damage."""


class ArchivedFiles(NamedTuple):
    """The files of an archived episode by name, and the sizes of its blobs by name."""

    files: dict[str, bytes]
    blobs: dict[str, int]


def read_contents(fd: int, known: ArchiveContents | None = None) -> ArchiveContents:
    """Return the contents of an open archive. `known` are its contents before it grew. Raise ArchiveFault or
    OSError.
    """
    size = os.fstat(fd).st_size
    if size > format.LIMIT:
        raise ArchiveFault(f"has {size:,} bytes, an archive has at most {format.LIMIT:,}")
    header = format.parse_header(read_exactly(fd, _BEGIN, 0))
    index = _read_index(fd, size, header)
    if index is not None:
        return index
    if known is not None and known.header == header and known.end <= size:
        return _scan_records(fd, size, header, known)
    return _scan_records(fd, size, header, None)


def read_exactly(fd: int, size: int, offset: int) -> bytes:
    """Return this many bytes from an offset on, fewer at the end of the file. Raise OSError."""
    data = read_at(fd, size, offset)
    while len(data) < size:
        more = read_at(fd, size - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data


def _read_index(fd: int, size: int, header: Header) -> ArchiveContents | None:
    """Return the contents by the index at the end of the file, or None without one. Raise ArchiveFault."""
    offset = format.find_index_offset(read_exactly(fd, END, max(0, size - END)), size)
    if not header.size <= offset:
        return None
    data = read_exactly(fd, size - END - offset, offset)
    try:
        head = format.parse_head(data)
        format.check_record(format.sum_base(header), data, data[HEAD:])
    except ArchiveFault:
        return None  # these were bytes of a record
    if head.kind != format.INDEX or head.stored != len(data) - HEAD:
        return None
    index = format.parse_index(data[HEAD:], header.size, offset)
    return ArchiveContents(header, index, offset, indexed=True)


def _scan_records(
    fd: int, size: int, header: Header, known: ArchiveContents | None
) -> ArchiveContents:
    """Return the contents by reading each record. Raise ArchiveFault for an episode that occurs twice."""
    base = format.sum_base(header)
    records = format.RecordList(known.records) if known else format.RecordList()
    offset, torn, fault = known.end if known else header.size, 0, ""
    while offset < size:
        try:
            head = _read_record(fd, base, offset, size)
        except ArchiveFault as error:
            torn, fault = (size - offset, "") if error.torn else (0, error.why)
            break
        place = RecordPlace(offset, head.stored)
        records.add(head.key, place)
        offset = place.end
    return ArchiveContents(
        header, records.to_index(), offset, indexed=False, torn=torn, fault=fault
    )


def _read_record(fd: int, base: Sum, offset: int, size: int) -> RecordHead:
    """Return the head of the record at an offset, after comparing its sum. Raise ArchiveFault."""
    data = read_exactly(fd, HEAD, offset)
    try:
        head = format.parse_head(data)
    except ArchiveFault as error:
        # A block that never reached the disk is NULs, also in the middle of a head.
        written = read_exactly(fd, size - offset, offset).rstrip(b"\0")
        torn = error.torn or (len(written) < HEAD and format.begins_record(written))
        raise ArchiveFault(error.why, torn=torn) from error
    end = offset + HEAD + head.stored
    if end > size:
        raise ArchiveFault("a record is cut off", torn=True)
    if head.kind == format.INDEX:
        why = "bytes follow its index"
        raise ArchiveFault(why, torn=size <= end + END)
    stored = read_exactly(fd, head.stored, offset + HEAD)
    try:
        format.check_record(base, data, stored)
    except ArchiveFault as error:
        rest = read_exactly(fd, size - end, end)
        torn = _NEVER_WRITTEN in stored and not rest.strip(b"\0")
        raise ArchiveFault(error.why, torn=torn) from error
    return head


class Archive:
    """An open archive. Close it, or use it in a `with`."""

    def __init__(self, path: Path, fd: int, contents: ArchiveContents) -> None:
        """`fd` is a descriptor that the archive closes."""
        self.path = path
        self.contents = contents
        self._fd = fd
        self._base = format.sum_base(contents.header)

    @classmethod
    def open(cls, path: Path) -> Archive:
        """Open the archive at a path, which may not be a link. Raise UnusableEnvironment `archive.unreadable`."""
        fd = open_archive_file(path)
        try:
            return cls(path, fd, read_contents(fd))
        except (ArchiveFault, OSError) as error:
            os.close(fd)
            raise archive_error(path, describe_fault(error)) from error

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def episode_ids(self) -> list[str]:
        """Return the ids of its episodes, in order."""
        return self.contents.records.episode_ids()

    def find(self, episode_id: str) -> RecordPlace | None:
        """Return the place of an episode. None if the archive does not have it."""
        return self.contents.records.find(format.key_of_episode(episode_id))

    def read_episode(self, episode_id: str) -> ArchivedFiles:
        """Return the files of an episode. Raise UnusableEnvironment `archive.unreadable`."""
        try:
            payload = self._read_payload(format.key_of_episode(episode_id))
            return ArchivedFiles(*format.parse_episode(payload))
        except (ArchiveFault, OSError) as error:
            why = f"`{episode_id:.80}`: {describe_fault(error)}"
            raise archive_error(self.path, why) from error

    def read_blob(self, name: str) -> bytes:
        """Return a blob, named by 64 hex digits. Raise UnusableEnvironment `archive.unreadable`."""
        try:
            blob = self._read_payload(format.key_of_blob(name))
            if sha256(blob).hexdigest() != name:
                raise ArchiveFault("is not the content of its name")
        except (ArchiveFault, OSError) as error:
            raise archive_error(self.path, f"blob `{name}`: {describe_fault(error)}") from error
        return blob

    def record_sum(self, episode_id: str) -> str:
        """Return the SHA-256 of an episode's record, in hex, which differs as soon as any of its files does.

        Raise UnusableEnvironment `archive.unreadable` if it is not the one of the bytes.
        """
        try:
            return self._read_checked_record(format.key_of_episode(episode_id))[0].sum.hex()
        except (ArchiveFault, OSError) as error:
            raise archive_error(
                self.path, f"`{episode_id:.80}`: {describe_fault(error)}"
            ) from error

    def _read_payload(self, key: Key) -> bytes:
        head, stored = self._read_checked_record(key)
        return format.inflate(stored, head.size, self.contents.header.dictionary)

    def _read_checked_record(self, key: Key) -> tuple[RecordHead, bytes]:
        """Return a record after checking its name and its checksum. Raise ArchiveFault or OSError."""
        span = self.contents.records.find(key)
        if span is None:
            raise ArchiveFault("the archive does not have it")
        data = read_exactly(self._fd, HEAD + span.stored, span.offset)
        head, stored = format.parse_head(data), data[HEAD:]
        if head.key != key or head.stored != len(stored):
            raise ArchiveFault("another record is at its place")
        format.check_record(self._base, data, stored)
        return head, stored


def open_archive_file(path: Path) -> int:
    """Return the descriptor of a regular file that is not reached through a link.

    Raise UnusableEnvironment `archive.unreadable`.
    """
    try:
        with Folder.open(path.parent) as folder:
            return folder.open_file(path.name)
    except UnreadableFile as error:
        raise archive_error(path, error.message) from error
    except OSError as error:
        raise archive_error(path, describe_fault(error)) from error


def peek_range(path: Path, episode_id: str) -> bool:
    """Return whether an archive may have an episode, by the first and the last name of its index. True without an
    index.

    The names are not verified, because opening the archive verifies them. Raise UnusableEnvironment
    `archive.unreadable`.
    """
    fd = open_archive_file(path)
    try:
        size = os.fstat(fd).st_size
        offset = format.find_index_offset(read_exactly(fd, END, max(0, size - END)), size)
        if not offset:
            return True
        entries = (size - END - HEAD - offset) // format.ENTRY
        names = [
            read_exactly(fd, format.KEY, offset + HEAD + position * format.KEY)
            for position in (0, max(0, entries - 1))
        ]
    except OSError as error:
        raise archive_error(path, describe_fault(error)) from error
    finally:
        os.close(fd)
    # Blobs come first in an index, and before every episode.
    return names[0] <= format.key_of_episode(episode_id) <= names[1]


def is_archive_file(path: Path) -> bool:
    """Return whether a path names a regular file with the suffix of archives."""
    try:
        return path.name.endswith(SUFFIX) and stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def describe_fault(error: ArchiveFault | OSError) -> str:
    """Return why an archive cannot be read."""
    if isinstance(error, ArchiveFault):
        return error.why
    return error.strerror or "cannot be read"
