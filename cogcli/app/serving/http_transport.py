"""The HTTP transport of `serve mcp`, and the rules for its requests
(docs/reference/protocols.md#serve).

1. `Host` must name this machine. So must `Origin`, if it is present. This prevents DNS rebinding
   from a browser. A server that listens on every address requires that `Origin` equals `Host`.
2. If the server has a token, every request must contain it. A server on an address other than
   loopback always has a token.
3. A body is strict JSON of at most 8 MiB that arrives within 30 seconds.
4. The headers of a request are limited, and arrive within 10 seconds, also before any token is read.
5. The numbers of sessions and of connections are limited. A session without requests ends."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from uvicorn.protocols.http.h11_impl import H11Protocol

from cogcli.app.serving.request_checks import find_request_fault
from cogcli.app.serving.server_socket import Endpoint
from cogcli.app.serving.stdio_transport import BAD_ID, ServedRuns, has_bad_id
from cogcli.base.strict_json import MAX_BYTES, InvalidJson, loads
from cogcli.declarations.value_types import Json

if TYPE_CHECKING:
    import signal

    from mcp.server import Server
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


PATH: Final = "/mcp"
_LOOPBACK_NAMES: Final = frozenset(("localhost", "127.0.0.1", "[::1]"))
_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
_ORIGIN: Final = re.compile(r"https?://(.+)")
MAX_SESSIONS: Final = 64
"""A request that would open another session gets status 503 and a JSON-RPC error."""
IDLE_SECONDS: Final = 600.0
"""A session without a request or an open stream for this long ends; its id gets status 404."""
MAX_CONNECTIONS: Final = 512
"""A request on another connection gets status 503."""
HEADER_SECONDS: Final = 10.0
"""The seconds that the headers of a request may take. After them the connection is closed."""
_BODY_SECONDS: Final = 30.0
_CLOSING_SECONDS: Final = 1
_TICK: Final = 0.05
_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600


class Guard:
    """ASGI middleware that passes an allowed request on, and replies to any other request with an
    error."""

    def __init__(self, app: ASGIApp, address: Endpoint, token: str) -> None:
        self._app = app
        self._hosts = (
            None if address.is_everywhere else _LOOPBACK_NAMES | {address.url_host.lower()}
        )
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        status, problem = self._find_refusal(headers)
        fault: Json | None = None
        if not status and scope["method"] == "POST":
            status, problem, receive, value = await _read_body(headers, receive)
            fault = (
                None
                if status
                else _reply_to_fault(value, _single_value(headers, "mcp-protocol-version"))
            )
        if fault is not None:
            await _send_json(send, 400, fault)
        elif status:
            await _send_refusal(send, status, problem)
        else:
            await self._app(scope, receive, send)

    def _find_refusal(self, headers: dict[str, list[str]]) -> tuple[int, str]:
        """Return the status and message of a refusal that the headers require; 0 and an empty text for
        an allowed request."""
        host = _single_value(headers, "host")
        name = _HOST.fullmatch(host.lower()) if host else None
        if name is None or (self._hosts is not None and name[1] not in self._hosts):
            return 421, "this server does not answer for that host"
        if "origin" in headers and not self._is_own_origin(_single_value(headers, "origin"), host):
            return 403, "pages of that origin may not ask this server"
        given = _single_value(headers, "authorization").encode("latin-1")
        if self._token and not hmac.compare_digest(given, b"Bearer " + self._token):
            return 401, "a bearer token is needed"
        return 0, ""

    def _is_own_origin(self, origin: str, host: str) -> bool:
        found = _ORIGIN.fullmatch(origin.lower())
        if found is None or self._hosts is None:
            return found is not None and found[1] == host.lower()
        name = _HOST.fullmatch(found[1])
        return name is not None and name[1] in self._hosts


def _single_value(headers: dict[str, list[str]], name: str) -> str:
    """Return the value of a header; empty if it is missing or repeated."""
    values = headers.get(name, [])
    return values[0] if len(values) == 1 else ""


def _reply_to_fault(value: Any, version: str) -> Json | None:
    """Return the error reply to a faulty request; None if the server can handle the body.

    `version` is the protocol version in the header."""
    fault = find_request_fault(value, version)
    if fault is None:
        return None
    return {"jsonrpc": "2.0", "id": value["id"], "error": fault.model_dump(exclude_none=True)}


async def _read_body(
    headers: dict[str, list[str]], receive: Receive
) -> tuple[int, str, Receive, Any]:
    """Return the status and message of a refusal (0 for none), a `receive` that passes the body to the
    server, and the parsed body."""
    length = _single_value(headers, "content-length")
    if length.isdigit() and int(length) > MAX_BYTES:
        return 413, f"a body may have {MAX_BYTES:,} bytes", receive, None
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            more = True
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    return 400, "the body did not end", receive, None
                body += message.get("body", b"")
                if len(body) > MAX_BYTES:
                    return 413, f"a body may have {MAX_BYTES:,} bytes", receive, None
                more = message.get("more_body", False)
        value = loads(bytes(body))
        if has_bad_id(value):
            return 400, BAD_ID, receive, None
    except TimeoutError:
        return 408, "the body did not arrive in time", receive, None
    except InvalidJson as refused:
        return 400, f"{refused.code}: {refused.message}", receive, None
    whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def receive_buffered() -> Message:
        return whole.pop() if whole else await receive()

    return 0, "", receive_buffered, value


async def _send_refusal(send: Send, status: int, problem: str) -> None:
    """Send a response with an error status and a problem text."""
    is_json = status != 400 or problem == BAD_ID
    error = {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": _INVALID_REQUEST if is_json else _PARSE_ERROR, "message": problem},
    }
    await _send_json(send, status, error)


async def _send_json(send: Send, status: int, value: Json) -> None:
    body = json.dumps(value).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Connection(H11Protocol):
    """A connection that is closed unless the headers of its next request arrive in time.

    h11 limits their size. The other parser of uvicorn, which some installations have, does not.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEADER_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Handle data. The time runs unless the headers of a request are complete and it has no response yet."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_wait()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the time of a connection that is gone."""
        self._end_wait()
        super().connection_lost(exc)

    def _end_wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class HttpServer(uvicorn.Server):
    """A uvicorn server without signal handlers, because `serve_http` handles signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handler."""
        yield


def http_server(server: Server[Any], address: Endpoint, token: str) -> HttpServer:
    """Return the web server of an MCP server, behind a Guard."""
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=False
    )  # Guard checks Host and Origin instead
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BYTES,
        max_sessions=MAX_SESSIONS,
        session_idle_timeout=IDLE_SECONDS,
        transport_security=security,
    )
    app.router.redirect_slashes = False
    config = uvicorn.Config(
        Guard(app, address, token), http=Connection, ws="none", lifespan="on",
        log_config=None, access_log=False, server_header=False,
        timeout_graceful_shutdown=_CLOSING_SECONDS, limit_concurrency=MAX_CONNECTIONS,
    )  # fmt: skip
    return HttpServer(config)


async def serve_http(
    web: HttpServer, listening: socket.socket, runs: ServedRuns, signals: list[signal.Signals]
) -> str:
    """Serve until a signal arrives, and return the name of the signal.

    Running calls have a grace period to end. A second signal ends it."""
    ended_by = ""

    async def watch() -> None:
        nonlocal ended_by
        with anyio.open_signal_receiver(*signals) as received:
            async for number in received:
                runs.end_all(number.name)
                if not ended_by:
                    group.start_soon(close)
                ended_by = ended_by or number.name

    async def close() -> None:
        while runs.running:
            await anyio.sleep(_TICK)
        web.should_exit = True

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        await web.serve(sockets=[listening])
        group.cancel_scope.cancel()
    return ended_by
