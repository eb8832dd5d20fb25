"""JSON Schema (2020-12) of each kind of spec file, made from the shapes that check them."""

from __future__ import annotations

import re
from typing import Any, Final

from cogcli.specs.field_shape import FIELD
from cogcli.specs.protocol import Protocols
from cogcli.specs.shape import Boolean, Data, Either, ListOf, MapOf, NumberShape, Record, Shape, Text
from cogcli.specs.shapes import shape_of

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_OWN: Final = {"^x-": True}
"""Keys that authors may add to every record."""


def schema_of(kind: str, protocols: Protocols) -> dict[str, Any]:
    """The JSON Schema of a kind of spec file; `validate` also checks what needs other files."""
    defined: dict[str, Any] = {}
    if kind in ("skill", "capability"):
        defined = {"$defs": {"field": _record(FIELD)}}
    return {"$schema": DIALECT, "title": f"cogcli {kind}", **_schema(shape_of(kind, protocols)), **defined}


def _schema(shape: Shape) -> Any:
    if shape is FIELD:
        return {"$ref": "#/$defs/field"}
    if isinstance(shape, Data):
        return True
    if isinstance(shape, Boolean):
        return {"type": "boolean"}
    if isinstance(shape, Text):
        return _text(shape)
    if isinstance(shape, NumberShape):
        limits = {"minimum": shape.least, "maximum": shape.most, "exclusiveMinimum": shape.above}
        present = {name: bound for name, bound in limits.items() if bound is not None}
        return {"type": "integer" if shape.whole else "number", **present}
    if isinstance(shape, ListOf):
        bounds = {"minItems": shape.least, "maxItems": shape.most}
        return {"type": "array", "items": _schema(shape.item), **{k: v for k, v in bounds.items() if v}}
    if isinstance(shape, MapOf):
        return _map(shape)
    if isinstance(shape, Either):
        return {"anyOf": [_schema(option) for option in shape.options]}
    return _record(shape)


def _text(shape: Text) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
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


def _map(shape: MapOf) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "additionalProperties": _schema(shape.value)}
    if not shape.foreign:
        schema["patternProperties"] = _OWN
    if shape.name.pattern:
        schema["propertyNames"] = {"pattern": f"^(?:{shape.name.pattern.pattern}|x-.*)$"}
    if shape.filled:
        schema["minProperties"] = 1
    return schema


def _record(shape: Record) -> dict[str, Any]:
    properties = {}
    for name, key in shape.keys.items():
        own = _schema(key.shape)
        may_be_null = own is not True and (key.nullable or not key.required)
        properties[name] = {"anyOf": [own, {"type": "null"}]} if may_be_null else own
    required = [name for name, key in shape.keys.items() if key.required]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "patternProperties": _OWN,
        "additionalProperties": shape.open,
    }
