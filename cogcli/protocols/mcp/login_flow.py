"""A login, by the SDK's OAuth providers over a client that keeps our rules (docs/reference/mcp.md#logins).

1. The server's own URL is asked first; its 401 names what the SDK then looks for (RFC 9728, RFC 8414).
2. Every address is https, or http on loopback, and is judged by the `network` of the service. Redirects to another
   origin are not followed.
3. The authorization server is the one of the file, else that of an earlier login, else the one that the server names.
   Nothing is shown and no secret is sent before that is checked, and that it offers PKCE with S256.
4. The SDK checks `state`, `iss` (RFC 9207), the issuer and the resource (RFC 8707). Its own words are not quoted.
5. A login stands once the server has accepted the new token.
6. Endpoints that the file names take the place of all metadata: then nothing is looked up.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import parse_qs, urlsplit

from cogcli import __version__
from cogcli.base.errors import CallTimeoutError, RuntimeErrorBase
from cogcli.base.http import (
    HttpReply,
    async_client,
    cap_body,
    json_response,
    proxy_for,
    read_body,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.base.terminal_text import visible
from cogcli.declarations.login_record import LOGIN_SCHEMA, LoginRecord, LoginSecrets
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.service_spec import Service
from cogcli.protocols.http.client_tokens import TokenReply
from cogcli.protocols.http.failures import quote
from cogcli.protocols.http.headers import declared_headers
from cogcli.protocols.invoker import InvokerContext
from cogcli.protocols.mcp.errors import translate_error
from cogcli.protocols.mcp.login_assertion import sign_assertion
from cogcli.protocols.mcp.login_endpoints import NamedEndpoints
from cogcli.protocols.mcp.login_redirect import RedirectListener
from cogcli.protocols.mcp.login_scopes import join_scopes
from cogcli.protocols.mcp.login_store import login_error
from cogcli.protocols.mcp.login_tokens import is_protected, login_of, token_reply, with_tokens
from cogcli.specs.service import network_of

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import (
        AuthorizationCodeResult,
        OAuthClientInformationFull,
        OAuthClientMetadata,
        OAuthMetadata,
        OAuthToken,
    )

    from cogcli.base.http import AsyncClient, AsyncRequest, AsyncResponse, AsyncSend

REQUEST_SECONDS: Final = 30.0
"""Seconds for each request; a person has as long as the caller allows."""
_MAX_REPLY: Final = 256 * 1024
_MAX_NAME: Final = 100
_MAX_REQUESTS: Final = 40
"""Requests of one login, which the library counts as redirects. It follows none by itself."""
_CLIENT_AUTH: Final = {
    "client_secret_basic": "basic",
    "client_secret_post": "body",
    "private_key_jwt": "key",
}
_REFUSED: Final = (401, 403)
_BAD_REQUEST: Final = 400
_FIRST_REQUESTS: Final = ("initialize", "tools/list")
_FLOW_ERRORS: Final = (
    ("Protected resource metadata request failed", "the server does not give its metadata"),
    ("Protected resource", "the metadata of the server describes another server"),
    ("Authorization server metadata issuer", "the authorization server names another issuer"),
    ("Authorization response iss mismatch", "the answer is from another authorization server"),
    ("Authorization response missing iss", "the answer does not name its authorization server"),
    ("State parameter mismatch", "the answer belongs to another login"),
    ("No authorization server metadata", "the authorization server of the file gives no metadata"),
)
"""The beginnings of the SDK's own errors, with our words for each."""

ShowAddress = Callable[[str, str], None]
"""Receives the authorization server and the address that a person opens."""


class UserClaims(Record):
    """The claims of an ID token that contain the user's name. The token comes from the token server itself, over
    TLS.
    """

    email: str | None = None
    preferred_username: str | None = None
    name: str | None = None
    sub: str | None = None


class _Memory:
    """The storage of one login in memory. Nothing is on disk before the login succeeds."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.tokens: OAuthToken | None = None
        self.client = client

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class LoginParty(NamedTuple):
    """Who logs in where: a service, its context, the layer of its file, the issuer of an earlier login, empty without
    one, and the scopes that a person asks for in addition to those of the file or the server."""

    service: Service
    context: InvokerContext
    layer: str
    earlier_issuer: str
    scopes: tuple[str, ...] = ()


def log_in(party: LoginParty, show: ShowAddress, seconds: float) -> LoginRecord:
    """Return a login that the server accepts. A person has `seconds` to agree in a browser.

    Raise ServiceResolutionError `service.login`, CallTimeoutError, and the errors of an HTTP call;
    UnusableEnvironment for a port that is not free."""
    return asyncio.run(_log_in(party, show, seconds))


async def _log_in(party: LoginParty, show: ShowAddress, seconds: float) -> LoginRecord:
    flow = _Flow(party, show)
    try:
        async with asyncio.timeout(seconds):
            return await flow.run()
    except TimeoutError as error:
        text = f"service `{party.service.id}`: no answer of the browser within {seconds:g} s"
        raise CallTimeoutError("call.timeout", text, left=False) from error


class _Flow:
    """One login."""

    def __init__(self, party: LoginParty, show: ShowAddress) -> None:
        self._party = party
        self._show = show
        self._wanted = login_of(party.service)
        self._named_endpoints = NamedEndpoints.of(party.service)
        self._url = party.service.keys.address
        self._secrets = party.context.secrets
        self._listener: RedirectListener | None = None
        self._provider: OAuthClientProvider | None = None
        self._state = ""
        self._reply: TokenReply | None = None
        """The last reply of the token server."""
        self._failure: RuntimeErrorBase | None = None
        """The reason why the flow ended, as recorded by one of its hooks."""

    async def run(self) -> LoginRecord:
        if not is_protected(self._url):
            raise self._login_error("tokens are sent over https only, or on loopback")
        now = self._party.context.clock.now()
        async with AsyncExitStack() as stack:
            if self._wanted.grant == "authorization_code":
                listener = RedirectListener(self._wanted.port)
                self._listener = await stack.enter_async_context(listener)
            memory = _Memory(self._named_client())
            self._provider = self._make_provider(memory)
            try:
                status = await self._ask_server()
            except Exception as error:
                raise self._translate_error(error) from error
        if self._reply is None or memory.tokens is None:
            raise self._login_error(f"the server asks for no login (HTTP {status})")
        if status in _REFUSED:
            raise self._login_error(f"the server does not accept its new token (HTTP {status})")
        return self._build_record(now)

    # -- the parts of the SDK -----------------------------------------------------------------------------------------

    def _named_client(self) -> OAuthClientInformationFull | None:
        """Return the client that the file names, None if the login registers one."""
        from mcp.shared.auth import OAuthClientInformationFull

        if self._wanted.client_id is None:
            return None
        method, secret = "none", None
        if self._wanted.signing_key is not None:
            method = "private_key_jwt"
        elif self._wanted.client_secret is not None:
            secret = self._secrets.resolve(self._wanted.client_secret)
            method = f"client_secret_{'basic' if self._wanted.client_auth == 'basic' else 'post'}"
        return OAuthClientInformationFull(
            client_id=self._secrets.read(self._wanted.client_id),
            client_secret=secret,
            token_endpoint_auth_method=method,
        )

    def _make_provider(self, memory: _Memory) -> OAuthClientProvider:
        from mcp.client.auth import OAuthClientProvider
        from mcp.shared.auth import OAuthClientMetadata
        from pydantic import AnyUrl

        if self._listener is None:
            provider = self._make_client_provider(memory)
        else:
            about = OAuthClientMetadata(
                redirect_uris=[AnyUrl(self._listener.url)],
                client_name="cogcli",
                software_id="cogcli",
                software_version=__version__,
            )
            provider = OAuthClientProvider(
                self._url, about, memory, self._on_address, self._on_answer,
                self._wanted.client_metadata_url,
            )  # fmt: skip
        found = provider.context
        found.client_metadata = _with_chosen_scopes(found.client_metadata, self._choose_scopes)
        return provider

    def _make_client_provider(self, memory: _Memory) -> OAuthClientProvider:
        """Return the provider of a client that proves itself by its secret or its key."""
        from mcp.client.auth.extensions.client_credentials import (
            ClientCredentialsOAuthProvider,
            PrivateKeyJWTOAuthProvider,
        )

        client, issuer = memory.client, self._wanted.issuer
        assert client is not None  # noqa: S101  # by the checks of the file
        if self._wanted.signing_key is not None:
            return PrivateKeyJWTOAuthProvider(
                self._url, memory, client.client_id, self._sign_assertion, issuer=issuer
            )
        assert client.client_secret is not None  # noqa: S101
        return ClientCredentialsOAuthProvider(
            self._url, memory, client.client_id, client.client_secret,
            "client_secret_basic" if self._wanted.client_auth == "basic" else "client_secret_post",
            issuer=issuer,
        )  # fmt: skip

    async def _sign_assertion(self, issuer: str) -> str:
        """Return the proof of the client for an authorization server, which the SDK has checked."""
        client_id = self._secrets.read(self._wanted.client_id or "")
        try:
            return await sign_assertion(
                self._party.service, self._wanted, self._secrets, client_id, issuer
            )
        except RuntimeErrorBase as error:
            self._failure = error
            raise

    def _choose_scopes(self, from_server: str | None) -> str | None:
        """Return the scopes to ask for: those of the file, else those that the server names, and those of the
        person."""
        base = self._wanted.scopes or (from_server or "").split()
        return join_scopes(base, self._party.scopes)

    async def _ask_server(self) -> int:
        """Return the status of the server's reply to the last request, after the login. Some servers let every client
        connect, and require a login for later requests.
        """
        service, context = self._party.service, self._party.context
        environ = context.environ if context.use_env_proxy else {}
        parts = urlsplit(self._url)
        proxy = proxy_for(environ, parts.scheme, parts.hostname or "") if environ else ""
        client = async_client(
            network_of(service), {}, REQUEST_SECONDS, environ=environ, proxy=proxy,
            through=self._answer_from_file if self._named_endpoints else None,
        )  # fmt: skip
        client.max_redirects = _MAX_REQUESTS
        client.event_hooks = {"request": [self._check_request], "response": [self._check_response]}
        own = declared_headers(
            service, self._secrets, service.metadata.headers, trusted=service.trusted
        )
        async with client:
            status, session = 0, ""
            for method in _FIRST_REQUESTS:
                headers = {**own, **({"mcp-session-id": session} if session else {})}
                request = _first_request(client, self._url, method, headers, modern=status >= 400)
                response = await client.send(request, auth=self._provider, stream=True)
                await response.aclose()
                status = int(response.status_code)
                session = response.headers.get("mcp-session-id", "")
                if self._reply is not None or not (status < 300 or status == _BAD_REQUEST):
                    break
            return status

    # -- our rules ----------------------------------------------------------------------------------------------------

    async def _answer_from_file(self, request: AsyncRequest, send: AsyncSend) -> AsyncResponse:
        """Return the reply to a request. The SDK gets only metadata by GET: of the server first, then of the
        authorization server. It comes from the file, whatever address the server names for it."""
        if request.method != "GET" or self._named_endpoints is None or self._provider is None:
            return await send(request)
        is_first = self._provider.context.protected_resource_metadata is None
        named = self._named_endpoints
        return json_response(
            request, named.resource_document if is_first else named.server_document
        )

    async def _check_request(self, request: AsyncRequest) -> None:
        """Raise ServiceResolutionError for an address that must not receive secrets, and for one that the SDK guesses
        because metadata is missing.
        """
        if not is_protected(str(request.url)):
            host = request.url.netloc.decode()
            raise self._remember_failure(f"`{visible(host)}` is not https: nothing is sent there")
        if request.method == "POST" and str(request.url) != self._url:
            metadata = self._server_metadata()
            has_client = self._provider is not None and self._provider.context.client_info
            if not has_client and metadata.registration_endpoint is None:
                raise self._remember_failure("the authorization server registers no clients")

    async def _check_response(self, response: AsyncResponse) -> None:
        """Learn the secrets of a reply before the SDK reads it, and end the flow if it is a refusal."""

        def too_long() -> None:
            self._remember_failure("a reply of the authorization server is too long")

        if str(response.request.url) == self._url:
            return  # the server itself: only its status is read
        cap_body(response, _MAX_REPLY, too_long)
        if response.request.method != "POST":
            return
        headers = tuple(response.headers.multi_items())
        reply = HttpReply(response.status_code, headers, await read_body(response))
        answer = token_reply(reply)
        for value in (answer.access_token, answer.refresh_token, answer.id_token):
            if value:
                self._secrets.add_secret(value)
        self._learn_client(reply)
        if response.status_code >= 300:
            words = quote(answer.refusal, self._secrets)
            host = visible(response.request.url.netloc.decode())
            raise self._refusal(f"{host} refuses the login: {words or f'HTTP {reply.status}'}")
        self._reply = answer

    def _learn_client(self, reply: HttpReply) -> None:
        """Mask the secret of a client in the reply to its registration."""
        try:
            found = read_record(RegisteredClient, loads(reply.body))
        except InvalidJson:
            return
        if found.client_secret:
            self._secrets.add_secret(found.client_secret)

    async def _on_address(self, address: str) -> None:
        """Check the authorization server, and show the address that a person opens."""
        metadata = self._server_metadata()
        issuer = str(metadata.issuer)
        for expected, source in (
            (self._wanted.issuer or "", "its file names"),
            (self._party.earlier_issuer, "the earlier login was at"),
        ):
            if expected and expected.rstrip("/") != issuer.rstrip("/"):
                raise self._remember_failure(
                    f"the server names the authorization server {visible(issuer)}, {source} {visible(expected)}"
                )
        if "S256" not in (metadata.code_challenge_methods_supported or ()):
            raise self._remember_failure(f"{visible(issuer)} does not offer PKCE with S256")
        if not is_protected(address):
            raise self._remember_failure(f"{visible(issuer)} is not reached over https")
        self._require_named_client()
        self._state = parse_qs(urlsplit(address).query)["state"][0]
        self._show(issuer, address)

    async def _on_answer(self) -> AuthorizationCodeResult:
        from mcp.shared.auth import AuthorizationCodeResult

        assert self._listener is not None  # noqa: S101  # without it nothing is shown
        answer = await self._listener.wait(self._state)
        if answer.code:
            self._secrets.add_secret(answer.code)
        if answer.error:
            words = quote(answer.error, self._secrets)
            raise self._refusal(f"the authorization server gave no code: {words}")
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.iss)

    def _require_named_client(self) -> None:
        """Raise ServiceResolutionError if another client logs in than the one that the file names."""
        client = self._provider.context.client_info if self._provider else None
        if self._wanted.client_id is None or client is None:
            return
        if client.client_id != self._secrets.read(self._wanted.client_id):
            raise self._remember_failure(
                "the authorization server does not take the client of the file"
            )

    def _server_metadata(self) -> OAuthMetadata:
        found = self._provider.context.oauth_metadata if self._provider else None
        if found is None:
            raise self._remember_failure("the server names no authorization server with metadata")
        return found

    # -- the end ------------------------------------------------------------------------------------------------------

    def _build_record(self, now: str) -> LoginRecord:
        """Return the login. `now` is a time before its first request."""
        assert self._provider is not None  # noqa: S101  # by `run`
        assert self._reply is not None  # noqa: S101
        found, metadata = self._provider.context, self._server_metadata()
        client = found.client_info
        assert client is not None  # noqa: S101  # the SDK asks for no token without one
        own_secret = client.client_secret if self._wanted.client_secret is None else None
        method = client.token_endpoint_auth_method or "none"
        endpoints = (metadata.token_endpoint, metadata.revocation_endpoint)
        token_endpoint, revocation_endpoint = (None if e is None else str(e) for e in endpoints)
        begun = LoginRecord(
            schema=LOGIN_SCHEMA,
            service=self._party.service.id,
            server=self._url,
            layer=self._party.layer,
            issuer=str(metadata.issuer),
            resource=found.get_resource_url(),
            token_endpoint=token_endpoint or "",
            revocation_endpoint=revocation_endpoint,
            grant=self._wanted.grant,
            client_id=client.client_id,
            client_auth=_CLIENT_AUTH.get(method, "none"),
            scope=found.client_metadata.scope,
            user=self._user_name(),
            since=now,
            renewable=False,
            keyring=True,
            secrets=LoginSecrets(access_token="", client_secret=own_secret),
        )
        login = with_tokens(begun, self._reply, now, self._party.context)
        if login is None:
            raise self._login_error("the authorization server gave no bearer token")
        return login

    def _user_name(self) -> str | None:
        """Return the user's name in an ID token; None without a token or a name."""
        parts = ((self._reply.id_token if self._reply else None) or "").split(".")
        if len(parts) != 3:
            return None
        try:
            padded = parts[1] + "=" * (-len(parts[1]) % 4)
            claims = read_record(UserClaims, loads(base64.urlsafe_b64decode(padded)))
        except (ValueError, InvalidJson):
            return None
        named = (claims.email, claims.preferred_username, claims.name, claims.sub)
        user = next(filter(None, named), None)
        return visible(" ".join(user.split()))[:_MAX_NAME] if user else None

    def _translate_error(self, error: Exception) -> RuntimeErrorBase:
        """Return the cogcli error for the exception that ended the flow."""
        from mcp.client.auth import OAuthFlowError
        from pydantic import ValidationError

        if self._failure is not None:
            return self._failure
        if isinstance(error, OAuthFlowError):
            words = str(error)
            for beginning, ours in _FLOW_ERRORS:
                if words.startswith(beginning):
                    return self._login_error(ours)
            return self._login_error("the authorization server cannot be used")
        if isinstance(error, ValidationError):
            return self._login_error("a reply of the authorization server is malformed")
        return translate_error(error, left=False)

    def _remember_failure(self, why: str) -> RuntimeErrorBase:
        """Store why the flow ends, and return the error to raise, because the SDK may replace it."""
        self._failure = self._login_error(why)
        return self._failure

    def _refusal(self, why: str) -> RuntimeErrorBase:
        """Store a refusal with the scopes that were asked for, and return the error to raise."""
        scopes = self._provider.context.client_metadata.scope if self._provider else None
        asked = f"; asked for the scopes {quote(scopes, self._secrets)}" if scopes else ""
        return self._remember_failure(f"{why}{asked}")

    def _login_error(self, why: str) -> RuntimeErrorBase:
        failed = login_error(self._party.service, why)
        failed.hint = f"look at `url` and `login` in {self._party.service.file or 'its file'}"
        return failed


def _first_request(
    client: AsyncClient, url: str, method: str, headers: dict[str, str], *, modern: bool
) -> AsyncRequest:
    """Return a request that has no effect. `modern`: whether it is of the protocol without a
    handshake, which a server that refuses `initialize` may speak."""
    from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

    version = LATEST_MODERN_VERSION if modern else LATEST_HANDSHAKE_VERSION
    about = {"name": "cogcli", "version": __version__}
    params: dict[str, object] = {}
    if method == "initialize":
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": about}
    elif modern:
        prefix = "io.modelcontextprotocol/"
        values = {"protocolVersion": version, "clientInfo": about, "clientCapabilities": {}}
        params = {"_meta": {f"{prefix}{name}": value for name, value in values.items()}}
    fixed = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": version,
        **({"mcp-method": method} if modern else {}),
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.build_request("POST", url, json=body, headers={**headers, **fixed})


def _with_chosen_scopes(
    metadata: OAuthClientMetadata, choose: Callable[[str | None], str | None]
) -> OAuthClientMetadata:
    """Return the metadata of a client with `choose` applied to its scopes. The SDK replaces them by those that the
    server names before it registers the client and asks for a token."""
    from mcp.shared.auth import OAuthClientMetadata

    class ChosenScopes(OAuthClientMetadata):
        def __setattr__(self, name: str, value: object) -> None:
            is_scope = name == "scope"
            super().__setattr__(name, choose(cast("str | None", value)) if is_scope else value)

    return ChosenScopes.model_validate(metadata.model_dump())


class RegisteredClient(Record):
    """The reply to the registration of a client."""

    client_secret: str | None = None
