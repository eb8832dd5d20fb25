"""Servers on loopback for the functions that reach out."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def running(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def served(answer: Answer) -> Iterator[str]:
    """A web server whose GET and POST are `answer`: its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def do_POST(self) -> None:
            answer(self)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with running(server):
        yield f"http://127.0.0.1:{server.server_port}"


def reply(
    status: int = 200, body: bytes = b"<p>ok</p>", kind: str = "text/html", **headers: str
) -> Answer:
    """An answer with these bytes; `_` in the name of a header is `-`."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        if kind:
            handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


class MailServer(socketserver.ThreadingTCPServer):
    """Speaks SMTP. Takes what does not begin with a word of `refused`; closes the connection at `hangs_up`."""

    daemon_threads = True

    def __init__(
        self, refused: str = "", hangs_up: str = "", extensions: tuple[str, ...] = ("AUTH PLAIN",)
    ) -> None:
        super().__init__(("127.0.0.1", 0), _MailHandler)
        self.refused, self.hangs_up, self.extensions = refused, hangs_up, extensions
        self.lines: list[str] = []
        self.messages: list[bytes] = []

    @property
    def port(self) -> str:
        return str(self.server_address[1])


class _MailHandler(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self._say("220 here")
        while line := self.rfile.readline().decode("latin-1").rstrip("\r\n"):
            self.server.lines.append(line)
            if self.server.hangs_up and line.startswith(self.server.hangs_up):
                return
            if self.server.refused and line.startswith(self.server.refused):
                self._say("550 not wanted")
            elif line.startswith("ehlo"):
                parts = ["here", *self.server.extensions]
                for n, part in enumerate(parts):
                    self._say(f"250{' ' if n == len(parts) - 1 else '-'}{part}")
            elif line.startswith("AUTH"):
                self._say("235 welcome")
            elif line == "data":
                self._say("354 go on")
                message = b""
                while (part := self.rfile.readline()) != b".\r\n" and part:
                    message += part
                if self.server.hangs_up == "text":
                    return
                self.server.messages.append(message)
                self._say("250 taken")
            else:
                self._say("250 well")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())
