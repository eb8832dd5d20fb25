"""Whether two schemas read the same once their references are followed: then they accept the same values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cogcli.base.json_pointer import find_at, parse_reference
from cogcli.base.jsonvalue import Json, equal
from cogcli.base.schema.keywords import Schema
from cogcli.base.schema.visitor import DEFINITIONS, LISTS, MAPS, SINGLE

_Pair = tuple[Schema, Schema]


class _Different(Exception):
    """A keyword of two schemas whose values differ."""


def reads_same(first: Schema, second: Schema) -> bool:
    """Whether two normalized schemas are equal but for the names of definitions and for where a reference is. False
    proves nothing. A pair is compared once, so that recursive schemas end."""
    pending, met = [(first, second)], set[tuple[int, int]]()
    while pending:
        one, other = pending.pop()
        one, other = _followed(one, first), _followed(other, second)
        if not (isinstance(one, dict) and isinstance(other, dict)):
            if one is not other:
                return False
        elif (id(one), id(other)) not in met:
            met.add((id(one), id(other)))
            try:
                pending += _inner_pairs(one, other)
            except _Different:
                return False
    return True


def _followed(schema: Schema, root: Schema) -> Schema:
    """What a schema that is nothing but a reference refers to; references of normalized schemas end. It is no schema
    if the reference leads through a rewritten pattern."""
    while isinstance(schema, dict) and schema.keys() - DEFINITIONS == {"$ref"}:
        schema = find_at(root, parse_reference(schema["$ref"]))
    return schema


def _inner_pairs(one: Json, other: Json) -> Iterator[_Pair]:
    """The pairs of subschemas of two schemas. Raises _Different."""
    keys = one.keys() - DEFINITIONS
    if keys != other.keys() - DEFINITIONS:
        raise _Different
    for key in keys:
        yield from _keyword_pairs(key, one[key], other[key])


def _keyword_pairs(key: str, one: Any, other: Any) -> Iterator[_Pair]:
    """The pairs of subschemas of a keyword. Raises _Different."""
    if key in SINGLE:
        yield one, other
    elif key in MAPS:
        if one.keys() != other.keys():
            raise _Different
        yield from ((one[name], other[name]) for name in one)
    elif key in LISTS:
        if len(one) != len(other):
            raise _Different
        yield from zip(one, other, strict=True)
    elif not equal(one, other):
        raise _Different
