"""The operation of an openapi binding without a document: a path below the service's address
(docs/reference/protocols.md#openapi)."""

from __future__ import annotations

import re
from typing import Final

_SEGMENT: Final = re.compile(r"(?:[A-Za-z0-9._~-]|\{[A-Za-z_][A-Za-z0-9_-]*\})+")
_NAME: Final = re.compile(r"\{([^{}]*)\}")
GRAMMAR: Final = "segments of A-Z a-z 0-9 . _ ~ - or {name}, joined by slashes, none of them `.` or `..`"


def path_of(operation: str) -> str | None:
    """The path with a leading slash, None where the operation is no path."""
    path = operation.removeprefix("/")
    segments = path.split("/") if path else []
    if not operation or any(
        not _SEGMENT.fullmatch(segment) or segment in (".", "..") for segment in segments
    ):
        return None
    return f"/{path}"


def names_in(path: str) -> tuple[str, ...]:
    """The names of `{name}` in a path, in order, each once."""
    return tuple(dict.fromkeys(_NAME.findall(path)))


def fill_path(path: str, values: dict[str, str]) -> str:
    """A path with each `{name}` replaced; names without a value stay."""
    return _NAME.sub(lambda match: values.get(match[1], match[0]), path)
