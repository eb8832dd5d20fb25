"""Build self-contained JSON Schemas of 2020-12 from the schemas of an API document.

OpenAPI 3.0 has its own dialect: `nullable`, boolean `exclusiveMinimum`, and keywords next to `$ref`
are ignored.
"""

from __future__ import annotations

from typing import Final

from cogcli.base.json_pointer import DocumentFault, Pointer, find_at, parse_reference, pointer_text
from cogcli.base.jsonvalue import Json, object_of
from cogcli.base.schema import keywords
from cogcli.base.schema.keywords import Schema
from cogcli.base.schema.visitor import ASSERTIONS, DEFINITIONS, convert_subschemas

_MAX_NAME: Final = 64
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
    """Extracts schemas from one document. `is_openapi_30`: whether the document uses OpenAPI 3.0."""

    def __init__(self, document: Json, *, is_openapi_30: bool = False) -> None:
        self._document = document
        self._is_openapi_30 = is_openapi_30

    def bundle(self, schema: object, place: Pointer, *, is_request: bool | None = None) -> Schema:
        """Return the schema at a place, with every schema that it references in its own `$defs`.

        If `is_request` is true, read-only properties are not required. If it is false, write-only
        properties are not required. If it is None, `required` stays unchanged. Raise DocumentFault
        `wire.document` for a part that is not a schema.
        """
        optional_mark = "" if is_request is None else "readOnly" if is_request else "writeOnly"
        closure = _Closure(self._document, self._is_openapi_30, optional_mark)
        whole = closure.part(schema, place)
        definitions = closure.definitions()
        return {**whole, "$defs": definitions} if isinstance(whole, dict) and definitions else whole


class _Closure:
    """Copies one schema and all schemas that it references, directly or indirectly, once each."""

    def __init__(self, document: Json, is_openapi_30: bool, optional_mark: str) -> None:
        self._document = document
        self._is_openapi_30 = is_openapi_30
        self._optional_mark = optional_mark
        self._names: dict[Pointer, str] = {}
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        self._pending: list[Pointer] = []

    def definitions(self) -> Json:
        """Return the referenced schemas by name."""
        found: Json = {}
        while self._pending:
            place = self._pending.pop()
            found[self._names[place]] = self.part(find_at(self._document, place), place)
        return found

    def part(self, schema: object, place: Pointer) -> Schema:
        """Return a copy of one schema whose references point to the bundle's definitions.

        Raise DocumentFault `wire.document`.
        """
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise DocumentFault(
                "wire.document", f"`{pointer_text(place)}`: expected a schema", pointer=place
            )
        reference = keywords.text(schema, "$ref")
        target: Json = {}
        if reference is not None:
            target["$ref"] = f"#/$defs/{self._definition_name(parse_reference(reference))}"
            if self._is_openapi_30:
                return target  # there, nothing beside a reference counts
        return target | self._copy_members(schema, place)

    def _copy_members(self, schema: Json, place: Pointer) -> Json:
        """Return a copy of the members next to `$ref`, in the form of JSON Schema 2020-12."""
        result = {key: value for key, value in schema.items() if key in _COPIED}
        inner = {key: value for key, value in schema.items() if key not in DEFINITIONS}
        result |= convert_subschemas(inner, lambda path, each: self.part(each, (*place, *path)))
        if _is_file(schema):
            result.setdefault("format", "binary")
        if "example" in schema and "examples" not in result:
            result["examples"] = [schema["example"]]
        if self._is_openapi_30:
            _convert_openapi_30(schema, result)
        if self._optional_mark:
            self._relax_required(schema, result)
        return result

    def _definition_name(self, place: Pointer) -> str:
        """Return the unique name under `$defs` for the schema at a place."""
        if place not in self._names:
            letters = (char if char.isalnum() or char in "_-." else "_" for char in place[-1])
            plain = "".join(letters)[:_MAX_NAME] or "_"
            count = self._counts.get(plain, 0)
            while (name := f"{plain}_{count}" if count else plain) in self._taken:
                count += 1
            self._counts[plain] = count + 1
            self._taken.add(name)
            self._names[place] = name
            self._pending.append(place)
        return self._names[place]

    def _relax_required(self, schema: Json, result: Json) -> None:
        """Remove the properties that are not sent in this direction from `required`."""
        required = keywords.items(result, "required")
        properties = keywords.mapping(schema, "properties")
        optional = {name for name, each in properties.items() if self._is_optional(each)}
        if required and optional:
            result["required"] = [
                name for name in required if not (isinstance(name, str) and name in optional)
            ]

    def _is_optional(self, schema: object) -> bool:
        """Return whether a schema, or the schema that it references, is marked as not sent in this
        direction.
        """
        own = object_of(schema)
        reference = keywords.text(own, "$ref")
        if reference is not None:
            own = object_of(find_at(self._document, parse_reference(reference)))
        return own.get(self._optional_mark) is True


def _allow_null(result: Json) -> None:
    """Add null to a schema that only combines others. OpenAPI 3.0 ignores `nullable` there, but its
    authors mean it.
    """
    combined = {key: result.pop(key) for key in ("allOf", "anyOf", "oneOf") if key in result}
    if combined:
        result["anyOf"] = [combined, {"type": "null"}]


def _is_file(schema: Json) -> bool:
    """Return whether an OpenAPI 3.1 schema describes the content of a file."""
    return "contentMediaType" in schema and "contentEncoding" not in schema


def _convert_openapi_30(schema: Json, result: Json) -> None:
    """Convert keywords of OpenAPI 3.0 in `result` to 2020-12."""
    one_type = keywords.text(schema, "type")
    if one_type is not None and schema.get("nullable") is True:
        result["type"] = [one_type, "null"]
    elif schema.get("nullable") is True and "type" not in result:
        _allow_null(result)
    for bound in ("Minimum", "Maximum"):
        exclusive, inclusive = f"exclusive{bound}", bound.lower()
        if not isinstance(result.get(exclusive), bool):
            continue
        is_exclusive = result.pop(exclusive)  # a boolean is removed, true or false
        if is_exclusive and inclusive in result:
            result[exclusive] = result.pop(inclusive)
