"""Decides whether two schemas read the same after their references are followed. Such schemas
accept the same values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cogcli.base.json_pointer import find_at, parse_reference
from cogcli.base.jsonvalue import Json, equal, items_of
from cogcli.base.schema.keywords import Schema
from cogcli.base.schema.visitor import DEFINITIONS, LISTS, MAPS, SINGLE

_Pair = tuple[Schema, Schema]


class _Different(Exception):
    """The two schemas differ in the value of a keyword."""


def are_equal_schemas(first: Schema, second: Schema) -> bool:
    """Return whether two normalized schemas are equal except for the names of definitions and the places
    of references.

    False proves nothing. Each pair is compared once, so the comparison of recursive schemas ends.
    """
    pending, met = [(first, second)], set[tuple[int, int]]()
    while pending:
        one, other = pending.pop()
        one, other = _follow_reference(one, first), _follow_reference(other, second)
        if not (isinstance(one, dict) and isinstance(other, dict)):
            if one is not other:
                return False
        elif (id(one), id(other)) not in met:
            met.add((id(one), id(other)))
            try:
                pending += _pair_subschemas(one, other)
            except _Different:
                return False
    return True


def _follow_reference(schema: Schema, root: Schema) -> Schema:
    """Return the target if a schema consists of a reference only, else the schema itself.

    Reference chains in normalized schemas always end. The result is not a schema if the reference
    leads through a rewritten pattern.
    """
    while isinstance(schema, dict) and schema.keys() - DEFINITIONS == {"$ref"}:
        schema = find_at(root, parse_reference(schema["$ref"]))
    return schema


def _pair_subschemas(first: Json, second: Json) -> Iterator[_Pair]:
    """Yield the pairs of matching subschemas of two schemas. Raise _Different."""
    keys = first.keys() - DEFINITIONS
    if keys != second.keys() - DEFINITIONS:
        raise _Different
    for key in keys:
        yield from _pair_keyword_values(key, first[key], second[key])


def _pair_keyword_values(key: str, first: Any, second: Any) -> Iterator[_Pair]:
    """Yield the pairs of matching subschemas of one keyword. Raise _Different."""
    if key in SINGLE:
        yield first, second
    elif key in MAPS:
        if first.keys() != second.keys():
            raise _Different
        yield from ((first[name], second[name]) for name in first)
    elif key in LISTS:
        if len(first) != len(second):
            raise _Different
        yield from zip(first, second, strict=True)
    elif key == "type":
        if _type_names(first) != _type_names(second):
            raise _Different
    elif not equal(first, second):
        raise _Different


def _type_names(value: object) -> object:
    """Return the types of the keyword `type` as a set: a list of them has no order, and one type
    may be written as a list of one. A faulty value is returned as it is.
    """
    names = items_of(value)
    return frozenset(names) if all(isinstance(name, str) for name in names) else value
