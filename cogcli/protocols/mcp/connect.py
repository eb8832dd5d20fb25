"""Connections to the server of an mcp service, by its program or its URL
(docs/reference/protocols.md#mcp-stdio, docs/reference/protocols.md#mcp-http)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cogcli.base.addresses import literal_refusal
from cogcli.base.allowed_hosts import host_refusal
from cogcli.base.errors import SafetyScopeError, ServiceResolutionError
from cogcli.base.search_path import NAME as SEARCH_PATH
from cogcli.base.search_path import resolve_entries
from cogcli.declarations.service_spec import Service
from cogcli.protocols.http import headers
from cogcli.protocols.invoker import InvokerContext, inherited_variables
from cogcli.protocols.mcp.errors import Refusals
from cogcli.protocols.mcp.grammar import McpServer
from cogcli.protocols.mcp.process import Program
from cogcli.protocols.mcp.session import McpTransport
from cogcli.protocols.mcp.stdio import Stdio
from cogcli.specs.service import network_of

if TYPE_CHECKING:
    from cogcli.protocols.mcp.http import McpEndpoint


_BYTECODE: Final = "PYTHONPYCACHEPREFIX"
"""The variable with the folder in which Python stores bytecode."""
_PYTHON: Final = re.compile(r"python[\d.]*(?:\.exe)?")


def require_trust(service: Service) -> None:
    """Raise ServiceResolutionError `service.untrusted` for a program of an untrusted layer."""
    if "command" in service.settings and not service.trusted:
        text = f"service `{service.id}`: this project may not start programs of its own"
        raise ServiceResolutionError(
            "service.untrusted", text, hint="cogcli config trust", left=False
        )


def require_sdk() -> None:
    """Import the SDK. Raise ServiceResolutionError `env.extra` with the install command."""
    import logging

    try:
        import mcp  # noqa: F401
    except ImportError as error:
        hint = "pip install 'cogcli[mcp]'"
        text = "this needs `mcp`, which is not installed"
        raise ServiceResolutionError("env.extra", text, hint=hint, left=False) from error
    # The SDK logs data that our records already contain; without a handler, Python would print it to stderr.
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def transport_of(service: Service, context: InvokerContext) -> Callable[[], McpTransport]:
    """Return a factory of connections to a service's server.

    Raise ServiceResolutionError if a secret is missing, SafetyScopeError for an address that is not
    allowed."""
    if "url" in service.settings:
        from cogcli.protocols.mcp.http import StreamableHttp

        address = _endpoint(service, context)
        return lambda: StreamableHttp(address)

    server = McpServer.of(service.settings)
    own = {name: context.secrets.expand(text) for name, text in server.env.items()}
    directory = _working_directory(service)
    if SEARCH_PATH in own:
        own[SEARCH_PATH] = resolve_entries(own[SEARCH_PATH], directory)
    environ = {**inherited_variables(context.environ), **own}
    command, args = server.command or "", server.args
    if context.bytecode_dir:
        environ[_BYTECODE] = context.bytecode_dir
        if _PYTHON.fullmatch(os.path.basename(command)):
            # `-I` and `-E` make Python ignore the variable.
            args = ("-X", f"pycache_prefix={context.bytecode_dir}", *args)
    program = Program(command, args, directory, environ)
    return lambda: Stdio(program, context.secrets.mask_text)


def _endpoint(service: Service, context: InvokerContext) -> McpEndpoint:
    from cogcli.base.http import proxy_for
    from cogcli.protocols.mcp.http import McpEndpoint, login_tokens

    url, secrets, network = service.settings["url"], context.secrets, network_of(service)
    parts = urlsplit(url)
    host = parts.hostname or ""
    if refusal := host_refusal(host, parts.port, network) or literal_refusal(host, network):
        raise SafetyScopeError("safety.scope", f"{parts.hostname} {refusal}", left=False)
    own = {
        **headers.declared_headers(
            service, secrets, service.metadata.headers, trusted=service.trusted
        ),
        **headers.credentials(service, secrets),
    }
    environ = context.environ if context.use_env_proxy else {}
    proxy = proxy_for(environ, parts.scheme, parts.hostname or "") if environ else ""
    refusals = Refusals(service, secrets, context.clock)
    return McpEndpoint(url, network, own, environ, proxy, refusals, login_tokens(service, context))


def identity(service: Service) -> object:
    """Return the key of a server's pins: its URL, or its command line and directory. It does not
    depend on the service's id."""
    server = McpServer.of(service.settings)
    if server.url is not None:
        return {"url": server.url}
    return {
        "command": server.command,
        "args": list(server.args),
        "cwd": _working_directory(service),
    }


def _working_directory(service: Service) -> str:
    """Return the working directory of a server: its layer's root, or `cwd` below it."""
    below = McpServer.of(service.settings).cwd or ""
    return os.path.abspath(os.path.join(service.root or os.curdir, below))
