"""Shapes: the allowed structure of a parsed file, as data."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from cogcli.base.jsonvalue import Json, kind_of


@dataclass(frozen=True, slots=True)
class Text:
    """Text, one of `choices`, or matching `pattern` (`code` and `expected` are for problems of either).

    `hint` is for any problem of the text. A `secretive` text may hold a secret by mistake, so it is never shown. `ids`
    names the kind of registry ids that fit, a member of `json_schema.KnownIds`.
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


@dataclass(frozen=True, slots=True)
class NumberShape:
    """A finite number in a range; the bound `above` is excluded."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Boolean:
    """`true` or `false`."""


@dataclass(frozen=True, slots=True)
class Data:
    """Any JSON value."""


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of one shape. `code` is for a wrong length, `hint` for a value that is not a list.

    `unique` is the key whose values must differ between entries.
    """

    item: Shape
    least: int = 0
    most: int = 0
    code: str = "value.range"
    hint: str = ""
    unique: str = ""


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping of free names to one shape. `foreign` means that another party chooses the names, so that `x-` names
    are not ignored."""

    value: Shape
    name: Text = Text()
    foreign: bool = False
    filled: bool = False


@dataclass(frozen=True, slots=True)
class RecordKey:
    """One key of a record. `declared` is its unique name: its class, a dot and the key."""

    shape: Shape
    required: bool = False
    nullable: bool = False
    declared: str = ""


@dataclass(frozen=True, slots=True)
class RecordShape:
    """A mapping of known keys. `thing` precedes its `id` in messages: ``step `sum` ``; `open` allows other keys."""

    keys: dict[str, RecordKey]
    thing: str = ""
    open: bool = False


@dataclass(frozen=True, slots=True)
class Either:
    """The first of several shapes that accepts the kind of the value."""

    options: tuple[Shape, ...]

    def option_for(self, value: object) -> Shape | None:
        """Return the shape for a value, or None if no shape accepts its kind."""
        return next(
            (option for option in self.options if kind_of(value) == KIND[type(option)]), None
        )


Shape = Text | NumberShape | Boolean | Data | ListOf | MapOf | RecordShape | Either

KIND: Final = {
    Text: "text", NumberShape: "number", Boolean: "boolean", ListOf: "list", MapOf: "object", RecordShape: "object",
}  # fmt: skip
"""The kind of value that each shape accepts. `Data` accepts any."""


def is_ignored(name: str) -> bool:
    """Return whether a key is an author's own (`x-`) and ignored."""
    return name.startswith("x-")


def clean(shape: Shape, value: object) -> Any:
    """Return a checked value without ignored keys and without nulls of optional keys, with integers as `int`."""
    match shape, value:
        case Either(), _:
            chosen = shape.option_for(value)
            return value if chosen is None else clean(chosen, value)
        case ListOf(item=item), list(entries):
            return [clean(item, entry) for entry in entries]
        case MapOf(value=member), dict(members):
            return {
                name: clean(member, each)
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
            kept[name] = clean(key.shape, value)
    return kept
