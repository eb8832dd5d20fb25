"""HTTP answers of MCP servers that are no results, as our errors (docs/reference/protocols.md#failures,
docs/reference/protocols.md#mcp).

1. A JSON-RPC error in an answer counts as itself, whatever the status; but 401 and 403 tell the way in, 429 and its
   like that it is too early, and a session that the server no longer knows is lost: the call did not run.
2. 404 and 405 without such an error: nothing speaks this transport at that address.
3. Everything else is told as every HTTP status is.
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
_ELSEWHERE: Final = (404, 405)
_SESSION_CODES: Final = (-32000, -32001, -32600)
"""What servers say of a session that they do not know."""


class Refusals(NamedTuple):
    """Judges the answers of one service."""

    service: Service
    secrets: Secrets
    clock: Clock

    def fault(self, said: str, reply: HttpReply, *, in_session: bool) -> McpFault | None:
        """What an answer of status 300 and above means; None where it holds an error of the protocol to be read."""
        value = _value(reply)
        error = value.get("error") if isinstance(value, dict) and "jsonrpc" in value else None
        told = error if isinstance(error, dict) and type(error.get("code")) is int else None
        if in_session and 400 <= reply.status < 500 and _is_lost(reply.status, told):
            return LOST
        if told is not None and reply.status not in (*_CREDENTIALS, *OVERLOADED):
            return None
        refused = failure(said, reply, value, self.secrets, self.clock.now(), service=self.service)
        if refused is None:  # no refusal at all
            return None
        if reply.status in _ELSEWHERE:
            refused.hint = (
                f"look whether `url` in {self.service.file or 'its file'} is the address of a streamable HTTP"
                " server, often one that ends in /mcp; the older transport (HTTP with SSE) is not spoken"
            )
        return fault_of(refused)


def _is_lost(status: int, told: dict[str, Any] | None) -> bool:
    """Whether an answer within a session says that there is none. 404 does by itself."""
    if status in _CREDENTIALS:
        return False
    if told is None:
        return status == 404
    words = str(told.get("message") or "")
    return told["code"] in _SESSION_CODES and (status == 404 or names_no_session(words))


def _value(reply: HttpReply) -> Any:
    try:
        return loads(reply.body)
    except JsonRefused:
        return None
