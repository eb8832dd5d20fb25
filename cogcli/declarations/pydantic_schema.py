"""Pydantic schemas that check and describe records. Code that a run executes does not import this
module.
"""

from __future__ import annotations

from typing import get_type_hints

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
        _allow_any_keys if cls.other_members else require_known_keys,
        core_schema.typed_dict_schema(
            fields,
            cls=cls,
            extra_behavior="allow",
            config=core_schema.CoreConfig(title=cls.__name__, strict=True),
        ),
        ref=f"{cls.__module__}.{cls.__qualname__}",
    )


def _allow_any_keys(value: Json) -> Json:
    return value
