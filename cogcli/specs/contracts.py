"""The one place that applies JSON Schema (protocols.md 7)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

MAX_ERRORS = 20


def errors(schema: Any, value: Any) -> list[tuple[str, str]]:
    """Where and how a value breaks a schema, as (slash path, message); at most 20, empty if it fits."""
    found = []
    for error in _validator(orjson.dumps(schema)).iter_errors(value):
        found.append(("/".join(str(part) for part in error.absolute_path), error.message[:300]))
        if len(found) == MAX_ERRORS:
            break
    return found


@lru_cache(maxsize=512)
def _validator(schema: bytes) -> Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(orjson.loads(schema))


def invalid(schema: Any) -> list[tuple[list[str | int], str]]:
    """Where and how a schema is itself no JSON Schema of 2020-12; at most 20, empty if it is one."""
    from jsonschema import Draft202012Validator

    meta = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    found = []
    for error in meta.iter_errors(schema):
        found.append((list(error.absolute_path), error.message[:300]))
        if len(found) == MAX_ERRORS:
            break
    return found
