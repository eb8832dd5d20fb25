"""Canonical JSON bytes, SHA-256 digests of logical objects, and W3C trace and span ids derived from
cogcli's ids (docs/reference/protocols.md#export)."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import Final

import orjson

_TRACE: Final = re.compile(r"(?!0{32})[0-9a-f]{32}")


def canonical(value: object) -> bytes:
    """Return compact UTF-8 JSON with sorted keys, so that equal values have equal bytes.

    Raise TypeError for values that are not JSON.
    """
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def compact(value: object) -> bytes:
    """Return compact UTF-8 JSON with unsorted keys, for values whose key order matters."""
    return orjson.dumps(value)


def text_from(value: object) -> str:
    """Return a value as text: a string unchanged, any other value as compact JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def digest(data: bytes | memoryview) -> str:
    """Return `sha256:` and the 64 hex digits of the data's hash."""
    return f"sha256:{sha256(data).hexdigest()}"


def digest_of(value: object) -> str:
    """Return the digest of a value's canonical bytes."""
    return digest(canonical(value))


@lru_cache(maxsize=16)
def trace_of(trace_id: str) -> str:
    """Return a W3C trace id of 32 lower-case hex digits.

    It is the trace id itself if it has that form, else the first 16 bytes of its SHA-256.
    """
    return trace_id if _TRACE.fullmatch(trace_id) else sha256(trace_id.encode()).hexdigest()[:32]


def span_of(event_id: str, attempt: int | None = None) -> str:
    """Return a W3C span id of 16 lower-case hex digits.

    It is the first 8 bytes of the SHA-256 of the id of the event that opens the span, and
    `/attempt`.
    """
    name = event_id if attempt is None else f"{event_id}/{attempt}"
    return sha256(name.encode()).hexdigest()[:16]
