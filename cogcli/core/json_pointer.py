"""JSON pointers (RFC 6901): places in documents, as keys and indices."""

from __future__ import annotations

from typing import Any, Final

Pointer = tuple[str, ...]
"""Keys and indices from the root of a document, as text."""
NOWHERE: Final = object()
"""What stands where nothing does."""


def parse_reference(reference: str) -> Pointer:
    """The pointer of a `#/...` reference."""
    from urllib.parse import unquote

    parts = unquote(reference[1:]).split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def pointer_text(place: Pointer) -> str:
    """A pointer as it is written."""
    return "#" + "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in place)


def found_at(document: Any, place: Pointer) -> Any:
    """What stands at a place, NOWHERE if nothing does."""
    value = document
    for part in place:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and part.isascii() and int(part) < len(value):
            value = value[int(part)]
        else:
            return NOWHERE
    return value
