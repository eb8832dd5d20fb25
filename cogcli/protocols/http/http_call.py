"""One HTTP exchange of an attempt, and what its record tells of it (docs/reference/protocols.md#record)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from cogcli.core.errors import RequestMappingError, RuntimeErrorBase
from cogcli.protocols.http.reply_body import media_type
from cogcli.protocols.invoker import DEFAULT_BYTES, CallMeta
from cogcli.specs.service import network_of

if TYPE_CHECKING:
    from cogcli.core.http import HttpReply
    from cogcli.protocols.http.headers import Headers
    from cogcli.protocols.invoker import CallLimits, InvocationRequest, InvokerContext


class Sent(NamedTuple):
    """What is about to go out. `value` is the body's JSON value, as the record tells it."""

    method: str
    url: str
    headers: Headers
    body: bytes
    value: Any

    def as_record(self) -> dict[str, Any]:
        """The request in an attempt's record: of headers the names."""
        names = sorted({name.lower() for name, _ in self.headers})
        media = next((value for name, value in self.headers if name.lower() == "content-type"), "")
        told: dict[str, Any] = {"media_type": media, "headers": names} if self.body else {"headers": names}
        return {**told, "body": self.value} if self.body else told


class HttpCaller:
    """The connections of one run, and the clock that times what goes over them."""

    def __init__(self, surroundings: InvokerContext) -> None:
        from cogcli.core.http import Http

        self._clock = surroundings.clock
        self._proxies = surroundings.environ if surroundings.use_env_proxy else {}
        self._http = Http(proxies=self._proxies)

    def exchange(
        self, request: InvocationRequest, context: CallLimits, sent: Sent
    ) -> tuple[HttpReply, CallMeta]:
        """The reply, whatever its status, and the record so far. Raises as `Http.send`, with `record` set, and
        RequestMappingError `request.size`."""
        from cogcli.core.http import HttpRequest

        _require_size(request, len(sent.body))
        meta = CallMeta(
            method=sent.method,
            url=sent.url,
            request_bytes=len(sent.body),
            started_at=self._clock.now(),
            request=sent.as_record(),
            proxy=self._proxy(sent.url),
        )
        began = self._clock.monotonic()
        asked = HttpRequest(
            sent.method, sent.url, sent.headers, sent.body, network_of(request.service), reply_cap(request)
        )
        try:
            reply = self._http.send(asked, context.deadline, context.cancel)
        except RuntimeErrorBase as error:
            error.record = meta._replace(duration_ms=self._since(began)).as_record()
            raise
        return reply, meta._replace(
            status=reply.status,
            media_type=media_type(reply),
            response_bytes=len(reply.body),
            duration_ms=self._since(began),
        )

    @property
    def now(self) -> str:
        """The time as records write it."""
        return self._clock.now()

    def close(self) -> None:
        """Leave no socket."""
        self._http.close()

    def _proxy(self, url: str) -> str:
        """The proxy that a URL is reached through, empty for none."""
        from cogcli.core.http import proxy_for, proxy_shown

        parts = urlsplit(url)
        return (
            proxy_shown(proxy_for(self._proxies, parts.scheme, parts.hostname or "")) if self._proxies else ""
        )

    def _since(self, began: float) -> int:
        return round((self._clock.monotonic() - began) * 1000)


def reply_cap(request: InvocationRequest) -> int:
    """Bytes that a reply may have."""
    cap: int | None = request.binding.metadata.get("max_response_bytes")
    return cap or DEFAULT_BYTES


def request_cap(request: InvocationRequest) -> int:
    """Bytes that a request's body may have."""
    cap: int | None = request.binding.metadata.get("max_request_bytes")
    return cap or DEFAULT_BYTES


def _require_size(request: InvocationRequest, size: int) -> None:
    cap = request_cap(request)
    if size > cap:
        text = (
            f"the request of binding `{request.binding.id}` has {size:,} bytes, at most {cap:,} are allowed"
        )
        raise RequestMappingError("request.size", text, left=False)
