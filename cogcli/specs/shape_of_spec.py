"""Builds the shape of a declared class from the fields of its declaration. Parsed files are checked against it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cache
from threading import RLock
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from cogcli.base.jsonvalue import Json
from cogcli.declarations.field import Field, fields_of, own_annotations
from cogcli.declarations.spec import Spec, SpecLimits, hints_of, plain_hint
from cogcli.specs.shape import (
    Boolean,
    Data,
    ListOf,
    MapOf,
    NumberShape,
    RecordKey,
    RecordShape,
    Shape,
    Text,
    UnionShape,
)

_SHAPES: Final[dict[type[Spec], RecordShape]] = {}
"""By class. A shape may contain itself, as fields do in `items`, so it is registered before it is complete."""
_BUILDING: Final = RLock()
"""Held while a shape is built, so that no other thread checks a file against an incomplete one."""


def shape_of_spec(cls: type[Spec]) -> RecordShape:
    """Return the shape of a declared class. Each call returns the same object."""
    with _BUILDING:
        if cls not in _SHAPES:
            shape = _SHAPES[cls] = RecordShape({}, cls.thing, cls.other_members)
            hints = hints_of(cls)
            for field in fields_of(cls):
                if field.file_key.in_file:
                    shape.keys[field.key] = _build_key(cls, field, hints[field.name])
        return _SHAPES[cls]


def with_protocols(shape: RecordShape, protocols: Collection[str]) -> RecordShape:
    """Return a shape in which keys that name a protocol accept only the names of these protocols."""
    names = Text(choices=tuple(protocols))
    keys = {
        name: key._replace(shape=names) if key.shape == _PROTOCOL else key
        for name, key in shape.keys.items()
    }
    return shape._replace(keys=keys)


_PROTOCOL: Final = Text(ids="protocols")


def _build_key(cls: type[Spec], field: Field, hint: Any) -> RecordKey:
    shape = shape_of_hint(hint)
    owner = next(each for each in cls.__mro__ if field.name in own_annotations(each))
    declared = f"{owner.__name__}.{field.key}"
    if isinstance(shape, RecordShape) and get_origin(plain_hint(hint)) is dict:
        keys = {
            name: key if key.declared else key._replace(declared=f"{declared}.NAME")
            for name, key in shape.keys.items()
        }
        shape = shape if keys == shape.keys else shape._replace(keys=keys)
    return RecordKey(shape, field.required, field.file_key.nullable, declared)


def shape_of_hint(hint: Any) -> Shape:
    """Return the shape for a type annotation.

    A None among its options is ignored, since it is the value of an absent key.
    """
    words = _find_limits(hint)
    hint = plain_hint(hint)
    if "keys" in words:
        return shape_of_spec(words["keys"])
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        shapes = tuple(shape_of_hint(option) for option in args if option is not NoneType)
        return shapes[0] if len(shapes) == 1 else UnionShape(shapes)
    if origin is Literal:
        return Text(choices=args)
    if origin in (tuple, list):
        return ListOf(shape_of_hint(args[0]), **words)
    if origin is dict:
        return _build_map_shape(args[0], args[1], words)
    build = _SCALARS.get(hint)
    return build(words) if build else _build_spec_shape(hint)


def _find_limits(hint: Any) -> Json:
    """Return the limits in the annotations of a type."""
    words: Json = {}
    for limits in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        if isinstance(limits, SpecLimits):
            words |= limits.words
    return words


def text_pattern(hint: Any) -> re.Pattern[str]:
    """Return the pattern of a string type. Raise TypeError if it has none."""
    pattern = _text_shape(hint).pattern
    if pattern is None:
        raise TypeError(f"{hint} has no pattern")
    return pattern


def _text_shape(hint: Any) -> Text:
    """Return the shape of a string type. Raise TypeError for another type."""
    shape = shape_of_hint(hint)
    if not isinstance(shape, Text):
        raise TypeError(f"{hint} is no text")
    return shape


def _build_spec_shape(cls: type[Spec]) -> Shape:
    shape = shape_of_spec(cls)
    return UnionShape((shape.keys[cls.shorthand].shape, shape)) if cls.shorthand else shape


def _build_map_shape(names: Any, value: object, limits: Json) -> Shape:
    """Return the shape for a dictionary type.

    It is a list if the dictionary is built from a list whose entries have a key member. It is a record if the names are
    known, otherwise a mapping.
    """
    if "unique" in limits:
        return ListOf(shape_of_hint(value), **limits)
    name, shape = _text_shape(names), shape_of_hint(value)
    if name.choices:
        return RecordShape(dict.fromkeys(name.choices, RecordKey(shape)))
    return MapOf(shape, name, **limits)


def _build_text(limits: Json) -> Text:
    flags = re.IGNORECASE if limits.pop("ignore_case", False) else 0
    pattern = limits.pop("pattern", "")
    return Text(pattern=_compile_pattern(pattern, flags) if pattern else None, **limits)


@cache
def _compile_pattern(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern, flags)


_SCALARS: Final[dict[Any, Callable[[Json], Shape]]] = {
    Any: lambda _: Data(),
    bool: lambda _: Boolean(),
    str: _build_text,
    int: lambda words: NumberShape(whole=True, **words),
    float: lambda words: NumberShape(**words),
}
