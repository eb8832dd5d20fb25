"""JSON Schema (2020-12) of each kind of spec file, generated from the shapes that check them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.specs.field_shape import FIELD
from cogcli.specs.protocol import Protocols
from cogcli.specs.shape import (
    Boolean,
    Data,
    ListOf,
    MapOf,
    NumberShape,
    RecordShape,
    Shape,
    Text,
    UnionShape,
    options_of,
)
from cogcli.specs.shapes import shape_of

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_OWN: Final = {"^x-": True}
"""The pattern of keys that authors may add to every record."""


class KnownIds(NamedTuple):
    """The ids in a registry, with descriptions. `targets` are those a step may use, `tools` those a pack may allow."""

    capabilities: Mapping[str, str]
    targets: Mapping[str, str]
    tools: Mapping[str, str]
    bindings: Mapping[str, str]
    services: Mapping[str, str]
    packs: Mapping[str, str]
    bindings_of: Mapping[str, Mapping[str, str]]
    """By capability: its bindings."""


_BINDINGS_OF: Final = "bindings_of"
"""The sort of ids for values whose key is a capability: the bindings of that capability."""


def schema_of(
    kind: str,
    protocols: Protocols,
    keywords_by_key: Mapping[str, Mapping[str, object]] | None = None,
    known_ids: KnownIds | None = None,
) -> Json:
    """Return the JSON Schema of a kind of spec file. `validate` does the checks that need several
    files.

    `keywords_by_key` has schema keywords that explain a key, by `CLASS.KEY`. With `known_ids`, only
    these ids are valid where an id is expected.
    """
    made = _SchemaWriter(keywords_by_key or {}, known_ids)
    schema = {
        "$schema": DIALECT,
        "title": f"cogcli {kind}",
        **made.schema(shape_of(kind, protocols)),
    }
    if made.has_fields:
        made.defined["field"] = made.record(FIELD)
    return schema | ({"$defs": made.defined} if made.defined else {})


class _SchemaWriter:
    """Builds the schema of one kind, and collects shared definitions."""

    def __init__(
        self, keywords_by_key: Mapping[str, Mapping[str, object]], known_ids: KnownIds | None
    ) -> None:
        self.defined: Json = {}
        self.has_fields = False
        self._words = keywords_by_key
        self._known = known_ids

    def schema(self, shape: Shape) -> Any:
        """Return the schema for a shape."""
        if shape is FIELD:
            self.has_fields = True
            return {"$ref": "#/$defs/field"}
        match shape:
            case Data():
                return True
            case Boolean():
                return {"type": "boolean"}
            case Text():
                return self._refer_to_ids(shape.ids) or _text_schema(shape)
            case NumberShape():
                return _number_schema(shape)
            case ListOf():
                return self._list_schema(shape)
            case MapOf():
                return self._map_schema(shape)
            case UnionShape():
                return {"anyOf": [self.schema(option) for option in shape.options]}
            case RecordShape():
                return self.record(shape)

    def _list_schema(self, shape: ListOf) -> Json:
        bounds = {"minItems": shape.minimum, "maxItems": shape.maximum}
        items = self.schema(shape.item)
        return {"type": "array", "items": items, **{k: v for k, v in bounds.items() if v}}

    def _find_ids(self, sort: str) -> Mapping[str, str] | None:
        """Return the known ids of a sort with their descriptions, or None if they are unknown."""
        known: Mapping[str, str] | None = getattr(self._known, sort, None) if sort else None
        return known

    def _refer_to_ids(self, sort: str) -> dict[str, str] | None:
        """Return a schema reference to the ids of one sort, or None if they are unknown."""
        known = None if sort == _BINDINGS_OF else self._find_ids(sort)
        if known is None:
            return None
        self.defined.setdefault(sort, _enumerate_ids(known))
        return {"$ref": f"#/$defs/{sort}"}

    def _map_schema(self, shape: MapOf) -> Json:
        schema: Json = {"type": "object"}
        if not shape.foreign:
            schema["patternProperties"] = _OWN
        if shape.filled:
            schema["minProperties"] = 1
        value = self.schema(shape.value)
        names = self._find_ids(shape.name.ids)
        if names is not None:
            schema["properties"] = {
                id: {**(self._build_binding_schema(id, shape.value) or value), "description": words}
                for id, words in names.items()
            }
            return {**schema, "additionalProperties": False}
        if shape.name.pattern:
            schema["propertyNames"] = {"pattern": f"^(?:{shape.name.pattern.pattern}|x-.*)$"}
        return {**schema, "additionalProperties": value}

    def _build_binding_schema(self, capability: str, shape: Shape) -> Json | None:
        """Return the schema of a value that is a binding of a capability, or a list of bindings.

        None for another value.
        """
        first, *others = options_of(shape)
        if self._known is None or not isinstance(first, Text) or first.ids != _BINDINGS_OF:
            return None
        one = _enumerate_ids(self._known.bindings_of.get(capability, {}))
        return _allow_list(one) if others else one

    def record(self, shape: RecordShape) -> Json:
        """Return the schema of a record. Its keys have descriptions."""
        properties = {}
        for name, key in shape.keys.items():
            own = self.schema(key.shape)
            may_be_null = own is not True and (key.nullable or not key.required)
            own = _allow_null(own) if may_be_null else own
            words = self._words.get(key.declared)
            properties[name] = {**({} if own is True else own), **words} if words else own
        required = [name for name, key in shape.keys.items() if key.required]
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "patternProperties": _OWN,
            "additionalProperties": shape.open,
        }


def _allow_null(schema: Json) -> Json:
    """Return a schema that also accepts null. If possible it is a single schema without alternatives, so that a
    violation is reported at its exact place.
    """
    if "type" in schema and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]}


def _enumerate_ids(description_by_id: Mapping[str, str]) -> Json:
    """Return the schema of these ids, with descriptions for editors."""
    if not description_by_id:
        return {"type": "string"}
    return {
        "type": "string",
        "enum": list(description_by_id),
        "enumDescriptions": list(description_by_id.values()),
    }


def _allow_list(one: Json) -> Json:
    """Return the schema of a value with the schema `one`, or of a list of such values."""
    return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}


def _number_schema(shape: NumberShape) -> Json:
    limits = {"minimum": shape.minimum, "maximum": shape.maximum, "exclusiveMinimum": shape.above}
    present = {name: bound for name, bound in limits.items() if bound is not None}
    return {"type": "integer" if shape.whole else "number", **present}


def _text_schema(shape: Text) -> Json:
    schema: Json = {"type": "string"}
    if shape.choices:
        schema["enum"] = list(shape.choices)
    # A pattern that ignores case has no equal in JSON Schema.
    if shape.pattern and not shape.pattern.flags & re.IGNORECASE:
        schema["pattern"] = f"^(?:{shape.pattern.pattern})$"
    if not shape.empty:
        schema["minLength"] = 1
    if shape.longest:
        schema["maxLength"] = shape.longest
    return schema
