"""The headers that a service, a binding or a parameter may set (docs/reference/protocols.md#headers)."""

from __future__ import annotations

from typing import Final

_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_OURS: Final = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "cookie")
)


def is_settable(name: str) -> bool:
    """Whether a header may be set: a token, and none that the connection sets itself."""
    lower = name.lower()
    return bool(name) and set(name) <= _TOKEN and lower not in _OURS and not lower.startswith("proxy-")


def is_sendable(value: str) -> bool:
    """Whether a value holds visible ASCII characters, spaces and tabs only."""
    return all(32 <= ord(char) < 127 or char == "\t" for char in value)
