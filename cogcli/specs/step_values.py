"""Values in `input` and `otherwise` of a step (docs/reference/skill.md#texts).

They may contain references, `{$literal: v}` and `{$text: "..."}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, TypeGuard

from cogcli.base.jsonvalue import Json
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath
from cogcli.base.refs import Reference, parse, parse_loop
from cogcli.specs.template import (
    LITERAL,
    Piece,
    TemplateFault,
    has_only,
    is_literal,
    split_placeholders,
)
from cogcli.specs.unchecked import members_of

TEXT: Final = "$text"
_PLACEHOLDER: Final = lazy_pattern(r"([^:\s]+)(?::-(.*))?", re.DOTALL)


class TextSlot(NamedTuple):
    """A reference in a `$text`: its offset, and the default text for a missing value."""

    reference: Reference
    offset: int
    otherwise: str | None = None


class ValuePart(NamedTuple):
    """One part of a value.

    `kind` is `plain` for a string, `text` for the text of a `$text`, `literal` for a `$literal`, and `odd` for an
    invalid `$text`. It is `mixed` for a `$literal` or `$text` with other keys; then `path` ends with one of these two
    keys. It is `braces` for an object whose single key is a path without a value.
    """

    kind: Literal["plain", "text", "literal", "odd", "mixed", "braces"]
    path: KeyPath
    text: str = ""


def reference_of(text: str, loops: frozenset[str]) -> Reference | None:
    """Return the reference in a string, or None for a literal. Loop names are known only in their
    own step."""
    return parse(text) or (parse_loop(text, loops) if loops else None)


def is_text(value: object) -> TypeGuard[Json]:
    """Return whether a value is `{$text: ...}`."""
    return has_only(value, TEXT)


@lru_cache(maxsize=1024)
def parse_text(text: str, loops: frozenset[str] = frozenset()) -> tuple[Piece[TextSlot], ...]:
    """Return the literal strings and slots of a `$text`. Raise TemplateFault if it is invalid."""

    def slot(inner: str, offset: int) -> TextSlot:
        match = _PLACEHOLDER.fullmatch(inner)
        reference = reference_of(match[1], loops) if match else None
        if match is None or reference is None:
            raise TemplateFault(f"`${{{inner}}}` is not a reference", offset)
        return TextSlot(reference, offset, match[2])

    return tuple(split_placeholders(text, slot))


def slots_in_text(text: str, loops: frozenset[str] = frozenset()) -> list[TextSlot]:
    """Return the slots of a `$text`. Raise TemplateFault if it is invalid."""
    return [slot for _, slot in parse_text(text, loops) if slot is not None]


def parts_of(value: object, path: KeyPath = ()) -> Iterator[ValuePart]:
    """Yield every string in a value that may be a reference, and every misuse of `$literal` and `$text`.

    Keys of objects are not included.
    """
    if isinstance(value, str):
        yield ValuePart("plain", path, value)
    elif is_text(value):
        yield _build_text_part(value[TEXT], (*path, TEXT))
    else:
        braces = _find_path_in_braces(value)
        if braces is not None:
            yield ValuePart("braces", path, braces)
        for name, item in members_of(value):
            if name in (LITERAL, TEXT):
                yield ValuePart("literal" if is_literal(value) else "mixed", (*path, name))
            else:
                yield from parts_of(item, (*path, name))


def _build_text_part(text: object, path: KeyPath) -> ValuePart:
    return ValuePart("text", path, text) if isinstance(text, str) else ValuePart("odd", path)


def _find_path_in_braces(value: object) -> str | None:
    """Return the only key of an object if it has no value, which is how YAML reads `{inputs.name}`.

    Return None for any other value.
    """
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((key, item),) = value.items()
    return key if item is None and key != LITERAL else None


def references_in(value: object, loops: frozenset[str] = frozenset()) -> Iterator[Reference]:
    """Yield the references in a valid value, in order."""
    for part in parts_of(value):
        if part.kind == "plain" and (reference := reference_of(part.text, loops)):
            yield reference
        elif part.kind == "text":
            yield from (slot.reference for slot in slots_in_text(part.text, loops))
