"""Searches with regular expressions of callers, in time linear in the text."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cogcli.sdk import Refused, pattern_refusal, schema_errors

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_STEPS = 1_000


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches anywhere in a text.

    Raise Refused for a pattern that may take exponential time, or needs too many steps on this
    text.
    """
    refusal = pattern_refusal(pattern)
    if not refusal:
        return not schema_errors({"pattern": pattern}, text)
    search = _limited_search(pattern, refusal)
    if search is None:
        raise Refused("bad-data", f"pattern {_shorten_pattern(pattern)!r}: {refusal}")
    return search(text)


def require_bounded_time(pattern: str, *, of_keys: bool = False) -> None:
    """Raise Refused for a pattern that may take exponential time.

    Patterns of keys must also be safe for a backtracking engine.
    """
    refusal = pattern_refusal(pattern, backtracking=of_keys)
    if refusal and (of_keys or _limited_search(pattern, refusal) is None):
        raise Refused(
            "bad-data", f"pattern {_shorten_pattern(pattern)!r}{' of keys' * of_keys}: {refusal}"
        )


@lru_cache(maxsize=256)
def _limited_search(pattern: str, refusal: str) -> Callable[[str], bool] | None:
    """Return a search with limited backtracking for a pattern with look-around, back-references or
    `$`.

    None for other patterns, and if the engine is not installed or rejects the pattern.
    """
    if not refusal.endswith("not allowed"):
        return None
    try:
        import jsonschema_rs
    except ImportError:
        return None
    validator_class: Any = jsonschema_rs.Draft202012Validator
    try:
        options = jsonschema_rs.FancyRegexOptions(backtrack_limit=_MOST_STEPS)
        validator = validator_class({"pattern": pattern}, pattern_options=options)
    except ValueError:
        return None

    def search(text: str) -> bool:
        errors = list(validator.iter_errors(text))
        if any(type(error.kind).__name__.endswith("BacktrackLimitExceeded") for error in errors):
            raise Refused(
                "too-large", f"pattern {_shorten_pattern(pattern)!r} takes too long for this text"
            )
        return not errors

    return search


def _shorten_pattern(pattern: str) -> str:
    return pattern if len(pattern) <= 100 else f"{pattern[:100]}…"
