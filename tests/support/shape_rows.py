"""The keys of a kind of spec file, each with the words that its page uses for the type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cogcli.specs.field_shape import FIELD
from cogcli.specs.shape import (
    Boolean,
    Data,
    ListOf,
    MapOf,
    NumberShape,
    RecordShape,
    Shape,
    Text,
    UnionShape,
)
from cogcli.specs.skill_shape import STEP

ELSEWHERE: Mapping[int, str] = {
    id(FIELD): "[field](#fields)",
    id(STEP): "[step](skill.md#steps)",
}
"""What has a table of its own, which other tables name."""


class Row(NamedTuple):
    """A key by its path (`[]` is an element, `NAME` a free name), the type in words, and whether it is required."""

    path: str
    type: str
    required: bool


def rows(shape: Shape, path: str = "", apart: Mapping[int, str] = ELSEWHERE) -> Iterator[Row]:
    """The keys of a shape in order, those of its inner mappings after their own, but for those of `apart`."""
    if isinstance(shape, UnionShape):
        for option in shape.options:
            yield from rows(option, path, apart)
    elif isinstance(shape, ListOf | MapOf):
        value = shape.item if isinstance(shape, ListOf) else shape.value
        if id(value) not in apart:
            yield from rows(
                value, f"{path}[]" if isinstance(shape, ListOf) else f"{path}.NAME", apart
            )
    elif isinstance(shape, RecordShape):
        for name, key in shape.keys.items():
            below = f"{path}.{name}" if path else name
            yield Row(below, type_of(key.shape, apart), key.required)
            if id(key.shape) not in apart:
                yield from rows(key.shape, below, apart)


def type_of(shape: Shape, apart: Mapping[int, str] = ELSEWHERE) -> str:
    """The type of a value in words."""
    if id(shape) in apart:
        return apart[id(shape)]
    if isinstance(shape, UnionShape):
        first, *others = shape.options
        if isinstance(first, Text) and first.choices and others == [ListOf(first)]:
            return f"{type_of(first)}, or a list of these"
        return " or ".join(dict.fromkeys(type_of(option, apart) for option in shape.options))
    if isinstance(shape, ListOf):
        return f"list of {type_of(shape.item, apart)}{_range(shape.minimum or None, shape.maximum or None)}"
    if isinstance(shape, MapOf) and shape.value is FIELD:
        return "[fields](spec-files.md#fields)"
    if isinstance(shape, MapOf):
        return f"mapping to {type_of(shape.value, apart)}"
    if isinstance(shape, Text):
        return " ".join(f"`{word}`" for word in shape.choices) or "text"
    if isinstance(shape, NumberShape):
        kind = "integer" if shape.whole else "number"
        above = "" if shape.above is None else f", above {_number(shape.above)}"
        return kind + above + _range(shape.minimum, shape.maximum)
    return {Boolean: "boolean", Data: "any", RecordShape: "mapping"}[type(shape)]


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f", {_number(least)} to {_number(most)}"
    if least is not None:
        return f", at least {_number(least)}"
    return "" if most is None else f", at most {_number(most)}"


def _number(value: float) -> str:
    return f"{value:,}"
