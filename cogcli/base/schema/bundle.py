"""Self-contained JSON Schemas of 2020-12 from the schemas of an API document.

OpenAPI 3.0 has a dialect of its own: `nullable`, boolean `exclusiveMinimum`, and keywords beside `$ref` are ignored.
"""

from __future__ import annotations

from typing import Any, Final

from cogcli.base.json_pointer import DocumentFault, Pointer, find_at, parse_reference, pointer_text
from cogcli.base.schema.visitor import ASSERTIONS, convert_subschemas

_COPIED: Final = ASSERTIONS | {
    "format",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
}
"""Keywords copied unchanged; titles, descriptions, `x-` keys and those of other dialects are left out."""


class SchemaBundler:
    """Takes schemas out of one document. `is_openapi_30`: whether it is of OpenAPI 3.0."""

    def __init__(self, document: dict[str, Any], *, is_openapi_30: bool = False) -> None:
        self._document = document
        self._is_openapi_30 = is_openapi_30

    def bundle(self, schema: Any, place: Pointer, *, is_request: bool | None = None) -> Any:
        """The schema at a place, with every schema that it refers to in its own `$defs`.

        For a request (`is_request` true) read-only properties are not required, for a response write-only ones; None
        changes nothing. Raises DocumentFault `wire.document` for a part that is not a schema.
        """
        optional_mark = "" if is_request is None else "readOnly" if is_request else "writeOnly"
        closure = _Closure(self._document, self._is_openapi_30, optional_mark)
        whole = closure.part(schema, place)
        definitions = closure.definitions()
        return {**whole, "$defs": definitions} if definitions else whole


class _Closure:
    """One schema and those it refers to, directly or not, each once."""

    def __init__(self, document: dict[str, Any], is_openapi_30: bool, optional_mark: str) -> None:
        self._document = document
        self._is_openapi_30 = is_openapi_30
        self._optional_mark = optional_mark
        self._names: dict[Pointer, str] = {}
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        self._pending: list[Pointer] = []

    def definitions(self) -> dict[str, Any]:
        """The schemas referred to by name."""
        found = {}
        while self._pending:
            place = self._pending.pop()
            found[self._names[place]] = self.part(find_at(self._document, place), place)
        return found

    def part(self, schema: Any, place: Pointer) -> Any:
        """A copy of one schema with references to the bundle's definitions. Raises DocumentFault `wire.document`."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise DocumentFault(
                "wire.document", f"`{pointer_text(place)}`: expected a schema", pointer=place
            )
        result: dict[str, Any] = {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            result["$ref"] = f"#/$defs/{self._definition_name(parse_reference(reference))}"
            if self._is_openapi_30:
                return result
        result |= {key: value for key, value in schema.items() if key in _COPIED}
        result |= convert_subschemas(
            schema, lambda inner, part: self.part(part, (*place, *inner)), definitions=False
        )
        if "example" in schema and "examples" not in result:
            result["examples"] = [schema["example"]]
        if self._is_openapi_30:
            _convert_openapi_30(schema, result)
        self._relax_required(schema, result)
        return result

    def _definition_name(self, place: Pointer) -> str:
        if place not in self._names:
            plain = (
                "".join(char if char.isalnum() or char in "_-." else "_" for char in place[-1])[:64]
                or "_"
            )
            count = self._counts.get(plain, 0)
            while (name := f"{plain}_{count}" if count else plain) in self._taken:
                count += 1
            self._counts[plain] = count + 1
            self._taken.add(name)
            self._names[place] = name
            self._pending.append(place)
        return self._names[place]

    def _relax_required(self, schema: dict[str, Any], result: dict[str, Any]) -> None:
        """Remove the properties that are not sent in this direction from `required`."""
        required, properties = result.get("required"), schema.get("properties")
        if self._optional_mark and isinstance(required, list) and isinstance(properties, dict):
            optional = set()
            for name, each in properties.items():
                if isinstance(each, dict) and isinstance(each.get("$ref"), str):
                    each = find_at(self._document, parse_reference(each["$ref"]))
                if isinstance(each, dict) and each.get(self._optional_mark) is True:
                    optional.add(name)
            result["required"] = [n for n in required if not (isinstance(n, str) and n in optional)]


def _convert_openapi_30(schema: dict[str, Any], result: dict[str, Any]) -> None:
    """Convert keywords of OpenAPI 3.0 in `result` to 2020-12."""
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        result["type"] = [schema["type"], "null"]
    for bound in ("Minimum", "Maximum"):
        exclusive, inclusive = f"exclusive{bound}", bound.lower()
        # A boolean is removed, true or false.
        if (
            isinstance(result.get(exclusive), bool)
            and result.pop(exclusive)
            and inclusive in result
        ):
            result[exclusive] = result.pop(inclusive)
