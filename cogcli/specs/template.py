"""Request templates: `input.a`, `${input.a}`, `x ${input.a:-text} y`, `$${` (docs/reference/binding.md#request)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from cogcli.core.problems import KeyPath

_PATH: Final = r"[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_][A-Za-z0-9_-]*){0,15}"
_WHOLE: Final = re.compile(rf"input\.({_PATH})|\$\{{input\.({_PATH})\}}")
_INNER: Final = re.compile(rf"input\.({_PATH})(?::-(.*))?", re.DOTALL)
_NEAR: Final = re.compile(r"inputs?\.\S*")
LITERAL: Final = "$literal"


class TemplateSlot(NamedTuple):
    """A reference to the input: its path below `input`, whether it is the whole value, and its default text."""

    path: tuple[str, ...]
    whole: bool
    otherwise: str | None = None


class TemplateFault(ValueError):
    """A text that is no template; its message is the reason."""


@lru_cache(maxsize=4096)
def parse_template(text: str) -> tuple[str | TemplateSlot, ...]:
    """The literal texts and slots of a template text. Raises TemplateFault."""
    whole = _WHOLE.fullmatch(text)
    if whole:
        return (TemplateSlot(tuple((whole[1] or whole[2]).split(".")), whole=True),)
    if _NEAR.fullmatch(text):
        raise TemplateFault(f"`{text}` is no path below `input`")
    return tuple(_pieces(text)) if "${" in text else (text,)


def _pieces(text: str) -> Iterator[str | TemplateSlot]:
    position = 0
    while position < len(text):
        start = text.find("${", position)
        if start < 0:
            yield text[position:]
            return
        if start > position and text[start - 1] == "$":
            yield text[position : start - 1] + "${"
            position = start + 2
            continue
        if start > position:
            yield text[position:start]
        end = text.find("}", start)
        yield _slot(text[start + 2 : end] if end >= 0 else None, text[start:])
        position = end + 1


def _slot(inner: str | None, rest: str) -> TemplateSlot:
    if inner is None:
        raise TemplateFault(f"`{rest[:40]}` is not closed")
    if "${" in inner:
        raise TemplateFault(f"`{rest[:40]}` nests one placeholder in another")
    match = _INNER.fullmatch(inner)
    if match is None:
        raise TemplateFault(f"`${{{inner}}}` is no path below `input`")
    return TemplateSlot(tuple(match[1].split(".")), whole=False, otherwise=match[2])


def texts(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Every template text of a request, with its path; texts under `$literal` are none."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from texts(item, (*path, index))
    elif isinstance(value, dict):
        for name, item in value.items():
            if name != LITERAL:
                yield from texts(item, (*path, name))


def is_literal(value: Any) -> bool:
    """Whether a mapping is `{$literal: v}`."""
    return isinstance(value, dict) and len(value) == 1 and LITERAL in value


def find_mixed_literals(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """The paths of `$literal` keys with other keys beside them."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from find_mixed_literals(item, (*path, index))
    elif isinstance(value, dict) and not is_literal(value):
        if LITERAL in value:
            yield (*path, LITERAL)
        for name, item in value.items():
            yield from find_mixed_literals(item, (*path, name))
