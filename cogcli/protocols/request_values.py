"""The schema of a request's value for a key, from the binding's templates and the capability's inputs."""

from __future__ import annotations

from typing import Any, NamedTuple

from cogcli.schema.lookup import schema_at
from cogcli.schema.visitor import Bundle
from cogcli.specs.field_schema import schema_of
from cogcli.specs.fields import Fields
from cogcli.specs.template import LITERAL, TemplateFault, is_literal, parse_template


class Given(NamedTuple):
    """The values that may be sent. `maybe`: none is sent without an optional input."""

    schema: Any
    maybe: bool = False
    source: str = ""
    """The name of the input, where the value is an input as a whole."""


def request_schema(value: Any, inputs: Fields) -> Given | None:
    """The schema of a request value; None for a faulty template, which the binding's shape check reports."""
    if isinstance(value, str):
        return _text(value, inputs)
    if is_literal(value):
        return Given({"const": value[LITERAL]})
    if isinstance(value, dict):
        return _object(value, inputs)
    if isinstance(value, list):
        return _list(value, inputs)
    return Given({"const": value})


def _text(text: str, inputs: Fields) -> Given | None:
    try:
        parts = parse_template(text)
    except TemplateFault:
        return None
    slots = [part for part in parts if not isinstance(part, str)]
    if any(slot.path[0] not in inputs for slot in slots):
        return None
    if not slots:
        return Given({"const": "".join(part for part in parts if isinstance(part, str))})
    if len(parts) > 1 or not slots[0].whole:
        return Given({"type": "string"})
    path = slots[0].path
    field = inputs[path[0]]
    found = schema_at(schema_of(field), path[1:])
    if found is None:
        return None
    maybe = not field.required and field.default is None
    return Given(found.schema, maybe, f"input.{'.'.join(path)}")


def _object(value: dict[str, Any], inputs: Fields) -> Given | None:
    bundle = Bundle()
    properties: dict[str, Any] = {}
    required = []
    for name, item in value.items():
        inner = request_schema(item, inputs)
        if inner is None:
            return None
        properties[name] = bundle.part(inner.schema)
        if not inner.maybe:
            required.append(name)
    shape = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Given(bundle.whole(shape))


def _list(value: list[Any], inputs: Fields) -> Given | None:
    """A list: absent items are dropped, so that only the least and the greatest length are known."""
    bundle = Bundle()
    items = [request_schema(item, inputs) for item in value]
    known = [item for item in items if item is not None]
    if len(known) < len(items):
        return None
    schemas = [bundle.part(item.schema) for item in known]
    shape: dict[str, Any] = {"type": "array", "minItems": sum(not item.maybe for item in known)}
    if not any(item.maybe for item in known):
        shape |= {"prefixItems": schemas, "items": False} if schemas else {"maxItems": 0}
    else:
        shape |= {"items": {"anyOf": schemas}, "maxItems": len(schemas)}
    return Given(bundle.whole(shape))
