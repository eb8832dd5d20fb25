"""The streamable HTTP transport: the SDK's, over a client of ours that keeps the address rules
(docs/reference/service.md#http, docs/reference/protocols.md#mcp-http).

1. No redirect is followed. A body or an event has at most 8 MiB; a body with a content encoding is
   refused.
2. Headers of the service go with every request, those of a binding with its calls.
3. A session id of the server is visible ASCII, or the connection ends: it is sent back in a header.
4. Each call's exchange holds the HTTP status of its answer, and whether a byte of it went out.
5. The token of a login goes with each request to the URL of the service, and to no other URL.
6. Refusals, lost sessions and bodies that are no message become faults here, before the SDK reads
   the answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final

from cogcli.base.errors import ResponseMappingError, ServerFaultError
from cogcli.base.http import HttpReply, async_client, cap_body, proxy_without_user, read_body
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.service_spec import Service
from cogcli.protocols.invoker import InvokerContext
from cogcli.protocols.mcp.errors import Refusals, translate_error
from cogcli.protocols.mcp.events import filter_events
from cogcli.protocols.mcp.login_scopes import find_scope_fault
from cogcli.protocols.mcp.login_tokens import LoginTokens
from cogcli.protocols.mcp.session import McpTransport
from cogcli.protocols.mcp.traffic import (
    INTERNAL,
    LARGE,
    MAX_FRAME,
    TOO_LONG,
    GuardedRead,
    McpExchange,
    McpFault,
    McpTraffic,
    TransportEnd,
    error_message,
    fault_of,
    frame_fault,
    id_in,
)

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp.shared._stream_protocols import WriteStream
    from mcp.shared.message import SessionMessage

    from cogcli.base.http import AsyncRequest, AsyncResponse, AsyncSend

CONNECT_SECONDS: Final = 5.0
DELETE_SECONDS: Final = 2.0
_SESSION_HEADER: Final = "mcp-session-id"
_SESSION_ID: Final = re.compile(r"[\x21-\x7e]{1,256}")
_PROTOCOL_HEADERS: Final = (
    "accept",
    "content-type",
    "content-length",
    _SESSION_HEADER,
    "last-event-id",
)
"""Headers of the protocol itself, next to `mcp-*`: spec files cannot set them."""


class McpEndpoint(NamedTuple):
    """The address of a server, and the limits of its connection."""

    url: str
    network: str
    headers: Mapping[str, str]
    environ: Mapping[str, str]
    proxy: str
    refusals: Refusals
    login: LoginTokens | None = None


def login_tokens(service: Service, context: InvokerContext) -> LoginTokens | None:
    """Return the token source of a login; None for a service without one. Raise ServiceResolutionError `service.login`
    without a login, before anything is sent.
    """
    if service.keys.login is None:
        return None
    tokens = LoginTokens(service, context)
    tokens.require()
    return tokens


class StreamableHttp(McpTransport):
    """A connection over HTTP. A graceful end deletes the session, if there was one."""

    def __init__(self, address: McpEndpoint) -> None:
        super().__init__()
        self.url = address.url
        self.proxy = proxy_without_user(address.proxy)
        self._address = address
        self._stack = AsyncExitStack()
        self._session_id = ""

    async def __aenter__(self) -> TransportStreams:
        from mcp.client.streamable_http import streamable_http_client

        address = self._address
        headers = _without_protocol_headers(address.headers)
        timeout = (CONNECT_SECONDS, None, None, None)  # the call's own deadline bounds the rest
        client = async_client(
            address.network, headers, timeout, environ=address.environ, proxy=address.proxy,
            unanswered=self._record_connection_error,
            through=None if address.login is None else self._send_with_token,
        )  # fmt: skip
        client.event_hooks = {"request": [self._watch_request], "response": [self._check_response]}
        async with AsyncExitStack() as stack:
            self._client = await stack.enter_async_context(client)
            read, write = await stack.enter_async_context(
                streamable_http_client(
                    self.url,
                    http_client=client,
                    max_sse_event_size=MAX_FRAME,
                    terminate_on_close=False,
                )
            )
            self._stack = stack.pop_all()
        outgoing = _HttpWriter(write, self.traffic)
        return GuardedRead(read, outgoing, self.traffic), outgoing

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        if self.graceful and self._session_id and error is None:
            import anyio

            # Not through the SDK, which waits for the answer without a limit. The session ends even if the server does
            # not confirm it.
            with anyio.move_on_after(DELETE_SECONDS), suppress(Exception):
                await self._client.delete(self.url, headers={_SESSION_HEADER: self._session_id})
        return await self._stack.__aexit__(kind, error, trace)

    async def _send_with_token(self, request: AsyncRequest, send: AsyncSend) -> AsyncResponse:
        """Send a request with the token of the login, and once more with a new one if the server
        refuses it: then the call did not run."""
        login = self._address.login
        own = self._client.build_request("POST", self.url)
        if login is None or request.url != own.url:
            return await send(request)
        token = await asyncio.to_thread(login.token)
        request.headers["Authorization"] = f"Bearer {token}"
        response = await send(request)
        if response.status_code != 401:
            return response
        other = await asyncio.to_thread(login.token_instead, token)
        if not other:
            return response
        await response.aclose()
        request.headers["Authorization"] = f"Bearer {other}"
        return await send(request)

    async def _watch_request(self, request: AsyncRequest) -> None:
        """Make the library record the time when the first byte of a call's request is sent."""
        exchange = self.traffic.of(_id_of(request))
        if exchange is None:
            return

        async def on_trace(event: str, about: object) -> None:
            if event.endswith("send_request_headers.started"):
                exchange.left = True

        request.extensions = {**request.extensions, "trace": on_trace}

    def _record_connection_error(self, request: AsyncRequest, error: Exception) -> bool:
        """Record a failed connection in the exchange of its call; return whether the call exists."""
        exchange = self.traffic.of(_id_of(request))
        if exchange is not None:
            self._record_fault(exchange, fault_of(translate_error(error, left=exchange.left)))
        return exchange is not None

    async def _check_response(self, response: AsyncResponse) -> None:
        """Check a reply before the SDK reads it. Raise ServerFaultError, which ends the connection."""
        id = _id_of(response.request)
        exchange = self.traffic.of(id)
        if exchange is not None and exchange.fault is not None:
            return  # there was no answer at all
        if exchange is not None:
            exchange.status = response.status_code
        self._keep_session(response)
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            del response.headers["content-encoding"]
            text = f"the reply is refused: content encoding `{encoding}`"
            self._record_fault(exchange, McpFault(ResponseMappingError, "response.not-json", text))

        def too_long() -> None:
            self._record_fault(exchange, TOO_LONG)

        streams = _content_type(response).startswith("text/event-stream")
        if streams and response.status_code < 300:
            accept = lambda data: self._filter_event(data, id, exchange)  # noqa: E731
            filter_events(response, accept, too_long)
        else:
            cap_body(response, MAX_FRAME, too_long)
        if id is not None:
            fault = await self._find_fault(response, exchange, streams=streams)
            self.refused = fault
            self._record_fault(exchange, fault)

    def _keep_session(self, response: AsyncResponse) -> None:
        """Store the session id of a reply. Raise ServerFaultError if it cannot be sent in a header."""
        session = response.headers.get(_SESSION_HEADER, "")
        if session and not _SESSION_ID.fullmatch(session):
            text = "the server's session id holds more than visible ASCII characters"
            raise ServerFaultError("call.server-error", text, left=False)
        self._session_id = session or self._session_id

    async def _find_fault(
        self, response: AsyncResponse, exchange: McpExchange | None, *, streams: bool
    ) -> McpFault | None:
        """Return why the answer to a request cannot be a result. None if the SDK must read the answer first."""
        if streams and response.status_code < 300:
            return None
        body = await read_body(response)
        if exchange is not None:
            exchange.response_bytes = len(body)
        if response.status_code >= 300:
            in_session = _SESSION_HEADER in response.request.headers
            reply = HttpReply(response.status_code, tuple(response.headers.multi_items()), body)
            refusals = self._address.refusals
            lacks_scopes = (
                find_scope_fault(refusals.service, reply, refusals.secrets)
                if self._address.login is not None
                else None
            )
            return lacks_scopes or refusals.fault(self.url, reply, in_session=in_session)
        slow = len(body) > LARGE
        fault = (
            await asyncio.to_thread(_body_fault, response, body)
            if slow
            else _body_fault(response, body)
        )
        if fault is not None:
            # The SDK reads less strictly: it might match this to another request, and keep waiting.
            response._content = b"{}"
        return fault

    async def _filter_event(
        self, data: bytes, id: int | str | None, exchange: McpExchange | None
    ) -> bytes | None:
        """Return the data of an event. A refused event becomes an error answer to its request, or
        None if that is unknown."""
        fault = (
            await asyncio.to_thread(frame_fault, data) if len(data) > LARGE else frame_fault(data)
        )
        if fault is None:
            return data
        if id is None:  # the stream belongs to no request
            id = id_in(data)
            exchange = self.traffic.of(id)
        else:
            self.refused = fault
        self._record_fault(exchange, fault)
        if id is None:
            self.traffic.noise += 1
            return None
        return (
            error_message(id, INTERNAL, fault.text).message.model_dump_json(by_alias=True).encode()
        )

    def _record_fault(self, exchange: McpExchange | None, fault: McpFault | None) -> None:
        if exchange is not None:
            exchange.fault = exchange.fault or fault


def _body_fault(response: AsyncResponse, body: bytes) -> McpFault | None:
    """Return why a successful answer is not a message (absent, no JSON, not of the protocol); None
    if it is one."""
    if response.status_code == 202:
        text = "HTTP 202: the server gives no answer to a call"
        return McpFault(ServerFaultError, "call.server-error", text)
    media = _content_type(response).partition(";")[0].strip()
    if media != "application/json":
        shown = body.decode("utf-8", "replace")
        text = f"the reply is not JSON but `{media or 'of no type'}`{f': {shown}' if shown else ''}"
        return McpFault(ResponseMappingError, "response.not-json", text)
    return frame_fault(body)


def _content_type(response: AsyncResponse) -> str:
    return response.headers.get("content-type", "").lower()


class _HttpWriter(TransportEnd):
    """The outgoing side: it registers a call's frame by id and adds the headers of its binding."""

    def __init__(self, inner: WriteStream[SessionMessage], traffic: McpTraffic) -> None:
        self._inner = inner
        self._traffic = traffic

    async def send(self, item: SessionMessage, /) -> None:
        from mcp.shared.message import ClientMessageMetadata

        size = len(self._traffic.frame_of(item.message))
        if exchange := self._traffic.register(item.message, size):
            metadata = item.metadata if isinstance(item.metadata, ClientMessageMetadata) else None
            metadata = metadata or ClientMessageMetadata()
            metadata.headers = {
                **_without_protocol_headers(exchange.headers),
                **(metadata.headers or {}),
            }
            item.metadata = metadata
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _without_protocol_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers without those of the protocol itself."""
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in _PROTOCOL_HEADERS and not name.lower().startswith("mcp-")
    }


class SentMessage(Record):
    """The members of a sent message that identify it."""

    method: str | None = None
    id: int | str | None = None


def _id_of(request: AsyncRequest) -> int | str | None:
    """Return the id of the JSON-RPC request in an HTTP request's body; None without one."""
    import orjson

    try:
        sent = read_record(SentMessage, orjson.loads(request.content))
    except (ValueError, RuntimeError):  # no JSON, or no body
        return None
    return None if sent.method is None else sent.id
