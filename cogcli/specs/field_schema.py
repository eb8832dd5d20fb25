"""The JSON Schema of declared fields, for tools of MCP servers and of models (docs/reference/protocols.md#serve)."""

from __future__ import annotations

from typing import Final

from cogcli.base.json_pointer import pointer_of
from cogcli.base.jsonvalue import Json
from cogcli.base.redact import names_secret
from cogcli.base.schema.visitor import rewrite
from cogcli.declarations.field_spec import Fields, FieldSpec
from cogcli.specs.unchecked import members_of, object_at, text_at

_ANCHORS: Final = frozenset(("$dynamicRef", "$id", "$anchor", "$dynamicAnchor"))
"""Keywords that refer to a location. Their meaning changes if the schema is moved into another one."""


def schema_of(fields: Fields) -> Json:
    """Return the JSON Schema of declared fields. It allows every value that the skill accepts or returns."""
    required = [name for name, field in fields.items() if field.needs_value]
    shared: Json = {}
    schema: Json = {
        "type": "object",
        "properties": {},
    }
    for name, field in fields.items():
        # A client must not see a secret of the skill file: no default or enum under a secret name.
        public = field.replace(default=None, enum=None) if names_secret(name) else field
        schema["properties"][name] = _build_field_schema(public, name, shared)
    if required:
        schema["required"] = required
    return schema | ({"$defs": shared} if shared else {})


_JSON_TYPES: Final = {"file": "string"}
"""The types of JSON for those of fields that JSON has not: a file is named by its path."""


def _build_field_schema(field: FieldSpec, place: str, tool_schema: Json) -> Json:
    schema: Json = {} if field.type == "any" else {"type": _JSON_TYPES.get(field.type, field.type)}
    if field.description:
        schema["description"] = field.description
    if field.default is not None:
        schema["default"] = field.default
    if field.enum is not None:
        schema["enum"] = field.enum
    if field.items is not None:
        schema["items"] = _build_field_schema(field.items, f"{place}.items", tool_schema)
    if isinstance(field.schema, dict) and not _uses_anchors(field.schema):
        schema["allOf"] = [_embed_schema(field.schema, place, tool_schema)]
    return schema


def _uses_anchors(schema: object) -> bool:
    if isinstance(schema, dict) and _ANCHORS & schema.keys():
        return True
    return any(_uses_anchors(part) for _, part in members_of(schema))


def _embed_schema(schema: Json, place: str, tool_schema: Json) -> Json:
    """Return a field's schema as a part of the tool's schema.

    Its definitions move to the tool's `$defs`, prefixed with the field's name. If the schema references itself, the
    whole schema moves there.
    """
    definitions = object_at(schema, "$defs")
    references = _MovedReferences(place, definitions)
    schema_without_draft = {key: part for key, part in schema.items() if key != "$schema"}
    relocated: Json = rewrite(
        {key: part for key, part in schema_without_draft.items() if key != "$defs"},
        references.rename,
    )
    for name, key in references.names.items():
        tool_schema[key] = rewrite(definitions[name], references.rename)
    if not references.to_itself:
        return relocated
    tool_schema[place] = rewrite(schema_without_draft, references.rename)
    return {"$ref": f"#/$defs/{_escape_pointer(place)}"}


class _MovedReferences:
    """Rewrites the references of a schema that moves to `place` in another schema, and collects its definitions."""

    def __init__(self, place: str, definitions: Json) -> None:
        self._place = place
        self.names = {name: f"{place}.{name}" for name in definitions}
        """By name of a definition: its name in the other schema."""
        self.to_itself = False
        """Whether a reference leads into the schema itself, not into its definitions."""

    def rename(self, part: Json) -> Json:
        """Return a part of the schema whose reference, if any, is valid in the other schema."""
        reference = text_at(part, "$ref")
        if reference is None or not reference.startswith("#"):
            return part
        return {**part, "$ref": self._move_reference(reference)}

    def _move_reference(self, reference: str) -> str:
        for name, key in self.names.items():
            old = f"#/$defs/{_escape_pointer(name)}"
            if reference == old or reference.startswith(f"{old}/"):
                return f"#/$defs/{_escape_pointer(key)}{reference[len(old) :]}"
        self.to_itself = True
        return f"#/$defs/{_escape_pointer(self._place)}{reference[1:]}"


def _escape_pointer(name: str) -> str:
    """Return a member's name, escaped for a JSON pointer in a URI reference."""
    from urllib.parse import quote

    return quote(pointer_of((name,))[1:], safe="~.-_")
