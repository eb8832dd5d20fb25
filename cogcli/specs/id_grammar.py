"""The grammars of ids, names and headers.

The rules are in docs/reference/spec-files.md#ids. The headers that a service, a binding or a parameter may set are in
docs/reference/protocols.md#headers.
"""

from __future__ import annotations

from typing import Final

from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.declarations import spec_types
from cogcli.declarations.options import USER_ID
from cogcli.declarations.spec_types import LONGEST_ID

SKILL_ID: Final = lazy_pattern(spec_types.SKILL_ID)
CAPABILITY_ID: Final = lazy_pattern(spec_types.CAPABILITY_ID)
PLAIN_ID: Final = lazy_pattern(spec_types.PLAIN_ID)
"""The grammar of binding and service ids."""
USER_ID_WORDS: Final = USER_ID.expected
FIELD_NAME: Final = lazy_pattern(spec_types.FIELD_NAME)
CHANNEL: Final = lazy_pattern(r"[a-z][a-z0-9-]{0,31}")
SEMVER: Final = lazy_pattern(
    r"(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)"
    r"(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
VARIABLE: Final = lazy_pattern(r"[A-Z][A-Z0-9_]*")
PLACEHOLDER: Final = lazy_pattern(r"\$\{([A-Z][A-Z0-9_]*)\}")
"""`${NAME}` in header and environment values of services and bindings."""

_TOKEN: Final = frozenset(
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)
_SET_BY_CONNECTION: Final = frozenset(
    (
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "cookie",
    )
)


def is_skill_id(text: str) -> bool:
    """Return whether a string is a valid id of a skill."""
    return len(text) <= LONGEST_ID and SKILL_ID.fullmatch(text) is not None


def is_capability_id(text: str) -> bool:
    """Return whether a string is a valid id or alias of a capability."""
    return len(text) <= LONGEST_ID and CAPABILITY_ID.fullmatch(text) is not None


def is_plain_id(text: str) -> bool:
    """Return whether a string is a valid id of a binding or service."""
    return PLAIN_ID.fullmatch(text) is not None


def is_user_id(text: object) -> bool:
    """Return whether a value is a valid id of a user or of a session."""
    return USER_ID.accepts(text)


def is_settable(name: str) -> bool:
    """Return whether a spec may set this header: its name is a token, and the connection does not set it itself."""
    lower = name.lower()
    return (
        bool(name)
        and set(name) <= _TOKEN
        and lower not in _SET_BY_CONNECTION
        and not lower.startswith("proxy-")
    )


def is_sendable(value: str) -> bool:
    """Return whether a header value contains only visible ASCII characters, spaces and tabs."""
    return all(32 <= ord(char) < 127 or char == "\t" for char in value)


def is_pack_id(text: str) -> bool:
    """Return whether a string is a valid id of a pack with its version, such as `id@1.0.0`."""
    id, _, version = text.partition("@")
    return is_plain_id(id) and SEMVER.fullmatch(version) is not None
