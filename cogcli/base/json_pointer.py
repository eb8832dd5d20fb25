"""JSON pointers (RFC 6901): places in documents as keys and indices, and the error that points to a
place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

Pointer = tuple[str, ...]
"""Keys and indices from the root of a document, as text."""
NOWHERE: Final = object()
"""The result of a look-up at a place that does not exist."""


def parse_reference(reference: str) -> Pointer:
    """Return the pointer of a `#/...` reference."""
    from urllib.parse import unquote

    parts = unquote(reference[1:]).split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def pointer_of(path: Iterable[str | int]) -> str:
    """Return the JSON pointer of a path: `/steps/0/uses`, with `~0` for `~` and `~1` for `/`."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def pointer_text(place: Pointer) -> str:
    """Return a pointer as a reference within its document: `#/...`."""
    return f"#{pointer_of(place)}"


def find_at(document: object, place: Pointer) -> Any:
    """Return the value at a place; NOWHERE if the place does not exist."""
    value: Any = document
    for part in place:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif (
            isinstance(value, list)
            and part.isdecimal()
            and part.isascii()
            and int(part) < len(value)
        ):
            value = value[int(part)]
        else:
            return NOWHERE
    return value


def with_value_at(value: Any, path: Sequence[str | int], new: object) -> Any:
    """Return a copy of a value with another value at a path. A missing index changes nothing. Raise KeyError for a
    missing key.
    """
    if not path:
        return new
    head, rest = path[0], path[1:]
    if isinstance(value, list):
        return [
            with_value_at(item, rest, new) if str(number) == str(head) else item
            for number, item in enumerate(value)
        ]
    return {**value, head: with_value_at(value[head], rest, new)}


class DocumentFault(Exception):
    """A document cannot be used, or lacks a required part.

    `code` is listed in docs/reference/protocols.md#wire-checks. `pointer`, or `line` and `column`,
    is the place in the document. `file` is its real path, which is known after it was read.
    """

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        *,
        pointer: Pointer | None = None,
        place: tuple[int, int] = (0, 0),
        file: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.pointer = pointer
        self.line, self.column = place
        self.file = file

    @property
    def located_message(self) -> str:
        """Return the message with its line and column, if these are known."""
        return (
            f"{self.message} (line {self.line}, column {self.column})"
            if self.line
            else self.message
        )
