"""Effects that leave a line each in a ledger outside the tool, which the environment variable CRASH_LEDGER names."""

from __future__ import annotations

import json
import os
from typing import Any


def effect(key: str, value: Any = None) -> dict[str, Any]:
    """Happen: one line in the ledger, on disk when this returns."""
    _note(key)
    return {"value": value, "api_key": "crash-secret-0123456789"}


def large(key: str, value: Any = None) -> dict[str, Any]:
    """Happen, and answer with much."""
    _note(key)
    return {"value": key * 100_000}


def refuse() -> dict[str, Any]:
    """Never allow anything."""
    return {"allowed": False, "reason": "never"}


def _note(key: str) -> None:
    line = b"\n" + json.dumps({"key": key}).encode() + b"\n"
    handle = os.open(os.environ["CRASH_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        while line:
            line = line[os.write(handle, line) :]
        os.fsync(handle)
    finally:
        os.close(handle)
