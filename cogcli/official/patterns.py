"""Regular expressions that a caller gives, run in time that grows with the text alone."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cogcli.sdk import Refused, pattern_refusal, schema_errors

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_STEPS = 1_000


def found(pattern: str, text: str) -> bool:
    """Return whether a pattern is found in a text. Raise Refused for one that may run away, or takes too long for
    this.
    """
    refusal = pattern_refusal(pattern)
    if not refusal:
        return not schema_errors({"pattern": pattern}, text)
    search = _limited(pattern, refusal)
    if search is None:
        raise Refused("bad-data", f"pattern {_short(pattern)!r}: {refusal}")
    return search(text)


def require_bounded(pattern: str, *, of_keys: bool = False) -> None:
    """Raise Refused for a pattern that may run away. Those of keys also meet an engine that goes back."""
    refusal = pattern_refusal(pattern, backtracking=of_keys)
    if refusal and (of_keys or _limited(pattern, refusal) is None):
        raise Refused("bad-data", f"pattern {_short(pattern)!r}{' of keys' * of_keys}: {refusal}")


@lru_cache(maxsize=256)
def _limited(pattern: str, refusal: str) -> Callable[[str], bool] | None:
    """Return what looks for a pattern with look-around, back-references or ends of lines: the engine goes back, and
    gives up after some steps. None for other patterns, and where that engine is not installed or does not take it.
    """
    if not refusal.endswith("not allowed"):
        return None
    try:
        import jsonschema_rs
    except ImportError:
        return None
    judge: Any = jsonschema_rs.Draft202012Validator
    try:
        options = jsonschema_rs.FancyRegexOptions(backtrack_limit=_MOST_STEPS)
        judging = judge({"pattern": pattern}, pattern_options=options)
    except ValueError:
        return None

    def search(text: str) -> bool:
        errors = list(judging.iter_errors(text))
        if any(type(error.kind).__name__.endswith("BacktrackLimitExceeded") for error in errors):
            raise Refused("too-large", f"pattern {_short(pattern)!r} takes too long for this text")
        return not errors

    return search


def _short(pattern: str) -> str:
    return pattern if len(pattern) <= 100 else f"{pattern[:100]}…"
