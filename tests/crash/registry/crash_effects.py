"""Effects that leave a line each in a ledger outside the tool, which the environment variable CRASH_LEDGER names."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

_ALONE = threading.Lock()
"""A write may be cut short on purpose: its line is whole before the next one begins."""


def effect(key: str, value: Any = None) -> dict[str, Any]:
    """Happen: one line in the ledger, on disk when this returns."""
    _note(key)
    return {"value": value, "api_key": "crash-secret-0123456789"}


def large(key: str, value: Any = None) -> dict[str, Any]:
    """Happen, and answer with much."""
    _note(key)
    return {"value": key * 100_000}


def read(key: str, value: Any = None, seconds: float | None = None) -> dict[str, Any]:
    """Answer after a while; soon, where CRASH_SOON says so."""
    _note(key)
    time.sleep(0.1 if seconds is None or "CRASH_SOON" in os.environ else seconds)
    return {"value": value}


def plain(key: str, value: Any = None) -> dict[str, Any]:
    """Answer at once."""
    _note(key)
    return {"value": value}


def slow(key: str, value: Any = None) -> dict[str, Any]:
    """Answer too late."""
    _note(f"{key}#crash_slow")
    time.sleep(0.3)
    return {"value": value}


def fast(key: str, value: Any = None) -> dict[str, Any]:
    """Answer in time."""
    _note(f"{key}#crash_fast")
    return {"value": value}


def fails(key: str, value: Any = None) -> dict[str, Any]:
    """Happen, and fail."""
    _note(key)
    raise ValueError("on purpose")


def flaky(key: str, value: Any = None) -> dict[str, Any]:
    """Happen, and fail unless it has happened before."""
    before = _noted(key)
    _note(key)
    if not before:
        raise ConnectionError("on purpose")
    return {"value": value}


def refuse() -> dict[str, Any]:
    """Never allow anything."""
    return {"allowed": False, "reason": "never"}


def _note(key: str) -> None:
    line = b"\n" + json.dumps({"key": key}).encode() + b"\n"
    with _ALONE:
        handle = os.open(os.environ["CRASH_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            while line:
                line = line[os.write(handle, line) :]
            os.fsync(handle)
        finally:
            os.close(handle)


def _noted(key: str) -> bool:
    """Whether it has happened before."""
    with open(os.environ["CRASH_LEDGER"], "a+b") as ledger:
        ledger.seek(0)
        return json.dumps({"key": key}).encode() in ledger.read()
