"""Checks foreign data against declared types. Code that a run executes does not import this module."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from cogcli.declarations.events import PAYLOAD_OF
from cogcli.declarations.pydantic_schema import lean_schema
from cogcli.declarations.record import Record


@cache
def adapter_of(cls: type[Record]) -> TypeAdapter[Any]:
    """Return the adapter that checks the JSON of a record and describes it as a schema."""
    return TypeAdapter(cls)


@cache
def _lean_validator_of(cls: type[Record]) -> SchemaValidator:
    return SchemaValidator(lean_schema(adapter_of(cls).core_schema))


def problem_of(event_type: str, payload: object) -> str | None:
    """Return the first problem of the payload of a known event type, with its place; None if valid.

    Raise KeyError for an unknown type.
    """
    return problem_in(PAYLOAD_OF[event_type], payload)


def problem_in(cls: type[Record], payload: object) -> str | None:
    """Return the first problem of a payload by the record of its type, with its place; None if
    valid.
    """
    if _lean_validator_of(cls).isinstance_python(payload):
        return None
    try:
        adapter_of(cls).validate_python(payload)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = "".join(f".{part}" for part in first["loc"])
        return f"payload{place}: {first['msg'].removeprefix('Value error, ')}"
    return None
