"""What goes wrong in the SDK or in a server, in our own terms; translated here and nowhere else
(docs/reference/protocols.md#failures).

A server's own words are told as such; the SDK's and its libraries' never are: they name what nobody here has seen.
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
from cogcli.protocols.mcp.traffic import INTERNAL, MAX_FRAME, SHOWN

CLOSED: Final = -32000
LATE: Final = -32001
LACKING: Final = -32021
_REFUSALS: Final = (-32020, LACKING, -32022, -32042)
"""What the protocol itself defines among the codes of server faults: this client lacks something, again and again."""
_SERVER_ERRORS: Final = range(-32099, -31999)
NOT_READY: Final = "the server was not ready in time"
_LINES: Final = 3
_ROOM: Final = 400
_GONE: Final = "the connection was closed"
_BROKEN: Final = "the connection broke"
_SDK: Final[tuple[tuple[str, type[RuntimeErrorBase], str, str], ...]] = (
    ("Connection closed", TransportError, "call.transport", _GONE),
    ("SSE stream ended", TransportError, "call.transport", "the stream of the reply ended before the reply"),
    (
        "SSE stream failed: Server-sent event exceeded",
        ResponseMappingError,
        "response.size",
        f"the server sent a frame of more than {MAX_FRAME:,} bytes",
    ),
    ("SSE stream failed", TransportError, "call.transport", "the stream of the reply broke"),
    (
        "Failed to parse SSE message",
        ServerFaultError,
        "call.server-error",
        "the reply is no JSON-RPC message",
    ),
)
"""How the SDK itself begins errors that it makes up, and what they mean. Tests bring about what a server can."""


def translate_error(error: BaseException, *, left: bool) -> RuntimeErrorBase:
    """The error of the contract's table."""
    from mcp import MCPError
    from pydantic import ValidationError

    while isinstance(error, BaseExceptionGroup):
        error = _telling(error)
    if isinstance(error, RuntimeErrorBase):
        return error
    if isinstance(error, MCPError):
        return _of_code(error.code, error.message, error.data, left=left)
    if isinstance(error, ValidationError):
        return ServerFaultError("call.server-error", _misshapen(error), left=left)
    if _is_transport(error):
        return TransportError("call.transport", _unreached(error), left=left)
    text = f"the session with the server failed ({type(error).__name__})"
    return ServerFaultError("call.server-error", text, left=left)


def _telling(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The member that says most: one of ours before any other."""
    ours = group.subgroup(RuntimeErrorBase)
    return (ours or group).exceptions[0]


def _of_code(code: int, message: str, data: Any, *, left: bool) -> RuntimeErrorBase:
    for beginning, kind, own, words in _SDK:
        if message.startswith(beginning):
            return kind(own, words, left=left)
    told = shorten(f"{message} (code {code})")
    if code == CLOSED:
        return TransportError("call.transport", told, left=left)
    if code == LATE:
        return CallTimeoutError("call.timeout", told, left=left)
    if code in _REFUSALS:
        return RejectedError("call.rejected", told, hint=_lacking(code, data), left=left)
    if code == INTERNAL or code in _SERVER_ERRORS:
        return ServerFaultError("call.server-error", told, left=left)
    return RejectedError("call.rejected", told, left=left)


def _lacking(code: int, data: Any) -> str:
    """What a server wants that this client never has."""
    wanted = data.get("requiredCapabilities") if code == LACKING and isinstance(data, dict) else None
    if not isinstance(wanted, dict) or not wanted:
        return ""
    return f"the tool needs a client with {', '.join(sorted(map(str, wanted)))[:200]}; this one has none"


def _misshapen(error: Any) -> str:
    """Where a reply is not of the protocol's form. Steps through the library's own models are left out."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if not str(part)[:1].isupper())
    if not place:
        return "malformed reply: it is no result of the protocol"
    how = "is missing" if first["type"] == "missing" else "is not what the protocol has there"
    return shorten(f"malformed reply: `{place}` {how}")


def _is_transport(error: BaseException) -> bool:
    """Connections and streams that broke; the HTTP library's own errors are named after what happened."""
    import anyio

    broken = (OSError, EOFError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
    return isinstance(error, broken) or type(error).__module__.partition(".")[0] in ("httpx", "httpx2")


_HTTP: Final = {
    "ConnectTimeout": "no connection in time",
    "RemoteProtocolError": "the connection was closed without a valid answer",
    "ReadError": _BROKEN,
    "WriteError": _BROKEN,
}
"""What the HTTP library's exceptions mean, by name."""


def _unreached(error: BaseException) -> str:
    """Which address could not be reached, and why: what the HTTP library keeps in the causes of its own error."""
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
        why = _HTTP.get(type(error).__name__, _BROKEN)
    request = getattr(error, "_request", None)
    return shorten(f"{request.url.netloc.decode()}: {why}" if request is not None else why)


def last_lines(said: str) -> str:
    """The last lines of what a program said, the last three that say something if they fit; whole ones, since half a
    secret cannot be masked."""
    kept: list[str] = []
    for line in reversed([line.strip() for line in said.splitlines() if line.strip()][-_LINES:]):
        if kept and len(line) + sum(map(len, kept)) > _ROOM:
            break
        kept.insert(0, line)
    return shorten(" | ".join(kept))


def shorten(text: str) -> str:
    """Foreign text as far as anything may be told of it."""
    return text[:SHOWN]
