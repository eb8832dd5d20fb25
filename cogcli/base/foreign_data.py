"""Reads the JSON data inside values of foreign types: subclasses of text, numbers, lists and dicts,
including enumerations of these, named tuples and dataclasses
(docs/reference/protocols.md#pythoncall).

Only data that the base type stores is read. No method, property or attribute hook of the value's
own type or its metaclass runs, such as an overridden `__iter__`, `items`, `__str__` or
`__getattribute__`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import GetSetDescriptorType, MemberDescriptorType, SimpleNamespace
from typing import Any, Final

_BASES: Final[Any] = type.__dict__["__mro__"].__get__
_MEMBERS: Final[Any] = type.__dict__["__dict__"].__get__


def scalar_data(value: Any) -> str | int | float | None:
    """Return the text or number inside a value of a subclass of these types; None for other values."""
    kind = type(value)
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, int):
        return int.__int__(value)
    return float.__float__(value) if issubclass(kind, float) else None


def object_data(value: Any) -> Iterable[tuple[object, object]] | None:
    """Return the members of a dict, a named tuple or a dataclass; None for any other value.

    Raise ValueError for a dataclass field that was never set.
    """
    kind = type(value)
    if issubclass(kind, dict):
        return dict.items(value)
    if issubclass(kind, tuple):
        names = _class_member(kind, "_fields")
        if type(names) is tuple and len(names) == tuple.__len__(value):
            return zip(names, tuple.__iter__(value), strict=True)
        return None
    fields = _ABSENT if issubclass(kind, list) else _class_member(kind, "__dataclass_fields__")
    return None if fields is _ABSENT else _dataclass_members(value, fields)


def list_data(value: Any) -> Iterator[object] | None:
    """Return the elements of a list or a tuple; None for any other value."""
    kind = type(value)
    if issubclass(kind, list):
        return list.__iter__(value)
    return tuple.__iter__(value) if issubclass(kind, tuple) else None


def _dataclass_members(value: object, fields: object) -> Iterator[tuple[str, object]]:
    from dataclasses import fields as fields_of  # imported only if the value is a dataclass

    own = _own_members(value)
    # `fields` gets a class of ours, since the value's own class could run its hooks.
    holder: Any = SimpleNamespace(__dataclass_fields__=fields)
    for field in fields_of(holder):  # without those that belong to the class
        yield field.name, _field_value(value, own, field.name)


def _field_value(value: object, own: dict[str, object], name: str) -> object:
    """Return the stored value of a field.

    For a property, return the property object, which is not a JSON value.
    """
    if dict.__contains__(own, name):
        return dict.get(own, name)
    member = _class_member(type(value), name)
    if type(member) is MemberDescriptorType:
        try:
            return MemberDescriptorType.__get__(member, value)
        except AttributeError:
            member = _ABSENT
    if member is _ABSENT:
        raise ValueError(f"field `{name}` was never set")
    return member


def _own_members(value: object) -> dict[str, object]:
    """Return the attributes that an object stores itself, without slots."""
    found = _class_member(type(value), "__dict__")
    if type(found) is not GetSetDescriptorType:
        return {}
    members: dict[str, object] = GetSetDescriptorType.__get__(found, value)
    return members


_ABSENT: Final = object()


def _class_member(kind: type, name: str) -> Any:
    for base in _BASES(kind):
        members = _MEMBERS(base)
        if name in members:
            return members[name]
    return _ABSENT
