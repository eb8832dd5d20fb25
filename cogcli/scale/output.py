"""The output of a batch: a row for each line, in the order of the input or as lines end
(docs/reference/batch.md#output).

1. Rows go to `OUT.part`, which is renamed at the end. After a kill it is cut to its last whole row and continued.
2. A row is written after its ledger entry. A missing row is made again from the episode.
3. In input order, a row behind a slow line waits in a file without a name; memory has its place there, 8 bytes.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO, Final, Protocol

import orjson

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile, open_regular
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.episode.folder import disk_refusal
from cogcli.scale.batch_folder import Shard
from cogcli.scale.line_set import LineSet

PART: Final = ".part"
_COMPACT: Final = 65_536
"""Places at the front of the queue after which it is shortened."""
_LARGEST: Final = 1 << 46
_BUFFER: Final = 1 << 16


class RowWriter(Protocol):
    """A receiver of rows in the order of the output."""

    def write(self, row: bytes) -> None:
        """Write one row. Raise UnusableEnvironment `env.disk`."""
        ...


class PartFile:
    """The file `OUT.part` of complete rows. A killed process may have left the last row incomplete."""

    def __init__(self, path: str, has_entry: Callable[[int], bool] = lambda line: True) -> None:
        """Open or create the file, and cut an unfinished last row. A row of a line without an entry in the ledger is
        not from this batch: it is cut with all that follows. Raise UnusableEnvironment `env.disk`.
        """
        self.path = path
        self._has_entry = has_entry
        self.written = LineSet()
        """The lines whose rows the file had when it was opened."""
        self.pending: set[int] = set()
        """Those of them that waited."""
        self._amended: dict[int, bytes] = {}
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            handle = os.open(path, flags, 0o600)
            self._file: BinaryIO = os.fdopen(handle, "r+b", buffering=_BUFFER)
            self._file.seek(self._find_end())
            self._file.truncate()
        except OSError as error:
            raise disk_refusal(path, error) from error

    def _find_end(self) -> int:
        """Read the rows, and return the offset after the last whole one."""
        end = 0
        for row in self._file:
            line = line_of_row(row)
            if line is None or not self._has_entry(line) or not self.written.add(line):
                break
            if b'"status":"pending"' in row:
                self.pending.add(line)
            end += len(row)
        return end

    def amend(self, line: int, row: bytes) -> None:
        """Replace the row of a line that waited, when the file is finished."""
        self._amended[line] = row

    def write(self, row: bytes) -> None:
        """Append one row. Raise UnusableEnvironment `env.disk`."""
        try:
            self._file.write(row)
        except OSError as error:
            raise disk_refusal(self.path, error) from error

    def flush(self) -> None:
        """Hand all rows to the system. Raise UnusableEnvironment `env.disk`."""
        try:
            self._file.flush()
        except OSError as error:
            raise disk_refusal(self.path, error) from error

    def finish(self, output: str) -> None:
        """Sync the file, and rename it to the name of the output. Raise UnusableEnvironment `env.disk`."""
        try:
            self._apply_amendments()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self.path, output)
        except OSError as error:
            raise disk_refusal(output, error) from error

    def _apply_amendments(self) -> None:
        """Write the file anew with the amended rows. Raise OSError."""
        if not self._amended:
            return
        temporary, handle = create_temporary(self.path)
        with os.fdopen(handle, "wb") as file:
            self._file.seek(0)
            for row in self._file:
                file.write(self._amended.get(line_of_row(row) or 0, row))
        self._file.close()
        os.replace(temporary, self.path)
        self._file = open(self.path, "r+b")  # noqa: SIM115  # closed by `finish`

    def close(self) -> None:
        """Close the file, and leave it for the next process. Raise UnusableEnvironment `env.disk`."""
        try:
            self._file.close()
        except OSError as error:
            raise disk_refusal(self.path, error) from error


def create_temporary(path: str) -> tuple[str, int]:
    """Return path and descriptor of a new file next to `path`, 0600. Raise OSError."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or os.curdir, prefix=".tmp-")
    return temporary, handle


@contextmanager
def removed_on_error(path: str) -> Iterator[None]:
    """Remove a file if the block fails."""
    with ExitStack() as undo:
        undo.callback(_remove_file, path)
        yield
        undo.pop_all()


def _remove_file(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def line_of_row(row: bytes) -> int | None:
    """Return the line that a whole row of an output is for; None for anything else."""
    if not row.endswith(b"\n"):
        return None
    try:
        value = orjson.loads(row)
    except ValueError:
        return None
    line = read_record(ResultRow, value).line
    return line if line is not None and line > 0 else None


class RowError(Record):
    """The error in a row of results, unchecked."""

    code: object = None
    message: object = None


class ResultRow(Record):
    """The members of a row of results that retries, summaries and tables read, unchecked."""

    line: int | None = None
    status: object = None
    episode_id: object = None
    error: RowError


def read_rows(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of a result file with their lines. Raise UnusableEnvironment `batch.rows`."""
    try:
        file = open_regular(os.path.realpath(path), limit=_LARGEST)
    except UnreadableFile as error:
        raise rows_error(path, error.message) from error
    with file:
        for number, row in enumerate(file, 1):
            whole = row if row.endswith(b"\n") else row + b"\n"
            line = line_of_row(whole)
            if line is None:
                raise rows_error(path, "is no result of a batch", number)
            yield line, whole


def rows_error(path: str, why: str, number: int = 0) -> UnusableEnvironment:
    """Return the error for a file that is not the output of a batch."""
    place = f"{path}:{number}" if number else path
    hint = "name the file that a batch wrote with -o"
    return UnusableEnvironment("batch.rows", f"`{place}` {why}", hint=hint, file=path, line=number)


class UnorderedRows:
    """Writes each row at once."""

    def __init__(self, writer: RowWriter) -> None:
        self._writer = writer

    def add(self, line: int, row: bytes) -> None:
        """Write the row of a line. Raise UnusableEnvironment `env.disk`."""
        self._writer.write(row)

    def skip(self, line: int) -> None:
        """Record that the output already has the row of a line."""

    def may_send(self, line: int) -> bool:
        """Return whether a line may run now."""
        return True

    def close(self) -> None:
        """Drop rows that wait."""


class OrderedRows:
    """Writes rows in the order of the input. `shard` has the lines that get a row."""

    def __init__(self, writer: RowWriter, shard: Shard, folder: str, most_ahead: int) -> None:
        self._writer = writer
        self._step = shard.parts
        self._first = shard.place + 1
        self._folder = folder
        self._most_ahead = most_ahead
        self._next = 0
        """The number of rows written, or skipped."""
        self._places = array("q")
        """By row from `_base` on: 1 + the offset of a waiting row, -1 for a skipped one, 0 for a missing one."""
        self._base = 0
        self._waiting: BinaryIO | None = None
        self._count = 0

    def _line_index(self, line: int) -> int:
        return (line - self._first) // self._step

    def add(self, line: int, row: bytes) -> None:
        """Write the row of a line, or keep it until its turn. Raise UnusableEnvironment `env.disk`."""
        index = self._line_index(line)
        if index == self._next:
            self._writer.write(row)
            self._write_waiting_rows()
        elif index > self._next:
            self._set_place(index, self._store_row(row) + 1)
            self._count += 1

    def skip(self, line: int) -> None:
        """Record that the output already has the row of a line."""
        index = self._line_index(line)
        if index == self._next:
            self._write_waiting_rows()
        elif index > self._next:
            self._set_place(index, -1)

    def may_send(self, line: int) -> bool:
        """Return whether a line may run now. Its distance to the first unfinished line is limited."""
        return self._line_index(line) - self._next < self._most_ahead

    def _store_row(self, row: bytes) -> int:
        """Store a row, and return its offset."""
        try:
            if self._waiting is None:
                self._waiting = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  # closed by `close`
            offset = self._waiting.seek(0, os.SEEK_END)
            self._waiting.write(row)
        except OSError as error:
            raise disk_refusal(self._folder, error) from error
        return offset

    def _set_place(self, index: int, place: int) -> None:
        missing = index - self._base + 1 - len(self._places)
        if missing > 0:
            self._places.frombytes(bytes(8 * missing))
        self._places[index - self._base] = place

    def _write_waiting_rows(self) -> None:
        """Write the waiting rows that follow the last written row."""
        self._next += 1
        while (place := self._slot_position(self._next)) != 0:
            if place > 0:
                self._writer.write(self._read_row(place - 1))
                self._count -= 1
            self._next += 1
        if self._next - self._base > _COMPACT or self._next - self._base >= len(self._places):
            del self._places[: self._next - self._base]
            self._base = self._next
        if not self._count:
            self.close()

    def _slot_position(self, index: int) -> int:
        place = index - self._base
        return self._places[place] if place < len(self._places) else 0

    def _read_row(self, offset: int) -> bytes:
        if self._waiting is None:
            raise ValueError("no row waits")
        self._waiting.seek(offset)
        return self._waiting.readline()

    def close(self) -> None:
        """Drop rows that wait. The next process makes them again from their episodes."""
        if self._waiting is not None:
            self._waiting.close()
            self._waiting = None


class ContinuedRows:
    """Writes the rows that a part file lacks. The row of a line that waited is replaced; other rows in the file are
    kept.
    """

    def __init__(self, part: PartFile, rows: OrderedRows | UnorderedRows) -> None:
        self._part = part
        self._rows = rows

    def add(self, line: int, row: bytes) -> None:
        """Write the row of a line. Raise UnusableEnvironment `env.disk`."""
        if line not in self._part.written:
            self._rows.add(line, row)
        elif line in self._part.pending:
            self._part.amend(line, row)

    def may_send(self, line: int) -> bool:
        """Return whether a line may run now."""
        return self._rows.may_send(line)
