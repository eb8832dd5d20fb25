"""HTTP answers of MCP servers that are no results, as our errors (docs/reference/protocols.md#failures,
docs/reference/protocols.md#mcp).

1. A JSON-RPC error in an answer counts whatever the status is, with three exceptions: 401 and 403 are refused
   credentials, 429, 502, 503 and 504 are overload, and an unknown session is a lost one: the call did not run.
2. 404 and 405 without such an error: no server of this transport is at that address.
3. Every other status is an error as of any HTTP call.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cogcli.core.http import HttpReply
from cogcli.core.ports import Clock
from cogcli.core.strict_json import JsonRefused, loads
from cogcli.protocols.http.failures import OVERLOADED, failure
from cogcli.protocols.mcp.traffic import LOST, McpFault, fault_of, names_no_session
from cogcli.protocols.secrets import Secrets
from cogcli.specs.service import Service

_CREDENTIALS: Final = (401, 403)
_NOT_FOUND: Final = (404, 405)
_SESSION_CODES: Final = (-32000, -32001, -32600)
"""JSON-RPC codes by which servers refuse a session that they do not know."""


class Refusals(NamedTuple):
    """Finds the faults in HTTP answers of one service."""

    service: Service
    secrets: Secrets
    clock: Clock

    def fault(self, request: str, reply: HttpReply, *, in_session: bool) -> McpFault | None:
        """The fault of an answer of status 300 and above; None where the SDK has to read its JSON-RPC error."""
        value = _json_value(reply)
        error = value.get("error") if isinstance(value, dict) and "jsonrpc" in value else None
        rpc_error = error if isinstance(error, dict) and type(error.get("code")) is int else None
        if in_session and 400 <= reply.status < 500 and _is_lost(reply.status, rpc_error):
            return LOST
        if rpc_error is not None and reply.status not in (*_CREDENTIALS, *OVERLOADED):
            return None
        refused = failure(request, reply, value, self.secrets, self.clock.now(), service=self.service)
        if refused is None:
            return None
        if reply.status in _NOT_FOUND:
            refused.hint = (
                f"look whether `url` in {self.service.file or 'its file'} is the address of a streamable HTTP"
                " server, often one that ends in /mcp; the older transport (HTTP with SSE) is not spoken"
            )
        return fault_of(refused)


def _is_lost(status: int, rpc_error: dict[str, Any] | None) -> bool:
    """Whether an answer in a session means that the server does not know it; a bare 404 does."""
    if status in _CREDENTIALS:
        return False
    if rpc_error is None:
        return status == 404
    message = str(rpc_error.get("message") or "")
    return rpc_error["code"] in _SESSION_CODES and (status == 404 or names_no_session(message))


def _json_value(reply: HttpReply) -> Any:
    try:
        return loads(reply.body)
    except JsonRefused:
        return None
