"""The token of a login, for the requests of a run (docs/reference/mcp.md#tokens).

1. A run opens no browser. Without a login, or with one that is over, its call fails and names the command.
2. The token goes to the URL of the server alone. Requests of tokens go to the pinned addresses of the login alone.
3. A token that expires is renewed under the lock of the login: one process asks, the others take its token.
4. While a call waits for its token nothing of it has left.
"""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

from cogcli import __version__
from cogcli.base.calls import Cancellation
from cogcli.base.errors import RuntimeErrorBase, ServerFaultError
from cogcli.base.http import Http, HttpReply, HttpRequest
from cogcli.declarations.login_record import LoginRecord, LoginSecrets
from cogcli.declarations.reading import read_record
from cogcli.declarations.service_spec import Service
from cogcli.protocols.http.client_tokens import (
    TokenReply,
    client_basic,
    token_seconds,
    usable_seconds,
)
from cogcli.protocols.http.failures import error_from_reply, quote
from cogcli.protocols.http.headers import require_trusted
from cogcli.protocols.http.reply_body import read_json
from cogcli.protocols.mcp.grammar import McpLogin, McpServer
from cogcli.protocols.mcp.login_assertion import ASSERTION_TYPE, sign_assertion
from cogcli.protocols.mcp.login_endpoints import NamedEndpoints
from cogcli.protocols.mcp.login_store import LoginStore, login_error
from cogcli.specs.service import network_of

if TYPE_CHECKING:
    from cogcli.protocols.invoker import InvokerContext

_SECONDS: Final = 30.0
"""Seconds in which a token is renewed, waiting for other processes included."""
_MAX_REPLY: Final = 256 * 1024
_REFUSED: Final = (400, 401, 403)
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


def is_protected(url: str) -> bool:
    """Return whether secrets may be sent to an address: it is https, or http on loopback."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def login_of(service: Service) -> McpLogin:
    """Return the `login` of a service that has one."""
    return McpServer.of(service.settings).login or McpLogin()


class LoginTokens:
    """Gives the token of one service's login to its requests, from any thread."""

    def __init__(self, service: Service, context: InvokerContext) -> None:
        """Raise ServiceResolutionError `service.untrusted`."""
        require_trusted(service)
        self._service = service
        self._context = context
        self._store = LoginStore(context.state_dir, service)
        self._lock = threading.Lock()
        self._held: LoginRecord | None = None

    def require(self) -> None:
        """Raise ServiceResolutionError `service.login` without a usable login."""
        if not is_protected(self._service.keys.address):
            raise login_error(self._service, "tokens are sent over https only, or on loopback")
        self._usable_login("")

    def token(self) -> str:
        """Return a token that is valid now. Raise ServiceResolutionError `service.login`, or the error
        of the request that renews it, with `left` false."""
        with self._lock:
            if self._held is None or self._is_over(self._held):
                self._held = self._current_login("")
            return _access_token(self._held)

    def token_instead(self, refused: str) -> str:
        """Return another token than the one that the server refused; empty without another token. Raise the errors of
        `token`.
        """
        with self._lock:
            login = self._store.read(self._context.secrets)
            is_other = login is not None and login.secrets and _access_token(login) != refused
            if login is None or not (is_other or login.renewable):
                return ""
            self._held = self._current_login(refused)
            return _access_token(self._held)

    def _current_login(self, refused: str) -> LoginRecord:
        """Return the login with a valid token, after renewing it if necessary."""
        login = self._usable_login(refused)
        if login is not None:
            return login
        deadline = time.monotonic() + _SECONDS
        with self._store.locked(deadline):
            login = self._usable_login(refused)  # another process may have renewed it
            return self._renew_login(deadline) if login is None else login

    def _usable_login(self, refused: str) -> LoginRecord | None:
        """Return the login if its token is usable; None if the token must be renewed. Raise ServiceResolutionError
        `service.login` if it cannot be renewed.
        """
        login = self._read_login()
        if not self._is_over(login) and _access_token(login) != refused:
            return login
        if not login.renewable:
            raise login_error(self._service, "the token of its login has expired")
        return None

    def _read_login(self) -> LoginRecord:
        """Return the login. Raise ServiceResolutionError `service.login` if it is missing or has ended."""
        login = self._store.read(self._context.secrets)
        if login is None:
            raise login_error(self._service, "there is no login")
        if login.ended is not None:
            raise login_error(self._service, f"its login is over: {login.ended}")
        wanted = login_of(self._service)
        named = NamedEndpoints.of(self._service)
        is_elsewhere = named is not None and named.token != login.token_endpoint
        if login.grant != wanted.grant or not _is_issuer(wanted, login.issuer) or is_elsewhere:
            raise login_error(
                self._service, "its file asks for another login than the one there is"
            )
        return login

    def _is_over(self, login: LoginRecord) -> bool:
        return login.until is not None and self._context.clock.now() >= login.until

    def _renew_login(self, deadline: float) -> LoginRecord:
        """Renew the token, store the login, and return it. The caller holds the lock."""
        login = self._read_login()
        form, headers = TokenForms(self._service, self._context, login).renewal()
        now = self._context.clock.now()
        reply = post_form(
            self._service, self._context, login.token_endpoint, form, headers, deadline
        )
        answer = token_reply(reply)
        if refused := self._refusal_error(login, reply, answer):
            raise refused
        renewed = with_tokens(login, answer, now, self._context)
        if renewed is None:
            text = f"{login.token_endpoint}: the reply holds no bearer token"
            raise ServerFaultError("call.server-error", text, left=False)
        return self._store.write(renewed)

    def _refusal_error(
        self, login: LoginRecord, reply: HttpReply, answer: TokenReply
    ) -> RuntimeErrorBase | None:
        """Return the error of a reply, None for success. After `invalid_grant` the login has ended."""
        words = quote(answer.refusal, self._context.secrets)
        if reply.status in _REFUSED:
            why = f"{urlsplit(login.issuer).netloc} does not renew it"
            why += f": {words}" if words else f" (HTTP {reply.status})"
            if answer.error == "invalid_grant":
                self._store.write(login.replace(ended=why, secrets=None, renewable=False))
            return login_error(self._service, f"its login is over: {why}")
        shown = reply._replace(body=b"", headers=())
        failed = error_from_reply(
            f"POST {login.token_endpoint}", shown, {"message": words},
            self._context.secrets, self._context.clock.now(),
        )  # fmt: skip
        if failed is not None:
            failed.left = False
        return failed


def revoke(service: Service, context: InvokerContext, login: LoginRecord) -> bool:
    """Request the authorization server to end a login (RFC 7009). Return False if the server does not support
    revocation. Raise ServiceResolutionError `service.login` if the server refuses, and the errors of an HTTP call.
    """
    url, kept = login.revocation_endpoint, login.secrets
    if url is None or kept is None:
        return False
    forms = TokenForms(service, context, login)
    tokens = {"refresh_token": kept.refresh_token, "access_token": kept.access_token}
    deadline = time.monotonic() + _SECONDS
    for kind, token in tokens.items():
        if not token:
            continue
        reply = post_form(service, context, url, *forms.revocation(token, kind), deadline)
        answer = token_reply(reply)
        if reply.status >= 300 and answer.error != "unsupported_token_type":
            words = quote(answer.refusal, context.secrets) or f"HTTP {reply.status}"
            failed = login_error(service, f"{urlsplit(url).netloc} does not revoke it: {words}")
            failed.hint = f"cogcli services logout {service.id} --forget removes it here alone"
            raise failed
    return True


class TokenForms:
    """The forms of a login's requests to its authorization server."""

    def __init__(self, service: Service, context: InvokerContext, login: LoginRecord) -> None:
        self._service = service
        self._wanted = login_of(service)
        self._secrets = context.secrets
        self._login = login

    def renewal(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the form and the headers of a request of a new token. Raise ServiceResolutionError
        for a secret that is missing."""
        kept = self._login.secrets
        form = {"grant_type": self._login.grant, "resource": self._login.resource}
        if self._login.grant == "client_credentials":
            form |= {"scope": self._login.scope} if self._login.scope else {}
        else:
            token = kept.refresh_token if kept else None
            form |= {"grant_type": "refresh_token", "refresh_token": token or ""}
        return self._with_client(form)

    def revocation(self, token: str, kind: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return the form and the headers of a revocation (RFC 7009)."""
        return self._with_client({"token": token, "token_type_hint": kind})

    def _with_client(self, form: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        id, kept = self._login.client_id, self._login.secrets
        if self._login.client_auth == "none":
            return form | {"client_id": id}, {}
        if self._login.client_auth == "key":
            return form | {"client_id": id} | self._signed_proof(), {}
        secret = (kept.client_secret if kept else None) or ""
        if self._wanted.client_secret is not None:
            secret = self._secrets.resolve(self._wanted.client_secret)
        if self._login.client_auth == "basic":
            return form, {"Authorization": client_basic(self._secrets, id, secret)}
        return form | {"client_id": id, "client_secret": secret}, {}

    def _signed_proof(self) -> dict[str, str]:
        """Return the members of a client that proves itself by its key."""
        login = self._login
        signing = sign_assertion(
            self._service, self._wanted, self._secrets, login.client_id, login.issuer
        )
        return {
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": asyncio.run(signing),  # it only computes, and waits for nothing
        }


def post_form(
    service: Service,
    context: InvokerContext,
    url: str,
    form: dict[str, str],
    headers: dict[str, str],
    deadline: float,
) -> HttpReply:
    """Return the reply to a form. Raise ServiceResolutionError `service.login` for an address that
    secrets may not be sent to, and the errors of `Http.send` with `left` false."""
    if not is_protected(url):
        raise login_error(service, f"tokens are sent over https only, not to {url}")
    whole = {
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
        "User-Agent": f"cogcli/{__version__}",
        **headers,
    }
    body = urlencode(form).encode()
    request = HttpRequest("POST", url, tuple(whole.items()), body, network_of(service), _MAX_REPLY)
    http = Http(proxies=context.environ if context.use_env_proxy else None)
    try:
        return http.send(request, deadline, Cancellation())
    except RuntimeErrorBase as error:
        error.left = False  # nothing of the call that waits has left
        raise
    finally:
        http.close()


def token_reply(reply: HttpReply) -> TokenReply:
    """Return the members of a reply of a token server; none for one that is no JSON object."""
    value, _ = read_json(reply, _MAX_REPLY)
    return read_record(TokenReply, value if isinstance(value, dict) else {})


def with_tokens(
    login: LoginRecord, answer: TokenReply, now: str, context: InvokerContext
) -> LoginRecord | None:
    """Return a login with the tokens of a reply, after registering them as secrets. None without a bearer token.
    Members that the reply omits are unchanged (RFC 6749, 5.1 and 6).
    """
    for value in (answer.access_token, answer.refresh_token, answer.id_token):
        if value:
            context.secrets.add_secret(value)
    if not answer.bearer_token:
        return None
    kept = login.secrets
    secrets = LoginSecrets(
        access_token=answer.bearer_token,
        refresh_token=answer.refresh_token or (kept.refresh_token if kept else None),
        client_secret=kept.client_secret if kept else None,
    )
    is_client = login.grant == "client_credentials"
    return login.replace(
        secrets=secrets,
        scope=answer.scope or login.scope,
        until=None if answer.expires_in is None else _add_seconds(now, answer.expires_in),
        renewable=is_client or secrets.refresh_token is not None,
    )


def _add_seconds(now: str, expires_in: object) -> str:
    seconds = usable_seconds(token_seconds(expires_in))
    until = datetime.fromisoformat(now) + timedelta(seconds=seconds)
    return until.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _access_token(login: LoginRecord) -> str:
    return login.secrets.access_token if login.secrets else ""


def _is_issuer(wanted: McpLogin, issuer: str) -> bool:
    return wanted.issuer is None or wanted.issuer.rstrip("/") == issuer.rstrip("/")
