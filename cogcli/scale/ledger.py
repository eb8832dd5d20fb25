"""The ledger of a batch: one line for each ended line of the input, the truth of the batch
(docs/reference/batch.md#ledger).

1. One process writes it, which holds its lock. Each entry is one write of a whole line.
2. Each entry contains the hash of the line before it, and a checksum of itself.
3. A torn last line is cut. Any other damage refuses the ledger.
4. The first final entry of a try counts. A later one may only follow a `pending` entry.
5. An episode that moved to an archive has an entry of its own kind. Its folder goes after that.
6. A `sent` entry is on disk before a line leaves for a worker that does not share the files: no other trace of the line
   may be left.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Final

import orjson

from cogcli.base.canonical import digest
from cogcli.base.errors import UnusableEnvironment
from cogcli.base.file_lock import lock
from cogcli.base.files import UnreadableFile
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.checksum import add_sum
from cogcli.declarations.value_types import Json
from cogcli.episode.folder import Folder, disk_errors, disk_refusal, fdatasync, read_at, write_all
from cogcli.episode.layout import is_own_id
from cogcli.episode.log_lines import Lines
from cogcli.scale.identity import MOST_LINES

ENDED: Final = "ended"
MOVED: Final = "moved"
SENT: Final = "sent"
FOLDER: Final = "folder"
"""The value of `at` for an episode in a directory of its own."""
_AT: Final = re.compile(r"folder|(\d{6,12}\.cogarchive):\d{1,12}")
_CHUNK: Final = 1 << 20
_SYNC_EVERY: Final = 1000
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "line": (int,),
    "try": (int,),
    "h": (str,),
    "ep": (str, type(None)),
    "status": (str,),
    "exit_code": (int,),
    "ms": (int, float),
    "tokens": (int,),
    "calls": (int,),
    "retries": (int,),
    "error": (dict, type(None)),
    "at": (str,),
}
_OPTIONAL: Final[Json] = {"code": "", "calls": 0, "retries": 0, "error": None}
"""The values of the members that an entry need not have."""
_SENT_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "line": (int,),
    "try": (int,),
    "ep": (str,),
    "worker": (str,),
}


class LedgerEntry(NamedTuple):
    """The end of one try of a line."""

    line: int
    attempt: int
    input_hash: str
    episode: str | None
    """None if nothing ran: the line is no valid input."""
    status: str
    exit_code: int
    milliseconds: float
    tokens: int = 0
    code: str = ""
    """The code of the error. Empty for a line that ended well."""
    calls: int = 0
    retries: int = 0
    error: Json | None = None
    """The error of a line whose episode is not sealed, from which its result is made again."""
    at: str = FOLDER
    """The place of its episode: a folder, or `ARCHIVE:OFFSET`."""

    @property
    def archive(self) -> str:
        """The name of the archive that its episode was written to. Empty for a folder."""
        return archive_of_location(self.at)

    @property
    def is_final(self) -> bool:
        """Whether no later entry of this try may follow."""
        return self.status != "pending"

    def to_payload(self) -> Json:
        """Return the entry without `prev`."""
        payload: Json = {
            "kind": ENDED, "line": self.line, "try": self.attempt, "h": self.input_hash, "ep": self.episode,
            "status": self.status, "exit_code": self.exit_code, "ms": self.milliseconds, "tokens": self.tokens,
            "cost": None, "at": self.at,
        }  # fmt: skip
        optional = {"code": self.code, "calls": self.calls, "retries": self.retries}
        payload |= {name: value for name, value in optional.items() if value}
        return payload if self.error is None else {**payload, "error": self.error}


def archive_location(archive: str, offset: int) -> str:
    """Return the location of an episode in an archive of the batch, as `ARCHIVE:OFFSET`."""
    return f"{archive}:{offset}"


def archive_of_location(at: str) -> str:
    """Return the name of the archive in the location of an episode. Empty for a folder."""
    found = _AT.fullmatch(at)
    return found[1] or "" if found else ""


class MovedEntry(NamedTuple):
    """The move of a line's episode from its folder to an archive."""

    line: int
    attempt: int
    episode: str
    at: str
    """`ARCHIVE:OFFSET`."""

    def to_payload(self) -> Json:
        """Return the entry without `prev`."""
        return {
            "kind": MOVED,
            "line": self.line,
            "try": self.attempt,
            "ep": self.episode,
            "at": self.at,
        }


def parse_moved(json: Json) -> MovedEntry | None:
    """Return the move in an object of a ledger. None if a member is missing or has another type."""
    line, attempt, episode, at = (json.get(name) for name in ("line", "try", "ep", "at"))
    if not (type(line) is int and type(attempt) is int and 1 <= line <= MOST_LINES):
        return None
    if not (
        type(episode) is str and is_own_id(episode) and type(at) is str and archive_of_location(at)
    ):
        return None
    return MovedEntry(line, attempt, episode, at)


def parse_entry(json: Json) -> LedgerEntry | None:
    """Return the entry in an object of a ledger. None if a member is missing or has another type."""
    members = {**_OPTIONAL, **json}
    if any(type(members.get(name)) not in types for name, types in _TYPES.items()):
        return None
    if not (1 <= members["line"] <= MOST_LINES and 1 <= members["try"] <= MOST_LINES):
        return None
    if not _AT.fullmatch(members["at"]):
        return None
    if members["ep"] is not None and not is_own_id(members["ep"]):
        return None
    return LedgerEntry(
        members["line"], members["try"], members["h"], members["ep"], members["status"],
        members["exit_code"], members["ms"], members["tokens"], str(members["code"]),
        members["calls"], members["retries"], members["error"], members["at"],
    )  # fmt: skip


class SentLine(NamedTuple):
    """A line that left for a worker, which may have run it."""

    line: int
    attempt: int
    episode: str
    worker: str
    """The id of the worker, which no other process ever has."""

    def to_payload(self) -> Json:
        """Return the entry without `prev`."""
        return {
            "kind": SENT, "line": self.line, "try": self.attempt, "ep": self.episode, "worker": self.worker,
        }  # fmt: skip


def parse_sent(json: Json) -> SentLine | None:
    """Return the `sent` entry in an object of a ledger. None if a member is missing or has another type."""
    if any(type(json.get(name)) not in types for name, types in _SENT_TYPES.items()):
        return None
    if not (1 <= json["line"] <= MOST_LINES and 1 <= json["try"] <= MOST_LINES):
        return None
    return SentLine(json["line"], json["try"], json["ep"], json["worker"])


class LedgerLine(NamedTuple):
    """One line of a ledger: the entry of its kind. The others are None."""

    ended: LedgerEntry | None = None
    moved: MovedEntry | None = None
    sent: SentLine | None = None


_PARSERS: Final[dict[str, Callable[[Json], LedgerLine]]] = {
    ENDED: lambda json: LedgerLine(ended=parse_entry(json)),
    MOVED: lambda json: LedgerLine(moved=parse_moved(json)),
    SENT: lambda json: LedgerLine(sent=parse_sent(json)),
}
_NO_ENTRY: Final = LedgerLine()
"""The line of an unknown kind, or without a member of its kind."""


def first_head(batch_id: str, part: str) -> str:
    """Return the `prev` of the first entry of a ledger. `part` is the name of its shard."""
    return digest(f"cogcli/ledger/1:{batch_id}:{part}".encode())


class LedgerReading:
    """Reads a ledger in order. Once iterated: `head` is the hash of the last line, `size` the bytes
    of whole lines, and `fault` is why reading stopped; empty at the end of the file or before a torn line.
    """

    def __init__(self, chunks: Iterable[bytes], batch_id: str, part: str) -> None:
        self._chunks = chunks
        self.head = first_head(batch_id, part)
        self.size = 0
        self.count = 0
        self.fault = ""

    def __iter__(self) -> Iterator[LedgerEntry]:
        return (line.ended for line in self.lines() if line.ended is not None)

    def lines(self) -> Iterator[LedgerLine]:
        """Yield the entries of all kinds."""
        lines = Lines(self._chunks)
        for number, raw, json in lines.objects(sound=True):
            parse = _PARSERS.get(str(json.get("kind")))
            line = _NO_ENTRY if parse is None else parse(json)
            is_entry = line != _NO_ENTRY
            if not is_entry or json.get("prev") != self.head:
                wrong = "does not follow the line before it" if is_entry else "is no entry"
                self.fault = f"line {number} {wrong}: one of them was altered"
                return
            self.head = digest(raw)
            self.size += len(raw) + 1
            self.count = number
            yield line
        if lines.refused and not lines.torn:
            self.fault = f"line {lines.refused.number}: {lines.refused.why}"


class Ledger:
    """The open ledger of one part of a batch. Only this process appends to it."""

    def __init__(self, folder: Folder, name: str, batch_id: str, part: str) -> None:
        """Open or create the ledger and lock it. Raise BlockingIOError if another process holds it.

        Raise UnusableEnvironment `env.disk` or `batch.damaged`.
        """
        self._folder = folder
        self._name = name
        self._unsynced = 0
        try:
            self._fd = folder.descriptor(name, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        except OSError as error:
            raise disk_refusal(folder.path / name, error) from error
        with ExitStack() as opened:
            opened.callback(os.close, self._fd)
            lock(self._fd, wait=False)
            opened.pop_all()
        self._reading = LedgerReading(self._read_chunks(), batch_id, part)

    def read_lines(self) -> Iterator[LedgerLine]:
        """Yield all lines, then cut a torn last line. Call it once, before the first `append`.

        Raise UnusableEnvironment `batch.damaged`.
        """
        yield from self._reading.lines()
        if self._reading.fault:
            raise damaged_ledger_error(self._folder, self._name, self._reading.fault)
        try:
            os.ftruncate(self._fd, self._reading.size)
        except OSError as error:
            raise disk_refusal(self._folder.path / self._name, error) from error

    def _read_chunks(self) -> Iterator[bytes]:
        offset = 0
        while chunk := read_at(self._fd, _CHUNK, offset):
            offset += len(chunk)
            yield chunk

    @property
    def head(self) -> str:
        """The hash of the last line."""
        return self._reading.head

    def append(self, entry: LedgerEntry | MovedEntry | SentLine) -> None:
        """Write one entry. Raise UnusableEnvironment `env.disk`."""
        text = orjson.dumps({**entry.to_payload(), "prev": self._reading.head})
        line = add_sum(text)
        with disk_errors(self._folder.path / self._name):
            write_all(self._fd, line + b"\n")
            self._unsynced += 1
            if self._unsynced >= _SYNC_EVERY:
                self._sync_file()
        self._reading.head = digest(line)

    def append_moved(self, moved: Sequence[MovedEntry]) -> None:
        """Write moves and sync them, before their folders are removed. Raise UnusableEnvironment `env.disk`."""
        for entry in moved:
            self.append(entry)
        with disk_errors(self._folder.path / self._name):
            self._sync_file()

    def append_sent(self, sent: SentLine) -> None:
        """Write that a line leaves, and sync. Raise UnusableEnvironment `env.disk`."""
        self.append(sent)
        with disk_errors(self._folder.path / self._name):
            self._sync_file()

    def _sync_file(self) -> None:
        fdatasync(self._fd)
        self._unsynced = 0

    def close(self) -> None:
        """Sync and release the ledger. May be called twice. Raise UnusableEnvironment `env.disk`."""
        if self._fd < 0:
            return
        try:
            self._sync_file()
        except OSError as error:
            raise disk_refusal(self._folder.path / self._name, error) from error
        finally:
            os.close(self._fd)
            self._fd = -1


def read_ledger(folder: Folder, name: str, batch_id: str, part: str) -> LedgerReading:
    """Return the reading of a ledger that this process does not write."""

    def chunks() -> Iterator[bytes]:
        try:
            yield from folder.chunks(name)
        except UnreadableFile as error:
            if error.reason != "missing":
                raise damaged_ledger_error(folder, name, error.message) from error

    return LedgerReading(chunks(), batch_id, part)


def damaged_ledger_error(folder: Folder, name: str, fault: str) -> UnusableEnvironment:
    """Return the error for a ledger that was altered or damaged."""
    return UnusableEnvironment(
        "batch.damaged",
        f"`{folder.path.name}`: {name}: {fault}",
        hint="the episodes of its lines are whole: run the batch under another --batch-name",
        next=(f"cogcli verify {folder.path.name}",),
    )
