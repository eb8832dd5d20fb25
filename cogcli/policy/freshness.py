"""The age limit of evidence (docs/reference/pack.md#governed-calls). Pure."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from cogcli.declarations.pack_spec import KnowledgeLimits


def is_stale(observed_at: str, predicate: str, limits: KnowledgeLimits, now: str) -> bool:
    """Return whether a statement is too old at `now`. Its predicate sets the limit, or else the
    default applies."""
    window = limits.freshness_s.get(predicate, limits.freshness_s.get("default"))
    return window is not None and seconds_of(now) - seconds_of(observed_at) > window


@lru_cache(maxsize=4096)
def seconds_of(timestamp: str) -> float:
    """Return a time in seconds since 1970. Raise ValueError for a string that is not a timestamp."""
    return datetime.fromisoformat(timestamp).timestamp()
