"""Values that may fit a schema: simple values, and values at its bounds.

The engine decides whether a value fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from cogcli.base.jsonvalue import Json, has_at_most_values
from cogcli.base.schema import keywords
from cogcli.base.schema.lookup import applied_parts
from cogcli.base.schema.visitor import CHOICES

MAX_VALUES: Final = 200
MAX_NODES: Final = 200
"""The most nodes of one value."""
_MAX_STEPS: Final = 5_000
"""The most subschemas visited; references can lead to many more."""
_DEPTH: Final = 6
_LONG_TEXT: Final = 300
_TYPE_VALUES: Final[dict[str, tuple[object, ...]]] = {
    "null": (None,),
    "boolean": (True, False),
    "string": ("x", "", "text", "0", "a" * _LONG_TEXT),
    "integer": (0, 1, -1, 2, 1_000_000),
    "number": (0.5, 0, 1, -1, -0.5, 2, 1_000_000),
}
TYPES: Final = ("null", "boolean", "string", "integer", "number", "array", "object")


_LENGTHS: Final = (("minLength", 0), ("minLength", -1), ("maxLength", 0), ("maxLength", 1))
"""Keywords with a length, and the offset to add: a text of each resulting length is tried."""
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def candidates(schema: object) -> Iterator[object]:
    """Yield at most 200 values that may fit a schema, the simplest first."""
    return islice(_CandidateSearch(schema).values(schema, _DEPTH), MAX_VALUES)


def types_of(schema: object) -> frozenset[str]:
    """Return the types that values of a schema may have, possibly too many.

    An integer is also a number.
    """
    return _CandidateSearch(schema).types(schema, _DEPTH)


class _CandidateSearch:
    """Searches a schema for values that may fit, in a limited number of steps."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._steps_left = _MAX_STEPS
        self._types: dict[tuple[int, int], frozenset[str]] = {}

    def types(self, schema: object, depth: int) -> frozenset[str]:
        """Return the types that values of one subschema may have. Each subschema is computed once."""
        key = (id(schema), depth)
        if key not in self._types:
            # `id` is safe as a key: every subschema lives as long as the root.
            self._types[key] = self._types_in(schema, depth)
        return self._types[key]

    def _types_in(self, schema: object, depth: int) -> frozenset[str]:
        if schema is False or schema == {"not": {}}:
            return frozenset()
        if not isinstance(schema, dict) or not depth:
            return frozenset(TYPES)
        found = _declared_types(schema)
        for part in applied_parts(self._root, schema):
            found &= self.types(part, depth - 1)
        for key in CHOICES:
            if isinstance(schema.get(key), list):
                found &= frozenset(
                    type for part in schema[key] for type in self.types(part, depth - 1)
                )
        return found

    def values(self, schema: object, depth: int) -> Iterator[object]:
        """Yield values of at most `MAX_NODES` nodes that may fit a subschema."""
        return (
            value
            for value in self._iterate_values(schema, depth)
            if has_at_most_values(value, MAX_NODES)
        )

    def _iterate_values(self, schema: object, depth: int) -> Iterator[object]:
        self._steps_left -= 1
        if self._steps_left < 0:
            return
        own: Json = schema if isinstance(schema, dict) else {}
        yield from _author_values(own)
        if not depth:
            return
        parts = applied_parts(self._root, own)
        for key in CHOICES:
            parts = parts + keywords.items(own, key)
        for part in parts:
            yield from islice(self.values(part, depth - 1), 30)
        types = self.types(own, depth)
        for type in TYPES:
            if type in types and not (type == "integer" and "number" in types):
                yield from self._values_of_type(type, own, depth)

    def _values_of_type(self, type: str, schema: Json, depth: int) -> Iterator[object]:
        if type == "array":
            yield from self._iterate_arrays(schema, depth)
        elif type == "object":
            yield from self._iterate_objects(schema, depth)
        else:
            yield from _values_at_bounds(type, schema)
            yield from _TYPE_VALUES[type]

    def _iterate_arrays(self, schema: Json, depth: int) -> Iterator[object]:
        minimum = keywords.count(schema, "minItems") or 0
        if minimum > 100:
            return
        yield []
        for value in islice(self.values(schema.get("items"), depth - 1), 20):
            yield [value] * max(minimum, 1)
            yield [value] * (minimum + 1)
        prefix = keywords.items(schema, "prefixItems")
        if prefix:
            yield [self._first_candidate(part, depth) for part in prefix]

    def _iterate_objects(self, schema: Json, depth: int) -> Iterator[object]:
        properties, required = self._properties_and_required(schema, depth)
        plain = {name: self._first_candidate(properties.get(name), depth) for name in required}
        yield plain
        whole = {name: self._first_candidate(part, depth) for name, part in properties.items()}
        yield {**whole, **plain}
        for name, part in islice(properties.items(), 20):
            for value in islice(self.values(part, depth - 1), 12):
                yield {**plain, name: value}
            yield {key: value for key, value in plain.items() if key != name}
        yield {**plain, "extra": "x"}

    def _first_candidate(self, part: object, depth: int) -> object:
        """Return the first candidate for a subschema; None if no candidate is found."""
        return next(self.values(part, depth - 1), None)

    def _properties_and_required(self, schema: Json, depth: int) -> tuple[Json, list[str]]:
        """Return the properties of an object and the names of the required properties."""
        properties = keywords.mapping(schema, "properties")
        required = keywords.names(schema, "required")
        for part in applied_parts(self._root, schema) if depth else ():
            if isinstance(part, dict):
                more, names = self._properties_and_required(part, depth - 1)
                properties, required = {**more, **properties}, [*required, *names]
        return properties, required


def _declared_types(schema: Json) -> frozenset[str]:
    """Return the types that `type`, `enum` and `const` allow together."""
    found = frozenset(TYPES)
    if "type" in schema:
        named = keywords.types(schema)
        found &= named | {"integer"} if "number" in named else named
    if isinstance(schema.get("enum"), list):
        found &= _types_of_values(schema["enum"])
    if "const" in schema:
        found &= _types_of_values([schema["const"]])
    return found


def _types_of_values(values: Iterable[object]) -> frozenset[str]:
    return frozenset(type for value in values for type in _types_of_value(value))


def _types_of_value(value: object) -> tuple[str, ...]:
    match value:
        case None:
            return ("null",)
        case bool():
            return ("boolean",)
        case int() | float():
            return ("integer", "number") if float(value).is_integer() else ("number",)
        case str():
            return ("string",)
        case list():
            return ("array",)
        case _:
            return ("object",)


def _author_values(schema: Json) -> Iterator[object]:
    """Yield the values that the author wrote into the schema."""
    if "const" in schema:
        yield schema["const"]
    for key in ("enum", "examples"):
        yield from keywords.items(schema, key)[:20]
    if "default" in schema:
        yield schema["default"]


def _values_at_bounds(type: str, schema: Json) -> Iterator[object]:
    """Yield strings and numbers at the bounds of a schema, and next to them."""
    if type == "string":
        for key, more in _LENGTHS:
            length = keywords.count(schema, key)
            if length is not None and 0 <= length + more <= 10_000:
                yield "x" * (length + more)
    elif type in ("integer", "number"):
        for key in _BOUNDS:
            bound = keywords.number(schema, key)
            if bound is not None:
                yield from (bound, bound + 1, bound - 1)
