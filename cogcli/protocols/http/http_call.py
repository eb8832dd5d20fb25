"""One HTTP exchange of an attempt, and its record (docs/reference/protocols.md#record)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cogcli.base.errors import RequestMappingError, RuntimeErrorBase
from cogcli.base.http import Http, HttpRequest, StreamedBody, proxy_for, proxy_without_user
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import MASK
from cogcli.declarations.value_types import Json
from cogcli.protocols.http.client_tokens import ClientTokens
from cogcli.protocols.http.headers import Headers
from cogcli.protocols.http.reply_body import media_type
from cogcli.protocols.invoker import CallLimits, CallMeta, InvocationRequest, InvokerContext
from cogcli.specs.service import network_of

if TYPE_CHECKING:
    from cogcli.base.http import HttpReply


class OutgoingRequest(NamedTuple):
    """One HTTP request. `value` is the body as a JSON value, for the record.

    `secret_query` is added to the query on the wire; the record has the names with masked values."""

    method: str
    url: str
    headers: Headers
    body: bytes | StreamedBody
    value: object
    secret_query: tuple[tuple[str, str], ...] = ()

    @property
    def recorded_url(self) -> str:
        """Return the URL without secrets."""
        return _with_query(self.url, [(name, MASK) for name, _ in self.secret_query])

    @property
    def sent_url(self) -> str:
        """The URL as sent, including the query."""
        return _with_query(self.url, self.secret_query)

    def to_payload(self) -> Json:
        """Return the request in an attempt's record: `{media_type, headers, body}`, with only the
        names of headers."""
        names = sorted({name.lower() for name, _ in self.headers})
        media = next((value for name, value in self.headers if name.lower() == "content-type"), "")
        return (
            {"media_type": media, "headers": names, "body": self.value}
            if self.body
            else {"headers": names}
        )


def _with_query(url: str, pairs: Sequence[tuple[str, str]]) -> str:
    added = "&".join(f"{name}={value}" for name, value in pairs)
    return f"{url}{'&' if '?' in url else '?'}{added}" if added else url


class HttpCaller:
    """The connections of one run, and the clock that times their exchanges."""

    def __init__(self, context: InvokerContext) -> None:
        self._clock = context.clock
        self._secrets = context.secrets
        self._proxies = context.environ if context.use_env_proxy else {}
        self._http = Http(proxies=self._proxies)
        self.tokens = ClientTokens(context.secrets, self._http, context.clock.now)

    def exchange(
        self, request: InvocationRequest, limits: CallLimits, outgoing: OutgoingRequest
    ) -> tuple[HttpReply, CallMeta]:
        """Send a request. Return the reply with any status, and the record without the reply. Raise the errors of
        `Http.send`, with `record` set, and RequestMappingError `request.size`.
        """
        size, maximum = len(outgoing.body), request.request_cap
        if size > maximum:
            text = f"the request of binding `{request.binding.id}` has {size:,} bytes, at most {maximum:,} are allowed"
            raise RequestMappingError("request.size", text, left=False)
        meta = CallMeta(
            method=outgoing.method,
            url=outgoing.recorded_url,
            request_bytes=size,
            started_at=self._clock.now(),
            request=outgoing.to_payload(),
            proxy=self._display_proxy(outgoing.url),
        )
        started = self._clock.monotonic()
        network, cap = network_of(request.service), request.reply_cap
        http_request = HttpRequest(
            outgoing.method, outgoing.sent_url, outgoing.headers, outgoing.body, network, cap
        )
        try:
            reply = self._http.send(http_request, limits.deadline, limits.cancel)
        except RuntimeErrorBase as error:
            error.record = meta._replace(duration_ms=self._milliseconds_since(started)).to_payload()
            raise
        reply = reply._replace(headers=self._mask_headers(reply))
        return reply, meta._replace(
            status=reply.status,
            media_type=media_type(reply),
            response_bytes=len(reply.body),
            duration_ms=self._milliseconds_since(started),
        )

    @property
    def now(self) -> str:
        """Return the current time as an ISO 8601 text."""
        return self._clock.now()

    def close(self) -> None:
        """Close every socket."""
        self._http.close()

    def _mask_headers(self, reply: HttpReply) -> Headers:
        """Return the headers of a reply without secrets, because messages quote them."""
        return tuple((name, self._secrets.mask_text(value)) for name, value in reply.headers)

    def _display_proxy(self, url: str) -> str:
        """Return the proxy for a URL, without user info; empty for none."""
        if not self._proxies:
            return ""
        parts = urlsplit(url)
        return proxy_without_user(proxy_for(self._proxies, parts.scheme, parts.hostname or ""))

    def _milliseconds_since(self, started: float) -> int:
        return round((self._clock.monotonic() - started) * 1000)
