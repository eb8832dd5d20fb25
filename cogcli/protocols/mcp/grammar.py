"""mcp: the keys of its services (docs/reference/service.md#keys)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.service_spec import SecretLocation, Url
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_types import Words
from cogcli.specs.login_shape import check_login
from cogcli.specs.protocol import Grammar

_HOST_PATH: Final = r"[^/?#\s@\\]+(?:/[^?#\s@\\]*)?"
_LOOPBACK: Final = r"(?:127\.0\.0\.1|\[::1\]|localhost)(?::[0-9]{1,5})?(?:/[^?#\s@\\]*)?"
Endpoint = Annotated[
    str,
    SpecLimits(
        pattern=rf"/(?:[^/?#\s@\\][^?#\s@\\]*)?|https://{_HOST_PATH}|http://{_LOOPBACK}",
        code="service.url",
        expected="a path such as /token, or an https URL without user info and query",
        hint="write /PATH for the origin of `url`, or https://HOST/PATH",
        secretive=True,
    ),
]
"""An address of an authorization server: on the origin of the service, or a whole one."""
DocumentUrl = Annotated[
    str,
    SpecLimits(
        pattern=r"https://[^/?#\s@\\]+/[^?#\s@\\]+",
        code="service.url",
        expected="an https URL with a path, without user info and query",
        hint="write https://HOST/PATH of the document that you host",
        secretive=True,
    ),
]
SCOPE: Final = r"[\x21\x23-\x5b\x5d-\x7e]{1,200}"
"""A scope (RFC 6749, 3.3) of a length that can be read."""
Scope = Annotated[
    str,
    SpecLimits(
        pattern=SCOPE,
        expected="one scope: 1 to 200 printable ASCII characters without space, quote and backslash",
        hint="write each scope as an item of its own, as in scopes: [notes.read, notes.write]",
    ),
]


SigningAlgorithm = Literal[
    "ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA"
]
"""Signatures by a private key. Algorithms with a shared secret are not among them."""


class LoginEndpoints(Spec):
    """The addresses of an authorization server that publishes no metadata."""

    authorize: Endpoint | None = None
    """Where a person agrees: a path of the origin of `url`, or an https URL."""
    token: Endpoint
    """Where tokens are issued."""
    register: Endpoint | None = None
    """Where clients register.
    Default: none, so `client_id` is required"""


class McpLogin(Spec):
    """The login of a person or a client to an MCP server."""

    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    """Whether a person agrees in a browser, or a client proves itself by its secret or key."""
    issuer: Url | None = None
    """The authorization server that issues the tokens.
    Default: the one that the server names at the first login"""
    scopes: tuple[Scope, ...] = ()
    """The scopes that are asked for.
    Default: those that the server names"""
    client_id: SecretLocation | None = None
    """The reference to the id of your client.
    Default: each login registers a client"""
    client_secret: SecretLocation | None = None
    """The reference to the secret of your client, if it has one."""
    client_auth: Literal["basic", "body"] = "basic"
    """The way in which the client sends its secret: by `Authorization: Basic`, or in the body."""
    signing_key: SecretLocation | None = None
    """The reference to the private key (PEM) by which your client [proves itself](mcp.md#key) instead of a secret."""
    signing_algorithm: SigningAlgorithm | None = None
    """The algorithm of the signature."""
    client_metadata_url: DocumentUrl | None = None
    """The address of a document about your client, which [you host](mcp.md#document). It is the id of your client where
    the authorization server takes such ids."""
    endpoints: LoginEndpoints | None = None
    """The addresses of an authorization server [without metadata](mcp.md#endpoints); nothing is looked up then."""
    port: Annotated[int, SpecLimits(minimum=1024, maximum=65535)] | None = None
    """The port of the redirect `http://127.0.0.1:PORT/callback`, for a client that you registered.
    Default: any free one"""


class McpServer(Spec):
    """An MCP server."""

    command: Words | None = None
    """One program, no shell; one that is not here is W `service.program`."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: Annotated[dict[str, str], SpecLimits(foreign=True)] = NOTHING
    """Its variables next to the [inherited ones](protocols.md#mcp-stdio); `${NAME}` is a variable of
    yours."""
    cwd: Words | None = None
    """The directory in which the program is started.
    Default: the directory that holds `services/`"""
    url: Url | None = None
    """Streamable HTTP."""
    server: Words | None = None
    """One that comes with the package; R `service.server` where there is none of the name."""
    auth_ref: SecretLocation | None = None
    """Next to `url`: where the [bearer token](#secrets) is."""
    login: McpLogin | None = None
    """Next to `url`: its tokens come from a [login](mcp.md#logins); `{}` for the defaults."""
    sampling: Literal["deny", "allow"] = "deny"
    """Whether the server may [ask your model](mcp.md#sampling) inside a call, next to `command` or `url`."""


GRAMMAR: Final = Grammar(
    settings=McpServer,
    addresses=("command", "url", "server"),
    exclusive=True,
    keys_with_address={
        "command": ("args", "env", "cwd", "sampling"),
        "url": ("auth_ref", "login", "sampling"),
    },
    unused=("method",),
    check_service=check_login,
)
