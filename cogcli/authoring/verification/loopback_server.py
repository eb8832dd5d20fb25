"""A web server in this process, on loopback, that replies by a function and records its requests."""

from __future__ import annotations

import socket
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import urlsplit

from cogcli.declarations.scenario_spec import LOOPBACK
from cogcli.protocols.exchange import ReceivedRequest, Responder, ServerReply

_LARGEST: Final = 64 * 1024 * 1024
_IDLE: Final = 30.0
"""Seconds that a connection may be idle."""


class Loopback:
    """The server, which listens only within its `with` block.

    If `answering` raises, the reply is 500 and `faults` gets a message.
    """

    def __init__(self, answering: Responder, *, host: str = LOOPBACK[0], port: int = 0) -> None:
        self.exchanges: list[tuple[ReceivedRequest, ServerReply]] = []
        self.faults: list[Exception] = []
        self._answering = answering
        self._host = host
        self._port = port
        self._server: _Server
        self._thread: threading.Thread
        self._closed = threading.Event()

    @property
    def seen(self) -> list[ReceivedRequest]:
        """The requests received so far."""
        return [seen for seen, _ in self.exchanges]

    @property
    def url(self) -> str:
        """The address: `http://host:port`, without a final slash."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._server.server_address[1]}"

    def __enter__(self) -> Loopback:
        self._server = _bind_server(self, self._host, self._port)
        serve = partial(self._server.serve_forever, poll_interval=0.02)
        self._thread = threading.Thread(target=serve, name="cogcli-mock", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reply_to(self, seen: ReceivedRequest) -> ServerReply:
        """Return the reply to a request."""
        try:
            reply = self._answering(seen)
        except Exception as error:  # the client needs a reply
            self.faults.append(error)
            reply = ServerReply(
                500, {"Content-Type": "text/plain"}, (type(error).__name__.encode(),)
            )
        self.exchanges.append((seen, reply))
        return reply

    def wait(self, seconds: float) -> None:
        """Wait for some seconds, or until the server ends."""
        if seconds > 0:
            self._closed.wait(seconds)


class ClosedPort(Loopback):
    """A reserved port without a listener, within its `with` block."""

    @property
    def url(self) -> str:
        """The address `http://host:port`, which refuses connections."""
        return f"http://{self._host}:{self._held.getsockname()[1]}"

    def __enter__(self) -> ClosedPort:
        self._held = socket.socket()
        self._held.bind((self._host, 0))
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors of clients that closed their connection."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _bind_server(owner: Loopback, host: str, port: int) -> _Server:
    """Return a server on this port; on a free port if it is in use."""
    cls = _Server6 if ":" in host else _Server

    class Handler(_Handler):
        loopback = owner

    try:
        return cls((host, port), Handler)
    except OSError:
        if not port:
            raise
        return cls((host, 0), Handler)


class _Handler(BaseHTTPRequestHandler):
    loopback: Loopback
    protocol_version = "HTTP/1.1"
    timeout = _IDLE
    disable_nagle_algorithm = True

    def log_message(self, format: str, *values: object) -> None:
        """Print nothing."""

    def answer(self) -> None:
        self.close_connection = True
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        length = headers.get("content-length", "0")
        body = self.rfile.read(min(int(length), _LARGEST)) if length.isdigit() else b""
        # `//x` would be read as a host, so use the sent text.
        path = parts.path if self.path.startswith(parts.path) else self.path.partition("?")[0]
        reply = self.loopback.reply_to(
            ReceivedRequest(self.command, path, parts.query, headers, body)
        )
        self.loopback.wait(reply.delay)
        if reply.raw is None:
            self._send_reply(reply)
        else:
            self.wfile.write(reply.raw)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = answer

    def _send_reply(self, reply: ServerReply) -> None:
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != 204 and not any(n.lower() == "transfer-encoding" for n in reply.headers):
            length = sum(map(len, reply.chunks)) if reply.length is None else reply.length
            self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD" or reply.status == 204:
            return
        for number, chunk in enumerate(reply.chunks):
            if number:
                self.loopback.wait(reply.pause)
            self.wfile.write(chunk)
            self.wfile.flush()
