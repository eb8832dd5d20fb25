"""Protocol to invoker. What a protocol needs is imported when the first call speaks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.protocols.invoker import Invoker, InvokerContext
from cogcli.protocols.pythoncall.invoker import PythonCall


def _openapi(surroundings: InvokerContext) -> Invoker:
    from cogcli.protocols.openapi.invoker import OpenApi

    return OpenApi(surroundings)


def _openrpc(surroundings: InvokerContext) -> Invoker:
    from cogcli.protocols.openrpc.invoker import OpenRpc

    return OpenRpc(surroundings)


def _mcp(surroundings: InvokerContext) -> Invoker:
    from cogcli.protocols.mcp.invoker import Mcp

    return Mcp(surroundings)


INVOKERS: Final[dict[str, Callable[[InvokerContext], Invoker]]] = {
    "pythoncall": PythonCall,
    "openapi": _openapi,
    "openrpc": _openrpc,
    "mcp": _mcp,
}
