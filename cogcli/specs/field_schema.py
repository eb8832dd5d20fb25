"""The JSON Schema of declared fields for tools of the Model Context Protocol and of models
(docs/reference/protocols.md#serve)."""

from __future__ import annotations

from typing import Any, Final

from cogcli.base.json_pointer import pointer_of
from cogcli.base.redact import names_secret
from cogcli.base.schema.visitor import rewrite
from cogcli.declarations.field_spec import Fields, FieldSpec

_ANCHORS: Final = frozenset(("$dynamicRef", "$id", "$anchor", "$dynamicAnchor"))
"""Keywords that refer to a location. Their meaning changes if the schema is moved into another one."""


def schema_of(fields: Fields) -> dict[str, Any]:
    """Return the JSON Schema of declared fields. It is never narrower than the values that the skill accepts or
    returns."""
    required = [name for name, field in fields.items() if field.required and field.default is None]
    shared: dict[str, Any] = {}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {},
    }
    for name, field in fields.items():
        # A client must not see a secret of the skill file: no default or enum under a secret name.
        public = field.replace(default=None, enum=None) if names_secret(name) else field
        schema["properties"][name] = _field_schema(public, name, shared)
    if required:
        schema["required"] = required
    return schema | ({"$defs": shared} if shared else {})


def _field_schema(field: FieldSpec, place: str, shared: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {} if field.type == "any" else {"type": field.type}
    if field.description:
        schema["description"] = field.description
    if field.default is not None:
        schema["default"] = field.default
    if field.enum is not None:
        schema["enum"] = field.enum
    if field.items is not None:
        schema["items"] = _field_schema(field.items, f"{place}.items", shared)
    if isinstance(field.schema, dict) and not _uses_anchors(field.schema):
        schema["allOf"] = [_relocate(field.schema, place, shared)]
    return schema


def _uses_anchors(schema: Any) -> bool:
    if isinstance(schema, dict):
        return bool(_ANCHORS & schema.keys()) or any(map(_uses_anchors, schema.values()))
    return isinstance(schema, list) and any(map(_uses_anchors, schema))


def _relocate(schema: dict[str, Any], place: str, shared: dict[str, Any]) -> dict[str, Any]:
    """Return a field's schema as part of the tool's schema.

    Its definitions move to the tool's `$defs`, under the field's name. So does the whole schema if it refers to itself.
    """
    definitions = schema.get("$defs")
    names = {
        name: f"{place}.{name}" for name in (definitions if isinstance(definitions, dict) else ())
    }
    to_itself = False

    def moved(reference: str) -> str:
        nonlocal to_itself
        for name, key in names.items():
            old = f"#/$defs/{_escape(name)}"
            if reference == old or reference.startswith(f"{old}/"):
                return f"#/$defs/{_escape(key)}{reference[len(old) :]}"
        to_itself = True
        return f"#/$defs/{_escape(place)}{reference[1:]}"

    def renamed(part: dict[str, Any]) -> dict[str, Any]:
        reference = part.get("$ref")
        found = isinstance(reference, str) and reference.startswith("#")
        return {**part, "$ref": moved(str(reference))} if found else part

    whole = {key: part for key, part in schema.items() if key != "$schema"}
    own: dict[str, Any] = rewrite(
        {key: part for key, part in whole.items() if key != "$defs"}, renamed
    )
    shared.update({key: rewrite(schema["$defs"][name], renamed) for name, key in names.items()})
    if not to_itself:
        return own
    shared[place] = rewrite(whole, renamed)
    return {"$ref": f"#/$defs/{_escape(place)}"}


def _escape(name: str) -> str:
    """Return a member's name for a JSON pointer within a URI reference."""
    from urllib.parse import quote

    return quote(pointer_of((name,))[1:], safe="~.-_")
