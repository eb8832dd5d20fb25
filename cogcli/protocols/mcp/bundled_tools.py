"""The tool servers that the package contains: tables of functions, called without any server
(docs/reference/protocols.md#mcp-bundled)."""

from __future__ import annotations

from cogcli.core.canonical import compact
from cogcli.core.errors import RejectedError, ServiceResolutionError
from cogcli.core.problems import suggestion
from cogcli.protocols.invoker import CallLimits, InvocationRequest, InvocationResponse, Invoker
from cogcli.specs.service import Service
from cogcli.specs.shipped_tools import MODULES, TABLES


def call_tool(
    functions: Invoker, server: str, request: InvocationRequest, limits: CallLimits
) -> InvocationResponse:
    """The response of a bundled tool. `functions` is the invoker of Python functions. Raises RuntimeErrorBase."""
    table = TABLES.get(server)
    if table is None:
        text = f"service `{request.service.id}`: there is no shipped server `{server}`"
        raise ServiceResolutionError("service.unknown", text, left=False)
    if request.operation not in table:
        text = f"`{server}` has no tool `{request.operation}`; it has {', '.join(sorted(table))}"
        raise RejectedError("call.rejected", text, hint=suggestion(request.operation, table), left=False)
    module, function = table[request.operation]
    service = Service(id=request.service.id, kind="pythoncall", module=MODULES + module, trusted=True)
    body, meta = functions.invoke(request._replace(service=service, operation=function), limits)
    if request.response_mode == "json":
        return InvocationResponse(body, meta)
    text = compact(body).decode()
    whole = {"structured": body, "text": text, "content": []}
    return InvocationResponse({"text": text} if request.response_mode == "text" else whole, meta)
