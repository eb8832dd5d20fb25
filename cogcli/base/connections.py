"""Sockets that keep to one exchange's bounds: the network backend below the HTTP library's pool.

1. An exchange belongs to the thread that makes it; whatever socket that thread uses meanwhile obeys the exchange.
2. Every look-up, connect, TLS handshake, read and write ends at the exchange's deadline: dripping bytes win no time.
3. A name is looked up once, its addresses are judged, and one of those is connected to: nothing is looked up again.
4. `left` is set before the first byte of a request is written.
5. Giving up shuts the socket down, from any thread, without waiting.

The library's exceptions are not raised here but for one: after a failed write it may still find an answer to read.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final, NamedTuple

from cogcli.base import addresses, threads
from cogcli.base.errors import (
    CallTimeoutError,
    ResponseMappingError,
    SafetyScopeError,
    TransportError,
)

CONNECT_SECONDS: Final = 5.0
MAX_HEAD: Final = 64 * 1024
"""Bytes of a reply before its body."""
GIVEN_UP: Final = "the call was given up"
PROXY_HINT: Final = "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names it; NO_PROXY, or `use_env_proxy = false`, goes past it"
_HEAD_CHUNK: Final = 4 * 1024
"""What is read at once while headers are awaited: body bytes that come along stay few."""

Resolve = Callable[[str, int], list[tuple[Any, ...]]]
"""`(family, type, protocol, name, address)` for a host and a port, as the system's look-up gives it."""


def resolve_name(host: str, port: int) -> list[tuple[Any, ...]]:
    """The system's answer for a name. Raises OSError."""
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


class ResolvedAddress(NamedTuple):
    """One judged address."""

    family: int
    address: tuple[Any, ...]


class SocketExchange:
    """One request and its reply: how long it may take, whether it left, and the way to end it early."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self.left = False
        self.head: int | None = 0
        """Bytes read before the body; None from where the body begins."""
        self._given_up = False
        self._socket: socket.socket | None = None
        self._asked: threading.Event | None = None

    def rest(self, limit: float | None = None) -> float:
        """Seconds that the next operation may take. Raises CallTimeoutError once there are none."""
        rest = self._deadline - time.monotonic()
        if limit is not None:
            rest = min(rest, limit)
        if rest <= 0:
            raise self.late()
        return rest

    def use(self, sock: socket.socket) -> None:
        """This socket is the one to shut down. Raises TransportError where nobody waits any more."""
        self._socket = sock
        if self._given_up:
            shut_down(sock)
            raise self.lost(GIVEN_UP)

    def wait(self, answered: threading.Event, limit: float) -> None:
        """Until another thread answered. Raises CallTimeoutError, TransportError where nobody waits any more."""
        self._asked = answered
        if not self._given_up and not answered.wait(self.rest(limit)):
            raise self.late()
        if self._given_up:
            raise self.lost(GIVEN_UP)

    def give_up(self) -> None:
        """End the exchange now. Safe from any thread, any number of times."""
        self._given_up = True
        if self._socket is not None:
            shut_down(self._socket)
        if self._asked is not None:
            self._asked.set()

    def late(self) -> CallTimeoutError:
        """The error of an exchange whose time is over."""
        return CallTimeoutError("call.timeout", "no answer in time", left=self.left)

    def lost(self, what: str) -> TransportError:
        """The error of an exchange that broke off."""
        return TransportError("call.transport", what, left=self.left)


_mine = threading.local()


@contextmanager
def limit_sockets(exchange: SocketExchange) -> Iterator[None]:
    """While inside, this thread's sockets keep to an exchange."""
    _mine.exchange = exchange
    try:
        yield
    finally:
        _mine.exchange = None


def _current() -> SocketExchange:
    exchange: SocketExchange | None = getattr(_mine, "exchange", None)
    if exchange is None:  # the library closing what it keeps: nothing waits for that
        return SocketExchange(time.monotonic() + CONNECT_SECONDS)
    return exchange


def shut_down(sock: socket.socket) -> None:
    """Wake whoever reads or writes. The plain socket's way: TLS would say goodbye and wait."""
    with suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


class SocketStream:
    """A connected socket as the library's pool wants it."""

    def __init__(self, sock: socket.socket, name: str, write_failed: type[Exception]) -> None:
        self._socket = sock
        self._name = name
        self._write_failed = write_failed

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        exchange = _current()
        exchange.use(self._socket)
        if exchange.head is not None:
            max_bytes = min(max_bytes, _HEAD_CHUNK)
        self._socket.settimeout(exchange.rest())
        try:
            data = self._socket.recv(max_bytes)
        except TimeoutError as error:
            raise exchange.late() from error
        except OSError as error:
            raise exchange.lost(f"{self._name}: {_error_line(error)}") from error
        if exchange.head is not None:
            exchange.head += len(data)
            if exchange.head > MAX_HEAD + _HEAD_CHUNK:
                raise too_long_head()
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        exchange = _current()
        exchange.use(self._socket)
        view = memoryview(buffer)
        while view:
            self._socket.settimeout(exchange.rest())
            exchange.left = True
            try:
                view = view[self._socket.send(view) :]
            except TimeoutError as error:
                raise exchange.late() from error
            except OSError as error:
                raise self._write_failed(_error_line(error)) from error

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> SocketStream:
        exchange, name = _current(), self._name
        if server_hostname and server_hostname not in name:  # the way through a proxy is open
            name = f"{server_hostname} through {name}"
        with ExitStack() as opened:
            opened.callback(self._socket.close)
            try:
                secured = ssl_context.wrap_socket(
                    self._socket, server_hostname=server_hostname, do_handshake_on_connect=False
                )
                opened.callback(secured.close)
                exchange.use(secured)
                secured.settimeout(exchange.rest())
                secured.do_handshake()
            except TimeoutError as error:
                raise exchange.late() from error
            except (OSError, ValueError) as error:  # ssl.SSLError among them
                raise exchange.lost(f"{name}: TLS failed: {_error_line(error)}") from error
            opened.pop_all()
        return SocketStream(secured, name, self._write_failed)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            if self._socket.fileno() < 0:
                return True  # like an idle socket with something to read: it is closed
            if not hasattr(select, "poll"):  # Windows, where `select` takes any socket
                return bool(select.select([self._socket], [], [], 0)[0])
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            return bool(poll.poll(0))
        if info == "ssl_object":
            return self._socket if isinstance(self._socket, ssl.SSLSocket) else None
        return self._socket if info == "socket" else None


class Backend:
    """Opens sockets to judged addresses. `network` None judges nothing: the way to a proxy the user named."""

    def __init__(
        self, network: str | None, write_failed: type[Exception], resolve: Resolve = resolve_name
    ) -> None:
        self._network = network
        self._write_failed = write_failed
        self._resolve = resolve

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> SocketStream:
        if self._network is not None:
            return self._connect(host, port, f"{host}:{port}")
        try:
            return self._connect(host, port, f"the proxy {host}:{port}")
        except TransportError as error:
            error.hint = PROXY_HINT
            raise

    def _connect(self, host: str, port: int, name: str) -> SocketStream:
        """A connection to the first address that takes it; errors call it `name`."""
        exchange = _current()
        failure: TransportError | CallTimeoutError | None = None
        for place in allowed_addresses(
            self._found(host, port, name, exchange), host, self._network
        ):
            try:
                return SocketStream(_connected(place, exchange, name), name, self._write_failed)
            except TransportError as error:
                failure = failure or error
        raise failure or exchange.lost(f"{name}: no address found")

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Any = None
    ) -> Any:
        raise SafetyScopeError("safety.scope", "local sockets are not called", left=False)

    def sleep(self, seconds: float) -> None:
        """Do nothing: the pool makes no retries, so it never waits for one."""

    def _found(
        self, host: str, port: int, name: str, exchange: SocketExchange
    ) -> list[ResolvedAddress]:
        """What a name stands for. The look-up has no time limit of its own: a thread waits for it in our place."""
        address = addresses.literal(host)
        if address is not None:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            return [ResolvedAddress(family, (address, port))]
        answer: list[list[tuple[Any, ...]] | OSError | UnicodeError] = []
        done = threading.Event()

        def ask() -> None:
            try:
                answer.append(self._resolve(host, port))
            except (OSError, UnicodeError) as error:
                answer.append(error)
            done.set()

        threads.start(ask, name="look-up")
        exchange.wait(done, CONNECT_SECONDS)
        (found,) = answer
        if isinstance(found, Exception):
            raise exchange.lost(
                f"{name.removesuffix(f':{port}')}: the name is not known"
            ) from found
        return [ResolvedAddress(row[0], row[4]) for row in found]


def allowed_addresses(
    places: list[ResolvedAddress], host: str, network: str | None
) -> list[ResolvedAddress]:
    """The addresses that may be connected to. Raises SafetyScopeError where a name has others only."""
    if network is None:
        return places
    refusals = [(addresses.refusal(str(place.address[0]), network), place) for place in places]
    good = [place for refusal, place in refusals if not refusal]
    if places and not good:
        refusal, place = refusals[0]
        shown = host if host == place.address[0] else f"{host} ({place.address[0]})"
        hint = (
            "write network: private in the service, if it is yours"
            if "not public" in refusal
            else ""
        )
        raise SafetyScopeError("safety.scope", f"{shown} {refusal}", hint=hint, left=False)
    return good


def too_long_head() -> ResponseMappingError:
    """The error for a reply whose headers do not end."""
    text = f"the reply's headers have more than {MAX_HEAD:,} bytes"
    return ResponseMappingError("response.size", text, left=True)


def _connected(place: ResolvedAddress, exchange: SocketExchange, name: str) -> socket.socket:
    """A socket that is connected to an address. Raises TransportError, CallTimeoutError."""
    with ExitStack() as opened:
        sock = socket.socket(place.family, socket.SOCK_STREAM)
        opened.callback(sock.close)
        try:
            exchange.use(sock)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(exchange.rest(CONNECT_SECONDS))
            sock.connect(place.address)
        except TimeoutError as error:
            exchange.rest()
            raise exchange.lost(f"{name}: no connection within {CONNECT_SECONDS:g} s") from error
        except OSError as error:
            raise exchange.lost(f"{name}: {_error_line(error)}") from error
        opened.pop_all()
    return sock


def _error_line(error: Exception) -> str:
    """One short line for an operating system's or TLS's error."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return (error.reason or "handshake failed").lower().replace("_", " ")
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
