"""The parser of server-sent events from any bytes (docs/reference/models.md#streaming).

Bytes may be split anywhere, also inside a line end or a character. Invalid UTF-8 becomes U+FFFD. Bytes after the last
empty line are not an event.
"""

from __future__ import annotations

import re
from typing import Final

from cogcli.base.named_tuple import NamedTuple

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_BOM: Final = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """One event: its type, which may be empty, and its data, whose lines are joined by newlines."""

    type: str
    data: str


class EventParser:
    """Parses the bytes of one stream."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._first = True
        self._after_return = False
        """Whether the last line ended with a carriage return, to which a newline may still belong."""
        self._type = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that these bytes complete, in order."""
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_return = False
        # Otherwise a long line would be searched again for each of its pieces.
        if not _LINE_END.search(chunk):
            self._rest += chunk
            return []
        *lines, rest = _LINE_END.split(self._rest + chunk)
        self._rest = bytearray(rest)
        self._after_return = chunk.endswith(b"\r")
        if self._first:
            lines[0], self._first = lines[0].removeprefix(_BOM), False
        return [event for line in lines if (event := self._parse_line(line)) is not None]

    def _parse_line(self, line: bytes | bytearray) -> ServerEvent | None:
        if not line:
            event = ServerEvent(self._type, "\n".join(self._data)) if self._data else None
            self._type, self._data = "", []
            return event
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value
        return None
