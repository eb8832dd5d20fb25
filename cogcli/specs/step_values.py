"""Values in `input` and `otherwise` of a step: references, `{$literal: v}` and `{$text: "..."}`
(docs/reference/skill.md#texts)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from cogcli.base.problems import KeyPath
from cogcli.base.refs import Reference, parse, parse_loop
from cogcli.specs.template import LITERAL, TemplateFault, split_placeholders

TEXT: Final = "$text"
_PLACEHOLDER: Final = re.compile(r"([^:\s]+)(?::-(.*))?", re.DOTALL)


class TextSlot(NamedTuple):
    """A reference in a `$text`: its offset, and the default text for a missing value."""

    reference: Reference
    offset: int
    otherwise: str | None = None


class ValuePart(NamedTuple):
    """One part of a value.

    `kind` is `plain` for a text, `text` for the text of a `$text`, `literal` for a `$literal`, `odd` for an invalid
    `$text`, `mixed` for a `$literal` or `$text` next to other keys. The last key of `path` is then one of these two.
    `braces` is an object with a single key, a path, and no value.
    """

    kind: Literal["plain", "text", "literal", "odd", "mixed", "braces"]
    path: KeyPath
    text: str = ""


def reference_of(text: str, loops: frozenset[str]) -> Reference | None:
    """Return the reference in a text, or None for a literal. Loop names are known only in their own step."""
    return parse(text) or (parse_loop(text, loops) if loops else None)


def is_text(value: Any) -> bool:
    """Return whether a value is `{$text: ...}`."""
    return isinstance(value, dict) and len(value) == 1 and TEXT in value


@lru_cache(maxsize=1024)
def parse_text(text: str, loops: frozenset[str] = frozenset()) -> tuple[str | TextSlot, ...]:
    """Return the pieces of a `$text`. Raise TemplateFault."""

    def slot(inner: str, offset: int) -> TextSlot:
        match = _PLACEHOLDER.fullmatch(inner)
        reference = reference_of(match[1], loops) if match else None
        if match is None or reference is None:
            raise TemplateFault(f"`${{{inner}}}` is not a reference", offset)
        return TextSlot(reference, offset, match[2])

    return tuple(split_placeholders(text, slot))


def parts_of(value: Any, path: KeyPath = ()) -> Iterator[ValuePart]:
    """Yield every text of a value that may be a reference, and every misuse of `$literal` and `$text`. Keys are left
    out."""
    if isinstance(value, str):
        yield ValuePart("plain", path, value)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from parts_of(item, (*path, index))
    elif is_text(value):
        text = value[TEXT]
        yield (
            ValuePart("text", (*path, TEXT), text)
            if isinstance(text, str)
            else ValuePart("odd", (*path, TEXT))
        )
    elif isinstance(value, dict):
        alone = len(value) == 1
        if alone and (key := next(iter(value))) not in (LITERAL, TEXT) and value[key] is None:
            yield ValuePart("braces", path, key)
        for name, item in value.items():
            if name not in (LITERAL, TEXT):
                yield from parts_of(item, (*path, name))
            else:
                yield ValuePart("literal" if alone else "mixed", (*path, name))


def references_in(value: Any, loops: frozenset[str] = frozenset()) -> Iterator[Reference]:
    """Yield the references that a value without faults reads, in order."""
    for part in parts_of(value):
        if part.kind == "plain" and (reference := reference_of(part.text, loops)):
            yield reference
        elif part.kind == "text":
            yield from (
                piece.reference
                for piece in parse_text(part.text, loops)
                if isinstance(piece, TextSlot)
            )
