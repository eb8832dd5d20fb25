"""Whether two schemas read the same once their references are followed: then they accept the same values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cogcli.base.json_pointer import find_at, parse_reference
from cogcli.base.jsonvalue import equal
from cogcli.base.schema.visitor import DEFINITIONS, LISTS, MAPS, SINGLE


def reads_same(first: Any, second: Any) -> bool:
    """Whether two normalized schemas are equal but for the names of definitions and for where a reference stands. False
    proves nothing. A pair that was met is not compared again, so that recursive schemas end."""
    pending, met = [(first, second)], set[tuple[int, int]]()
    while pending:
        one, other = pending.pop()
        one, other = _followed(one, first), _followed(other, second)
        if not (isinstance(one, dict) and isinstance(other, dict)):
            if one is not other:
                return False
        elif (id(one), id(other)) not in met:
            met.add((id(one), id(other)))
            if one.keys() - DEFINITIONS != other.keys() - DEFINITIONS:
                return False
            for key in one.keys() - DEFINITIONS:
                inner = list(_inner(key, one[key], other[key]))
                if None in inner:
                    return False
                pending += [pair for pair in inner if pair is not None]
    return True


def _followed(schema: Any, root: Any) -> Any:
    """What a schema that is nothing but a reference refers to; references of normalized schemas end."""
    while isinstance(schema, dict) and schema.keys() - DEFINITIONS == {"$ref"}:
        schema = find_at(root, parse_reference(schema["$ref"]))
    return schema


def _inner(key: str, one: Any, other: Any) -> Iterator[tuple[Any, Any] | None]:
    """Return the pairs of subschemas of a keyword; None if the keyword differs otherwise."""
    if key in SINGLE:
        yield one, other
    elif key in MAPS:
        yield from (
            ((one[name], other[name]) for name in one) if one.keys() == other.keys() else (None,)
        )
    elif key in LISTS:
        yield from zip(one, other, strict=True) if len(one) == len(other) else (None,)
    elif not equal(one, other):
        yield None
