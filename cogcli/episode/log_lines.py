"""The lines of a log: whether each is committed, and its object.

1. A line without its newline is not committed, so that the reader of a run in progress sees a prefix.
2. A last line that is not JSON is torn as well. Any other line that is not JSON, and a last line that no torn write
   leaves, is refused: reading stops before it.
3. A log whose first line has neither `seq` nor `prev` is another tool's. Its last line needs no newline: whole JSON is
   committed there, since no torn write leaves it.

The first event of a run names the `rules` of its log, which hold to its end. So a log gives the same bytes at any later
date. A log without `rules` follows rules 1.

| rules | its lines, and the documents that follow from them |
|---|---|
| 1 | members of a payload above 64 KiB are blobs; documents hold every value; a plan's steps hold their reads |
| 2 | large values are blobs at any depth, each stored once (`large_values`), and documents name them; a plan's steps
hold their inputs and outputs; `tool_coverage` counts planned capabilities; the duration of a run that was never resumed
does not exceed the time between its first and its last event; an optional `any` without a value is left out (under
rules 1 it was null) |
| 3 | long lists are in parts, so that a list that grows has new blobs only for its end (`large_values`) |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

import orjson

from cogcli.base.canonical import digest
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson
from cogcli.base.strict_json import loads as strict_loads
from cogcli.declarations.checksum import Checksums, looks_complete, valid_prefix
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.blobs import RARE, may_refer
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS

FIRST: Final = 1
LATEST: Final = 3
LONGEST_LINE: Final = 8 * 1024 * 1024
"""Our own lines end at 1 MiB; other tools may not know that limit."""
BATCH: Final = 64
"""Lines that are read together. Their objects fit into the cache of a processor; more lines gain nothing."""
NumberedLine = tuple[int, bytes]
"""A line without its newline, and its number from 1."""
LineObject = tuple[int, bytes, Json]
"""A line's number, its bytes without the newline, and its object."""


class NamedRules(Record):
    """The member of a start event that contains the version of its log's rules."""

    rules: int = FIRST


class _FirstLine(Record):
    """The member of a log's first line that contains its rules."""

    payload: NamedRules


def rules_of(payload: object) -> int:
    """Return the rules that the payload of a log's first event names. Rules of a later version read as the latest
    known.
    """
    return _clamp_rules_version(read_record(NamedRules, payload))


def rules_of_line(first: Json) -> int:
    """Return the version of the rules that a log follows, from the object of its first line."""
    return _clamp_rules_version(read_record(_FirstLine, first).payload)


def _clamp_rules_version(named: NamedRules) -> int:
    return max(FIRST, min(named.rules, LATEST))


def first_link(episode_id: str) -> str:
    """Return the `prev` of the first line of a log."""
    return digest(f"cogcli/events/1:{episode_id}".encode())


class InvalidLogLine(NamedTuple):
    """A line that cogcli cannot have written: its number, the reason, and whether a newline ends it."""

    number: int
    why: str
    ended: bool
    is_json: bool = False


class Lines:
    """The committed lines of a stream of bytes, numbered from 1, without their newlines.

    Once iterated: `tail` are the bytes after the last newline, `too_long` is the number of a line that stopped the
    reading.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.tail = b""
        self.too_long = 0
        self.count = 0
        """After `objects`: the number of committed lines with an object."""
        self.torn = 0
        """After `objects`: the bytes after the last committed line, from an interrupted write."""
        self.refused: InvalidLogLine | None = None
        """After `objects`: the line before which reading stopped; with `torn` it is the last line."""

    def __iter__(self) -> Iterator[NumberedLine]:
        for lines in self._lines_by_chunk():
            yield from lines

    def _lines_by_chunk(self) -> Iterator[list[NumberedLine]]:
        """Yield the lines that end in each chunk."""
        first = rest = b""
        number = 0
        for chunk in self._chunks:
            *whole, rest = (rest + chunk if rest else chunk).split(b"\n")
            first = first or next(filter(None, whole), b"")
            yield list(enumerate(whole, number + 1))
            number += len(whole)
            if len(rest) > LONGEST_LINE:
                self.too_long = number + 1
                return
        if rest and is_foreign_line(first or rest) and is_foreign_line(rest):
            yield [(number + 1, rest)]
            rest = b""
        self.tail = rest

    def containing(self, *marks: bytes) -> Iterator[NumberedLine]:
        """Yield the complete lines that contain one of these texts. Other lines are only counted."""
        number, rest = 0, b""
        for chunk in self._chunks:
            data = rest + chunk
            end = data.rfind(b"\n") + 1
            whole, rest = data[:end], data[end:]
            if any(mark in whole for mark in marks):
                for place, line in enumerate(whole.split(b"\n"), number + 1):
                    if any(mark in line for mark in marks):
                        yield place, line
            number += whole.count(b"\n")
            if len(rest) > LONGEST_LINE:
                return

    def objects(self, *, sound: bool = False) -> Iterator[LineObject]:
        """Yield each committed line with its number and its object, up to the first without one; with `sound`,
        also up to the first that does not fit its checksum.
        """
        for batch in self.batches(sound=sound):
            yield from batch

    def batches(self, *, sound: bool = False) -> Iterator[list[LineObject]]:
        """Yield the lines of `objects`, at most `BATCH` at a time, without waiting for later lines.

        Processing a batch in several passes takes half the time of handling line by line, because the code stays in the
        processor's caches. A line that refers to a blob is a separate batch: the values of many blobs may not fit into
        memory.
        """
        checksums = Checksums() if sound else None
        chunks = self._lines_by_chunk()
        for lines in chunks:
            for part in _split_batches(lines):
                batch: list[LineObject] = []
                refused = _parse_lines(part, batch, checksums)
                if batch:
                    self.count = batch[-1][0]
                    yield batch
                if refused is None:
                    continue
                self.refused = refused
                is_last = refused.number == lines[-1][0] and not any(chunks) and not self.too_long
                line = lines[refused.number - lines[0][0]][1]
                if is_last and not refused.is_json and is_torn(line):
                    self.torn = len(line) + 1 + len(self.tail)
                return
        self._check_tail()

    def _check_tail(self) -> None:
        """Check the bytes after the last newline."""
        if self.too_long:
            why = f"longer than {LONGEST_LINE:,} bytes"
            self.refused = InvalidLogLine(self.too_long, why, False)
        elif is_torn_tail(self.tail):
            self.torn = len(self.tail)
        else:
            why = "what ends it is not a newline: it was damaged"
            self.refused = InvalidLogLine(self.count + 1, why, False)


def _split_batches(lines: list[NumberedLine]) -> Iterator[list[NumberedLine]]:
    for start in range(0, len(lines), BATCH):
        part = lines[start : start + BATCH]
        if any([may_refer(line) for _, line in part if RARE in line]):  # noqa: C419  # a generator takes longer
            yield from ([each] for each in part)
        else:
            yield part


def _parse_lines(
    lines: list[NumberedLine], batch: list[LineObject], checksums: Checksums | None
) -> InvalidLogLine | None:
    """Add the lines to a batch with their objects, up to the first line that is refused, and return that."""
    for number, line in lines:
        try:  # as `parse_line`, without its call
            value = orjson.loads(line)
            is_ours = type(value) is dict and orjson.dumps(value) == line
        except (ValueError, TypeError):
            is_ours = False
        if not is_ours:
            try:
                value = parse_line(line)
            except InvalidJson as error:
                return InvalidLogLine(number, error.message, True)
        if checksums is not None and (problem := checksums.problem(line, value)):
            return InvalidLogLine(number, f"the line {problem[1]}", True, is_json=True)
        batch.append((number, line, value))
    return None


def first_line(folder: Folder) -> bytes:
    """Return the first committed line of an episode's log; empty if the log has none. Raise UnreadableFile."""
    return next((line for _, line in Lines(folder.chunks(EVENTS))), b"")


def is_foreign_line(line: bytes) -> bool:
    """Return whether a line is a whole event of another tool's log."""
    with suppress(InvalidJson):
        return is_unchained(parse_line(line))
    return False


def is_unchained(first: Json) -> bool:
    """Return whether a log with this first line is another tool's."""
    return "seq" not in first and "prev" not in first


def is_torn(line: bytes) -> bool:
    """Return whether a torn write may have left a refused last line. It leaves neither JSON nor the end of a
    whole line.
    """
    try:
        orjson.loads(line)
    except ValueError:
        return not looks_complete(line)
    return False


def is_torn_tail(tail: bytes) -> bool:
    """Return whether a torn write may have left the bytes after the last newline: the beginning of a line, and
    NULs for blocks that never reached the disk. If other bytes follow a whole line, its newline was altered.
    """
    whole = valid_prefix(tail)
    return not whole or not tail[whole:].strip(b"\0")


def parse_line(line: bytes) -> Json:
    """Return the object of one line, parsed strictly. Raise InvalidJson.

    A line that cogcli wrote serializes to the same bytes again, which excludes repeated keys and unusual numbers. Any
    other line is read by the strict parser.
    """
    try:
        value = orjson.loads(line)
        is_ours = orjson.dumps(value) == line
    except (ValueError, TypeError):
        is_ours = False
    if not is_ours:
        value = strict_loads(line, max_bytes=LONGEST_LINE, max_nodes=1_000_000)
    if type(value) is not dict:
        raise InvalidJson("json.type", "an event is an object")
    return value
