"""Pydantic schemas that check and describe records. Code that a run executes does not import this
module.
"""

from __future__ import annotations

from typing import Any, get_type_hints

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from cogcli.declarations.field import ABSENT, REQUIRED, RecordValue, fields_of
from cogcli.declarations.value_types import Json


def core_schema_of(cls: type[RecordValue], handler: GetCoreSchemaHandler) -> CoreSchema:
    """Return the pydantic schema that checks the JSON of a record.

    The check is strict and allows no keys but the fields and `x-...`.
    """
    hints = get_type_hints(cls, include_extras=True)
    fields = {}
    for field in fields_of(cls):
        schema = handler.generate_schema(hints[field.name])
        if field.default is not REQUIRED and field.default is not ABSENT:
            schema = core_schema.with_default_schema(schema, default=field.default)
        is_required = field.default is REQUIRED
        fields[field.name] = core_schema.typed_dict_field(schema, required=is_required)
    known = frozenset(fields)

    def require_known_keys(value: Json) -> Json:
        for key in value:
            if key not in known and not key.startswith("x-"):
                raise ValueError(f"unknown key `{key}`")
        return value

    return core_schema.no_info_after_validator_function(
        _take_any_keys if cls.other_members else require_known_keys,
        core_schema.typed_dict_schema(
            fields,
            cls=cls,
            extra_behavior="allow",
            config=core_schema.CoreConfig(title=cls.__name__, strict=True),
        ),
        ref=f"{cls.__module__}.{cls.__qualname__}",
    )


def _take_any_keys(value: Json) -> Json:
    return value


def lean_schema(schema: CoreSchema) -> CoreSchema:
    """Return a schema of `core_schema_of` that only answers whether a value fits, which takes a third of the time.

    It allows no keys `x-...`, so what it refuses has to be checked again.
    """
    lean: CoreSchema = _lean(schema)
    return lean


def _lean(node: Any) -> Any:
    if isinstance(node, list):
        return [_lean(each) for each in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "default":
        return _lean(node["schema"])
    if node.get("type") == "function-after" and node["schema"].get("type") == "typed-dict":
        takes_any = node["function"]["function"] is _take_any_keys
        inner = _lean(node["schema"])
        reference = {"ref": node["ref"]} if "ref" in node else {}
        return {**inner, **reference, "extra_behavior": "allow" if takes_any else "forbid"}
    return {key: _lean(each) for key, each in node.items()}
