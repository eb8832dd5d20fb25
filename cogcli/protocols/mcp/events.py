"""Strict checks of an MCP server's events before the SDK reads them.

1. An event ends at a blank line; its lines end with CR, LF or both. Only data of the type `message`
   is checked: the SDK reads no other type as a message. An event without data passes.
2. A refused event is replaced by an error answer to its call, or left out if its call is unknown.
3. The text is read as UTF-8, whatever the content type is.
4. An event has at most 8 MiB."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from cogcli.base.errors import ResponseMappingError
from cogcli.base.http import pass_body
from cogcli.protocols.mcp.traffic import MAX_FRAME

if TYPE_CHECKING:
    from cogcli.base.http import AsyncResponse

EventFilter = Callable[[bytes], Awaitable[bytes | None]]
"""A function that returns the data for the SDK instead of an event's data; None to drop the event.
"""


def filter_events(
    response: AsyncResponse, accept: EventFilter, too_long: Callable[[], None]
) -> None:
    """Filter the unread event stream of an `httpx2` response through `accept`.

    For an event beyond the limit `too_long` is called, and the reader gets ResponseMappingError
    `response.size`."""

    async def filtered(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        events = _Events()
        async for chunk in chunks:
            for event in events.feed(chunk):
                yield await _filter_event(event, accept)
            if len(events.rest) > MAX_FRAME:
                too_long()
                raise ResponseMappingError("response.size", "an event is too long")
        yield await _filter_event(bytes(events.rest), accept)

    pass_body(response, filtered)
    response.headers["content-type"] = "text/event-stream"


async def _filter_event(event: bytes, accept: EventFilter) -> bytes:
    """Return the event for the SDK. Events of another type than `message` are not checked."""
    kind, lines = b"", []
    for line in event.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"data":
            lines.append(value.removeprefix(b" "))
        elif name == b"event":
            kind = value.removeprefix(b" ")
    data = b"\n".join(lines) if kind in (b"", b"message") else b""
    if data:
        replaced = await accept(data)
        if replaced is not data:
            event = b"" if replaced is None else b"data: " + replaced
    return event + b"\n\n"


class _Events:
    """Splits a stream of bytes into events."""

    def __init__(self) -> None:
        self.rest = bytearray()
        """The bytes after the last blank line."""
        self._after_cr = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the events that these bytes complete, with LF as line end."""
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]  # the rest of a CR LF
        if chunk:
            self._after_cr = chunk[-1:] == b"\r"
        searched = max(len(self.rest) - 1, 0)
        self.rest += chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        while (end := self.rest.find(b"\n\n", searched)) >= 0:
            yield bytes(self.rest[:end])
            del self.rest[: end + 2]
            searched = 0
