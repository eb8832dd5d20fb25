"""Access tokens of OAuth 2 by the grant `client_credentials` (docs/reference/protocols.md#oauth).

1. The address of the tokens is that of the service file, never of a document or a reply. It gets one POST, over
   the transport of all calls: no redirect is followed.
2. A token is kept in this process until shortly before it expires, or until the service refuses it. It is masked like
   any other secret, and written nowhere.
3. Calls that need the same token wait for one request.
4. While a call waits for its token nothing of it has left, whatever happens to that request.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from cogcli import __version__
from cogcli.base.errors import CallTimeoutError, RuntimeErrorBase, ServerFaultError
from cogcli.base.http import Http, HttpRequest
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.service_spec import Credential, Service
from cogcli.protocols.http.failures import error_from_reply
from cogcli.protocols.http.reply_body import read_json
from cogcli.specs.id_grammar import is_sendable
from cogcli.specs.service import network_of

if TYPE_CHECKING:
    from cogcli.base.http import HttpReply
    from cogcli.protocols.invoker import CallLimits
    from cogcli.protocols.secrets import Secrets

_WAITS: Final = "the call waits for its access token: nothing was sent"
_MAX_REPLY: Final = 256 * 1024
_DEFAULT_SECONDS: Final = 3600.0
"""Seconds that a token is used if its reply does not name its time."""
_MARGIN: Final = 30.0
"""Seconds before its end at which a token is no longer used, at most a tenth of its time."""


class TokenReply(Record):
    """The reply of a token server."""

    access_token: str | None = None
    token_type: str | None = None
    expires_in: object = None
    refresh_token: str | None = None
    scope: str | None = None
    id_token: str | None = None
    error: str | None = None
    error_description: str | None = None

    @property
    def bearer_token(self) -> str:
        """The access token; empty if it is missing or cannot be sent as a bearer token."""
        token, kind = self.access_token or "", (self.token_type or "Bearer").lower()
        return token if kind == "bearer" and is_sendable(token) and " " not in token else ""

    @property
    def refusal(self) -> str:
        """The words of a refusal: its code and its description."""
        return ": ".join(filter(None, (self.error, self.error_description)))


class _TokenPlace:
    """The place of one client's token, and the lock of those who wait for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.value = ""
        self.until = 0.0


class _Client(NamedTuple):
    """A client as its token server knows it."""

    url: str
    id: str
    secret: str
    scopes: tuple[str, ...]
    audience: str
    client_auth: str


@cache
def _place_of_token(client: _Client) -> _TokenPlace:
    """Return the place of the token of a client, one in this process."""
    return _TokenPlace()


class ClientTokens:
    """Gives the tokens of clients to the calls of one run."""

    def __init__(self, secrets: Secrets, http: Http, now: Callable[[], str]) -> None:
        self._secrets = secrets
        self._http = http
        self._now = now

    def token(self, service: Service, credential: Credential, limits: CallLimits) -> str:
        """Return a token that is valid now. Raise the error of a request that failed, with `left`
        false: it was not the call that left."""
        client = self._build_client(credential)
        place = _place_of_token(client)
        with limits.cancel.held_back(_WAITS):
            if not place.lock.acquire(timeout=max(0.0, limits.deadline - time.monotonic())):
                raise CallTimeoutError("call.timeout", _WAITS, left=False)
            try:
                if not place.value or time.monotonic() >= place.until:
                    self._renew_token(place, client, service, credential, limits)
                value = place.value
            except RuntimeErrorBase as error:
                error.left = False
                raise
            finally:
                place.lock.release()
        self._secrets.add_secret(value)
        return value

    def drop(self, credential: Credential, refused: str) -> None:
        """Forget the token of a client if it still is the one that the service refused."""
        place = _place_of_token(self._build_client(credential))
        with place.lock:
            if refused.endswith(place.value):
                place.value = ""

    def _build_client(self, credential: Credential) -> _Client:
        return _Client(
            credential.token_url or "",
            self._secrets.read(credential.client_id or ""),
            self._secrets.resolve(credential.client_secret or ""),
            credential.scopes,
            credential.audience or "",
            credential.client_auth,
        )

    def _renew_token(
        self,
        place: _TokenPlace,
        client: _Client,
        service: Service,
        credential: Credential,
        limits: CallLimits,
    ) -> None:
        place.value = ""
        sent = HttpRequest(
            "POST",
            client.url,
            self._auth_headers(client),
            _token_form(client),
            network_of(service),
            _MAX_REPLY,
        )
        started = time.monotonic()
        reply = self._http.send(sent, limits.deadline, limits.cancel)
        value, _ = read_json(reply, _MAX_REPLY)
        answer = read_record(TokenReply, value if isinstance(value, dict) else {})
        name = f"POST {client.url}, the token of service `{service.id}`"
        if failure := self._error_from_reply(name, reply, answer):
            failure.hint = failure.hint and (
                f"look at client_id `{credential.client_id}` and client_secret "
                f"`{credential.client_secret}` in {service.file or 'the service file'}"
            )
            raise failure
        if answer.access_token:
            self._secrets.add_secret(answer.access_token)
        token = answer.bearer_token
        if not token:
            text = f"{name}: the reply holds no bearer token"
            raise ServerFaultError("call.server-error", text, left=False)
        place.until = started + usable_seconds(token_seconds(answer.expires_in))
        place.value = token

    def _auth_headers(self, client: _Client) -> tuple[tuple[str, str], ...]:
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
            "User-Agent": f"cogcli/{__version__}",
        }
        if client.client_auth == "basic":
            headers["Authorization"] = client_basic(self._secrets, client.id, client.secret)
        return tuple(headers.items())

    def _error_from_reply(
        self, name: str, reply: HttpReply, answer: TokenReply
    ) -> RuntimeErrorBase | None:
        """Return the error for the status of a reply, None for success. Of its body only `error` and
        `error_description` are used."""
        shown = reply._replace(body=b"", headers=())
        return error_from_reply(
            name, shown, {"message": answer.refusal}, self._secrets, self._now()
        )


def _token_form(client: _Client) -> bytes:
    pairs = {"grant_type": "client_credentials"}
    if client.scopes:
        pairs["scope"] = " ".join(client.scopes)
    if client.audience:
        pairs["audience"] = client.audience
    if client.client_auth == "body":
        pairs |= {"client_id": client.id, "client_secret": client.secret}
    return urlencode(pairs).encode()


def client_basic(secrets: Secrets, id: str, secret: str) -> str:
    """Return the value of Authorization: both parts are encoded as in a form (RFC 6749, 2.3.1)."""
    import base64

    pair = f"{quote(id, safe='')}:{quote(secret, safe='')}".encode()
    encoded = base64.b64encode(pair).decode()
    secrets.add_secret(encoded)
    return f"Basic {encoded}"


def usable_seconds(seconds: float) -> float:
    """Return for how many seconds a token with this lifetime may be used: less than its lifetime, by a safety
    margin.
    """
    return seconds - min(_MARGIN, seconds / 10)


def token_seconds(expires_in: object) -> float:
    """Return the lifetime of a token in seconds. Some servers send it as text."""
    text = str(expires_in)
    if isinstance(expires_in, bool) or not text.isascii() or not text.isdigit():
        return _DEFAULT_SECONDS
    return min(float(text[:9]), 10 * 365 * 86400.0)
