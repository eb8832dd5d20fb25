"""A server on loopback that says exactly what a test tells it to, well-formed or not."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Conversation:
    """One request as it came in, and the way to answer it."""

    def __init__(self, sock: socket.socket, request: bytes, stopping: threading.Event) -> None:
        self._socket = sock
        self._stopping = stopping
        self.request = request

    @property
    def line(self) -> str:
        """Method, target and version."""
        return self.request.partition(b"\r\n")[0].decode("latin-1")

    @property
    def headers(self) -> dict[str, str]:
        """Headers by lower-case name; of repeated ones the last."""
        head = self.request.partition(b"\r\n\r\n")[0].decode("latin-1")
        pairs = [line.partition(":") for line in head.split("\r\n")[1:]]
        return {name.lower(): value.strip() for name, _, value in pairs}

    @property
    def body(self) -> bytes:
        return self.request.partition(b"\r\n\r\n")[2]

    def send(self, data: bytes) -> None:
        """Bytes as they are. A peer that went away is not a failure of the server."""
        with suppress(OSError):
            self._socket.sendall(data)

    def reply(
        self,
        body: bytes,
        *,
        status: str = "200 OK",
        headers: str = "Content-Type: application/json",
    ) -> None:
        """A whole, ordinary reply."""
        extra = f"{headers}\r\n" if headers else ""
        head = f"HTTP/1.1 {status}\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
        self.send(head.encode("latin-1") + body)

    def drip(self, data: bytes, seconds: float = 0.02) -> None:
        """One byte after the other, until the peer or the test has had enough."""
        for byte in data:
            if self._stopping.wait(seconds):
                return
            try:
                self._socket.sendall(bytes([byte]))
            except OSError:
                return

    def pour(self, chunk: bytes) -> int:
        """The same bytes again and again, until the peer or the test has had enough; how many were taken."""
        total = 0
        while not self._stopping.is_set():
            try:
                self._socket.sendall(chunk)
            except OSError:
                break
            total += len(chunk)
        return total

    def hold(self) -> bool:
        """Say nothing until the peer closes (true) or the test ends."""
        self._socket.settimeout(0.05)
        while not self._stopping.is_set():
            try:
                if not self._socket.recv(1):
                    return True
            except TimeoutError:
                continue
            except OSError:
                return True
        return False

    def close(self) -> None:
        """End the connection in the middle of things."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


Answer = Callable[[Conversation], None]


class RawServer:
    """Listens on a free port. Every request of every connection goes to `answer`."""

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None) -> None:
        self._answer = answer
        self._tls = tls
        self._stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.requests: list[Conversation] = []
        self.connections = 0
        self._start(self._accept)

    def close(self) -> None:
        """End every connection and thread."""
        self._stopping.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in list(self._open):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(sock)
            self._start(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        try:
            if self._tls is not None:
                self._open.discard(sock)
                sock = self._tls.wrap_socket(sock, server_side=True)
                self._open.add(sock)
            while request := _request(sock):
                conversation = Conversation(sock, request, self._stopping)
                self.requests.append(conversation)
                self._answer(conversation)
        except OSError:
            pass
        finally:
            self._open.discard(sock)
            sock.close()


def _request(sock: socket.socket) -> bytes:
    """One request with its body; empty where the peer has gone."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        more = sock.recv(65536)
        if not more:
            return b""
        body += more
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    """A server for the duration of a test."""
    server = RawServer(answer, tls)
    try:
        yield server
    finally:
        server.close()
