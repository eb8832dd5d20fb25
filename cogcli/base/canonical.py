"""Canonical JSON bytes, SHA-256 digests of logical objects, and the trace and span ids of the W3C and OpenTelemetry
derived from ours (docs/reference/protocols.md#export)."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

import orjson

_TRACE: Final = re.compile(r"(?!0{32})[0-9a-f]{32}")


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


@lru_cache(maxsize=16)
def trace_of(trace_id: str) -> str:
    """32 lower hex digits: the trace id itself where it is that, else the first 16 bytes of its sha256."""
    return trace_id if _TRACE.fullmatch(trace_id) else sha256(trace_id.encode()).hexdigest()[:32]


def span_of(event_id: str, attempt: int | None = None) -> str:
    """16 lower hex digits: 8 bytes of sha256 over the id of the event that opens the span, `/N` for its attempt N."""
    name = event_id if attempt is None else f"{event_id}/{attempt}"
    return sha256(name.encode()).hexdigest()[:16]
