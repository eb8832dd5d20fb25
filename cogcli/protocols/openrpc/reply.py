"""The result or error in the answer to one JSON-RPC call (docs/reference/protocols.md#openrpc).

1. An answer is an object of version 2.0 with exactly one of `result` and `error`.
2. Its id equals the call's by type and value. An error about a request that could not be read has the id null.
3. An error's code decides the class of failure; an error with members of a wrong type is a malformed answer.
"""

from __future__ import annotations

from typing import Final

from cogcli.base.errors import RejectedError, ServerFaultError
from cogcli.base.jsonvalue import preview
from cogcli.protocols.http.failures import quote
from cogcli.protocols.rpc_messages import RpcAnswer, read_answer
from cogcli.protocols.secrets import Secrets

INTERNAL: Final = -32603
NOT_FOUND: Final = -32601
_SERVER: Final = range(-32099, -31999)
_UNREAD: Final = (-32700, -32600)
"""Codes of errors about requests whose id could not be read."""


def is_error(value: object, id: int) -> bool:
    """Return whether a body is a well-formed error for this call. Such an error is used, whatever the HTTP status."""
    return _find_fault(value, id) == "" and read_answer(value).error is not None


def result_of(value: object, id: int, name: str, secrets: Secrets, *, service: str) -> object:
    """Return the `result` of an answer. `name` is the call's name in messages, `service` its service in hints. Raise
    ServerFaultError or RejectedError.
    """
    fault = _find_fault(secrets.mask_known(value), id) if _find_fault(value, id) else ""
    if fault:
        raise ServerFaultError("call.server-error", f"{name}: malformed answer: {fault}", left=True)
    answer = read_answer(value)
    if answer.error is None:
        return answer.result
    code = answer.error.code
    text = f"{name}: RPC error {code}: {quote(answer.error.message or '', secrets)}"
    if code == INTERNAL or code in _SERVER:
        raise ServerFaultError("call.server-error", text, left=True)
    hint = f"cogcli services refresh {service}" if code == NOT_FOUND else ""
    raise RejectedError("call.rejected", text, hint=hint, left=True)


def _find_fault(value: object, id: int) -> str:
    """Return why a value is not an answer to this call, empty if it is one."""
    if not isinstance(value, dict):
        return f"{preview(value)}, expected an object"
    answer = read_answer(value)
    if answer.jsonrpc != "2.0":
        return 'no `jsonrpc: "2.0"`'
    if ("result" in value) == ("error" in value):
        return "both `result` and `error`" if "result" in value else "neither `result` nor `error`"
    error = answer.error
    if "error" in value and not (error and error.is_complete):
        return "its `error` has no whole number as `code` and text as `message`"
    return "" if _is_about(answer, id) else f"its id is {preview(answer.id)}, expected {id}"


def _is_about(answer: RpcAnswer, id: int) -> bool:
    """Return whether the answer is about this call, or about a request that could not be read."""
    if answer.id is None:
        return answer.error is not None and answer.error.code in _UNREAD
    return type(answer.id) is int and answer.id == id
