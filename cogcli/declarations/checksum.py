"""The checksum that a line of a log contains of itself (docs/reference/episode.md#events).

1. It reveals damage, even of the newest line, which no later line confirms. It does not protect
against a person who alters a line and its checksum. `prev`, which hashes the line with its
checksum, protects against that, and so does a confirmed last hash.

2. An older log of cogcli may have no checksums. In a log without `seq` and `prev`, which another
tool wrote, `sum` is an ordinary key.
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


def add_sum(text: bytes) -> bytes:
    """Return the JSON of an object with its checksum as the last member: a line without its newline."""
    stem = text[:-1]
    return stem + b',"sum":"%08x"}' % crc32(stem)


def has_valid_checksum(line: bytes) -> bool:
    """Return whether a line, without its newline, ends with the checksum of the bytes before it."""
    return line[-_SIZE:] == _MEMBER % crc32(memoryview(line)[:-_SIZE])


def looks_complete(line: bytes) -> bool:
    """Return whether a line ends like a line with a checksum, except for at most one byte. A truncated write cannot
    leave such an end.
    """
    end = line[-_SIZE:]
    return len(end) == _SIZE and sum(end[place] != byte for place, byte in _FRAME) <= 1


def valid_prefix(data: bytes) -> int:
    """Return the length of the line at the start of these bytes if its checksum is valid; else 0."""
    sum, read = 0, 0
    for found in _ANYWHERE.finditer(data):
        sum, read = crc32(memoryview(data)[read : found.start()], sum), found.start()
        if int(found[1], 16) == sum:
            return found.end()
    return 0


class Checksums:
    """Checks the lines of one log in order."""

    def __init__(self) -> None:
        self._has_sums = False

    def problem(self, raw: bytes, line: Json) -> tuple[str, str] | None:
        """Return code and message for a line whose checksum is wrong or missing; None if it is
        right.

        Logs of other tools have no problem. A line whose end was damaged in one byte still has a
        checksum, even as the first line of its log.
        """
        is_ours = "seq" in line or "prev" in line
        if is_ours and ("sum" in line or looks_complete(raw)):
            self._has_sums = True
            return None if has_valid_checksum(raw) else _WRONG
        return _MISSING if self._has_sums and "sum" not in line else None


# -- what a damaged line was -------------------------------------------------------------------------------------------


def corrections(line: bytes) -> Iterator[bytes]:
    """Yield the lines that differ from this one in one byte and have a valid checksum; rarely more
    than one.
    """
    stem, end = line[:-_SIZE], line[-_SIZE:]
    right = _MEMBER % crc32(stem)
    if sum(a != b for a, b in zip(end, right, strict=False)) == 1:
        yield stem + right
    if found := _ANYWHERE.fullmatch(end):
        for place, difference in _find_one_byte_changes(crc32(stem) ^ int(found[1], 16), len(stem)):
            yield stem[:place] + bytes([stem[place] ^ difference]) + stem[place + 1 :] + end


def _find_one_byte_changes(difference: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield (place, byte difference) for each one-byte change that changes a CRC-32 by `difference`, the last place
    first.

    The CRC register processes a byte's difference once for each later byte. Each step of the loop undoes one of these.
    """
    table = [crc32(bytes([byte])) ^ crc32(b"\0") for byte in range(256)]
    byte_of = {value: byte for byte, value in enumerate(table)}
    lowest = {value >> 24: byte for byte, value in enumerate(table)}
    for place in reversed(range(size)):
        if byte := byte_of.get(difference):
            yield place, byte
        low = lowest[difference >> 24]
        difference = (difference ^ table[low]) << 8 & 0xFFFFFFFF | low
