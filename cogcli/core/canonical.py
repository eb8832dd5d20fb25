"""Canonical JSON bytes and SHA-256 digests of logical objects."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import orjson


def canonical(value: Any) -> bytes:
    """Compact UTF-8 JSON with sorted keys: equal values give equal bytes. Raises TypeError on non-JSON."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def compact(value: Any) -> bytes:
    """Compact UTF-8 JSON with keys in their own order, where that order says something."""
    return orjson.dumps(value)


def digest(data: bytes | memoryview) -> str:
    """`sha256:` and 64 hex digits."""
    return f"sha256:{sha256(data).hexdigest()}"


def digest_of(value: Any) -> str:
    """The digest of a value's canonical bytes."""
    return digest(canonical(value))
