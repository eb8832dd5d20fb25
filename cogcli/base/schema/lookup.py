"""The members of the objects that fit a schema, and the schema at a path inside such an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from cogcli.base.json_pointer import find_at, parse_reference
from cogcli.base.schema.visitor import CHOICES, any_of

_MORE_THAN_MEMBERS: Final = {"anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas"}
_DEPTH: Final = 20
_MAX_STEPS: Final = 500


class Members(NamedTuple):
    """The members of an object. `closed`: no others are allowed. `plain`: nothing else is asserted about members."""

    properties: dict[str, Any]
    required: frozenset[str]
    closed: bool
    plain: bool


def members(schema: Any) -> Members:
    """Return the members by a schema, its `$ref` and `allOf`; alternatives are not visited."""
    properties: dict[str, Any] = {}
    required: set[str] = set()
    closed, plain = False, True
    for part in _same_value_parts(schema):
        own = part.get("properties")
        for name, each in own.items() if isinstance(own, dict) else ():
            properties.setdefault(name, with_definitions(schema, each))
        needed = part.get("required")
        required |= (
            {name for name in needed if isinstance(name, str)}
            if isinstance(needed, list)
            else set()
        )
        closed |= (
            part.get("additionalProperties") is False or part.get("unevaluatedProperties") is False
        )
        plain &= _MORE_THAN_MEMBERS.isdisjoint(part)
    return Members(properties, frozenset(required), closed, plain)


def with_definitions(root: Any, part: Any) -> Any:
    """A part of a schema as a schema of its own, with the definitions of the root if it refers to any."""
    if isinstance(root, dict) and "$defs" in root and isinstance(part, dict) and _refers(part):
        return {**part, "$defs": root["$defs"]}
    return part


def _refers(value: Any) -> bool:
    if isinstance(value, dict):
        return "$ref" in value or any(map(_refers, value.values()))
    return isinstance(value, list) and any(map(_refers, value))


def _same_value_parts(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all that applies to the same value by `$ref` and `allOf`."""
    pending, seen = [schema], set[int]()
    while pending:
        part = pending.pop(0)
        if isinstance(part, dict) and id(part) not in seen:
            seen.add(id(part))
            yield part
            pending += applied_parts(schema, part)


def applied_parts(root: Any, schema: dict[str, Any]) -> list[Any]:
    """The subschemas of `allOf` and `$ref`, which apply to the same value; references are resolved in `root`."""
    every, reference = schema.get("allOf"), schema.get("$ref")
    parts = list(every) if isinstance(every, list) else []
    return (
        [*parts, find_at(root, parse_reference(reference))] if isinstance(reference, str) else parts
    )


class FoundSchema(NamedTuple):
    """The schema at a path. `maybe`: the value may be absent; `undeclared`: it is neither named nor excluded."""

    schema: Any
    maybe: bool = False
    undeclared: bool = False


def schema_at(schema: Any, path: Iterable[str], depth: int = _DEPTH) -> FoundSchema | None:
    """Return the schema at a path of keys and indices, None if no value can be there."""
    found, left = FoundSchema(schema), [_MAX_STEPS]
    for segment in path:
        inner = _step(found.schema, segment, depth, left)
        if inner is None:
            return None
        found = FoundSchema(
            inner.schema, found.maybe or inner.maybe, found.undeclared or inner.undeclared
        )
    return found


def _step(schema: Any, segment: str, depth: int, left: list[int]) -> FoundSchema | None:
    """Return the schema one key or index further, by all parts that apply.

    It is unrestricted once no step is `left` of the whole search, because alternatives of
    alternatives multiply at each segment."""
    left[0] -= 1
    if not depth or left[0] < 0:
        return FoundSchema(True)
    parts = [*_same_value_parts(schema)]
    steps = [_step_into(schema, part, segment) for part in parts]
    choices = [part[key] for part in parts for key in CHOICES if isinstance(part.get(key), list)]
    steps += [_step_into_choices(schema, each, segment, depth, left) for each in choices]
    if None in steps:
        return None
    specified = [each for each in steps if each is not None and each is not _UNSPECIFIED]
    declared = [each for each in specified if not each.undeclared]
    if not declared:
        return specified[0] if specified else FoundSchema(True)
    required = any(segment in _names(part.get("required")) for part in parts)
    best = next((each for each in declared if each.schema is not True), declared[0])
    return best._replace(maybe=not required and all(each.maybe for each in declared))


_UNSPECIFIED: Final = FoundSchema(True, maybe=True)
"""A part that asserts nothing about the segment; compared by identity."""


def _step_into_choices(
    root: Any, choices: list[Any], segment: str, depth: int, left: list[int]
) -> FoundSchema | None:
    """Return one step into alternatives: the union of those that have the segment, None if none
    has."""
    if len(choices) > left[0]:
        return FoundSchema(True, maybe=True)
    steps = [_step(with_definitions(root, each), segment, depth - 1, left) for each in choices]
    if all(each == FoundSchema(True) for each in steps):
        return _UNSPECIFIED
    found = [each for each in steps if each is not None]
    if not found:
        return None
    schemas: list[Any] = []
    for each in found:
        if each.schema not in schemas:
            schemas.append(each.schema)
    if sum(len(each.get("$defs", ())) for each in schemas if isinstance(each, dict)) > _MAX_STEPS:
        return FoundSchema(True, maybe=True)
    maybe = len(found) < len(steps) or any(each.maybe or each.undeclared for each in found)
    return FoundSchema(any_of(schemas), maybe, all(each.undeclared for each in found))


def _step_into(root: Any, part: dict[str, Any], segment: str) -> FoundSchema | None:
    types = _names(part.get("type")) or _names([part.get("type")])
    index = int(segment) if segment.isdecimal() and segment.isascii() and len(segment) < 7 else None
    as_list = index is not None and (not types or "array" in types)
    if types and not (as_list or "object" in types):
        return None
    if as_list and ("array" in types or "items" in part or "prefixItems" in part):
        return _step_into_list(root, part, index or 0)
    own = part.get("properties")
    properties = own if isinstance(own, dict) else {}
    if segment in properties:
        maybe = segment not in _names(part.get("required")) or bool(types - {"object"})
        return FoundSchema(with_definitions(root, properties[segment]), maybe)
    more = part.get("additionalProperties", part.get("unevaluatedProperties", True))
    if more is False:
        return None
    if isinstance(more, dict):
        return FoundSchema(with_definitions(root, more), True)
    # A schema that names other members leaves this one undeclared; one that names none asserts nothing about it.
    return FoundSchema(True, True, undeclared=True) if properties else _UNSPECIFIED


def _step_into_list(root: Any, part: dict[str, Any], index: int) -> FoundSchema | None:
    prefix = part.get("prefixItems")
    least = part.get("minItems")
    maybe = not (isinstance(least, int) and least > index)
    if isinstance(prefix, list) and index < len(prefix):
        return FoundSchema(with_definitions(root, prefix[index]), maybe)
    items = part.get("items")
    if items is False:
        return None
    return _UNSPECIFIED if items is None else FoundSchema(with_definitions(root, items), maybe)


def _names(value: Any) -> frozenset[str]:
    return (
        frozenset(each for each in value if isinstance(each, str))
        if isinstance(value, list)
        else frozenset()
    )
