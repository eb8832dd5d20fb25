"""The streamable HTTP transport: the SDK's, over a client of ours that keeps the address rules
(docs/reference/service.md#http, docs/reference/protocols.md#mcp-http).

1. No redirect is followed. A body or an event holds at most 8 MiB; a body in any encoding is refused.
2. Headers of the service go with every request, those of a binding with its calls.
3. What the server gives us to send back, its session id, has to be plain before it is used.
4. Each call knows the HTTP status it was answered with, and whether a byte of it went out.
5. What can be told before the SDK reads an answer is told by us: refusals, lost sessions, bodies that are no message.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from cogcli.core.errors import RequestMappingError, ResponseMappingError, ServerFaultError
from cogcli.core.http import HttpReply, async_client, cap_body, proxy_shown, read_body
from cogcli.protocols.mcp.errors import translate_error
from cogcli.protocols.mcp.events import judge_events
from cogcli.protocols.mcp.refusals import Refusals
from cogcli.protocols.mcp.traffic import (
    INTERNAL,
    LARGE,
    MAX_FRAME,
    GuardedRead,
    McpExchange,
    McpFault,
    McpTraffic,
    error_message,
    fault_of,
    frame_fault,
    id_in,
)

if TYPE_CHECKING:
    from types import TracebackType

    from mcp.client._transport import TransportStreams
    from mcp.shared._stream_protocols import WriteStream
    from mcp.shared.message import SessionMessage

CONNECT_SECONDS: Final = 5.0
GOODBYE_SECONDS: Final = 2.0
_SESSION: Final = "mcp-session-id"
_PLAIN: Final = re.compile(r"[\x21-\x7e]{1,256}")
_OWNED: Final = ("accept", "content-type", "content-length", _SESSION, "last-event-id")
"""Headers of the protocol itself: no file says them otherwise. `mcp-*` belong to it, too."""


class McpEndpoint(NamedTuple):
    """Where a server is, and how it may be reached."""

    url: str
    network: str
    headers: Mapping[str, str]
    environ: Mapping[str, str]
    proxy: str
    refusals: Refusals


class StreamableHttp:
    """One connection as a transport of the SDK."""

    def __init__(self, address: McpEndpoint, wire: McpTraffic) -> None:
        self.url = address.url
        self.proxy = proxy_shown(address.proxy)
        self.wire = wire
        self.gentle = False
        """Whether the server is told that the session is over: only once there was one."""
        self.refused: McpFault | None = None
        """What the last answer to a request was, where it could not be a result."""
        self.gone: McpFault | None = None
        self.when_gone: Callable[[], None] = lambda: None
        self.leftovers: list[str] = []
        self.said = ""
        self._address = address
        self._stack = AsyncExitStack()
        self._session_id = ""

    async def __aenter__(self) -> TransportStreams:
        from mcp.client.streamable_http import streamable_http_client

        address = self._address
        headers = _free(address.headers)
        timeout = (CONNECT_SECONDS, None, None, None)  # all else ends with the call
        client = async_client(
            address.network, headers, timeout, environ=address.environ, proxy=address.proxy,
            unanswered=self._unanswered,
        )  # fmt: skip
        client.event_hooks = {"request": [self._leaving], "response": [self._seen]}
        async with AsyncExitStack() as stack:
            self._client = await stack.enter_async_context(client)
            read, write = await stack.enter_async_context(
                streamable_http_client(
                    self.url, http_client=client, max_sse_event_size=MAX_FRAME, terminate_on_close=False
                )
            )
            self._stack = stack.pop_all()
        outgoing = _Outgoing(write, self.wire)
        return GuardedRead(read, outgoing, self.wire), outgoing

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        if self.gentle and self._session_id and error is None:
            await self._say_goodbye()
        return await self._stack.__aexit__(kind, error, trace)

    async def _say_goodbye(self) -> None:
        import anyio

        # Not through the SDK: it would wait for an answer as long as one takes.
        with anyio.move_on_after(GOODBYE_SECONDS):
            try:
                await self._client.delete(self.url, headers={_SESSION: self._session_id})
            except Exception:  # whatever it is, the session is over
                return

    async def _leaving(self, request: Any) -> None:
        """Look at a request before the library sends it: its call has left once a first byte goes out."""
        exchange = self.wire.of(_id_of(request))
        if exchange is None:
            return

        async def traced(event: str, about: Any) -> None:
            if event.endswith("send_request_headers.started"):
                exchange.left = True

        request.extensions = {**request.extensions, "trace": traced}

    def _unanswered(self, request: Any, error: Exception) -> bool:
        """Whether a connection failed for one call alone, which is told of it."""
        exchange = self.wire.of(_id_of(request))
        if exchange is not None:
            self._note(exchange, fault_of(translate_error(error, left=exchange.left)))
        return exchange is not None

    async def _seen(self, response: Any) -> None:
        """Look at a reply before the SDK reads it. Raises ServerFaultError, which ends the connection."""
        id = _id_of(response.request)
        exchange = self.wire.of(id)
        if exchange is not None and exchange.fault is not None:
            return  # no answer came at all
        if exchange is not None:
            exchange.status = response.status_code
        session = response.headers.get(_SESSION, "")
        if session and not _PLAIN.fullmatch(session):
            text = "the server's session id holds more than visible ASCII characters"
            raise ServerFaultError("call.server-error", text, left=False)
        self._session_id = session or self._session_id
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            del response.headers["content-encoding"]
            text = f"the reply is refused: content encoding `{encoding[:80]}`"
            self._note(exchange, McpFault(ResponseMappingError, "response.not-json", text))
        streams = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        if streams and response.status_code < 300:
            judge_events(
                response, lambda data: self._judged(data, id, exchange), lambda: self._too_long(exchange)
            )
        else:
            cap_body(response, MAX_FRAME, lambda: self._too_long(exchange))
        if id is not None:
            fault = await self._fault(response, exchange, streams=streams)
            self.refused = fault
            self._note(exchange, fault)

    async def _fault(self, response: Any, exchange: McpExchange | None, *, streams: bool) -> McpFault | None:
        """Why the answer to a request cannot be a result, as far as that can be told before the SDK reads it."""
        if streams and response.status_code < 300:
            return None
        body = await read_body(response)
        if exchange is not None:
            exchange.response_bytes = len(body)
        if response.status_code >= 300:
            in_session = _SESSION in response.request.headers
            reply = HttpReply(response.status_code, tuple(response.headers.multi_items()), body)
            return self._address.refusals.fault(self.url, reply, in_session=in_session)
        slow = len(body) > LARGE
        fault = await asyncio.to_thread(_unfit, response, body) if slow else _unfit(response, body)
        if fault is not None:
            # The SDK reads less strictly: it might take this for an answer to something else, and wait on.
            response._content = b"{}"
        return fault

    async def _judged(self, data: bytes, id: Any, exchange: McpExchange | None) -> bytes | None:
        """The data of an event; of one that is refused a failed answer, if it can be told to what."""
        found = await asyncio.to_thread(frame_fault, data) if len(data) > LARGE else frame_fault(data)
        if found is None:
            return data
        if id is None:  # the stream belongs to no request
            id = id_in(data)
            exchange = self.wire.of(id)
        else:
            self.refused = found
        self._note(exchange, found)
        if id is None:
            self.wire.noise += 1
            return None
        return error_message(id, INTERNAL, found.text).message.model_dump_json(by_alias=True).encode()

    def _note(self, exchange: McpExchange | None, fault: McpFault | None) -> None:
        if exchange is not None:
            exchange.fault = exchange.fault or fault

    def _too_long(self, exchange: McpExchange | None) -> None:
        text = f"the server sent a frame of more than {MAX_FRAME:,} bytes"
        self._note(exchange, McpFault(ResponseMappingError, "response.size", text))


def _unfit(response: Any, body: bytes) -> McpFault | None:
    """Why a successful answer is no message: it is not there, no JSON, or none of the protocol."""
    if response.status_code == 202:
        return McpFault(
            ServerFaultError, "call.server-error", "HTTP 202: the server gives no answer to a call"
        )
    media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        shown = body[:80].decode("utf-8", "replace")
        text = f"the reply is no JSON but `{media[:80] or 'of no type'}`{f': {shown}' if shown else ''}"
        return McpFault(ResponseMappingError, "response.not-json", text)
    return frame_fault(body)


class _Outgoing:
    """The outgoing side: a call's frame is known by its id, and takes the headers of its binding along."""

    def __init__(self, inner: WriteStream[SessionMessage], wire: McpTraffic) -> None:
        self._inner = inner
        self._wire = wire

    async def send(self, item: SessionMessage, /) -> None:
        from mcp.shared.message import ClientMessageMetadata

        size = len(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
        if size > MAX_FRAME:
            text = f"the request has {size:,} bytes, at most {MAX_FRAME:,} are allowed"
            raise RequestMappingError("request.size", text, left=False)
        if exchange := self._wire.leaving(item.message, size):
            metadata = item.metadata if isinstance(item.metadata, ClientMessageMetadata) else None
            metadata = metadata or ClientMessageMetadata()
            metadata.headers = {**_free(exchange.headers), **(metadata.headers or {})}
            item.metadata = metadata
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def _free(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers without those that belong to the protocol."""
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in _OWNED and not name.lower().startswith("mcp-")
    }


def _id_of(request: Any) -> Any:
    """The id of the JSON-RPC request in a POST; None where there is none."""
    import orjson

    try:
        body = orjson.loads(request.content)
    except (ValueError, RuntimeError):  # no JSON, or no body
        return None
    return body.get("id") if isinstance(body, dict) and "method" in body else None
