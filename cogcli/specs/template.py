"""Request templates: `input.a`, `input.a.*.b`, `${input.a}`, `x ${input.a:-text} y`, `service.model`, `$${`
(docs/reference/binding.md#request)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeGuard, TypeVar

from cogcli.base.jsonvalue import Json
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath
from cogcli.specs.unchecked import members_of

if TYPE_CHECKING:
    from cogcli.declarations.field_spec import Fields

_PATH: Final = r"[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.(?:\*|[A-Za-z0-9_][A-Za-z0-9_-]*)){0,15}"
EACH: Final = "*"
_WHOLE: Final = lazy_pattern(rf"input\.({_PATH})|\$\{{input\.({_PATH})\}}")
_VARIABLE: Final = lazy_pattern(r"service\.([A-Za-z_][A-Za-z0-9_]*)")
_INNER: Final = lazy_pattern(rf"input\.({_PATH})(?::-(.*))?", re.DOTALL)
_NEAR: Final = lazy_pattern(r"inputs?\.\S*")
LITERAL: Final = "$literal"
FILE: Final = "$file"
AS: Final = "as"
FILE_FORMS: Final = ("base64", "data_url", "format")
DATA: Final = "$data"


class TemplateSlot(NamedTuple):
    """A reference to the input, or to a variable of the service."""

    path: tuple[str, ...]
    """The path below `input`, or the name of the variable."""
    is_whole_value: bool
    """Whether the template has no other text."""
    default: str | None = None
    of_service: bool = False
    """Whether it refers to a variable of the service."""

    @property
    def fixed_prefix(self) -> tuple[str, ...]:
        """The path up to its first `*`. The elements that follow may differ."""
        return self.path[: self.path.index(EACH)] if EACH in self.path else self.path


class TemplateFault(ValueError):
    """Raised for a string that is not a valid template. The message is the reason, `offset` the position."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


Slot = TypeVar("Slot")
Piece = tuple[str, Slot | None]
"""A part of a text with placeholders: a literal string and None, or an empty string and a slot."""


@lru_cache(maxsize=4096)
def parse_template(text: str) -> tuple[Piece[TemplateSlot], ...]:
    """Return the literal strings and slots of a template. Raise TemplateFault if it is invalid."""
    whole = _WHOLE.fullmatch(text)
    if whole:
        path = tuple((whole[1] or whole[2]).split("."))
        return (("", TemplateSlot(path, is_whole_value=True)),)
    if variable := _VARIABLE.fullmatch(text):
        return (("", TemplateSlot((variable[1],), is_whole_value=True, of_service=True)),)
    if _NEAR.fullmatch(text):
        raise TemplateFault(f"`{text}` is not a path below `input`")
    return tuple(split_placeholders(text, _parse_slot)) if "${" in text else ((text, None),)


def slots_of(text: str) -> list[TemplateSlot]:
    """Return the slots of a template. Raise TemplateFault if it is invalid."""
    return [slot for _, slot in parse_template(text) if slot is not None]


def split_placeholders(text: str, parse: Callable[[str, int], Slot]) -> Iterator[Piece[Slot]]:
    """Yield the literal parts of a string, and the result of `parse` for the content and offset of
    each `${...}`.

    `$${` is a literal `${`. Raise TemplateFault if the text is invalid.
    """
    position = 0
    while position < len(text):
        start = text.find("${", position)
        if start < 0:
            yield text[position:], None
            return
        if start > position and text[start - 1] == "$":
            yield text[position : start - 1] + "${", None
            position = start + 2
            continue
        if start > position:
            yield text[position:start], None
        end = text.find("}", start)
        inner = text[start + 2 : end]
        if end < 0:
            raise TemplateFault(f"`{text[start : start + 40]}` is not closed", start)
        if "${" in inner:
            raise TemplateFault(
                f"`{text[start : start + 40]}` nests one placeholder in another", start
            )
        yield "", parse(inner, start)
        position = end + 1


def _parse_slot(inner: str, offset: int) -> TemplateSlot:
    if variable := _VARIABLE.fullmatch(inner):
        return TemplateSlot((variable[1],), is_whole_value=False, of_service=True)
    match = _INNER.fullmatch(inner)
    if match is None:
        raise TemplateFault(f"`${{{inner}}}` is not a path below `input`", offset)
    return TemplateSlot(tuple(match[1].split(".")), is_whole_value=False, default=match[2])


def is_file_input(value: object, inputs: Fields) -> bool:
    """Return whether a request value is exactly one slot for an input of type file, or list of files."""
    try:
        slots = slots_of(value) if isinstance(value, str) else []
    except TemplateFault:
        return False
    if (
        len(slots) != 1
        or not slots[0].is_whole_value
        or slots[0].of_service
        or len(slots[0].path) > 1
    ):
        return False
    field = inputs.get(slots[0].path[0])
    return field is not None and (
        field.type == "file" or (field.items is not None and field.items.type == "file")
    )


def texts(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield (path, text) for every template in a request. Text inside `$literal` is not a template."""
    if isinstance(value, str):
        yield path, value
    for name, item in members_of(value):
        if name != LITERAL:
            yield from texts(item, (*path, name))


def has_only(value: object, key: str) -> TypeGuard[Json]:
    """Return whether a value is an object with only this key."""
    return isinstance(value, dict) and len(value) == 1 and key in value


def is_literal(value: object) -> TypeGuard[Json]:
    """Return whether a value is `{$literal: v}`."""
    return has_only(value, LITERAL)


def is_file(value: object) -> TypeGuard[Json]:
    """Return whether a value is `{$file: input.x, as: ...}`."""
    return isinstance(value, dict) and FILE in value


def is_data(value: object) -> TypeGuard[Json]:
    """Return whether a value is `{$data: v}`."""
    return has_only(value, DATA)


def files_in(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Json]]:
    """Yield (path, object) for every `{$file: ...}` in a request."""
    if is_file(value):
        yield path, value
    elif not is_literal(value):
        for name, item in members_of(value):
            yield from files_in(item, (*path, name))


def find_mixed_literals(value: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths of `$literal` keys that have other keys next to them."""
    if is_literal(value):
        return
    if isinstance(value, dict) and LITERAL in value:
        yield (*path, LITERAL)
    for name, item in members_of(value):
        yield from find_mixed_literals(item, (*path, name))
