"""Errors of the SDK and of servers as our errors; translated here and nowhere else
(docs/reference/protocols.md#failures).

A server's own text is quoted. Texts of the SDK and its libraries never are: they name internals that no user knows.
"""

from __future__ import annotations

import os
import socket
from typing import Any, Final

from cogcli.core.errors import (
    CallTimeoutError,
    RejectedError,
    ResponseMappingError,
    RuntimeErrorBase,
    ServerFaultError,
    TransportError,
)
from cogcli.protocols.mcp.traffic import INTERNAL, MAX_TEXT, TOO_LONG

CLOSED: Final = -32000
TIMEOUT: Final = -32001
MISSING_CAPABILITY: Final = -32021
_REFUSALS: Final = (-32020, MISSING_CAPABILITY, -32022, -32042)
"""Codes in the range of server faults that the protocol defines as this client's lack: a retry cannot help."""
_SERVER_ERRORS: Final = range(-32099, -31999)
NOT_READY: Final = "the server was not ready in time"
_MAX_LINES: Final = 3
_MAX_CHARACTERS: Final = 400
_CLOSED_TEXT: Final = "the connection was closed"
_BROKEN_TEXT: Final = "the connection broke"
_SDK_ERRORS: Final[tuple[tuple[str, type[RuntimeErrorBase], str, str], ...]] = (
    ("Connection closed", TransportError, "call.transport", _CLOSED_TEXT),
    ("SSE stream ended", TransportError, "call.transport", "the stream of the reply ended before the reply"),
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
        "the reply is no JSON-RPC message",
    ),
)
"""How messages of the SDK's own errors begin, and our error for each. Tests provoke those that a server can cause."""


def translate_error(error: BaseException, *, left: bool) -> RuntimeErrorBase:
    """Our error for any exception of a session, an error of ours unchanged. `left`: whether the request went out."""
    from mcp import MCPError
    from pydantic import ValidationError

    while isinstance(error, BaseExceptionGroup):
        error = _first_member(error)
    if isinstance(error, RuntimeErrorBase):
        return error
    if isinstance(error, MCPError):
        return _of_code(error.code, error.message, error.data, left=left)
    if isinstance(error, ValidationError):
        return ServerFaultError("call.server-error", _validation_text(error), left=left)
    if _is_transport(error):
        return TransportError("call.transport", _connection_text(error), left=left)
    text = f"the session with the server failed ({type(error).__name__})"
    return ServerFaultError("call.server-error", text, left=left)


def _first_member(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first member that is an error of ours, else the first member."""
    ours = group.subgroup(RuntimeErrorBase)
    return (ours or group).exceptions[0]


def _of_code(code: int, message: str, data: Any, *, left: bool) -> RuntimeErrorBase:
    for beginning, kind, own, words in _SDK_ERRORS:
        if message.startswith(beginning):
            return kind(own, words, left=left)
    text = shorten(f"{message} (code {code})")
    if code == CLOSED:
        return TransportError("call.transport", text, left=left)
    if code == TIMEOUT:
        return CallTimeoutError("call.timeout", text, left=left)
    if code in _REFUSALS:
        return RejectedError("call.rejected", text, hint=_capability_hint(code, data), left=left)
    if code == INTERNAL or code in _SERVER_ERRORS:
        return ServerFaultError("call.server-error", text, left=left)
    return RejectedError("call.rejected", text, left=left)


def _capability_hint(code: int, data: Any) -> str:
    """A hint naming the client capabilities that a server demands; empty for another code."""
    wanted = (
        data.get("requiredCapabilities") if code == MISSING_CAPABILITY and isinstance(data, dict) else None
    )
    if not isinstance(wanted, dict) or not wanted:
        return ""
    return f"the tool needs a client with {', '.join(sorted(map(str, wanted)))[:200]}; this one has none"


def _validation_text(error: Any) -> str:
    """A message naming the place where a reply breaks the protocol, without the names of the library's models."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if not str(part)[:1].isupper())
    if not place:
        return "malformed reply: it is no result of the protocol"
    how = "is missing" if first["type"] == "missing" else "is not what the protocol has there"
    return shorten(f"malformed reply: `{place}` {how}")


def _is_transport(error: BaseException) -> bool:
    """Whether the error is a broken connection or stream, or one of the HTTP library."""
    import anyio

    broken = (OSError, EOFError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
    return isinstance(error, broken) or type(error).__module__.partition(".")[0] in ("httpx", "httpx2")


_HTTP: Final = {
    "ConnectTimeout": "no connection in time",
    "RemoteProtocolError": "the connection was closed without a valid answer",
    "ReadError": _BROKEN_TEXT,
    "WriteError": _BROKEN_TEXT,
}
"""The text for each of the HTTP library's exceptions, by class name."""


def _connection_text(error: BaseException) -> str:
    """The address that could not be reached, and why: the HTTP library keeps the reason in the causes of its error."""
    import ssl

    cause: BaseException | None = error
    while cause is not None and not getattr(cause, "errno", None):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        why = f"its certificate is not accepted: {cause.verify_message}"
    elif isinstance(cause, socket.gaierror):
        why = "the name is not known"
    elif isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError):
        why = os.strerror(cause.errno or 0).lower()
    else:
        why = _HTTP.get(type(error).__name__, _BROKEN_TEXT)
    request = getattr(error, "_request", None)
    return shorten(f"{request.url.netloc.decode()}: {why}" if request is not None else why)


def last_lines(output: str) -> str:
    """The last three lines of a program's output that are not blank, fewer if they exceed 400 characters; always whole
    lines, since half a secret cannot be masked."""
    kept: list[str] = []
    for line in reversed([line.strip() for line in output.splitlines() if line.strip()][-_MAX_LINES:]):
        if kept and len(line) + sum(map(len, kept)) > _MAX_CHARACTERS:
            break
        kept.insert(0, line)
    return shorten(" | ".join(kept))


def shorten(text: str) -> str:
    """Foreign text cut to 4,000 characters: secrets are masked before it is cut to its final length."""
    return text[:MAX_TEXT]
