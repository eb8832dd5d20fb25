"""The keywords of JSON Schema 2020-12, and functions that visit the subschemas inside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, overload

from cogcli.base.jsonvalue import Json
from cogcli.base.schema import keywords

SINGLE: Final = frozenset(
    (
        "not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames",
        "unevaluatedItems", "unevaluatedProperties",
    )
)  # fmt: skip
"""Keywords whose value is a subschema."""
LISTS: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
"""Keywords whose value is a list of subschemas."""
DEFINITIONS: Final = frozenset(("$defs", "definitions"))
MAPS: Final = frozenset(("properties", "patternProperties", "dependentSchemas")) | DEFINITIONS
"""Keywords whose value maps names to subschemas."""
CHOICES: Final = ("anyOf", "oneOf")
SAME_VALUE: Final = frozenset(
    ("not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas")
)
"""Keywords whose subschemas apply to the value itself, not to parts of it."""
REFERENCES: Final = ("$ref", "$dynamicRef")
ASSERTIONS: Final = frozenset(
    (
        "type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
        "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "maxContains", "minContains",
        "maxProperties", "minProperties", "required", "dependentRequired",
    )
)  # fmt: skip
"""Keywords that assert something of a value by data, not by subschemas."""


def subschemas(schema: Json) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Yield the direct subschemas of a schema as (path from the schema, subschema).

    Malformed keywords are skipped.
    """
    for key, value in schema.items():
        if key in SINGLE:
            yield (key,), value
        elif key in LISTS and isinstance(value, list):
            yield from (((key, index), each) for index, each in enumerate(value))
        elif key in MAPS and isinstance(value, dict):
            yield from (((key, name), each) for name, each in value.items())


def convert_subschemas(schema: Json, convert: Callable[[tuple[str, ...], object], object]) -> Json:
    """Return the keywords of a schema that contain subschemas, with each subschema converted.

    `convert` receives the path from the schema and the subschema. Malformed keywords are skipped.
    """
    result: Json = {}
    for key, value in schema.items():
        if key in SINGLE:
            result[key] = convert((key,), value)
        elif key in LISTS and isinstance(value, list):
            result[key] = [convert((key, str(index)), each) for index, each in enumerate(value)]
        elif key in MAPS and isinstance(value, dict):
            result[key] = {name: convert((key, name), each) for name, each in value.items()}
    return result


@overload
def rewrite(schema: Json, change: Callable[[Json], Json]) -> Json: ...
@overload
def rewrite(schema: object, change: Callable[[Json], Json]) -> object: ...
def rewrite(schema: object, change: Callable[[Json], Json]) -> object:
    """Return a copy of a schema with `change` applied to each subschema that is an object, inner
    ones first.
    """
    if not isinstance(schema, dict):
        return schema
    return change(
        {**schema, **convert_subschemas(schema, lambda place, part: rewrite(part, change))}
    )


class Bundle:
    """Joins schemas that each have their own `$defs` into one schema, and renames the definitions."""

    def __init__(self) -> None:
        self._definitions: Json = {}
        self._count = 0

    def part(self, schema: object) -> object:
        """Return the schema as a part of the joined schema."""
        if not isinstance(schema, dict) or "$defs" not in schema:
            return schema
        self._count += 1
        prefix = f"{self._count}."

        def rename(part: Json) -> Json:
            reference = keywords.text(part, "$ref") or ""
            if reference.startswith("#/$defs/"):
                return {**part, "$ref": f"#/$defs/{prefix}{reference[8:]}"}
            return part

        for name, definition in keywords.mapping(schema, "$defs").items():
            self._definitions[f"{prefix}{name}"] = rewrite(definition, rename)
        return rewrite({key: value for key, value in schema.items() if key != "$defs"}, rename)

    def whole(self, schema: Json) -> Json:
        """Return the joined schema: `schema`, which contains the parts, with all definitions."""
        return {**schema, "$defs": self._definitions} if self._definitions else schema


def any_of(schemas: Iterable[object]) -> object:
    """Return a schema that accepts every value that at least one of the given schemas accepts."""
    found = list(schemas)
    if len(found) == 1:
        return found[0]
    bundle = Bundle()
    return bundle.whole({"anyOf": [bundle.part(each) for each in found]})
