"""Checks foreign data against declared types. Code that a run executes does not import this module."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from cogcli.declarations.event_table import PAYLOAD_OF
from cogcli.declarations.quick_check import certainly_fits
from cogcli.declarations.record import Record

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@cache
def adapter_of(cls: type[Record]) -> TypeAdapter[Any]:
    """Return the adapter that checks the JSON of a record and describes it as a schema."""
    from pydantic import TypeAdapter

    return TypeAdapter(cls)


def problem_of(event_type: str, payload: object) -> str | None:
    """Return the first problem of the payload of a known event type, with its place; None if valid.

    Raise KeyError for an unknown type.
    """
    return problem_in(PAYLOAD_OF[event_type], payload)


def problem_in(cls: type[Record], payload: object) -> str | None:
    """Return the first problem of a payload by the record of its type, with its place; None if
    valid.
    """
    if certainly_fits(cls, payload):
        return None
    from pydantic import ValidationError

    try:
        adapter_of(cls).validate_python(payload)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = "".join(f".{part}" for part in first["loc"])
        return f"payload{place}: {first['msg'].removeprefix('Value error, ')}"
    return None
