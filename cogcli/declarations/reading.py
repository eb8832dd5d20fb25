"""Reads records from unchecked data: a log of another tool, of an older version, or an altered one.

A member or list element whose type is not the declared one is treated as absent. An absent member
has its default, or the empty value of its type if the field is required. Attributes of such a
record have their declared types, and reading one never fails. Its `json` is the input unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.field import ABSENT, REQUIRED, Field, fields_of, own_annotations
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json, ValueLimits

Fitter = Callable[[object], object]
"""Returns the value, or the part of it that has the type; `ABSENT` if no part has."""
_Read = TypeVar("_Read", bound=Record)


class _Member:
    """A member of a record, as an attribute that is fitted when it is first read.

    Most readers of a record read few of its members.
    """

    __slots__ = ("_fitter", "_hint", "absent", "name", "types")

    def __init__(self, name: str, hint: object, absent: object) -> None:
        self.name = name
        self.types = plain_types(hint)
        """The types of a plain value; None if more than its type is checked."""
        self.absent = absent
        self._hint = hint
        self._fitter: Fitter | None = None

    @property
    def fitter(self) -> Fitter:
        """The function that fits a value to the type of the member."""
        if self._fitter is None:
            self._fitter = _make_fitter(self._hint)
        return self._fitter

    def fit(self, given: Json) -> object:
        """Return the value of the member in `given`; `ABSENT` if it is not there or does not fit."""
        value = given.get(self.name, ABSENT)
        return value if value is ABSENT else self.fitter(value)

    def __get__(self, record: Record | None, cls: type[Record]) -> object:
        if record is None:
            return self
        value = record.json.get(self.name, ABSENT)
        if self.types is not None:
            found = value if type(value) in self.types else self.absent
        else:
            found = ABSENT if value is ABSENT else self.fitter(value)
            if found is ABSENT:
                found = self.absent
        record.__dict__[self.name] = found  # from now on it is read like that of any other object
        return found


class _RecordShape(NamedTuple):
    """The members of a record class, and the function that reads each."""

    cls: type[Any]
    """A class below that of the record, whose attributes are `_Member`s."""
    required: tuple[_Member, ...]
    plain: dict[str, _Member]
    """The members whose type alone is checked, by name."""
    absent: Json
    """The values of these where they are absent."""
    others: tuple[str, ...]
    """The names of all other members."""
    set_members: Callable[[object, Json], None]
    """Sets the attribute dictionary of a record."""
    sound: set[tuple[object, ...]]
    """Keys and types of JSON whose plain members are of their types."""


def read_record(cls: type[_Read], json: object, *, whole: bool = False) -> _Read:
    """Return the record of this JSON.

    The record shares valid parts with the JSON, so the JSON must not be changed. If `whole` is
    true, raise ValueError for a required member that is absent or of another type.
    """
    shape = _shape_of(cls)
    given = json if type(json) is dict else {}
    if whole:
        for member in shape.required:
            if member.fit(given) is ABSENT:
                raise ValueError(f"`{member.name}` is absent, or of another type")
    value: _Read = shape.cls.of(given)
    return value


_MOST_SOUND: Final = 1_000
"""The keys and types of one record that are kept. Those that cogcli writes are few."""


def read_record_at_once(cls: type[_Read], json: object) -> _Read:
    """Return the same as `read_record`. It takes less time if most members are going to be read."""
    if type(json) is not dict:
        return read_record(cls, json)
    shape = _shape_of(cls)
    value: _Read = shape.cls.of(json)
    kinds = (*json, *map(type, json.values()))
    if kinds in shape.sound or _is_sound(shape, json, kinds):
        members = {**shape.absent, **json}
        for name in shape.others:
            members.pop(name, None)
        shape.set_members(value, members)
    return value


def _is_sound(shape: _RecordShape, json: Json, kinds: tuple[object, ...]) -> bool:
    """Return whether the plain members are of their types, and no other key hides an attribute of a record."""
    for name, value in json.items():
        member = shape.plain.get(name)
        if member is None and hasattr(Record, name):
            return False
        if member is not None and member.types is not None and type(value) not in member.types:
            return False
    if len(shape.sound) < _MOST_SOUND:
        shape.sound.add(kinds)
    return True


@cache
def _shape_of(cls: type[Record]) -> _RecordShape:
    hints = types_of(cls)
    below, required = cls.with_attributes(), []
    plain: dict[str, _Member] = {}
    for field in fields_of(cls):
        hint = hints[field.name]
        member = _Member(field.name, hint, _absent_value(field, hint))
        setattr(below, field.name, member)
        if field.default is REQUIRED:
            required.append(member)
        if member.types is not None or hint in _ANYTHING:
            plain[field.name] = member
    absent = {name: member.absent for name, member in plain.items()}
    others = tuple(field.name for field in fields_of(cls) if field.name not in plain)
    set_members = vars(below)["__dict__"].__set__
    return _RecordShape(below, tuple(required), plain, absent, others, set_members, set())


def types_of(cls: type[Record]) -> Json:
    """Return the types of a record's fields by name.

    `typing.get_type_hints` would compile each annotation separately, which takes longer.
    """
    types: Json = {}
    for each in reversed(cls.__mro__):
        own = own_annotations(each)
        annotations = {name: own[name] for name in own if not own[name].startswith("ClassVar")}
        if annotations and issubclass(each, Record):
            source = f"({', '.join(annotations.values())},)"
            found = eval(source, vars(sys.modules[each.__module__]))  # noqa: S307  # annotations of our own classes
            types |= zip(annotations, found, strict=True)
    return types


def _absent_value(field: Field, hint: object) -> object:
    if field.default is REQUIRED:
        return _empty_value(hint)
    return None if field.default is ABSENT else field.default


_ANYTHING: Final = (Any, object)
"""The types that every value has."""
_PLAIN: Final[dict[object, frozenset[type]]] = {
    str: frozenset((str,)),
    int: frozenset((int,)),
    float: frozenset((int, float)),
    bool: frozenset((bool,)),
    None: frozenset((NoneType,)),
    NoneType: frozenset((NoneType,)),
}


def plain_types(hint: object) -> frozenset[type] | None:
    """Return the Python types of a value if only its type is checked; None if more is checked."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        parts = [plain_types(each) for each in args]
        plain = [part for part in parts if part is not None]
        return frozenset[type]().union(*plain) if len(plain) == len(parts) else None
    return frozenset((dict,)) if origin is dict and args[1] is Any else None


def _make_fitter(hint: Any) -> Fitter:
    """Return the function that fits a value to a type."""
    if (types := plain_types(hint)) is not None:
        return lambda value: value if type(value) in types else ABSENT
    if hint in _ANYTHING:
        return lambda value: value
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _fit_annotated(*args)
    if origin is Literal:
        return _fit_one_of(args)
    if origin in (Union, UnionType):
        return _fit_first_of([_make_fitter(each) for each in args])
    if origin is list:
        return _fit_list(_make_fitter(args[0]))
    if origin is dict:
        return _fit_dict(_make_fitter(args[1]))
    return lambda value: read_record(hint, value) if type(value) is dict else ABSENT


def _fit_annotated(hint: object, *rules: object) -> Fitter:
    fit_type = _make_fitter(hint)
    minimum = next((rule.minimum for rule in rules if isinstance(rule, ValueLimits)), None)
    if minimum is None:
        return fit_type

    def fit_number(value: object) -> object:
        found: Any = fit_type(value)
        return found if found is ABSENT or found >= minimum else ABSENT

    return fit_number


def _fit_one_of(values: tuple[object, ...]) -> Fitter:
    types = {type(value) for value in values}
    return lambda value: value if type(value) in types and value in values else ABSENT


def _fit_first_of(fitters: list[Fitter]) -> Fitter:
    def fit_union(value: object) -> object:
        for fit_member in fitters:
            fitted = fit_member(value)
            if fitted is not ABSENT:
                return fitted
        return ABSENT

    return fit_union


def _fit_list(fit_element: Fitter) -> Fitter:
    def fit_list(value: object) -> object:
        if type(value) is not list:
            return ABSENT
        return [each for each in map(fit_element, value) if each is not ABSENT]

    return fit_list


def _fit_dict(fit_value: Fitter) -> Fitter:
    def fit_dict(value: object) -> object:
        if type(value) is not dict:
            return ABSENT
        fitted = ((name, fit_value(each)) for name, each in value.items())
        return {name: each for name, each in fitted if each is not ABSENT}

    return fit_dict


_EMPTY: Final[dict[object, object]] = {str: "", int: 0, float: 0.0, bool: False, list: [], dict: {}}


def _empty_value(hint: object) -> object:
    """Return the empty value of a type: None for a union that includes null."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _ANYTHING or NoneType in args:
        return None
    if origin is Annotated or origin in (Union, UnionType):
        return _empty_value(args[0])
    if origin is Literal:
        return _EMPTY[type(args[0])]
    if isinstance(hint, type) and issubclass(hint, Record):
        return read_record(hint, {})
    return _EMPTY[origin or hint]
