"""Sockets that belong to one exchange: the network backend below the HTTP library's pool.

1. An exchange belongs to the thread that makes it. Its limits apply to every socket that the thread
uses in the meantime.

2. Every look-up, connect, TLS handshake, read and write ends at the exchange's deadline. A slow
trickle of bytes does not extend it.

3. A name is looked up once and its addresses are judged. The connection uses one of these addresses
without another look-up.

4. `left` is set before the first byte of a request is written.

5. Cancelling shuts the socket down, from any thread, without waiting.

Only one exception of the library is raised here: after a failed write the library may still read a
response.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

from cogcli.base import addresses, threads
from cogcli.base.errors import (
    CallTimeoutError,
    ResponseMappingError,
    SafetyScopeError,
    TransportError,
)
from cogcli.base.named_tuple import NamedTuple

CONNECT_SECONDS: Final = 5.0
MAX_HEAD: Final = 64 * 1024
"""Bytes of a reply before its body."""
GIVEN_UP: Final = "the call was given up"
PROXY_HINT: Final = "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names it; NO_PROXY, or `use_env_proxy = false`, goes past it"
_HEAD_CHUNK: Final = 4 * 1024
"""Bytes per read while headers are awaited; small, so that few bytes of the body are read with
them."""

Resolve = Callable[[str, int], list[tuple[Any, ...]]]
"""A function that returns `(family, type, protocol, name, address)` tuples for a host and a port.
"""


def resolve_name(host: str, port: int) -> list[tuple[Any, ...]]:
    """Return the addresses that the system's resolver returns for a name. Raise OSError."""
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


class ResolvedAddress(NamedTuple):
    """An address that a look-up returned and the network setting allows."""

    family: int
    address: tuple[Any, ...]


class SocketExchange:
    """One request and its reply: the deadline, whether the request was sent, and a way to cancel."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self.left = False
        self.head: int | None = 0
        """Bytes read before the body; None once the body begins."""
        self._is_cancelled = False
        self._socket: socket.socket | None = None
        self._answered: threading.Event | None = None

    def seconds_left(self, limit: float | None = None) -> float:
        """Return the seconds that the next operation may take. Raise CallTimeoutError if none
        remain."""
        seconds_left = self._deadline - time.monotonic()
        if limit is not None:
            seconds_left = min(seconds_left, limit)
        if seconds_left <= 0:
            raise self.timeout_error()
        return seconds_left

    def use(self, sock: socket.socket) -> None:
        """Register the socket that `cancel` shuts down.

        Raise TransportError if the exchange was cancelled.
        """
        self._socket = sock
        if self._is_cancelled:
            shut_down(sock)
            raise self.transport_error(GIVEN_UP)

    def wait(self, answered: threading.Event, limit: float) -> None:
        """Wait until another thread sets `answered`.

        Raise CallTimeoutError at the deadline, or TransportError if the exchange was cancelled.
        """
        self._answered = answered
        if not self._is_cancelled and not answered.wait(self.seconds_left(limit)):
            raise self.timeout_error()
        if self._is_cancelled:
            raise self.transport_error(GIVEN_UP)

    def cancel(self) -> None:
        """Cancel the exchange. It is safe to call this from any thread, any number of times."""
        self._is_cancelled = True
        if self._socket is not None:
            shut_down(self._socket)
        if self._answered is not None:
            self._answered.set()

    def timeout_error(self) -> CallTimeoutError:
        """Return the error of an exchange that passed its deadline."""
        return CallTimeoutError("call.timeout", "no answer in time", left=self.left)

    def transport_error(self, message: str) -> TransportError:
        """Return the error of an exchange that failed or was cancelled."""
        return TransportError("call.transport", message, left=self.left)


_mine = threading.local()


@contextmanager
def bound_sockets(exchange: SocketExchange) -> Iterator[None]:
    """Apply the limits of an exchange to the sockets of this thread within the `with` block."""
    _mine.exchange = exchange
    try:
        yield
    finally:
        _mine.exchange = None


def _current_exchange() -> SocketExchange:
    exchange: SocketExchange | None = getattr(_mine, "exchange", None)
    if exchange is None:  # the library closes idle connections outside of any exchange
        return SocketExchange(time.monotonic() + CONNECT_SECONDS)
    return exchange


def shut_down(sock: socket.socket) -> None:
    """Wake the threads that read or write this socket.

    This uses the plain socket, because TLS would send a closing message and wait.
    """
    with suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


class SocketStream:
    """A connected socket with the interface that the library's pool expects."""

    def __init__(self, sock: socket.socket, name: str, write_failed: type[Exception]) -> None:
        self._socket = sock
        self._name = name
        self._write_failed = write_failed

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        exchange = _current_exchange()
        exchange.use(self._socket)
        if exchange.head is not None:
            max_bytes = min(max_bytes, _HEAD_CHUNK)
        self._socket.settimeout(exchange.seconds_left())
        try:
            data = self._socket.recv(max_bytes)
        except TimeoutError as error:
            raise exchange.timeout_error() from error
        except OSError as error:
            raise exchange.transport_error(f"{self._name}: {_error_line(error)}") from error
        if exchange.head is not None:
            exchange.head += len(data)
            if exchange.head > MAX_HEAD + _HEAD_CHUNK:
                raise too_long_head()
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        exchange = _current_exchange()
        exchange.use(self._socket)
        view = memoryview(buffer)
        while view:
            self._socket.settimeout(exchange.seconds_left())
            exchange.left = True
            try:
                view = view[self._socket.send(view) :]
            except TimeoutError as error:
                raise exchange.timeout_error() from error
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
        exchange, name = _current_exchange(), self._name
        if server_hostname and server_hostname not in name:  # the tunnel through the proxy is open
            name = f"{server_hostname} through {name}"
        with ExitStack() as opened:
            opened.callback(self._socket.close)
            try:
                secured = ssl_context.wrap_socket(
                    self._socket, server_hostname=server_hostname, do_handshake_on_connect=False
                )
                opened.callback(secured.close)
                exchange.use(secured)
                secured.settimeout(exchange.seconds_left())
                secured.do_handshake()
            except TimeoutError as error:
                raise exchange.timeout_error() from error
            except (OSError, ValueError) as error:  # ssl.SSLError among them
                raise exchange.transport_error(
                    f"{name}: TLS failed: {_error_line(error)}"
                ) from error
            opened.pop_all()
        return SocketStream(secured, name, self._write_failed)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            if self._socket.fileno() < 0:
                return True  # report it as readable, so that the pool closes it
            if not hasattr(select, "poll"):  # on Windows `select` takes any socket
                return bool(select.select([self._socket], [], [], 0)[0])
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            return bool(poll.poll(0))
        if info == "ssl_object":
            return self._socket if isinstance(self._socket, ssl.SSLSocket) else None
        return self._socket if info == "socket" else None


class Backend:
    """A network backend that opens sockets to allowed addresses only.

    If `network` is None, it allows every address: for a proxy that the user configured.
    """

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
            return self._connect_first(host, port, f"{host}:{port}")
        try:
            return self._connect_first(host, port, f"the proxy {host}:{port}")
        except TransportError as error:
            error.hint = PROXY_HINT
            raise

    def _connect_first(self, host: str, port: int, name: str) -> SocketStream:
        """Return a connection to the first address that accepts it. `name` appears in error
        messages.
        """
        exchange = _current_exchange()
        failure: TransportError | CallTimeoutError | None = None
        for place in allowed_addresses(
            self._resolve_host(host, port, name, exchange), host, self._network
        ):
            try:
                return SocketStream(
                    _connect_socket(place, exchange, name), name, self._write_failed
                )
            except TransportError as error:
                failure = failure or error
        raise failure or exchange.transport_error(f"{name}: no address found")

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Any = None
    ) -> Any:
        raise SafetyScopeError("safety.scope", "local sockets are not called", left=False)

    def sleep(self, seconds: float) -> None:
        """Return at once. The pool makes no retries, so it never needs to wait."""

    def _resolve_host(
        self, host: str, port: int, name: str, exchange: SocketExchange
    ) -> list[ResolvedAddress]:
        """Return the allowed addresses of a name.

        The system's look-up has no time limit, so it runs on its own thread.
        """
        address = addresses.literal_address(host)
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
            raise exchange.transport_error(
                f"{name.removesuffix(f':{port}')}: the name is not known"
            ) from found
        return [ResolvedAddress(row[0], row[4]) for row in found]


def allowed_addresses(
    places: list[ResolvedAddress], host: str, network: str | None
) -> list[ResolvedAddress]:
    """Return the addresses that a connection may use.

    Raise SafetyScopeError if all addresses of the name are forbidden.
    """
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
    """Return the error of a reply whose headers exceed the limit."""
    text = f"the reply's headers have more than {MAX_HEAD:,} bytes"
    return ResponseMappingError("response.size", text, left=True)


def _connect_socket(place: ResolvedAddress, exchange: SocketExchange, name: str) -> socket.socket:
    """Return a socket that is connected to an address. Raise TransportError or CallTimeoutError."""
    with ExitStack() as opened:
        sock = socket.socket(place.family, socket.SOCK_STREAM)
        opened.callback(sock.close)
        try:
            exchange.use(sock)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(exchange.seconds_left(CONNECT_SECONDS))
            sock.connect(place.address)
        except TimeoutError as error:
            exchange.seconds_left()
            raise exchange.transport_error(
                f"{name}: no connection within {CONNECT_SECONDS:g} s"
            ) from error
        except OSError as error:
            raise exchange.transport_error(f"{name}: {_error_line(error)}") from error
        opened.pop_all()
    return sock


def _error_line(error: Exception) -> str:
    """Return one short line for an error of the operating system or of TLS."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"certificate not accepted: {error.verify_message}"
        case ssl.SSLError():
            return (error.reason or "handshake failed").lower().replace("_", " ")
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
