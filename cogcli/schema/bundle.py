"""Schemas out of a document as JSON Schemas that stand alone: 2020-12, references inside themselves.

OpenAPI 3.0 has a dialect of its own: `nullable`, boolean `exclusiveMinimum`, and nothing beside `$ref` counts.
"""

from __future__ import annotations

from typing import Any, Final

from cogcli.core.document_fault import DocumentFault
from cogcli.core.json_pointer import Pointer, found_at, parse_reference, pointer_text

_ONE: Final = frozenset(
    (
        "not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames",
        "unevaluatedItems", "unevaluatedProperties",
    )
)  # fmt: skip
_LIST: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_MAP: Final = frozenset(("properties", "patternProperties", "dependentSchemas"))
_PLAIN: Final = frozenset(
    (
        "type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
        "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "maxContains", "minContains",
        "maxProperties", "minProperties", "required", "dependentRequired", "format", "default", "examples",
        "deprecated", "readOnly", "writeOnly",
    )
)  # fmt: skip
"""What is kept as it is; titles, descriptions, `x-` keys and dialects of others are left out."""


class SchemaBundler:
    """Takes schemas out of one document. `old` tells whether it is written in the dialect of OpenAPI 3.0."""

    def __init__(self, document: dict[str, Any], *, old: bool = False) -> None:
        self._document = document
        self._old = old

    def closed(self, schema: Any, place: Pointer, *, sent: bool | None = None) -> Any:
        """The schema at a place with all it refers to in its own `$defs`.

        What is `sent` need not hold read-only properties, what is received no write-only ones; None asks for all.
        Raises DocumentFault `wire.document` for what is no schema.
        """
        unasked = "" if sent is None else "readOnly" if sent else "writeOnly"
        closure = _Closure(self._document, self._old, unasked)
        whole = closure.part(schema, place)
        definitions = closure.definitions()
        return {**whole, "$defs": definitions} if definitions else whole


class _Closure:
    """One schema and what it refers to, directly or not, each once."""

    def __init__(self, document: dict[str, Any], old: bool, unasked: str) -> None:
        self._document = document
        self._old = old
        self._unasked = unasked
        self._names: dict[Pointer, str] = {}
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        self._waiting: list[Pointer] = []

    def definitions(self) -> dict[str, Any]:
        """The schemas that were referred to, by their names here."""
        found = {}
        while self._waiting:
            place = self._waiting.pop()
            found[self._names[place]] = self.part(found_at(self._document, place), place)
        return found

    def part(self, schema: Any, place: Pointer) -> Any:
        """One schema, its references renamed."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            message = f"`{pointer_text(place)}`: expected a schema"
            raise DocumentFault("wire.document", message, pointer=place)
        result: dict[str, Any] = {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            result["$ref"] = f"#/$defs/{self._named(parse_reference(reference))}"
            if self._old:
                return result
        for key, value in schema.items():
            if key in _PLAIN:
                result[key] = value
            elif key in _ONE:
                result[key] = self.part(value, (*place, key))
            elif key in _LIST and isinstance(value, list):
                result[key] = [self.part(each, (*place, key, str(n))) for n, each in enumerate(value)]
            elif key in _MAP and isinstance(value, dict):
                result[key] = {name: self.part(each, (*place, key, name)) for name, each in value.items()}
        if "example" in schema and "examples" not in result:
            result["examples"] = [schema["example"]]
        if self._old:
            _modernise(schema, result)
        self._relax(schema, result)
        return result

    def _named(self, place: Pointer) -> str:
        if place not in self._names:
            plain = (
                "".join(char if char.isalnum() or char in "_-." else "_" for char in place[-1])[:64] or "_"
            )
            count = self._counts.get(plain, 0)
            while (name := f"{plain}_{count}" if count else plain) in self._taken:
                count += 1
            self._counts[plain] = count + 1
            self._taken.add(name)
            self._names[place] = name
            self._waiting.append(place)
        return self._names[place]

    def _relax(self, schema: dict[str, Any], result: dict[str, Any]) -> None:
        """Take what does not go in this direction out of `required`."""
        required, properties = result.get("required"), schema.get("properties")
        if self._unasked and isinstance(required, list) and isinstance(properties, dict):
            unasked = {name for name, each in properties.items() if self._is_unasked(each)}
            result["required"] = [n for n in required if not (isinstance(n, str) and n in unasked)]

    def _is_unasked(self, schema: Any) -> bool:
        if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
            schema = found_at(self._document, parse_reference(schema["$ref"]))
        return isinstance(schema, dict) and schema.get(self._unasked) is True


def _modernise(schema: dict[str, Any], result: dict[str, Any]) -> None:
    """From the dialect of OpenAPI 3.0 to 2020-12."""
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        result["type"] = [schema["type"], "null"]
    for bound in ("Minimum", "Maximum"):
        exclusive, inclusive = f"exclusive{bound}", bound.lower()
        # A boolean is taken out, whatever it says.
        if isinstance(result.get(exclusive), bool) and result.pop(exclusive) and inclusive in result:
            result[exclusive] = result.pop(inclusive)
