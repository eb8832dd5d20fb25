"""Translation of errors of the SDK and of servers to errors of cogcli
(docs/reference/protocols.md#failures).

A server's own text is quoted whole: `Mcp` masks it, then cuts it. Texts of the SDK and its
libraries are never quoted: they name internals that no user knows."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Final

from cogcli.base.errors import (
    CallTimeoutError,
    RejectedError,
    ResponseMappingError,
    RuntimeErrorBase,
    ServerFaultError,
    TransportError,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.base.system import Clock
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols.http.failures import OVERLOADED, error_from_reply
from cogcli.protocols.mcp.traffic import (
    INTERNAL,
    LOST,
    TOO_LONG,
    McpFault,
    fault_of,
    names_no_session,
)
from cogcli.protocols.rpc_messages import RpcError, read_answer
from cogcli.protocols.secrets import Secrets

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from cogcli.base.http import HttpReply

_Step = int | str
"""One step of a place in a reply: an index, or the name of a member or of a model."""
CLOSED: Final = -32000
TIMEOUT: Final = -32001
MISSING_CAPABILITY: Final = -32021
_REFUSALS: Final = (-32020, MISSING_CAPABILITY, -32022, -32042)
"""Codes of server faults that the protocol assigns to a missing client capability: a retry cannot
help."""
_SERVER_ERRORS: Final = range(-32099, -31999)
NOT_READY: Final = "the server was not ready in time"
_MAX_LINES: Final = 3
_MAX_CHARACTERS: Final = 400
_CLOSED_TEXT: Final = "the connection was closed"
_BROKEN_TEXT: Final = "the connection broke"
_UNKNOWN_VERSION: Final = "Unsupported protocol version from the server: "
"""The beginning of the SDK's own error."""
_MAX_WORD: Final = 40
_SDK_ERRORS: Final[tuple[tuple[str, type[RuntimeErrorBase], str, str], ...]] = (
    ("Connection closed", TransportError, "call.transport", _CLOSED_TEXT),
    (
        "SSE stream ended",
        TransportError,
        "call.transport",
        "the stream of the reply ended before the reply",
    ),
    (
        "SSE stream failed: Server-sent event exceeded",
        ResponseMappingError,
        "response.size",
        TOO_LONG.text,
    ),
    ("SSE stream failed", TransportError, "call.transport", "the stream of the reply broke"),
    (
        "Failed to parse SSE message",
        ServerFaultError,
        "call.server-error",
        "the reply is not a JSON-RPC message",
    ),
)
"""The beginnings of the SDK's own error messages, with our error for each. Tests provoke those that
a server can cause."""


def translate_error(error: BaseException, *, left: bool) -> RuntimeErrorBase:
    """Return the cogcli error for any exception of a session. A cogcli error stays unchanged.
    `left`: whether the request was sent."""
    from mcp import MCPError
    from pydantic import ValidationError

    while isinstance(error, BaseExceptionGroup):
        ours = error.subgroup(RuntimeErrorBase)
        error = (ours or error).exceptions[0]
    match error:
        case RuntimeErrorBase():
            return error
        case MCPError():
            return _error_from_code(error.code, error.message, error.data, left=left)
        case ValidationError():
            return ServerFaultError("call.server-error", _validation_text(error), left=left)
    if _is_transport(error):
        return TransportError("call.transport", _connection_text(error), left=left)
    text = f"the session with the server failed ({type(error).__name__})"
    if isinstance(error, RuntimeError) and str(error).startswith(_UNKNOWN_VERSION):
        version = str(error).removeprefix(_UNKNOWN_VERSION)[:_MAX_WORD]
        text = f"the server replied with protocol version `{version}`, which this client does not support"
    return ServerFaultError("call.server-error", text, left=left)


def _error_from_code(code: int, message: str, data: object, *, left: bool) -> RuntimeErrorBase:
    for beginning, kind, own, words in _SDK_ERRORS:
        if message.startswith(beginning):
            return kind(own, words, left=left)
    text = f"{message} (code {code})"
    if code == CLOSED:
        return TransportError("call.transport", text, left=left)
    if code == TIMEOUT:
        return CallTimeoutError("call.timeout", text, left=left)
    if code in _REFUSALS:
        return RejectedError("call.rejected", text, hint=_capability_hint(code, data), left=left)
    if code == INTERNAL or code in _SERVER_ERRORS:
        return ServerFaultError("call.server-error", text, left=left)
    return RejectedError("call.rejected", text, left=left)


class CapabilityDemand(Record):
    """The data of an error about a capability that this client lacks."""

    requiredCapabilities: Json


def _capability_hint(code: int, data: object) -> str:
    """Return a hint with the client capabilities that a server requires; empty for another code."""
    wanted = read_record(CapabilityDemand, data).requiredCapabilities
    if code != MISSING_CAPABILITY or not wanted:
        return ""
    return f"the tool needs a client with {', '.join(sorted(wanted))}; this one has none"


def _validation_text(error: ValidationError) -> str:
    """Return a message with the place where a reply breaks the protocol, without names of the
    library's models."""
    problems = error.errors()
    if unknown := _find_unknown_block(problems):
        return f"malformed reply: {unknown}"
    first = problems[0]
    place = ".".join(str(part) for part in first["loc"] if not str(part)[:1].isupper())
    if not place:
        return "malformed reply: it is not a result of the protocol"
    how = "is missing" if first["type"] == "missing" else "is not what the protocol has there"
    return f"malformed reply: `{place}` {how}"


def _find_unknown_block(problems: list[ErrorDetails]) -> str:
    """Return a message about the first content block of an unknown type; empty if all types are known."""
    kinds: dict[_Step, dict[_Step, ErrorDetails]] = {}
    models: dict[_Step, set[_Step]] = {}
    for problem in problems:
        if problem["loc"][:1] != ("content",) or len(problem["loc"]) < 4:
            continue
        _, index, model, *rest = problem["loc"]
        models.setdefault(index, set()).add(model)
        if rest == ["type"] and problem["type"] == "literal_error":
            kinds.setdefault(index, {})[model] = problem
    for index, wrong in kinds.items():
        if set(wrong) == models[index]:
            found = str(next(iter(wrong.values()))["input"])[:_MAX_WORD]
            known = ", ".join(each["ctx"]["expected"].strip("'") for each in wrong.values())
            return f"`content.{index}` has the unknown type `{found}`; known types: {known}"
    return ""


def _is_transport(error: BaseException) -> bool:
    """Return whether the error is a broken connection or stream, or an error of the HTTP library."""
    import anyio

    broken = (
        OSError,
        EOFError,
        anyio.BrokenResourceError,
        anyio.ClosedResourceError,
        anyio.EndOfStream,
    )
    return isinstance(error, broken) or type(error).__module__.partition(".")[0] in (
        "httpx",
        "httpx2",
    )


_HTTP: Final = {
    "ConnectTimeout": "no connection in time",
    "RemoteProtocolError": "the connection was closed without a valid answer",
    "ReadError": _BROKEN_TEXT,
    "WriteError": _BROKEN_TEXT,
}
"""Our text for each exception of the HTTP library, by class name."""


def _connection_text(error: BaseException) -> str:
    """Return the unreachable address and the reason, which the HTTP library keeps in the causes of
    its error."""
    import ssl

    cause: BaseException | None = error
    while cause is not None and not getattr(cause, "errno", None):
        cause = cause.__cause__ or cause.__context__
    why = _HTTP.get(type(error).__name__, _BROKEN_TEXT)
    match cause:
        case ssl.SSLCertVerificationError():
            why = f"its certificate is not accepted: {cause.verify_message}"
        case ssl.SSLError():
            pass
        case socket.gaierror():
            why = "the name is not known"
        case OSError():
            why = os.strerror(cause.errno or 0).lower()
    request = getattr(error, "_request", None)
    return f"{request.url.netloc.decode()}: {why}" if request is not None else why


def last_lines(output: str) -> str:
    """Return the last three lines of a program's masked output that are not blank, fewer if they
    exceed 400 characters."""
    kept: list[str] = []
    for line in reversed(
        [line.strip() for line in output.splitlines() if line.strip()][-_MAX_LINES:]
    ):
        if kept and len(line) + sum(map(len, kept)) > _MAX_CHARACTERS:
            break
        kept.insert(0, line)
    return " | ".join(kept)


_CREDENTIALS: Final = (401, 403)
_NOT_FOUND: Final = (404, 405)
_SESSION_CODES: Final = (-32000, -32001, -32600)
"""JSON-RPC codes by which servers refuse an unknown session."""


class Refusals(NamedTuple):
    """Detects HTTP answers of one service that are not results (docs/reference/protocols.md#mcp).

    1. A JSON-RPC error in an answer counts regardless of the status, with three exceptions. 401 and 403 are refused
    credentials. 429, 502, 503 and 504 are overload. An unknown session is a lost one, so the call did not run. 2. 404
    and 405 without such an error: no server of this transport is at that address. 3. Every other status is an error as
    in any HTTP call.
    """

    service: Service
    secrets: Secrets
    clock: Clock

    def fault(self, request: str, reply: HttpReply, *, in_session: bool) -> McpFault | None:
        """Return the fault of an answer of status 300 and above; None if the SDK has to read its
        JSON-RPC error."""
        try:
            value = loads(reply.body)
        except InvalidJson:
            value = None
        rpc_error = _rpc_error(value)
        if in_session and 400 <= reply.status < 500 and _is_lost(reply.status, rpc_error):
            return LOST
        if rpc_error is not None and reply.status not in (*_CREDENTIALS, *OVERLOADED):
            return None
        refused = error_from_reply(
            request, reply, value, self.secrets, self.clock.now(), service=self.service
        )
        if refused is None:
            return None
        if reply.status in _NOT_FOUND:
            refused.hint = (
                f"look whether `url` in {self.service.file or 'its file'} is the address of a streamable HTTP"
                " server, often one that ends in /mcp; the older transport (HTTP with SSE) is not spoken"
            )
        return fault_of(refused)


def _rpc_error(value: object) -> RpcError | None:
    """Return the error with a code in a JSON-RPC answer; None for any other value."""
    answer = read_answer(value)
    has_code = answer.error is not None and answer.error.code is not None
    return answer.error if "jsonrpc" in answer.json and has_code else None


def _is_lost(status: int, rpc_error: RpcError | None) -> bool:
    """Return whether an answer in a session means that the server does not know it, as a bare 404 does."""
    if status in _CREDENTIALS:
        return False
    if rpc_error is None:
        return status == 404
    is_unknown = status == 404 or names_no_session(rpc_error.message or "")
    return rpc_error.code in _SESSION_CODES and is_unknown
