"""Looking into schemas that stand alone: what an object of one may hold, what stands at a path, and joining several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from cogcli.core.json_pointer import found_at, parse_reference

_ONE: Final = frozenset(
    (
        "not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames",
        "unevaluatedItems", "unevaluatedProperties",
    )
)  # fmt: skip
_LIST: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_MAP: Final = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))
_CHOICES: Final = ("anyOf", "oneOf")
_UNPLAIN: Final = frozenset(("anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas"))
_DEPTH: Final = 20
_MOST_LOOKS: Final = 500


def rewrite(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A schema in which every subschema was changed, the inner ones first; data in it is left alone."""
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    for key, value in schema.items():
        if key in _ONE:
            result[key] = rewrite(value, change)
        elif key in _LIST and isinstance(value, list):
            result[key] = [rewrite(each, change) for each in value]
        elif key in _MAP and isinstance(value, dict):
            result[key] = {name: rewrite(each, change) for name, each in value.items()}
    return change(result)


class Bundle:
    """Schemas, each with `$defs` of its own, that become parts of one."""

    def __init__(self) -> None:
        self._definitions: dict[str, Any] = {}
        self._count = 0

    def part(self, schema: Any) -> Any:
        """A schema that may stand inside the whole."""
        if not isinstance(schema, dict) or "$defs" not in schema:
            return schema
        self._count += 1
        prefix = f"{self._count}."

        def rename(part: dict[str, Any]) -> dict[str, Any]:
            reference = part.get("$ref")
            if isinstance(reference, str) and reference.startswith("#/$defs/"):
                return {**part, "$ref": f"#/$defs/{prefix}{reference[8:]}"}
            return part

        for name, definition in schema["$defs"].items():
            self._definitions[f"{prefix}{name}"] = rewrite(definition, rename)
        return rewrite({key: value for key, value in schema.items() if key != "$defs"}, rename)

    def whole(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema that is made of the parts."""
        return {**schema, "$defs": self._definitions} if self._definitions else schema


def any_of(schemas: Iterable[Any]) -> Any:
    """The schema of what fits one of several."""
    found = list(schemas)
    if len(found) == 1:
        return found[0]
    bundle = Bundle()
    return bundle.whole({"anyOf": [bundle.part(each) for each in found]})


class Members(NamedTuple):
    """What an object that fits a schema holds. `closed`: nothing else. `plain`: this is all that the schema says."""

    properties: dict[str, Any]
    required: frozenset[str]
    closed: bool
    plain: bool


def members(schema: Any) -> Members:
    """The members of a schema and of what it refers to and adds up; alternatives are not looked into."""
    properties: dict[str, Any] = {}
    required: set[str] = set()
    closed, plain = False, True
    for part in _together(schema):
        own = part.get("properties")
        for name, each in own.items() if isinstance(own, dict) else ():
            properties.setdefault(name, with_definitions(schema, each))
        needed = part.get("required")
        required |= {name for name in needed if isinstance(name, str)} if isinstance(needed, list) else set()
        closed |= part.get("additionalProperties") is False or part.get("unevaluatedProperties") is False
        plain &= _UNPLAIN.isdisjoint(part)
    return Members(properties, frozenset(required), closed, plain)


def with_definitions(root: Any, part: Any) -> Any:
    """A part of a schema, standing alone as well."""
    if isinstance(root, dict) and "$defs" in root and isinstance(part, dict) and _refers(part):
        return {**part, "$defs": root["$defs"]}
    return part


def _refers(value: Any) -> bool:
    if isinstance(value, dict):
        return "$ref" in value or any(map(_refers, value.values()))
    return isinstance(value, list) and any(map(_refers, value))


def _together(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all that holds for the same value besides."""
    waiting, seen = [schema], set[str]()
    while waiting:
        part = waiting.pop(0)
        if not isinstance(part, dict):
            continue
        yield part
        every, reference = part.get("allOf"), part.get("$ref")
        waiting += every if isinstance(every, list) else []
        if isinstance(reference, str) and reference not in seen:
            seen.add(reference)
            waiting.append(found_at(schema, parse_reference(reference)))


class FoundSchema(NamedTuple):
    """What stands at a path: its schema; whether it may be absent; whether the schema merely does not exclude it."""

    schema: Any
    maybe: bool = False
    undeclared: bool = False


def schema_at(schema: Any, path: Iterable[str], depth: int = _DEPTH) -> FoundSchema | None:
    """What stands at a path of keys and indices, None where nothing can."""
    found, looks = FoundSchema(schema), _Looks()
    for segment in path:
        inner = _step(found.schema, segment, depth, looks)
        if inner is None:
            return None
        found = FoundSchema(inner.schema, found.maybe or inner.maybe, found.undeclared or inner.undeclared)
    return found


class _Looks:
    """How much may still be looked at: alternatives of alternatives multiply at each step."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _MOST_LOOKS


def _step(schema: Any, segment: str, depth: int, looks: _Looks) -> FoundSchema | None:
    """One key or index further: what the parts that speak about it say together."""
    looks.left -= 1
    if not depth or looks.left < 0:
        return FoundSchema(True)
    parts = [*_together(schema)]
    steps = [_own_step(schema, part, segment) for part in parts]
    choices = [part[key] for part in parts for key in _CHOICES if isinstance(part.get(key), list)]
    steps += [_chosen(schema, each, segment, depth, looks) for each in choices]
    if None in steps:
        return None
    said = [each for each in steps if each is not None and each is not _SILENT]
    declared = [each for each in said if not each.undeclared]
    if not declared:
        return said[0] if said else FoundSchema(True)
    asked = any(segment in _names(part.get("required")) for part in parts)
    best = next((each for each in declared if each.schema is not True), declared[0])
    return best._replace(maybe=not asked and all(each.maybe for each in declared))


_SILENT: Final = FoundSchema(True, maybe=True)
"""Says nothing about what is looked for; told apart by identity."""


def _chosen(root: Any, choices: list[Any], segment: str, depth: int, looks: _Looks) -> FoundSchema | None:
    """One step into alternatives: those that lead somewhere, together."""
    if len(choices) > looks.left:
        return FoundSchema(True, maybe=True)
    steps = [_step(with_definitions(root, each), segment, depth - 1, looks) for each in choices]
    if all(each == FoundSchema(True) for each in steps):
        return _SILENT
    found = [each for each in steps if each is not None]
    if not found:
        return None
    schemas = _each_once(each.schema for each in found)
    if sum(map(_definitions, schemas)) > _MOST_LOOKS:
        return FoundSchema(True, maybe=True)
    schema = any_of(schemas)
    maybe = len(found) < len(steps) or any(each.maybe or each.undeclared for each in found)
    return FoundSchema(schema, maybe, all(each.undeclared for each in found))


def _definitions(schema: Any) -> int:
    return len(schema.get("$defs", ())) if isinstance(schema, dict) else 0


def _each_once(schemas: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for schema in schemas:
        if not any(schema == other for other in found):
            found.append(schema)
    return found


def _own_step(root: Any, part: dict[str, Any], segment: str) -> FoundSchema | None:
    types = _names(part.get("type")) or _names([part.get("type")])
    index = int(segment) if segment.isdecimal() and segment.isascii() and len(segment) < 7 else None
    as_list = index is not None and (not types or "array" in types)
    if types and not (as_list or "object" in types):
        return None
    if as_list and ("array" in types or "items" in part or "prefixItems" in part):
        return _item(root, part, index or 0)
    own = part.get("properties")
    properties = own if isinstance(own, dict) else {}
    if segment in properties:
        maybe = segment not in _names(part.get("required")) or _else_than(types, "object")
        return FoundSchema(with_definitions(root, properties[segment]), maybe)
    more = part.get("additionalProperties", part.get("unevaluatedProperties", True))
    if more is False:
        return None
    if isinstance(more, dict):
        return FoundSchema(with_definitions(root, more), True)
    # A schema that names members and not this one speaks about it, one that names none is silent.
    return FoundSchema(True, True, undeclared=True) if properties else _SILENT


def _item(root: Any, part: dict[str, Any], index: int) -> FoundSchema | None:
    prefix = part.get("prefixItems")
    least = part.get("minItems")
    maybe = not (isinstance(least, int) and least > index)
    if isinstance(prefix, list) and index < len(prefix):
        return FoundSchema(with_definitions(root, prefix[index]), maybe)
    items = part.get("items")
    if items is False:
        return None
    return _SILENT if items is None else FoundSchema(with_definitions(root, items), maybe)


def _names(value: Any) -> frozenset[str]:
    return (
        frozenset(each for each in value if isinstance(each, str)) if isinstance(value, list) else frozenset()
    )


def _else_than(types: frozenset[str], type: str) -> bool:
    return bool(types - {type})
