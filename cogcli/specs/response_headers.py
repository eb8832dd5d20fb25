"""Headers of a reply that a binding maps: `response_headers.NAME` (docs/reference/binding.md#response)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cogcli.base.lazy_pattern import lazy_pattern

_HEADER: Final = lazy_pattern(r"response_headers\.([A-Za-z0-9!#$%&'*+.^_`|~-]{1,128})")
_BEGIN: Final = "response_headers."
UNREAD: Final = frozenset(("set-cookie", "set-cookie2"))
"""The headers that no binding may read, because they contain credentials of a session."""


def header_of(source: object) -> str:
    """Return the name of the header in lower case that a value of `response` reads; empty for any
    other value."""
    if not isinstance(source, str) or not source.startswith(_BEGIN):
        return ""
    found = _HEADER.fullmatch(source)
    return found[1].lower() if found else ""


def headers_in(sources: Iterable[object]) -> list[str]:
    """Return the names of the headers that these values read, except the headers in `UNREAD`."""
    names = dict.fromkeys(map(header_of, sources))
    return [name for name in names if name and name not in UNREAD]
