"""The request of a command that starts a gateway, and what the command does meanwhile."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

from cogcli.app.serving.server_socket import Endpoint
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.options import RunOptions
from cogcli.gateway.clients import ONE_SESSION, SessionRule
from cogcli.gateway.program import NO_OTHER_LIMITS, SessionLimits


class HttpListener(NamedTuple):
    """The HTTP address of a gateway, and the token that each request must have."""

    address: Endpoint
    token: str
    socket: socket.socket
    """It listens already."""


class GatewayRequest(NamedTuple):
    """The options of the person who starts a gateway."""

    options: RunOptions
    """The options of its runs, with the pack and its intent."""
    host_file: str = ""
    """The file with `mcpServers`. Empty for the services of the project alone."""
    session: str = ""
    """The name of the session."""
    hold_seconds: int | None = None
    """The seconds for which a call that waits for a person is held. None for the maximum that hosts allow."""
    limits: SessionLimits = NO_OTHER_LIMITS
    rule: SessionRule = ONE_SESSION
    http: HttpListener | None = None
    """None for stdio."""
    asks_client: bool = False
    """Whether the person at the client may approve calls."""


class GatewayListener(NamedTuple):
    """Callbacks of the command that started the gateway."""

    called: Callable[[str, Mapping[str, str]], None]
    """Called when a call ends, or when its client must wait. The arguments are the name of the tool, and the known
    ones of `status`, `error`, `episode` and `step`.
    """
    bug: Callable[[BaseException], None]
    """Called with an unexpected exception."""
