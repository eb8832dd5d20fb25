"""An error out of the event that tells of it."""

from __future__ import annotations

from typing import Any

from cogcli.core.errors import FAILURE_OF, InternalError, RuntimeErrorBase


def error_from_payload(told: dict[str, Any]) -> RuntimeErrorBase:
    """The error that an event tells of; one of another kind than runs have is `InternalError` under its own code."""
    code = told.get("code") or "internal"
    row = FAILURE_OF.get(code)
    cls = row.cls if row and issubclass(row.cls, RuntimeErrorBase) else InternalError
    return cls(code, told.get("message") or "", hint=told.get("hint") or "", left=told.get("left", True))
