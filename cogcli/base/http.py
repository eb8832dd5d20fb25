"""HTTP: the only module that imports the HTTP library (docs/reference/service.md#http).

1. There are no redirects, no cookies and no environment. TLS is verified against the bundled
authorities. No encoding is requested.

2. Sockets come from `base/connections`, which judges addresses and manages deadline, cancellation
and `left`.

3. A reply is read within a byte limit. Its encoding is decoded in pieces within the same limit.

4. Connections are kept for the run, separated by the addresses that they were judged for. `close`
leaves no socket open.

5. The library's exceptions do not leave this module.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import httpcore
import httpx

from cogcli.base import inflate
from cogcli.base.addresses import literal_refusal
from cogcli.base.allowed_hosts import allow_hint, host_refusal
from cogcli.base.calls import Cancellation
from cogcli.base.connections import (
    GIVEN_UP,
    MAX_HEAD,
    PROXY_HINT,
    Backend,
    Resolve,
    ResolvedAddress,
    SocketExchange,
    allowed_addresses,
    bound_sockets,
    resolve_name,
    too_long_head,
)
from cogcli.base.errors import (
    RequestMappingError,
    ResponseMappingError,
    RuntimeErrorBase,
    SafetyScopeError,
    ServiceResolutionError,
    TransportError,
)
from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple

if TYPE_CHECKING:
    import httpx2

    AsyncClient = httpx2.AsyncClient
    AsyncRequest = httpx2.Request
    """A request of the MCP library's client."""
    AsyncResponse = httpx2.Response
    AsyncSend = Callable[[AsyncRequest], Awaitable[AsyncResponse]]
    """Sends a request once."""

MAX_BODY: Final = 10 * 1024 * 1024
_IDLE_SECONDS: Final = 4.0
"""Seconds before an idle connection is dropped. Servers often drop it after five; a request must
not meet that moment."""
_BODILESS: Final = (204, 304)


class StreamedBody:
    """A body that is sent in pieces, so that it is never completely in memory. `len` is its length in bytes."""

    def __init__(self, chunks: Iterable[bytes], size: int) -> None:
        self._chunks = chunks
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)


class HttpRequest(NamedTuple):
    """One request. `url` is absolute and already encoded. `network` is the setting of the service."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | StreamedBody = b""
    network: str = "public"
    max_response_bytes: int = MAX_BODY


class HttpReply(NamedTuple):
    """One reply of any status. `fault`: why the body of a failure reply could not be read."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    fault: str = ""

    def header(self, name: str) -> str:
        """Return the first value of a header, ignoring case; empty if it is absent."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), "")


class Http:
    """Sends requests from any thread. Each run has one.

    If `proxies` contains environment variables, requests use the proxy that they configure. Then only literal addresses
    are checked, since the proxy resolves names.
    """

    def __init__(
        self, *, proxies: Mapping[str, str] | None = None, resolve: Resolve = resolve_name
    ) -> None:
        self._proxies = dict(proxies or {})
        self._resolve = resolve
        self._lock = threading.Lock()
        self._tls_context: dict[bool, ssl.SSLContext] = {}
        self._lanes: list[httpx.HTTPTransport] = []
        self._free: dict[_PoolKey, list[httpx.HTTPTransport]] = {}
        self._exchanges: set[SocketExchange] = set()
        self._closed = False

    def send(self, request: HttpRequest, deadline: float, cancel: Cancellation) -> HttpReply:
        """Send a request and return its complete reply.

        `deadline` is a monotonic time and covers everything from look-up to the last byte.

        Raise, each with `left`: TransportError, CallTimeoutError, SafetyScopeError,
        RequestMappingError `request.value`, ResponseMappingError `response.size`, or
        `response.not-json` for a success whose encoding cannot be decoded.
        """
        with self.stream(request, deadline, cancel) as reply:
            return reply.whole()

    @contextmanager
    def stream(
        self, request: HttpRequest, deadline: float, cancel: Cancellation
    ) -> Iterator[HttpStream]:
        """Send a request and return its reply with an unread body. Raise the errors of `send`.

        Leaving the context early closes the connection.
        """
        exchange = SocketExchange(deadline)
        made, target = _library_request(request)
        if refusal := host_refusal(made.url.host, made.url.port, request.network):
            hint = allow_hint([_allowed_host_text(made.url.host, made.url.port)])
            raise SafetyScopeError(
                "safety.scope", f"{made.url.host} {refusal}", hint=hint, left=False
            )
        proxy = proxy_for(self._proxies, made.url.scheme, made.url.host) if self._proxies else ""
        if not proxy:
            # Our own bytes: the library would normalize the target. A proxy needs the whole URL.
            made.extensions["target"] = target
        elif refusal := literal_refusal(made.url.host, request.network):
            raise SafetyScopeError("safety.scope", f"{made.url.host} {refusal}", left=False)
        way = _PoolKey(made.url.scheme, made.url.host, made.url.port, request.network, proxy)
        with (
            _translated_errors(exchange, cancel),
            self._borrow_pool(way, exchange) as lane,
            cancel.on_cancel(exchange.cancel),
        ):
            # Sockets keep the deadline; the library keeps it while it waits for a free connection.
            made.extensions["timeout"] = {"pool": exchange.seconds_left()}
            with bound_sockets(exchange):
                response = lane.handle_request(made)
            response.request = made
            try:
                exchange.head = None
                yield HttpStream(
                    _head_of(response), response, exchange, cancel, request.max_response_bytes
                )
            finally:
                with bound_sockets(exchange):
                    response.close()

    def close(self) -> None:
        """Shut down every socket, including those in use. Nothing is sent afterwards."""
        with self._lock:
            self._closed = True
            going, self._exchanges = list(self._exchanges), set()
            lanes, self._lanes = self._lanes, []
            self._free.clear()
        for exchange in going:
            exchange.cancel()
        for lane in lanes:
            lane.close()

    @contextmanager
    def _borrow_pool(
        self, way: _PoolKey, exchange: SocketExchange
    ) -> Iterator[httpx.HTTPTransport]:
        """Return a pool that no other exchange uses in the meantime, preferably the one used last.

        A single shared pool would inspect every connection for every request under one lock.
        """
        with self._lock:
            if self._closed:
                raise TransportError("call.transport", GIVEN_UP, left=False)
            free = self._free.setdefault(way, [])
            lane = free.pop() if free else self._open_pool(way)
            self._exchanges.add(exchange)
        try:
            yield lane
        finally:
            with self._lock:
                self._exchanges.discard(exchange)
                if not self._closed:
                    free.append(lane)

    def _open_pool(self, way: _PoolKey) -> httpx.HTTPTransport:
        """Return a new pool. The certificate authorities are read once."""
        plain = way.scheme == "http" and not way.proxy.startswith("https")
        tls = self._tls_context.get(plain)
        if tls is None:
            tls = self._tls_context[plain] = _tls_context(self._proxies, is_empty=plain)
        backend = Backend(None if way.proxy else way.network, httpcore.WriteError, self._resolve)
        limits = httpx.Limits(
            max_connections=1, max_keepalive_connections=1, keepalive_expiry=_IDLE_SECONDS
        )
        try:
            transport = httpx.HTTPTransport(
                verify=tls, trust_env=False, limits=limits, proxy=way.proxy or None
            )
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            text = "the environment names a proxy of a kind that is not spoken"
            raise ServiceResolutionError(
                "env.extra", text, hint="use an http proxy", left=False
            ) from error
        # The library has no public way to set a backend; a test checks that this one is in use.
        transport._pool._network_backend = backend  # type: ignore[assignment]
        self._lanes.append(transport)
        return transport


class _PoolKey(NamedTuple):
    """The key of a connection pool: the origin or proxy to connect to, and the permitted addresses."""

    scheme: str
    host: str
    port: int | None
    network: str
    proxy: str


def proxy_for(environ: Mapping[str, str], scheme: str, host: str) -> str:
    """Return the proxy for a URL according to an environment; empty for a direct connection. This reads `https_proxy`,
    `all_proxy` and `no_proxy`. Lower-case names have priority.
    """
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

    def read_variable(name: str) -> str:
        return environ.get(name) or environ.get(name.upper()) or ""

    if proxy_bypass_environment(host, {"no": read_variable("no_proxy")}):
        return ""
    proxy = read_variable(f"{scheme}_proxy") or read_variable("all_proxy")
    return proxy if "://" in proxy or not proxy else f"http://{proxy}"


def proxy_without_user(proxy: str) -> str:
    """Return a proxy without its user info, to be recorded."""
    scheme, _, rest = proxy.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if proxy else ""


def _tls_context(environ: Mapping[str, str], *, is_empty: bool = False) -> ssl.SSLContext:
    """Return a TLS context that trusts the bundled authorities, or those that a trusted environment
    names.

    With `is_empty` nothing is loaded, so that no certificate is accepted. The standard library's
    default context would read the environment of the process.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if is_empty:
        return context
    file, folder = environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")
    if not file and not folder:
        import certifi

        file = certifi.where()
    try:
        context.load_verify_locations(cafile=file or None, capath=folder or None)
    except OSError as error:
        text = f"the environment's certificates cannot be read: {error}"
        raise ServiceResolutionError(
            "env.missing", text, hint="unset SSL_CERT_FILE", left=False
        ) from error
    return context


def _allowed_host_text(host: str, port: int | None) -> str:
    """Return a host in the form of `--allow-host`: without a default port of http or https."""
    return host if port in (None, 80, 443) else f"{host}:{port}"


def _library_request(request: HttpRequest) -> tuple[httpx.Request, bytes]:
    """Return the request as an object of the library, and its request target verbatim."""
    try:
        url = httpx.URL(request.url)
        if (
            url.scheme not in ("http", "https")
            or not url.host
            or url.userinfo
            or (url.port or 1) > 65535
        ):
            raise _unsendable_error("the URL is not an http or https URL without user info")
        headers = [("Accept-Encoding", "identity"), *request.headers]
        if isinstance(request.body, StreamedBody):
            headers.append(("Content-Length", str(len(request.body))))
        made = httpx.Request(request.method, url, headers=headers, content=request.body)
        rest = request.url.partition("://")[2].partition("#")[0]
        cut = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
        target = rest[cut:]  # path and query, as written
        return made, (target if target.startswith("/") else f"/{target}").encode("ascii")
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise _unsendable_error(f"the request cannot be sent: {_error_text(error)}") from error


def _head_of(response: httpx.Response) -> HttpReply:
    """Return a reply with status and headers only. Raise ResponseMappingError `response.size`."""
    raw = response.headers.raw
    if sum(len(name) + len(value) + 4 for name, value in raw) > MAX_HEAD:
        raise too_long_head()
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in raw)
    return HttpReply(response.status_code, headers, b"")


@contextmanager
def _translated_errors(exchange: SocketExchange, cancel: Cancellation) -> Iterator[None]:
    """Translate exceptions of the library to errors of cogcli within the `with` block."""
    try:
        yield
    except RuntimeErrorBase as error:
        if not cancel.is_set:
            raise
        raise exchange.transport_error(GIVEN_UP) from error
    except Exception as error:
        raise _translate_error(error, exchange, given_up=cancel.is_set) from error


class HttpStream:
    """A reply that is read as it arrives: first its head, then its body, once, whole or in chunks."""

    def __init__(
        self,
        head: HttpReply,
        response: httpx.Response,
        exchange: SocketExchange,
        cancel: Cancellation,
        cap: int,
    ) -> None:
        self.head = head
        self._response = response
        self._exchange = exchange
        self._cancel = cancel
        self._cap = cap

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of the body as they arrive.

        Raise the errors of `Http.send`. Raise `response.not-json` for a body with a content
        encoding, because none was requested.
        """
        if self.head.header("content-encoding") not in ("", "identity"):
            raise ResponseMappingError(
                "response.not-json", "the reply is encoded, unasked", left=True
            )
        left, stream = self._cap, iter(cast("Iterable[bytes]", self._response.stream))
        while True:
            # Other exchanges may run on this thread between two chunks.
            with _translated_errors(self._exchange, self._cancel), bound_sockets(self._exchange):
                chunk = next(stream, None)
            if chunk is None:
                return
            left -= len(chunk)
            if left < 0:
                raise _size_error(self._cap)
            yield chunk

    def whole(self) -> HttpReply:
        """Return the reply with its complete body. Raise the errors of `Http.send`."""
        with _translated_errors(self._exchange, self._cancel), bound_sockets(self._exchange):
            return _read_reply(self.head, self._response, self._cap)


def _read_reply(reply: HttpReply, response: httpx.Response, cap: int) -> HttpReply:
    chunks = cast("Iterable[bytes]", response.stream)
    if reply.status in _BODILESS or response.request.method == "HEAD":
        # Such a reply has no body, even if its headers announce one.
        return reply._replace(body=inflate.decompress(chunks, "", cap))
    announced = reply.header("content-length")
    encoding = ", ".join(
        value for name, value in reply.headers if name.lower() == "content-encoding"
    )
    try:
        if announced.isdecimal() and len(announced) < 20 and int(announced) > cap:
            raise inflate.ContentTooLarge
        return reply._replace(body=inflate.decompress(chunks, encoding, cap))
    except inflate.ContentTooLarge:
        raise _size_error(cap) from None
    except inflate.DamagedContent as fault:
        if reply.status >= 300:
            return reply._replace(fault=str(fault))
        raise ResponseMappingError(
            "response.not-json", f"the reply cannot be read: {fault}", left=True
        ) from fault


def _size_error(cap: int) -> ResponseMappingError:
    return ResponseMappingError(
        "response.size", f"the reply has more than {cap:,} bytes", left=True
    )


def _translate_error(
    error: Exception, exchange: SocketExchange, *, given_up: bool
) -> RuntimeErrorBase:
    """Return the error of cogcli for an exception of the library."""
    if given_up:
        return exchange.transport_error(GIVEN_UP)
    words = _error_text(error)
    match error:
        case httpx.TimeoutException():
            return exchange.timeout_error()
        case httpx.LocalProtocolError() | httpx.UnsupportedProtocol() if not exchange.left:
            return _unsendable_error(f"the request cannot be sent: {words}")
        case httpx.ProxyError():
            refused = exchange.transport_error(f"the proxy does not lead there: {words}")
            refused.hint = PROXY_HINT
            return refused
        case httpx.RemoteProtocolError():
            return exchange.transport_error(f"no valid HTTP came back: {words}")
        case httpx.HTTPError() | OSError():
            return exchange.transport_error(words)
        case _:
            raise error


def _unsendable_error(text: str) -> RequestMappingError:
    return RequestMappingError("request.value", text, left=False)


def _error_text(error: Exception) -> str:
    """Return the text of an exception, or the name of its type."""
    text = str(error).strip() or type(error).__name__
    return (text[0].lower() + text[1:]).rstrip(".")


# -- for the MCP library ----------------------------------------------------------------------------------------------


def async_client(
    network: str,
    headers: Mapping[str, str],
    timeout: Any,
    *,
    environ: Mapping[str, str] | None = None,
    proxy: str = "",
    unanswered: Callable[[AsyncRequest, Exception], bool] = lambda request, error: False,
    through: Callable[[AsyncRequest, AsyncSend], Awaitable[AsyncResponse]] | None = None,
) -> httpx2.AsyncClient:
    """Return an `httpx2.AsyncClient` under the same rules: checked addresses, no redirects, no cookies, no environment.

    `timeout` is seconds or the library's own `Timeout`. The MCP library accepts no other client; its caller enforces
    deadlines. A request to a refused address raises SafetyScopeError. `unanswered` is called with the request and the
    error of a failed connection. If it returns true, the library gets status 503, since the error would end all other
    requests. `through` replaces the sending of each request. It receives a function that sends the request once; it may
    add headers and send it again. Raise ServiceResolutionError `env.extra`.
    """
    try:
        import httpx2
    except ImportError as error:
        text = "this needs `httpx2`, which is not installed"
        raise ServiceResolutionError(
            "env.extra", text, hint="pip install 'cogcli[mcp]'", left=False
        ) from error
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    class Transport(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: AsyncRequest) -> AsyncResponse:
            send = super().handle_async_request
            try:
                return await (send(request) if through is None else through(request, send))
            except (httpx2.TransportError, RuntimeErrorBase) as error:
                if isinstance(error, httpx2.TransportError):
                    error.request = request  # as the library itself does in its outer layer
                if not unanswered(request, error):
                    raise
                return httpx2.Response(503, request=request)

    transport = Transport(verify=_tls_context(environ or {}), trust_env=False, proxy=proxy or None)
    transport._pool._network_backend = _async_backend(None if proxy else network)
    return httpx2.AsyncClient(
        transport=transport,
        headers={"Accept-Encoding": "identity", **headers},
        timeout=timeout,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        follow_redirects=False,
        max_redirects=0,  # the MCP library would follow this many redirects within an origin
        trust_env=False,
    )


def json_response(request: AsyncRequest, value: Json) -> AsyncResponse:
    """Return a response of `async_client` that no server has sent: status 200 with a JSON value."""
    import httpx2

    return httpx2.Response(200, json=value, request=request)


def cap_body(response: AsyncResponse, limit: int, too_long: Callable[[], None]) -> None:
    """Limit an `httpx2` response body to `limit` bytes.

    Reading more calls `too_long` and raises the library's own error.
    """
    import httpx2

    async def capped(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in chunks:
            size += len(chunk)
            if size > limit:
                too_long()
                raise httpx2.StreamError("the body is too long")
            yield chunk

    pass_body(response, capped)


def pass_body(
    response: AsyncResponse, through: Callable[[AsyncIterable[bytes]], AsyncIterator[bytes]]
) -> None:
    """Replace the unread body of an `httpx2` response by the chunks that `through` yields."""
    import httpx2

    stream = cast(httpx2.AsyncByteStream, response.stream)

    class Passed(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return through(stream)

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = Passed()


async def read_body(response: AsyncResponse) -> bytes:
    """Return the body of an `httpx2` response; empty if it cannot be read.

    The next read raises the error.
    """
    import httpx2

    try:
        return bytes(await response.aread())
    except (httpx2.StreamError, httpx2.TransportError):
        return b""


def _proxy_error(text: str) -> TransportError:
    return TransportError("call.transport", f"the proxy {text}", hint=PROXY_HINT, left=False)


def _async_backend(network: str | None) -> Any:
    """Return the asynchronous counterpart of `connections.Backend`.

    The library enforces its own time limits.
    """
    import anyio
    from httpcore2 import AnyIOBackend, ConnectError, ConnectTimeout

    class JudgingBackend(AnyIOBackend):
        async def connect_tcp(self, host: str, port: int, *arguments: Any, **named: Any) -> Any:
            try:
                return await self.connect(host, port, *arguments, **named)
            except (ConnectError, ConnectTimeout) as error:
                if network is not None:
                    raise
                raise _proxy_error(f"{host}:{port} cannot be reached") from error

        async def connect(self, host: str, port: int, *arguments: Any, **named: Any) -> Any:
            if network is not None and (refusal := host_refusal(host, port, network)):
                hint = allow_hint([_allowed_host_text(host, port)])
                raise SafetyScopeError("safety.scope", f"{host} {refusal}", hint=hint, left=False)
            try:
                rows = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as error:
                text = f"{host}: the name is not known"
                if network is None:
                    raise _proxy_error(text) from error
                raise TransportError("call.transport", text, left=False) from error
            places = [ResolvedAddress(row[0], row[4]) for row in rows]
            good = [str(place.address[0]) for place in allowed_addresses(places, host, network)]
            for address in good[:-1]:
                with suppress(ConnectError, ConnectTimeout):
                    return await super().connect_tcp(address, port, *arguments, **named)
            return await super().connect_tcp(good[-1], port, *arguments, **named)

        async def connect_unix_socket(self, *arguments: Any, **named: Any) -> Any:
            raise SafetyScopeError("safety.scope", "local sockets are not called", left=False)

    return JudgingBackend()


class FormPart(NamedTuple):
    """One part of a multipart form. With a `filename` it is a file, whose type is guessed by its name
    unless it is given; an empty type of another part is not sent."""

    name: str
    data: bytes | BinaryIO
    media_type: str = ""
    filename: str | None = None


def form_bytes(fields: Mapping[str, list[str]]) -> bytes:
    """Return the body of a form in `application/x-www-form-urlencoded`."""
    return httpx.Request("POST", _NOWHERE, data=fields).read()


def multipart_body(parts: Iterable[FormPart], boundary: str) -> StreamedBody:
    """Return the body of a form in `multipart/form-data`. Files are read when it is sent."""
    kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    files = [(part.name, (part.filename, part.data, part.media_type or None)) for part in parts]
    made = httpx.Request("POST", _NOWHERE, headers=kind, files=files)
    return StreamedBody(cast("Iterable[bytes]", made.stream), int(made.headers["Content-Length"]))


_NOWHERE: Final = "http://localhost"
"""Requests that are only encoded need an address."""
