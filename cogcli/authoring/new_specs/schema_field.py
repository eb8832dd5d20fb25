"""Conversion of a schema of an API document to the specification of a field: type and constraints."""

from __future__ import annotations

from typing import Final

from cogcli.base.jsonvalue import inner_values
from cogcli.base.schema import keywords
from cogcli.base.schema.candidates import TYPES, types_of
from cogcli.base.schema.limits import faults
from cogcli.base.schema.lookup import with_definitions
from cogcli.base.schema.visitor import rewrite
from cogcli.declarations.value_types import Json
from cogcli.protocols.type_fit import drop_null, inline_reference
from cogcli.specs.unchecked import text_at

_ANNOTATIONS: Final = frozenset(("default", "examples", "deprecated", "readOnly", "writeOnly"))


def may_be_null(schema: object) -> bool:
    """Return whether a schema that restricts the type allows null."""
    types = types_of(schema)
    return "null" in types and types != frozenset(TYPES)


def field_of(schema: object, description: str, *, required: bool) -> Json:
    """Return the specification of a field for the values of a schema, without null."""
    whole = inline_reference(schema)
    narrow = drop_null(whole) if may_be_null(whole) else whole
    kind = _kind_of(types_of(narrow))
    field: Json = {"type": kind}
    if required:
        field["required"] = True
    if description:
        field["description"] = description
    rest = _schema_constraints(narrow)
    values = rest.pop("enum", None)
    if values and kind != "any":
        field["enum"] = values
    elif values:
        rest["enum"] = values
    if kind == "array" and (items := _simple_items(rest)):
        rest.pop("items")
        field["items"] = items
    if rest and not faults(rest):
        field["schema"] = rest
    return field


def _kind_of(types: frozenset[str]) -> str:
    """Return the type of a field whose values have these types."""
    if types == {"integer", "number"}:
        return "number"
    return next(iter(types)) if len(types) == 1 and types != {"null"} else "any"


def _schema_constraints(schema: object) -> Json:
    """Return the assertions of a schema except its type and annotations."""
    if not isinstance(schema, dict):
        return {} if schema else {"not": {}}
    whole = rewrite(schema, _without_annotations)
    own = {key: value for key, value in whole.items() if key not in ("type", "$defs", "format")}
    if keywords.items(whole, "type") and len(types_of(whole)) > 1:
        own["type"] = whole["type"]
    used = _used_definitions(own, keywords.mapping(whole, "$defs"))
    return {**own, "$defs": used} if used else own


def _without_annotations(schema: Json) -> Json:
    return {key: value for key, value in schema.items() if key not in _ANNOTATIONS}


def _used_definitions(part: object, definitions: Json) -> Json:
    """Return the definitions that a schema refers to, directly or indirectly, in their original
    order.
    """
    found, pending = set[str](), [part]
    while pending:
        value = pending.pop()
        name = (text_at(value, "$ref") or "").removeprefix("#/$defs/")
        if name in definitions and name not in found:
            found.add(name)
            pending.append(definitions[name])
        pending += inner_values(value)
    return {name: schema for name, schema in definitions.items() if name in found}


def _simple_items(constraints: Json) -> Json:
    """Return the elements of a list as a field, if only their type is restricted."""
    items = keywords.mapping(constraints, "items")
    if not items or items.keys() - {"type", "format"}:
        return {}
    types = types_of(with_definitions(constraints, items))
    is_plain = len(types) == 1 and types <= {"string", "number", "integer", "boolean"}
    return {"type": next(iter(types))} if is_plain else {}
