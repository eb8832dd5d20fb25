"""Values that may fit a schema: simple ones, and those at its bounds. The engine decides whether one fits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from cogcli.base.jsonvalue import holds_at_most
from cogcli.base.schema.lookup import applied_parts
from cogcli.base.schema.visitor import CHOICES

MAX_VALUES: Final = 200
MAX_NODES: Final = 200
"""The most nodes of one value."""
_MAX_STEPS: Final = 5_000
"""The most subschemas visited; references can lead to many more."""
_DEPTH: Final = 6
_LONG_TEXT: Final = 300
_TYPE_VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "null": (None,),
    "boolean": (True, False),
    "string": ("x", "", "text", "0", "a" * _LONG_TEXT),
    "integer": (0, 1, -1, 2, 1_000_000),
    "number": (0.5, 0, 1, -1, -0.5, 2, 1_000_000),
}
TYPES: Final = ("null", "boolean", "string", "integer", "number", "array", "object")


def candidates(schema: Any) -> Iterator[Any]:
    """At most 200 values that may fit a schema, the simplest first."""
    return islice(_CandidateSearch(schema).values(schema, _DEPTH), MAX_VALUES)


def types_of(schema: Any) -> frozenset[str]:
    """The types that values of a schema may have, perhaps more; an integer is a number as well."""
    return _CandidateSearch(schema).types(schema, _DEPTH)


class _CandidateSearch:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = _MAX_STEPS
        self._types: dict[tuple[int, int], frozenset[str]] = {}

    def types(self, schema: Any, depth: int) -> frozenset[str]:
        """The types of one subschema, computed once."""
        key = (id(schema), depth)
        if key not in self._types:
            # `id` is safe as a key: every subschema lives as long as the root.
            self._types[key] = self._types_in(schema, depth)
        return self._types[key]

    def _types_in(self, schema: Any, depth: int) -> frozenset[str]:
        found = frozenset(TYPES)
        if schema is False or schema == {"not": {}}:
            return frozenset()
        if not isinstance(schema, dict) or not depth:
            return found
        if "type" in schema:
            named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            known = {type for type in named if isinstance(type, str)}
            found &= known | ({"integer"} if "number" in known else set())
        if isinstance(schema.get("enum"), list):
            found &= frozenset(type for value in schema["enum"] for type in _types_of_value(value))
        if "const" in schema:
            found &= frozenset(_types_of_value(schema["const"]))
        for part in applied_parts(self._root, schema):
            found &= self.types(part, depth - 1)
        for key in CHOICES:
            if isinstance(schema.get(key), list):
                found &= frozenset[str]().union(
                    *(self.types(part, depth - 1) for part in schema[key])
                )
        return found

    def values(self, schema: Any, depth: int) -> Iterator[Any]:
        """Values of at most `MAX_NODES` nodes that may fit a subschema."""
        return (value for value in self._values(schema, depth) if holds_at_most(value, MAX_NODES))

    def _values(self, schema: Any, depth: int) -> Iterator[Any]:
        self._left -= 1
        if self._left < 0:
            return
        if not isinstance(schema, dict):
            schema = {}
        if "const" in schema:
            yield schema["const"]
        for key in ("enum", "examples"):
            if isinstance(schema.get(key), list):
                yield from schema[key][:20]
        if "default" in schema:
            yield schema["default"]
        if not depth:
            return
        parts = applied_parts(self._root, schema)
        for key in CHOICES:
            parts += schema[key] if isinstance(schema.get(key), list) else []
        for part in parts:
            yield from islice(self.values(part, depth - 1), 30)
        types = self.types(schema, depth)
        for type in TYPES:
            if type in types and not (type == "integer" and "number" in types):
                yield from self._of_type(type, schema, depth)

    def _of_type(self, type: str, schema: dict[str, Any], depth: int) -> Iterator[Any]:
        if type == "string":
            for key, more in (
                ("minLength", 0),
                ("minLength", -1),
                ("maxLength", 0),
                ("maxLength", 1),
            ):
                length = schema.get(key)
                if isinstance(length, int) and 0 <= length + more <= 10_000:
                    yield "x" * (length + more)
        if type in ("integer", "number"):
            for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
                bound = schema.get(key)
                if isinstance(bound, int | float):
                    yield from (bound, bound + 1, bound - 1)
        if type == "array":
            yield from self._arrays(schema, depth)
        elif type == "object":
            yield from self._objects(schema, depth)
        else:
            yield from _TYPE_VALUES[type]

    def _arrays(self, schema: dict[str, Any], depth: int) -> Iterator[Any]:
        least = schema.get("minItems", 0)
        if not isinstance(least, int) or least > 100:
            return
        yield []
        for value in islice(self.values(schema.get("items"), depth - 1), 20):
            yield [value] * max(least, 1)
            yield [value] * (least + 1)
        prefix = schema.get("prefixItems")
        if isinstance(prefix, list):
            yield [next(self.values(part, depth - 1), None) for part in prefix]

    def _objects(self, schema: dict[str, Any], depth: int) -> Iterator[Any]:
        properties, required = self._members(schema, depth)
        plain = {
            name: next(self.values(properties.get(name), depth - 1), None) for name in required
        }
        yield plain
        whole = {
            name: next(self.values(part, depth - 1), None) for name, part in properties.items()
        }
        yield {**whole, **plain}
        for name, part in islice(properties.items(), 20):
            for value in islice(self.values(part, depth - 1), 12):
                yield {**plain, name: value}
            yield {key: value for key, value in plain.items() if key != name}
        yield {**plain, "extra": "x"}

    def _members(self, schema: dict[str, Any], depth: int) -> tuple[dict[str, Any], list[str]]:
        """The properties of an object and the names of the required ones."""
        own, needed = schema.get("properties"), schema.get("required")
        properties = dict(own) if isinstance(own, dict) else {}
        required = (
            [name for name in needed if isinstance(name, str)] if isinstance(needed, list) else []
        )
        for part in applied_parts(self._root, schema) if depth else ():
            if isinstance(part, dict):
                more, names = self._members(part, depth - 1)
                properties, required = {**more, **properties}, [*required, *names]
        return properties, required


def _types_of_value(value: Any) -> tuple[str, ...]:
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("boolean",)
    if isinstance(value, int | float):
        return ("integer", "number") if float(value).is_integer() else ("number",)
    return (
        ("string",)
        if isinstance(value, str)
        else ("array",)
        if isinstance(value, list)
        else ("object",)
    )
