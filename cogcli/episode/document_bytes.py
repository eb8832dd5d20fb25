"""The bytes of the JSON documents of an episode, and the little arithmetic on timestamps that they need."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import orjson

STATE_KEYS: Final = (
    "version", "state_schema_version", "episode", "goal", "beliefs", "plan", "memory", "outcomes", "links",
    "x-cognitive",
)  # fmt: skip
"""The keys of `state.json`, in order."""


def to_bytes(document: dict[str, Any]) -> bytes:
    """Indent 2, keys in the order they have, final newline: equal documents give equal bytes."""
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def inline_value(value: Any) -> orjson.Fragment:
    """The value as a member of a document that takes no more room there than its JSON does."""
    return orjson.Fragment(orjson.dumps(value))


def whole_milliseconds_between(earlier: str, later: str) -> int | None:
    """The whole milliseconds from one RFC 3339 time to another, None where either is none."""
    a, b = _parsed(earlier), _parsed(later)
    return None if a is None or b is None else (b - a) // timedelta(milliseconds=1)


def milliseconds_between(earlier: str, later: str) -> int | None:
    """From one RFC 3339 time to another, None where either is none."""
    a, b = _parsed(earlier), _parsed(later)
    if a is None or b is None:
        return None
    return round((b - a).total_seconds() * 1000)


def earlier(timestamp: str, milliseconds: float) -> str:
    """The moment so long before an RFC 3339 time, in microseconds; the text itself where it is none."""
    moment = _parsed(timestamp)
    try:
        begun = moment - timedelta(milliseconds=milliseconds) if moment else None
    except (OverflowError, ValueError):
        begun = None
    return timestamp if begun is None else begun.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _parsed(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
