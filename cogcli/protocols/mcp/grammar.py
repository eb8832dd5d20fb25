"""mcp: the keys of its services (docs/reference/service.md#keys)."""

from __future__ import annotations

from typing import Annotated, Final

from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.service_spec import SecretLocation, Url
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_types import Words
from cogcli.specs.protocol import Grammar


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
    """Where it is started.
    Default: the directory that holds `services/`"""
    url: Url | None = None
    """Streamable HTTP."""
    server: Words | None = None
    """One that comes with the package; R `service.server` where there is none of the name."""
    auth_ref: SecretLocation | None = None
    """Next to `url`: where the [bearer token](#secrets) is."""


GRAMMAR: Final = Grammar(
    settings=McpServer,
    addresses=("command", "url", "server"),
    exclusive=True,
    keys_with_address={"command": ("args", "env", "cwd"), "url": ("auth_ref",)},
    unused=("method",),
)
