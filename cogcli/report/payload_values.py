"""Values of a log as exports of traces take them: times, durations, counts and compact JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeGuard

from cogcli.core.jsonvalue import object_of
from cogcli.report.trace_spans import Attributes

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_WHOLE: Final = 2**53


def microseconds_of(timestamp: Any) -> int | None:
    """Microseconds since 1970 of an RFC 3339 text, None if it is none."""
    try:
        at = datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        return None
    return max(0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND)


def duration_of(metrics: Any) -> int:
    """Microseconds that something took, as its closing event measured it."""
    ms = object_of(metrics).get("duration_ms")
    return ms * 1000 if is_count(ms) else 0


def is_count(value: Any) -> TypeGuard[int]:
    """Whether it is a whole number that every reader can hold."""
    return type(value) is int and 0 <= value < _WHOLE


def json_text(value: Any) -> str:
    """Compact JSON, the empty text for nothing."""
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def some(attributes: Attributes) -> Attributes:
    """The attributes that say something."""
    return {name: value for name, value in attributes.items() if value not in ("", None)}
