"""Shapes: declarations of the structure that a parsed file may have."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from cogcli.base.jsonvalue import Json, kind_of
from cogcli.base.named_tuple import NamedTuple


class Text(NamedTuple):
    """Text, optionally one of `choices` or matching `pattern`.

    `code` and `expected` are for problems with either. `hint` is for any problem of the text. A `secretive` text may
    contain a secret by mistake, so it is never displayed. `ids` is the kind of registry ids that are valid, a member of
    `json_schema.KnownIds`.
    """

    choices: Collection[str] = ()
    pattern: re.Pattern[str] | None = None
    code: str = "value.range"
    expected: str = ""
    empty: bool = True
    longest: int = 0
    hint: str = ""
    secretive: bool = False
    ids: str = ""


class NumberShape(NamedTuple):
    """A finite number in a range. The bound `above` is exclusive."""

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    whole: bool = False


class Boolean(NamedTuple):
    """`true` or `false`."""

    kind: str = "boolean"
    """Keeps it unequal to `Data`, which has no members either."""


class Data(NamedTuple):
    """Any JSON value."""

    kind: str = "any"


class ListOf(NamedTuple):
    """A list whose items have one shape.

    `code` is for a wrong length, `hint` for a value that is not a list. `unique` is the key whose values must differ
    between entries.
    """

    item: Shape
    minimum: int = 0
    maximum: int = 0
    code: str = "value.range"
    hint: str = ""
    unique: str = ""


class MapOf(NamedTuple):
    """A mapping from free names to values of one shape.

    `foreign` means that another party chooses the names, so that names with `x-` are not ignored.
    """

    value: Shape
    name: Text = Text()
    foreign: bool = False
    filled: bool = False


class RecordKey(NamedTuple):
    """One key of a record. `declared` is its unique name: the name of its class, a dot and the key."""

    shape: Shape
    required: bool = False
    nullable: bool = False
    declared: str = ""


class RecordShape(NamedTuple):
    """A mapping with known keys.

    In messages `thing` precedes the value of `id`: ``step `sum` ``. `open` allows other keys.
    """

    keys: dict[str, RecordKey]
    thing: str = ""
    open: bool = False


class UnionShape(NamedTuple):
    """A choice between shapes. The first one that accepts the kind of the value is used."""

    options: tuple[Shape, ...]

    def option_for(self, value: object) -> Shape | None:
        """Return the shape to use for a value, or None if no shape accepts its kind."""
        return next(
            (option for option in self.options if kind_of(value) == KIND[type(option)]), None
        )


def options_of(shape: Shape) -> tuple[Shape, ...]:
    """Return the shapes that a value may have: those of a choice, or the shape itself."""
    return shape.options if isinstance(shape, UnionShape) else (shape,)


Shape = Text | NumberShape | Boolean | Data | ListOf | MapOf | RecordShape | UnionShape

KIND: Final = {
    Text: "text", NumberShape: "number", Boolean: "boolean", ListOf: "list", MapOf: "object", RecordShape: "object",
}  # fmt: skip
"""The kind of value that each shape accepts. `Data` accepts any."""


def is_ignored(name: str) -> bool:
    """Return whether a key is ignored because it is an author's own key (`x-`)."""
    return name.startswith("x-")


def clean_value(shape: Shape, value: object) -> Any:
    """Return a copy of a checked value.

    Ignored keys and null values of optional keys are removed; integers become `int`.
    """
    match shape, value:
        case UnionShape(), _:
            chosen = shape.option_for(value)
            return value if chosen is None else clean_value(chosen, value)
        case ListOf(item=item), list(entries):
            return [clean_value(item, entry) for entry in entries]
        case MapOf(value=member), dict(members):
            return {
                name: clean_value(member, each)
                for name, each in members.items()
                if shape.foreign or not is_ignored(name)
            }
        case RecordShape(), dict(members):
            return _clean_record(shape, members)
        case NumberShape(whole=True), float(number):
            return int(number)
    return value


def _clean_record(shape: RecordShape, members: Json) -> Json:
    kept: Json = {}
    for name, value in members.items():
        key = shape.keys.get(name)
        if key is None:
            if shape.open:
                kept[name] = value
        elif value is not None or key.required:
            kept[name] = clean_value(key.shape, value)
    return kept
