"""The writing of archives: one file, and a directory of files of which the newest is continued.

1. One writer has the lock of a file. The kernel gives it up when the process ends.
2. An episode is one write: its new blobs, then its record. After a kill it is there whole, or its bytes are a torn tail
   that the next writer cuts. `sync` makes it survive a power loss.
3. The first episode gives the dictionary. So a file without an episode has no header either, and is begun anew.
4. The index is written when the file is closed. The next writer cuts it, and appends where it began.
5. A damaged file is never appended to.

    with ArchiveSeries(directory, batch=batch_id) as series:
        if series.find(episode_id) is None:
            place = series.append(episode_id, EpisodeBytes(files, blobs), line=7)
        series.sync()

`append_folder` takes an open folder instead. `transfer.remove_archived_folder` then removes the folder, after comparing
it with the record. A directory that `directories.archive_paths` lists is seen by every command that reads episodes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.file_lock import lock
from cogcli.base.files import UnreadableFile
from cogcli.base.named_tuple import NamedTuple
from cogcli.episode.archive import format
from cogcli.episode.archive.directories import SUFFIX, archives_in
from cogcli.episode.archive.format import (
    ArchiveFault,
    Deflater,
    Header,
    Key,
    RecordIndex,
    RecordList,
    RecordPlace,
)
from cogcli.episode.archive.locator import ArchivePlace, find_place
from cogcli.episode.archive.reader import archive_error, read_contents
from cogcli.episode.folder import Folder, disk_refusal, fdatasync, write_all
from cogcli.episode.layout import BLOBS, is_blob_name, is_own_id

_FIRST: Final = 1
_DIGITS: Final = 6
_NUMBERED: Final = rf"(\d{{{_DIGITS}}})\{SUFFIX}"


class ArchiveFull(Exception):
    """An episode does not fit into the rest of an archive. Nothing was written."""


class EpisodeBytes(NamedTuple):
    """The bytes of a sealed episode: its files by name, and its blobs by their 64 hex digits."""

    files: Mapping[str, bytes]
    blobs: Mapping[str, bytes]


def busy_error(path: Path) -> UnusableEnvironment:
    """Return the error for an archive that another process writes."""
    return UnusableEnvironment(
        "archive.busy",
        f"`{path}` is being written by another process",
        hint="wait for it to end, then give the same command again",
    )


def refused_error(episode_id: str, why: str, *, hint: str = "") -> UnusableEnvironment:
    """Return the error for an episode that is not archived."""
    return UnusableEnvironment(
        "archive.refused",
        f"`{episode_id:.80}` is not archived: {why}",
        hint=hint or "its folder stays unchanged",
        next=(f"cogcli verify {episode_id:.80}",),
    )


class _Encoder:
    """Encodes the records of one archive."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.base = format.sum_base(header)
        self._deflater = Deflater(header.dictionary)

    def encode(self, key: Key, content: bytes, line: int) -> bytes:
        """Return the record of a blob or an episode."""
        stored = self._deflater.deflate(content)
        kind = format.kind_of_key(key)
        return format.encode_record(self.base, kind, key[1:], stored, len(content), line=line)


class ArchiveWriter:
    """One archive that is appended to. Close it, or use it in a `with`: closing writes the index.

    The file is made, with its directory, if it does not exist. Raise UnusableEnvironment `archive.busy`,
    `archive.unreadable` or `env.disk`.
    """

    def __init__(self, path: Path, *, batch: str = "", shared: bool = False) -> None:
        """`batch` is the id of the batch whose episodes the archive has. Empty for other episodes. `shared`: the
        group may use a file that is made."""
        self.path = path
        self._batch = batch
        self._found = RecordIndex()
        """The records that the file had when it was opened."""
        self._added: dict[Key, RecordPlace] = {}
        self._encoder: _Encoder | None = None
        """None before the first episode, whose bytes become the dictionary."""
        self._end = 0
        self._is_indexed = False
        self._is_made = False
        self._unsynced = False
        with ExitStack() as opened:
            try:
                self._folder = opened.enter_context(
                    Folder.open(path.parent, make=True, shared=shared)
                )
                self._fd = self._open_file()
            except OSError as error:
                raise disk_refusal(path, error) from error
            opened.callback(os.close, self._fd)
            self._acquire_lock()
            self._read_existing()
            opened.pop_all()

    def _open_file(self) -> int:
        """Return the descriptor of the file, which is made if it does not exist. Raise OSError."""
        name = self.path.name
        with suppress(FileExistsError):
            os.close(self._folder.create(name, os.O_WRONLY))
            self._is_made = True
        try:
            return self._folder.open_file(name, appending=True)
        except UnreadableFile as error:
            raise archive_error(self.path, error.message) from error

    def _acquire_lock(self) -> None:
        try:
            lock(self._fd, wait=False)
        except BlockingIOError as error:
            raise busy_error(self.path) from error
        except OSError as error:
            raise disk_refusal(self.path, error) from error
        if not os.fstat(self._fd).st_nlink:  # it was dropped in the meantime
            raise busy_error(self.path)

    def _read_existing(self) -> None:
        """Read the contents of the file, and remove an incomplete record at its end."""
        try:
            found = read_contents(self._fd)
        except ArchiveFault as error:
            if not error.torn:
                raise archive_error(self.path, error.why) from error
            return  # its first write was cut short
        except OSError as error:
            raise archive_error(self.path, error.strerror or "cannot be read") from error
        if found.fault:
            raise archive_error(self.path, found.fault)
        if found.header.batch != self._batch:
            why = f"has episodes of {found.header.batch or 'no batch'}"
            raise archive_error(self.path, why)
        self._encoder = _Encoder(found.header)
        self._found = found.records
        self._end = found.end
        self._is_indexed = found.indexed

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- appending -----------------------------------------------------------------------------------------------------

    def find(self, episode_id: str) -> ArchivePlace | None:
        """Return the place of an episode that the file has."""
        place = self._find_record(format.key_of_episode(episode_id))
        return None if place is None else ArchivePlace(self.path, place.offset)

    def _find_record(self, key: Key) -> RecordPlace | None:
        return self._added.get(key) or self._found.find(key)

    def append(self, episode_id: str, episode: EpisodeBytes, *, line: int = 0) -> ArchivePlace:
        """Append a sealed episode in one write, and return its place. `line` is its line of a batch, from 1.

        It survives a kill of the process, and after `sync` a power loss. Whether the episode is sealed and verifies is
        the caller's to check. Raise ArchiveFull, and UnusableEnvironment `archive.refused` or `env.disk`.
        """
        if self.find(episode_id):
            raise refused_error(episode_id, f"`{self.path.name}` has it already")
        payload = encode_checked(episode_id, episode)
        records = [*self._new_blobs(episode.blobs), (format.key_of_episode(episode_id), payload)]
        encoder = self._encoder or _Encoder(Header(self._batch, payload[: format.DICTIONARY]))
        start = self._end if self._encoder else 0
        parts = [] if self._encoder else [encoder.header.line, encoder.header.dictionary]
        end = start + sum(map(len, parts))
        added: dict[Key, RecordPlace] = {}
        for key, content in records:
            parts.append(encoder.encode(key, content, line if content is payload else 0))
            added[key] = RecordPlace(end, len(parts[-1]) - format.HEAD)
            end = added[key].end
        entries = self._found.size + len(self._added) + len(added)
        if end + format.index_bytes(entries) > format.LIMIT:
            raise ArchiveFull
        self._write_at_end(b"".join(parts), start)
        self._encoder = encoder
        self._added.update(added)
        self._end = end
        return ArchivePlace(self.path, added[format.key_of_episode(episode_id)].offset)

    def _new_blobs(self, blobs: Mapping[str, bytes]) -> list[tuple[Key, bytes]]:
        """Return the blobs that the file does not have yet, by key."""
        found = [(format.key_of_blob(name), blobs[name]) for name in sorted(blobs)]
        return [(key, content) for key, content in found if not self._find_record(key)]

    def _write_at_end(self, data: bytes, start: int) -> None:
        """Write bytes at `start`, the end of the records. Any bytes after it are removed first."""
        try:
            if os.fstat(self._fd).st_size != start:
                os.ftruncate(self._fd, start)
            self._is_indexed = False
            self._unsynced = True
            write_all(self._fd, data)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._fd, start)
            raise disk_refusal(self.path, error) from error

    def sync(self) -> None:
        """Make all appended episodes survive a power loss. Raise UnusableEnvironment `env.disk`."""
        try:
            if self._unsynced:
                fdatasync(self._fd)
            if self._is_made:
                self._folder.sync_with_parent()
        except OSError as error:
            raise disk_refusal(self.path, error) from error
        self._unsynced = self._is_made = False

    def close(self) -> None:
        """Write the index, sync, and release the lock; may be called twice. A file without an episode is removed. Raise
        UnusableEnvironment `env.disk`.
        """
        if self._fd < 0:
            return
        try:
            if self._encoder is not None and not self._is_indexed:
                index = format.encode_index(self._encoder.base, self._build_index(), self._end)
                self._write_at_end(index, self._end)
                self._is_indexed = True
            if self._encoder is None and not os.fstat(self._fd).st_size:
                self._remove_empty()
            else:
                self.sync()
        finally:
            os.close(self._fd)
            self._fd = -1
            self._folder.close()

    def _build_index(self) -> RecordIndex:
        """Return the index of all records of the file."""
        if not self._added:
            return self._found
        records = RecordList(self._found)
        for key, place in self._added.items():
            records.add(key, place)
        return records.to_index()

    def _remove_empty(self) -> None:
        """Remove a file that got no episode, under its lock. Raise UnusableEnvironment `env.disk`."""
        try:
            self._folder.unlink(self.path.name)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise disk_refusal(self.path, error) from error


def encode_checked(episode_id: str, episode: EpisodeBytes) -> bytes:
    """Return the payload of an episode. Raise UnusableEnvironment `archive.refused` for a payload that no reader would
    accept.
    """
    if not is_own_id(episode_id):
        raise refused_error(episode_id, "its id is another tool's")
    for name in (*episode.files, *episode.blobs):
        if name not in format.ARCHIVED_FILES and not is_blob_name(name):
            raise refused_error(episode_id, f"it has a file `{name:.80}`, which is no episode's")
    blobs = {name: len(data) for name, data in episode.blobs.items()}
    payload = format.encode_episode(episode.files, blobs)
    _require_size(episode_id, len(payload) + sum(blobs.values()))
    try:
        format.parse_episode(payload)
    except ArchiveFault as error:
        raise refused_error(episode_id, error.why) from error
    return payload


def _require_size(episode_id: str, size: int) -> None:
    if size > format.INFLATED:
        why = f"it has {size:,} bytes, at most {format.INFLATED:,} fit into an archive"
        raise refused_error(episode_id, why)


def read_folder(folder: Folder) -> EpisodeBytes:
    """Return the bytes of an episode's open folder.

    Raise UnusableEnvironment `archive.refused` for another file than those of an episode, and UnreadableFile.
    """
    entries = folder.entries()
    names = [name for name in entries if name != BLOBS]
    foreign = next((name for name in names if name not in format.ARCHIVED_FILES), "")
    if foreign:
        raise refused_error(
            folder.path.name, f"it has a file `{foreign:.80}`, which is no episode's"
        )
    _require_size(folder.path.name, sum(entries[name].st_size for name in names))
    files = {name: folder.read(name, limit=format.INFLATED) for name in names}
    return EpisodeBytes(files, _read_blobs(folder) if BLOBS in entries else {})


def _read_blobs(folder: Folder) -> dict[str, bytes]:
    """Return the blobs of an episode's open folder. Raise as `read_folder`."""
    episode_id = folder.path.name
    try:
        kept = folder.sub(BLOBS)
    except OSError as error:
        raise refused_error(episode_id, f"{BLOBS} cannot be opened: {error.strerror}") from error
    with kept:
        entries = kept.entries()
        foreign = next((name for name in entries if not is_blob_name(name)), "")
        if foreign:
            raise refused_error(
                episode_id, f"it has a file `{BLOBS}/{foreign:.80}`, which is no blob"
            )
        _require_size(episode_id, sum(found.st_size for found in entries.values()))
        return {name: kept.read(name, limit=format.INFLATED) for name in entries}


class ArchiveSeries:
    """The archives of one directory: `000001.cogarchive` and so on. The newest one is continued.

    A new file is begun when the newest is full, damaged, of another batch, or written by another process. So two
    writers of one directory write two files. Close it, or use it in a `with`.
    """

    def __init__(self, directory: Path, *, batch: str = "", shared: bool = False) -> None:
        self.directory = directory
        self._shared = shared
        self._batch = batch
        self._writer: ArchiveWriter | None = None

    def __enter__(self) -> ArchiveSeries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, episode_id: str, episode: EpisodeBytes, *, line: int = 0) -> ArchivePlace:
        """Append a sealed episode as `ArchiveWriter.append` does, to a new file if the newest has no room."""
        try:
            return self._current_writer().append(episode_id, episode, line=line)
        except ArchiveFull:
            self._next_file()
        try:
            return self._current_writer().append(episode_id, episode, line=line)
        except ArchiveFull as error:
            raise refused_error(episode_id, "no archive has room for it") from error

    def append_folder(self, folder: Folder, *, line: int = 0) -> ArchivePlace:
        """Append the sealed episode of an open folder. Raise as `append` and `read_folder`."""
        try:
            episode = read_folder(folder)
        except UnreadableFile as error:
            raise refused_error(folder.path.name, error.message) from error
        return self.append(folder.path.name, episode, line=line)

    def find(self, episode_id: str) -> ArchivePlace | None:
        """Return the place of an episode in any archive of the directory. None if no archive has it."""
        if self._writer is not None and (found := self._writer.find(episode_id)):
            return found
        own = None if self._writer is None else self._writer.path
        others = [path for path in archives_in(self.directory) if path != own]
        return find_place(others, episode_id)

    def sync(self) -> None:
        """Make all appended episodes survive a power loss. Raise UnusableEnvironment `env.disk`."""
        if self._writer is not None:
            self._writer.sync()

    def close(self) -> None:
        """Write the index of the file that is open, and close it."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _current_writer(self) -> ArchiveWriter:
        if self._writer is None:
            number = max(_FIRST, self._newest_number())
            while self._writer is None:
                self._writer = self._open_writer(number)
                number += 1
        return self._writer

    def _open_writer(self, number: int) -> ArchiveWriter | None:
        """Return the writer of a file; None if the file cannot be continued."""
        path = self.directory / f"{number:0{_DIGITS}}{SUFFIX}"
        try:
            return ArchiveWriter(path, batch=self._batch, shared=self._shared)
        except UnusableEnvironment as error:
            if error.code not in ("archive.busy", "archive.unreadable"):
                raise
            return None

    def _next_file(self) -> None:
        """Close the full file, and begin the next one."""
        number = self._newest_number() + 1
        self.close()
        while self._writer is None:
            self._writer = self._open_writer(number)
            number += 1

    def _newest_number(self) -> int:
        """Return the number of the newest file; 0 if the directory has none."""
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise disk_refusal(self.directory, error) from error
        found = [re.fullmatch(_NUMBERED, name) for name in names]
        return max((int(match[1]) for match in found if match), default=0)
