"""Requests of Python functions, over the transport of services (docs/reference/sdk.md#network)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

from cogcli import __version__
from cogcli.base.calls import Cancellation
from cogcli.base.errors import RejectedError
from cogcli.base.host_access import HostAccess
from cogcli.base.http import Http, HttpReply, HttpRequest
from cogcli.base.named_tuple import NamedTuple
from cogcli.protocols.http.failures import error_from_reply
from cogcli.protocols.http.headers import Headers

_MOVED: Final = (301, 302, 303, 307, 308)
_SHOWN: Final = 200
_IN_PATH: Final = "%/:@!$&'()*+,;=~-._?"


class FetchReply(NamedTuple):
    """A success reply, read whole. `url` is the address that sent it. `media_type` is in lower
    case, without parameters."""

    status: int
    url: str
    media_type: str
    charset: str
    body: bytes


class FetchRequest(NamedTuple):
    """A request. If the address is a secret, messages show `name` instead."""

    url: str
    method: str = "GET"
    headers: Headers = ()
    body: bytes = b""
    name: str = ""


def fetch(
    access: HostAccess, request: FetchRequest, seconds: float, *, redirects: int, max_bytes: int
) -> FetchReply:
    """Send a request to a host that the call may reach, follow redirects of GET, and return the success reply.

    See `cogcli.sdk.fetch`.
    """
    deadline = time.monotonic() + seconds
    http = Http(proxies=access.proxies)
    try:
        for _ in range(redirects + 1):
            headers = (("User-Agent", f"cogcli/{__version__}"), *request.headers)
            address = _encode_address(request.url)
            http_request = HttpRequest(
                request.method, address, headers, request.body, access.network, max_bytes
            )
            reply = http.send(http_request, deadline, access.cancel or Cancellation())
            target = reply.header("location") if reply.status in _MOVED and redirects else ""
            if not target or request.method != "GET":
                return _require_success(reply, request, access)
            request = _follow_redirect(request, target, access)
        last = access.mask_text(request.url)[:_SHOWN]
        text = f"more than {redirects} redirects, the last to {last}"
        raise RejectedError("call.rejected", text, left=True)
    finally:
        http.close()


def _require_success(reply: HttpReply, sent: FetchRequest, access: HostAccess) -> FetchReply:
    """Return a success reply; raise the error of any other status. An error page is not quoted."""
    media_type, _, parameters = reply.header("content-type").lower().partition(";")
    quoted = (
        reply
        if media_type.strip() in ("text/plain", "application/json")
        else reply._replace(body=b"")
    )
    request = f"{sent.method} {sent.name or access.mask_text(sent.url)[:_SHOWN]}"
    if error := error_from_reply(request, quoted, None, access, datetime.now(UTC).isoformat()):
        raise error
    named = dict(part.strip().partition("=")[::2] for part in parameters.split(";"))
    return FetchReply(
        reply.status,
        sent.url,
        media_type.strip(),
        named.get("charset", "").strip("\"' "),
        reply.body,
    )


def _follow_redirect(sent: FetchRequest, target: str, access: HostAccess) -> FetchRequest:
    """Return the request of a redirect. Raise RejectedError if it must not be followed."""
    try:
        url = urljoin(sent.url, target)
        old, new = urlsplit(sent.url), urlsplit(url)
    except ValueError:
        raise _redirect_error(target, access) from None
    if new.scheme not in ("http", "https") or (old.scheme, new.scheme) == ("https", "http"):
        raise _redirect_error(url, access)
    is_same_origin = (old.scheme, old.netloc) == (new.scheme, new.netloc)
    return sent._replace(url=url, headers=sent.headers if is_same_origin else ())


def _redirect_error(target: str, access: HostAccess) -> RejectedError:
    shown = access.mask_text(target)[:_SHOWN]
    return RejectedError(
        "call.rejected", f"redirected to {shown}, which is not followed", left=True
    )


def _encode_address(url: str) -> str:
    """Return an address with the non-ASCII characters of path and query encoded."""
    head, mark, rest = url.strip().partition("://")
    cut = min(
        (at for at in (rest.find("/"), rest.find("?"), rest.find("#")) if at >= 0),
        default=len(rest),
    )
    path, _, _ = rest[cut:].partition("#")
    return f"{head}{mark}{rest[:cut]}{quote(path, safe=_IN_PATH)}"
