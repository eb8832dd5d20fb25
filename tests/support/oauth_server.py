"""An authorization server and an MCP server behind it, both real ones on loopback.

`Desk` is what the authorization server knows, and how it misbehaves on demand.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen

import jwt
import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

MARK = "sesame"
"""Every secret of the server holds it, so that a search finds all of them."""


@dataclass
class Desk:
    """The state of an authorization server."""

    issuer: str = ""
    resource: str = ""
    lifetime: int | None = 3600
    client_secret: str | None = None
    """The secret that a registered client gets; None for a public client."""
    audience: str | None = None
    """The resource of each token, instead of the one that was asked for."""
    iss: str | None = ""
    """`iss` of an answer; empty for the issuer, None for none."""
    state: str | None = None
    """`state` of an answer, instead of the one that was sent."""
    error: str = ""
    pkce: tuple[str, ...] = ("S256",)
    metadata: dict[str, Any] = field(default_factory=dict)
    """Members of the metadata, instead of its own."""
    servers: list[str] = field(default_factory=list)
    """The authorization servers that the MCP server names, instead of this one."""
    token_status: int = 200
    """The status of the next replies of the token endpoint; below 300 they are tokens."""
    revoke_status: int = 200
    connect_status: int = 0
    """The status of the MCP server's reply to `initialize`, for which it wants no token; 0 if it does."""
    grants: list[str] = field(default_factory=list)
    """The grants of the tokens that were given."""
    requests: list[str] = field(default_factory=list)
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    tokens: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, str] = field(default_factory=dict)
    """The refresh tokens that are valid, with the scope of their login."""
    scopes: list[str] = field(default_factory=list)
    """The scopes of each authorization request."""
    lookups: list[str] = field(default_factory=list)
    """The paths of the metadata that were asked for."""
    robot_key: str = ""
    """The public key of the client `robot`, which proves itself by a signature; empty for a secret."""
    proofs: list[str] = field(default_factory=list)
    """The ids of the proofs of that client."""
    wanted_scope: str = ""
    """The scope that a call of a tool needs; empty for none."""
    challenge: str = ""
    """The challenge of a refusal for its lack, instead of a proper one."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    def expire(self) -> None:
        """Let every access token end."""
        self.tokens.clear()

    # -- the endpoints ------------------------------------------------------------------------------------------------

    async def describe(self, request: Request) -> Response:
        self.lookups.append(request.url.path)
        own = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "revocation_endpoint": f"{self.issuer}/revoke",
            "code_challenge_methods_supported": list(self.pkce),
            "authorization_response_iss_parameter_supported": True,
        }
        return JSONResponse({k: v for k, v in {**own, **self.metadata}.items() if v is not None})

    async def register(self, request: Request) -> Response:
        about = await request.json()
        id = f"client-{len(self.clients)}"
        method = "client_secret_post" if self.client_secret else "none"
        own = {"client_id": id, "token_endpoint_auth_method": method}
        own |= {"client_secret": self.client_secret} if self.client_secret else {}
        self.clients[id] = {**about, **own}
        return JSONResponse(self.clients[id], 201)

    async def authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        client = self.clients[asked["client_id"]]
        assert _fits_redirect(asked["redirect_uri"], client["redirect_uris"])
        self.scopes.append(asked.get("scope", ""))
        assert asked["code_challenge_method"] == "S256"
        answer = {"state": asked["state"] if self.state is None else self.state}
        if self.iss is not None:
            answer["iss"] = self.iss or self.issuer
        if self.error:
            answer["error"] = self.error
        else:
            code = answer["code"] = f"code-{MARK}-{secrets.token_hex(8)}"
            self.codes[code] = asked
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answer)}", 302)

    async def give(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        self.requests.append(form.get("grant_type", ""))
        if self.token_status >= 300:
            words = {"error": "invalid_grant", "error_description": "no more"}
            elsewhere = {"location": "https://id.example.org/token"}
            return JSONResponse(words, self.token_status, elsewhere)
        fault = self._fault(request, form)
        if fault:
            return JSONResponse({"error": fault}, 400)
        self.grants.append(form["grant_type"])
        return JSONResponse(self._tokens(form))

    async def revoke(self, request: Request) -> Response:
        token = str((await request.form())["token"])
        if self.revoke_status < 300:
            self.tokens.pop(token, None)
            self.refresh.pop(token, None)
        return Response(status_code=self.revoke_status)

    def _fault(self, request: Request, form: dict[str, str]) -> str:
        if form["grant_type"] == "client_credentials" and self.robot_key:
            return self._fault_of_proof(form)
        if form["grant_type"] == "client_credentials":
            basic = base64.b64encode(f"robot:{MARK}-robot-secret".encode()).decode()
            return (
                "" if request.headers.get("authorization") == f"Basic {basic}" else "invalid_client"
            )
        client = self.clients.get(form.get("client_id", ""), {})
        if client.get("client_secret") != form.get("client_secret"):
            return "invalid_client"
        if form["grant_type"] == "refresh_token":
            scope = self.refresh.pop(form["refresh_token"], None)
            form["scope"] = scope or ""
            return "" if scope else "invalid_grant"
        asked = self.codes.pop(form["code"], None)
        if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
            return "invalid_grant"
        form["scope"] = asked.get("scope", "")
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        wanted = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        return "" if wanted == asked["code_challenge"] else "invalid_grant"

    def _fault_of_proof(self, form: dict[str, str]) -> str:
        """Check the signed proof of a client, which counts once (RFC 7523)."""
        kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        try:
            claims = jwt.decode(
                form["client_assertion"], self.robot_key, ["ES256"], audience=self.issuer, issuer="robot",
                options={"require": ["exp", "jti", "sub"]}, subject="robot",
            )  # fmt: skip
        except jwt.PyJWTError:
            return "invalid_client"
        if form.get("client_assertion_type") != kind or claims["jti"] in self.proofs:
            return "invalid_client"
        self.proofs.append(claims["jti"])
        return ""

    def _tokens(self, form: dict[str, str]) -> dict[str, Any]:
        access, refresh = (
            f"{kind}-{MARK}-{secrets.token_hex(8)}" for kind in ("access", "refresh")
        )
        scope = form.get("scope") or "notes"
        end = None if self.lifetime is None else int(time.time()) + self.lifetime
        self.tokens[access] = AccessToken(
            token=access, client_id=form.get("client_id", "robot"), scopes=scope.split(), expires_at=end,
            resource=self.audience or form.get("resource"),
        )  # fmt: skip
        given: dict[str, Any] = {"access_token": access, "token_type": "bearer", "scope": scope}
        if self.lifetime is not None:
            given["expires_in"] = self.lifetime
        if form["grant_type"] != "client_credentials":
            self.refresh[refresh] = scope
            claims = base64.urlsafe_b64encode(json.dumps({"email": "ada@example.org"}).encode())
            given |= {"refresh_token": refresh, "id_token": f"x.{claims.decode().rstrip('=')}.x"}
        return given


def free_socket() -> socket.socket:
    """A socket of loopback that is bound, so that its port is known before its server starts."""
    found = socket.socket()
    found.bind(("127.0.0.1", 0))
    return found


@contextmanager
def run_app(app: Any, bound: socket.socket) -> Iterator[None]:
    """A server of an ASGI application on a socket."""
    runner = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    thread = threading.Thread(target=runner.run, args=([bound],), daemon=True)
    thread.start()
    while not runner.started:
        time.sleep(0.01)
    try:
        yield
    finally:
        runner.should_exit = True
        thread.join(20)


def add(a: int, b: int) -> dict[str, int]:
    return {"sum": a + b}


@contextmanager
def guarded_server() -> Iterator[Desk]:
    """An MCP server with the tool `add`, that wants a token of an authorization server."""
    desk = Desk()
    with ExitStack() as stack:
        bound = free_socket()
        desk.issuer = f"http://127.0.0.1:{bound.getsockname()[1]}"
        routes = [
            Route("/.well-known/oauth-authorization-server", desk.describe),
            Route("/register", desk.register, methods=["POST"]),
            Route("/authorize", desk.authorize),
            Route("/token", desk.give, methods=["POST"]),
            Route("/revoke", desk.revoke, methods=["POST"]),
        ]
        stack.enter_context(run_app(Starlette(routes=routes), bound))
        own = free_socket()
        origin = f"http://127.0.0.1:{own.getsockname()[1]}"
        desk.resource = f"{origin}/mcp"
        settings = AuthSettings(
            issuer_url=desk.issuer, resource_server_url=desk.resource, validate_token_resource=True
        )
        server = MCPServer("sums", token_verifier=desk, auth=settings)
        server.tool()(add)
        stack.enter_context(run_app(_Door(desk, server.streamable_http_app()), own))
        yield desk


class _Door:
    """The MCP server, that may let every client connect, and may want more scopes for a call."""

    def __init__(self, desk: Desk, app: Any) -> None:
        self._desk = desk
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        desk = self._desk
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        if ".well-known" in scope["path"]:
            desk.lookups.append(scope["path"])
        if not (desk.connect_status or desk.wanted_scope):
            return await self._app(scope, receive, send)
        request = Request(scope, receive)
        body = await request.body()
        if desk.connect_status and b'"initialize"' in body:
            return await Response(status_code=desk.connect_status)(scope, receive, send)
        if b'"tools/call"' in body and not self._has_scope(request):
            challenge = f'Bearer error="insufficient_scope", scope="notes {desk.wanted_scope}"'
            headers = {"www-authenticate": desk.challenge or challenge}
            return await Response(status_code=403, headers=headers)(scope, receive, send)

        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return parts.pop() if parts else await receive()

        return await self._app(scope, again, send)

    def _has_scope(self, request: Request) -> bool:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        known = self._desk.tokens.get(token)
        wanted = self._desk.wanted_scope
        return known is None or not wanted or wanted in known.scopes


def _fits_redirect(uri: str, known: list[str]) -> bool:
    """Whether an address is registered. On loopback one without a port stands for every port (RFC 8252, 7.3)."""
    parts = urlsplit(uri)
    return uri in known or f"{parts.scheme}://{parts.hostname}{parts.path}" in known


def browse(issuer: str, address: str) -> None:
    """Open an address as a browser does, in the background: its redirect leads to the listener."""
    threading.Thread(target=_open, args=(address,), daemon=True).start()


def _open(address: str) -> None:
    try:
        urlopen(address, timeout=20).read()
    except OSError:
        return


def parameters_of(address: str) -> dict[str, str]:
    """The parameters of an authorization request."""
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
