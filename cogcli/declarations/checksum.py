"""The checksum that a line of a log carries of itself (docs/reference/episode.md#events).

1. It shows damage, also of the newest line, which no later one vouches for. It stops nobody who alters a line and its
   checksum: `prev`, which hashes the line with its checksum, and what vouches for the last hash do.
2. A log may have none: an older one of ours. In a log without `seq` and `prev`, which is another tool's, `sum` is a
   key like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from zlib import crc32

from cogcli.declarations.value_types import Json

_MEMBER: Final = b',"sum":"%08x"}'
_SIZE: Final = len(_MEMBER % 0)
_FRAME: Final = [(place, byte) for place, byte in enumerate(_MEMBER % 0) if byte != ord("0")]
_ANYWHERE: Final = re.compile(rb',"sum":"([0-9a-f]{8})"\}')

_WRONG: Final = ("sum.wrong", "does not match its own checksum: it was damaged")
_MISSING: Final = ("sum.missing", "has no checksum, as the lines before it have")


def line_with_sum(text: bytes) -> bytes:
    """The line, newline included, of an object's JSON."""
    stem = text[:-1]
    return stem + b',"sum":"%08x"}\n' % crc32(stem)


def holds(line: bytes) -> bool:
    """Whether a line, without its newline, ends with the checksum of what is before it."""
    return line[-_SIZE:] == _MEMBER % crc32(memoryview(line)[:-_SIZE])


def is_like_whole(line: bytes) -> bool:
    """Whether a line ends as one with a checksum does, but for one byte: no write that was cut short leaves that."""
    end = line[-_SIZE:]
    return len(end) == _SIZE and sum(end[place] != byte for place, byte in _FRAME) <= 1


def valid_prefix(data: bytes) -> int:
    """How many bytes the line has that these begin with, if its checksum holds; else 0."""
    sum, read = 0, 0
    for found in _ANYWHERE.finditer(data):
        sum, read = crc32(memoryview(data)[read : found.start()], sum), found.start()
        if int(found[1], 16) == sum:
            return found.end()
    return 0


class Checksums:
    """The rule of one log, asked line by line."""

    def __init__(self) -> None:
        self._begun = False

    def problem(self, raw: bytes, line: Json) -> tuple[str, str] | None:
        """Code and message for a line of a log of ours that does not fit its checksum, or lacks one.

        A line that ends with a checksum whose key was damaged has one, also as the first line of its log.
        """
        is_ours = "seq" in line or "prev" in line
        if is_ours and ("sum" in line or is_like_whole(raw)):
            self._begun = True
            return None if holds(raw) else _WRONG
        return _MISSING if self._begun and "sum" not in line else None


# -- what a damaged line was -------------------------------------------------------------------------------------------


def corrections(line: bytes) -> Iterator[bytes]:
    """The lines whose checksum holds and that differ from this one in one byte; hardly ever more than one."""
    stem, end = line[:-_SIZE], line[-_SIZE:]
    right = _MEMBER % crc32(stem)
    if sum(a != b for a, b in zip(end, right, strict=False)) == 1:
        yield stem + right
    if found := _ANYWHERE.fullmatch(end):
        for place, difference in _altered(crc32(stem) ^ int(found[1], 16), len(stem)):
            yield stem[:place] + bytes([stem[place] ^ difference]) + stem[place + 1 :] + end


def _altered(difference: int, size: int) -> Iterator[tuple[int, int]]:
    """The places of one byte, and what was added to it, that change a CRC-32 by this much; the last place first.

    A byte's part in the CRC goes through the same register as often as bytes follow it: that is undone step by step.
    """
    table = [crc32(bytes([byte])) ^ crc32(b"\0") for byte in range(256)]
    byte_of = {value: byte for byte, value in enumerate(table)}
    lowest = {value >> 24: byte for byte, value in enumerate(table)}
    for place in reversed(range(size)):
        if byte := byte_of.get(difference):
            yield place, byte
        low = lowest[difference >> 24]
        difference = (difference ^ table[low]) << 8 & 0xFFFFFFFF | low
