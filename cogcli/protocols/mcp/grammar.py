"""mcp: the keys of its services (docs/reference/service.md#keys)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.service_spec import SecretLocation, Url
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_types import Words
from cogcli.specs.login_shape import check_login
from cogcli.specs.protocol import Grammar


class McpLogin(Spec):
    """The login of a person or a client to an MCP server."""

    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    """Whether a person agrees in a browser, or a client proves itself by its secret."""
    issuer: Url | None = None
    """The authorization server that issues the tokens.
    Default: the one that the server names at the first login"""
    scopes: tuple[Words, ...] = ()
    """The scopes that are asked for.
    Default: those that the server names"""
    client_id: SecretLocation | None = None
    """The reference to the id of your client.
    Default: each login registers a client"""
    client_secret: SecretLocation | None = None
    """The reference to the secret of your client, if it has one."""
    client_auth: Literal["basic", "body"] = "basic"
    """The way in which the client sends its secret: by `Authorization: Basic`, or in the body."""
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
