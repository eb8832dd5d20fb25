"""A set of the numbers of lines, which ten million lines do not make large."""

from __future__ import annotations


class LineSet:
    """A set of line numbers, one bit each."""

    def __init__(self) -> None:
        self._bits = bytearray()
        self.count = 0

    def add(self, line: int) -> bool:
        """Add a line. Return whether it is new."""
        place, bit = line >> 3, 1 << (line & 7)
        if place >= len(self._bits):
            self._bits.extend(bytes(place + 1 + place // 8 - len(self._bits)))
        if self._bits[place] & bit:
            return False
        self._bits[place] |= bit
        self.count += 1
        return True

    def discard(self, line: int) -> None:
        """Remove a line, if the set has it."""
        if line in self:
            self._bits[line >> 3] &= ~(1 << (line & 7)) & 0xFF
            self.count -= 1

    def to_bytes(self) -> bytes:
        """Return the set as bytes, equal for equal sets."""
        return bytes(self._bits).rstrip(b"\0")

    def __contains__(self, line: int) -> bool:
        place = line >> 3
        return place < len(self._bits) and bool(self._bits[place] & 1 << (line & 7))
