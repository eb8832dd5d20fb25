"""Judging the answer to one JSON-RPC call (docs/reference/protocols.md#openrpc).

1. It is an object of version 2.0 with exactly one of `result` and `error`.
2. Its id is ours by type and value: an answer to somebody else is no answer. An error that could not read the request
   has the id null.
3. An error's code decides the class of failure; members of a wrong type make it malformed, never crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cogcli.core.errors import RejectedError, RuntimeErrorBase, ServerFaultError
from cogcli.core.jsonvalue import preview
from cogcli.protocols.http.failures import quote

if TYPE_CHECKING:
    from cogcli.protocols.secrets import Secrets

INTERNAL: Final = -32603
NOT_FOUND: Final = -32601
_SERVER: Final = range(-32099, -31999)
_UNREAD: Final = (-32700, -32600)
"""Codes of errors about requests whose id could not be read."""


def is_error(value: Any, id: int) -> bool:
    """Whether a body is a well-formed error for this call: then it counts, whatever the HTTP status is."""
    return _fault(value, id) == "" and "error" in value


def result_of(value: Any, id: int, said: str, secrets: Secrets, *, service: str) -> Any:
    """The `result` of an answer. `said` names the call, `service` its service.

    Raises ServerFaultError, RejectedError.
    """
    fault = _fault(value, id)
    if fault:
        raise ServerFaultError("call.server-error", f"{said}: malformed answer: {fault}", left=True)
    if "error" in value:
        raise _told(value["error"], said, secrets, service)
    return value["result"]


def _fault(value: Any, id: int) -> str:
    """What is wrong with an answer, empty if it is one."""
    if not isinstance(value, dict):
        return f"{preview(value)}, expected an object"
    if value.get("jsonrpc") != "2.0":
        return 'no `jsonrpc: "2.0"`'
    if ("result" in value) == ("error" in value):
        return "both `result` and `error`" if "result" in value else "neither `result` nor `error`"
    error = value.get("error")
    if "error" in value and not _is_wellformed(error):
        return "its `error` has no whole number as `code` and text as `message`"
    answered = value.get("id")
    if type(answered) is int and answered == id:
        return ""
    if answered is None and error is not None and error["code"] in _UNREAD:
        return ""
    return f"its id is {preview(answered)}, expected {id}"


def _is_wellformed(error: Any) -> bool:
    return (
        isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)
    )


def _told(error: dict[str, Any], said: str, secrets: Secrets, service: str) -> RuntimeErrorBase:
    code = error["code"]
    text = f"{said}: RPC error {code}: {quote(error['message'], secrets)}"
    if code == INTERNAL or code in _SERVER:
        return ServerFaultError("call.server-error", text, left=True)
    hint = f"cogcli services refresh {service}" if code == NOT_FOUND else ""
    return RejectedError("call.rejected", text, hint=hint, left=True)
