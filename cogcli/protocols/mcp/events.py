"""Server-sent events of an MCP server, read as strictly as every other frame before the SDK reads them.

1. An event is what stands before a blank line; its lines end with CR, LF or both. Only its data is judged, and only of
   the type `message`, as the SDK takes no other for a message. What has no data passes.
2. An event that is refused is replaced by the failed answer to its call, or left out where it can be told of none.
3. The text is UTF-8, whatever the content type says.
4. An event holds at most 8 MiB.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from cogcli.core.errors import ResponseMappingError
from cogcli.core.http import pass_body
from cogcli.protocols.mcp.traffic import MAX_FRAME

Judge = Callable[[bytes], Awaitable[bytes | None]]
"""Gives the data that the SDK is to read in place of this; None for none at all."""


def judge_events(response: Any, judge: Judge, too_long: Callable[[], None]) -> None:
    """Let an `httpx2` response, a stream of events not yet read, give only what `judge` lets through."""

    async def judged(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        events = _Events()
        async for chunk in chunks:
            for event in events.more(chunk):
                yield await _judged(event, judge)
            if events.pending > MAX_FRAME:
                too_long()
                raise ResponseMappingError("response.size", "an event is too long")
        yield await _judged(events.rest(), judge)

    pass_body(response, judged)
    response.headers["content-type"] = "text/event-stream"


async def _judged(event: bytes, judge: Judge) -> bytes:
    data = _data_of(event)
    if data:
        replaced = await judge(data)
        if replaced is not data:
            event = b"" if replaced is None else b"data: " + replaced
    return event + b"\n\n"


class _Events:
    """Cuts a stream into events."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._after_cr = False

    @property
    def pending(self) -> int:
        """The bytes of an event that has not ended."""
        return len(self._kept)

    def more(self, chunk: bytes) -> Iterator[bytes]:
        """The events that end with these bytes, their lines ended by LF."""
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]  # the rest of a CR LF
        if chunk:
            self._after_cr = chunk[-1:] == b"\r"
        looked_at = max(len(self._kept) - 1, 0)
        self._kept += chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        while (end := self._kept.find(b"\n\n", looked_at)) >= 0:
            yield bytes(self._kept[:end])
            del self._kept[: end + 2]
            looked_at = 0

    def rest(self) -> bytes:
        """What no blank line ended."""
        return bytes(self._kept)


def _data_of(event: bytes) -> bytes:
    """The data of an event of the type `message`; empty for any other."""
    kind, data = b"", []
    for line in event.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"event":
            kind = value.removeprefix(b" ")
    return b"\n".join(data) if kind in (b"", b"message") else b""
