"""A field specification as a self-contained JSON Schema."""

from __future__ import annotations

from typing import Any

from cogcli.schema.bundle import SchemaBundler
from cogcli.schema.visitor import Bundle
from cogcli.specs.fields import FieldSpec


def schema_of(field: FieldSpec) -> Any:
    """The schema of the values that fit a field; it admits null only for the type `any`."""
    bundle = Bundle()
    return bundle.whole(_part(field, bundle))


def _part(field: FieldSpec, bundle: Bundle) -> dict[str, Any]:
    found: dict[str, Any] = {} if field.type == "any" else {"type": field.type}
    if field.enum is not None:
        found["enum"] = field.enum
    if field.items is not None:
        found["items"] = _part(field.items, bundle)
    if field.schema is not None:
        fragment = field.schema
        closed = SchemaBundler(fragment if isinstance(fragment, dict) else {}).bundle(fragment, ())
        part = bundle.part(closed)
        if isinstance(part, dict) and not part.keys() & found.keys():
            return {**found, **part}
        found["allOf"] = [part]
    return found
