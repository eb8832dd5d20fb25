"""The invoker of each protocol. Its modules are imported at the protocol's first call: start-up pays for none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.protocols.invoker import Invoker, InvokerContext
from cogcli.protocols.pythoncall.invoker import PythonCall


def _openapi(context: InvokerContext) -> Invoker:
    from cogcli.protocols.openapi.invoker import OpenApi

    return OpenApi(context)


def _openrpc(context: InvokerContext) -> Invoker:
    from cogcli.protocols.openrpc.invoker import OpenRpc

    return OpenRpc(context)


def _mcp(context: InvokerContext) -> Invoker:
    from cogcli.protocols.mcp.invoker import Mcp

    return Mcp(context)


INVOKERS: Final[dict[str, Callable[[InvokerContext], Invoker]]] = {
    "pythoncall": PythonCall,
    "openapi": _openapi,
    "openrpc": _openrpc,
    "mcp": _mcp,
}
