"""What goes wrong in the SDK or in a server, in our own terms; translated here and nowhere else (protocols.md 1)."""

from __future__ import annotations

import os
import socket
from typing import Final

from cogcli.bindings.invokers.mcp_wire import INTERNAL
from cogcli.core.errors import (
    CallTimeoutError,
    OverloadedError,
    RejectedError,
    RuntimeErrorBase,
    ServerFaultError,
    TransportError,
)

CLOSED: Final = -32000
LATE: Final = -32001
_SERVER_ERRORS: Final = range(-32099, -31999)
_KEPT: Final = 4000
"""More than is told in the end: secrets are masked before a text is cut to its last length."""
NOT_READY: Final = "the server was not ready in time"
OVERLOADED: Final = (429, 502, 503, 504)


def translated(error: BaseException, *, left: bool, status: int | None = None) -> RuntimeErrorBase:
    """The error of the contract's table. `status` is the HTTP status where the answer came with one."""
    from mcp import MCPError
    from pydantic import ValidationError

    while isinstance(error, BaseExceptionGroup):
        error = _telling(error)
    if isinstance(error, RuntimeErrorBase):
        return error
    if isinstance(error, MCPError):
        return _of_code(error.code, error.message, left=left, status=status)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        return ServerFaultError(
            "call.server-error", shortened(f"malformed reply: {first['msg']} at `{place}`"), left=left
        )
    if _is_transport(error):
        told = _unreached(error) or f"{type(error).__name__}: {error}"
        return TransportError("call.transport", shortened(told), left=left)
    return ServerFaultError("call.server-error", shortened(f"{type(error).__name__}: {error}"), left=left)


def _telling(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The member that says most: one of ours before any other."""
    ours = group.subgroup(RuntimeErrorBase)
    return (ours or group).exceptions[0]


def _of_code(code: int, message: str, *, left: bool, status: int | None) -> RuntimeErrorBase:
    if status in OVERLOADED:
        return OverloadedError("call.overloaded", shortened(f"HTTP {status}: {message}"), left=left)
    if status is not None and 300 <= status < 500 and code in (INTERNAL, CLOSED):
        # The SDK's own words for a refusal without a JSON-RPC error in it.
        return RejectedError("call.rejected", shortened(f"HTTP {status}: {message}"), left=left)
    told = shortened(f"{message} (code {code})")
    if code == CLOSED:
        return TransportError("call.transport", told, left=left)
    if code == LATE:
        return CallTimeoutError("call.timeout", told, left=left)
    if code == INTERNAL or code in _SERVER_ERRORS:
        return ServerFaultError("call.server-error", told, left=left)
    return RejectedError("call.rejected", told, left=left)


def _is_transport(error: BaseException) -> bool:
    """Connections and streams that broke; the HTTP library's own errors are named after what happened."""
    import anyio

    broken = (OSError, EOFError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
    return isinstance(error, broken) or type(error).__module__.partition(".")[0] in ("httpx", "httpx2")


def _unreached(error: BaseException) -> str | None:
    """Which address could not be connected to, and why: what the HTTP library keeps in the causes of its own error."""
    request = getattr(error, "_request", None)
    cause: BaseException | None = error
    while cause is not None and not getattr(cause, "errno", None):
        cause = cause.__cause__ or cause.__context__
    if request is None or not isinstance(cause, OSError):
        return None
    why = (
        "the name is not known"
        if isinstance(cause, socket.gaierror)
        else os.strerror(cause.errno or 0).lower()
    )
    return f"{request.url.netloc.decode()}: {why}"


def shortened(text: str) -> str:
    """Foreign text as far as anything may be told of it."""
    return text[:_KEPT]
