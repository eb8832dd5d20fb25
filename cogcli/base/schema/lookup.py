"""Finds the members of the objects that fit a schema, and the schema at a path inside such an
object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cogcli.base.json_pointer import find_at, parse_reference
from cogcli.base.jsonvalue import Json, walk_values
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.schema import keywords
from cogcli.base.schema.visitor import CHOICES, any_of

_MORE_THAN_MEMBERS: Final = {"anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas"}
_DEPTH: Final = 20
_MAX_STEPS: Final = 500
_MAX_DIGITS: Final = 6


class Members(NamedTuple):
    """The members that a schema declares for an object.

    `closed`: no other members are allowed. `plain`: the schema asserts nothing else about members.
    """

    properties: Json
    required: frozenset[str]
    closed: bool
    plain: bool


def members(schema: object) -> Members:
    """Return the members that a schema declares itself, by `$ref` and by `allOf`.

    Alternatives are not visited.
    """
    properties: Json = {}
    required: set[str] = set()
    closed, plain = False, True
    for part in same_value_parts(schema):
        for name, each in keywords.mapping(part, "properties").items():
            properties.setdefault(name, with_definitions(schema, each))
        required.update(keywords.names(part, "required"))
        closed |= part.get("additionalProperties") is False
        closed |= part.get("unevaluatedProperties") is False
        plain &= _MORE_THAN_MEMBERS.isdisjoint(part)
    return Members(properties, frozenset(required), closed, plain)


def with_definitions(root: object, part: object) -> object:
    """Return a part of a schema as a self-contained schema.

    The root's definitions are added if the part contains a reference.
    """
    if (
        isinstance(root, dict)
        and "$defs" in root
        and isinstance(part, dict)
        and _has_reference(part)
    ):
        return {**part, "$defs": root["$defs"]}
    return part


def _has_reference(value: object) -> bool:
    """Return whether a value contains a reference at any depth."""
    return any(isinstance(part, dict) and "$ref" in part for part in walk_values(value))


def same_value_parts(schema: object) -> Iterator[Json]:
    """Yield a schema and every schema that applies to the same value by `$ref` and `allOf`."""
    pending, seen = [schema], set[int]()
    while pending:
        part = pending.pop(0)
        if isinstance(part, dict) and id(part) not in seen:
            seen.add(id(part))
            yield part
            pending += applied_parts(schema, part)


def applied_parts(root: object, schema: Json) -> list[object]:
    """Return the subschemas of `allOf` and `$ref`, which apply to the same value.

    References are resolved in `root`.
    """
    parts = keywords.items(schema, "allOf")
    reference = keywords.text(schema, "$ref")
    return parts if reference is None else [*parts, find_at(root, parse_reference(reference))]


class SchemaAtPath(NamedTuple):
    """The schema at a path.

    `maybe`: the value may be absent. `undeclared`: the schema neither names nor excludes the value.
    """

    schema: object
    maybe: bool = False
    undeclared: bool = False


def schema_at(schema: object, path: Iterable[str], depth: int = _DEPTH) -> SchemaAtPath | None:
    """Return the schema at a path of keys and indices, None if no value can be there."""
    found, search = SchemaAtPath(schema), _PathSearch()
    for segment in path:
        inner = search.step(found.schema, segment, depth)
        if inner is None:
            return None
        found = SchemaAtPath(
            inner.schema, found.maybe or inner.maybe, found.undeclared or inner.undeclared
        )
    return found


_UNRESTRICTED: Final = SchemaAtPath(True)
_UNSPECIFIED: Final = SchemaAtPath(True, maybe=True)
"""A part that asserts nothing about the segment; compared by identity."""


class _PathSearch:
    """Follows a path into a schema in a limited number of steps.

    Without the limit, nested alternatives would multiply at each segment.
    """

    def __init__(self) -> None:
        self._steps_left = _MAX_STEPS

    def step(self, schema: object, segment: str, depth: int) -> SchemaAtPath | None:
        """Return the schema at one more key or index, combined from all parts that apply.

        If the search has used up its steps, the result allows every value.
        """
        self._steps_left -= 1
        if not depth or self._steps_left < 0:
            return _UNRESTRICTED
        parts = list(same_value_parts(schema))
        steps = [_step_into(schema, part, segment) for part in parts]
        choices = [keywords.items(part, key) for part in parts for key in CHOICES if key in part]
        steps += [self._step_into_choices(schema, each, segment, depth) for each in choices]
        required = any(segment in keywords.names(part, "required") for part in parts)
        return _join_steps(steps, required=required)

    def _step_into_choices(
        self, root: object, choices: list[object], segment: str, depth: int
    ) -> SchemaAtPath | None:
        """Return the union of the alternatives that have the segment, or None if none has it."""
        if len(choices) > self._steps_left:
            return SchemaAtPath(True, maybe=True)
        steps = [self.step(with_definitions(root, each), segment, depth - 1) for each in choices]
        if all(each == _UNRESTRICTED for each in steps):
            return _UNSPECIFIED
        found = [each for each in steps if each is not None]
        return _join_choices(found, complete=len(found) == len(steps)) if found else None


def _join_steps(steps: list[SchemaAtPath | None], *, required: bool) -> SchemaAtPath | None:
    """Return the schema of a segment if all parts of a schema apply.

    Return None if one part excludes the segment.
    """
    found = [each for each in steps if each is not None]
    if len(found) < len(steps):
        return None
    specified = [each for each in found if each is not _UNSPECIFIED]
    declared = [each for each in specified if not each.undeclared]
    if not declared:
        return next(iter(specified), _UNRESTRICTED)
    best = next((each for each in declared if each.schema is not True), declared[0])
    return best._replace(maybe=not required and all(each.maybe for each in declared))


def _join_choices(found: list[SchemaAtPath], *, complete: bool) -> SchemaAtPath:
    """Return the union of the schemas that alternatives have for a segment.

    `complete`: every alternative has the segment.
    """
    schemas: list[object] = []
    for each in found:
        if each.schema not in schemas:
            schemas.append(each.schema)
    if sum(map(_count_definitions, schemas)) > _MAX_STEPS:
        return SchemaAtPath(True, maybe=True)
    maybe = not complete or any(each.maybe or each.undeclared for each in found)
    return SchemaAtPath(any_of(schemas), maybe, all(each.undeclared for each in found))


def _count_definitions(schema: object) -> int:
    return len(schema.get("$defs", ())) if isinstance(schema, dict) else 0


def _step_into(root: object, part: Json, segment: str) -> SchemaAtPath | None:
    """Return the schema of a segment in one part of a schema; None if the part excludes the
    segment.
    """
    types = keywords.types(part)
    index = _parse_index(segment) if not types or "array" in types else None
    if types and index is None and "object" not in types:
        return None
    if index is not None and ("array" in types or "items" in part or "prefixItems" in part):
        return _step_into_list(root, part, index)
    return _step_into_object(root, part, segment, types)


def _parse_index(segment: str) -> int | None:
    """Return the list index written in a path segment; None for any other segment."""
    is_index = segment.isdecimal() and segment.isascii() and len(segment) <= _MAX_DIGITS
    return int(segment) if is_index else None


def _step_into_object(
    root: object, part: Json, segment: str, types: frozenset[str]
) -> SchemaAtPath | None:
    properties = keywords.mapping(part, "properties")
    if segment in properties:
        required = segment in keywords.names(part, "required") and types <= {"object"}
        return SchemaAtPath(with_definitions(root, properties[segment]), maybe=not required)
    more = part.get("additionalProperties", part.get("unevaluatedProperties", True))
    if more is False:
        return None
    if isinstance(more, dict):
        return SchemaAtPath(with_definitions(root, more), maybe=True)
    # A schema that names other members leaves this one undeclared; one that names none asserts nothing about it.
    return SchemaAtPath(True, maybe=True, undeclared=True) if properties else _UNSPECIFIED


def _step_into_list(root: object, part: Json, index: int) -> SchemaAtPath | None:
    maybe = (keywords.count(part, "minItems") or 0) <= index
    prefix = keywords.items(part, "prefixItems")
    if index < len(prefix):
        return SchemaAtPath(with_definitions(root, prefix[index]), maybe)
    items = part.get("items")
    if items is False:
        return None
    return _UNSPECIFIED if items is None else SchemaAtPath(with_definitions(root, items), maybe)
