"""Regular expressions that a caller gives, run in time that grows with the text alone."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_SIZE = 20_000
MAX_WORK = 30_000_000
_MOST_STEPS = 1_000
_GROUPS = ("SUBPATTERN", "BRANCH", "MAX_REPEAT", "MIN_REPEAT")
_PLAIN = ("LITERAL", "NOT_LITERAL", "ANY", "IN")


def found(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text. Raises Refused for one that may run away, or takes too long for this."""
    search, size = _searcher(pattern)
    if size * len(text) > MAX_WORK:
        raise Refused(
            "too-large", f"a text of {len(text):,} characters is too long for pattern {_short(pattern)!r}"
        )
    return search(text)


def require_bounded(pattern: str) -> None:
    """Raises Refused for a pattern that may run away."""
    _searcher(pattern)


def is_plain(pattern: str) -> bool:
    """Whether an engine that goes back takes linear time for a pattern: few ways, and one repetition without bound.

    That one must begin at the start of the text, or each place would be a new way.
    """
    import re._parser as parser  # type: ignore[import-not-found]

    parsed = parser.parse(pattern)
    anchored = bool(len(parsed)) and str(parsed[0][1]) in ("AT_BEGINNING", "AT_BEGINNING_STRING")
    try:
        ways, endless = _ways(parsed, False)
    except _Unclear:
        return False
    return ways <= _MOST_STEPS and endless <= (1 if anchored else 0)


@lru_cache(maxsize=256)
def _searcher(pattern: str) -> tuple[Callable[[str], bool], int]:
    """What looks for a pattern, and how many steps it takes at most for one character."""
    import re._parser as parser

    size = _size(parser.parse(pattern))
    if size > MAX_SIZE:
        raise Refused("bad-data", f"pattern {_short(pattern)!r} repeats more than {MAX_SIZE:,} times")
    linear = _linear(pattern)
    if linear is not None:
        return linear, size
    limited = _limited(pattern)
    if limited is not None:
        return limited, max(size, _MOST_STEPS)
    if not is_plain(pattern):
        raise Refused("bad-data", f"pattern {_short(pattern)!r} may take for ever")
    compiled = re.compile(pattern)
    return lambda text: compiled.search(text) is not None, _MOST_STEPS


def _linear(pattern: str) -> Callable[[str], bool] | None:
    """The pattern in an engine that never goes back, None where that is not installed or does not take it."""
    try:
        import jsonschema_rs
    except ImportError:
        return None
    judge: Any = jsonschema_rs.Draft202012Validator
    try:
        options = jsonschema_rs.RegexOptions()
        search: Callable[[str], bool] = judge({"pattern": pattern}, pattern_options=options).is_valid
    except ValueError:
        return None
    return search


def _limited(pattern: str) -> Callable[[str], bool] | None:
    """The same for one with look-around or back-references: the engine goes back, and gives up after some steps."""
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


def _size(parsed: Any) -> int:
    """How many characters a parsed pattern asks for, repetitions written out."""
    total = 0
    for operation, argument in parsed:
        inner = sum(map(_size, _inside(argument)))
        if str(operation).endswith("_REPEAT"):
            least, most = argument[0], argument[1]
            inner *= max(1, least if str(most) == "MAXREPEAT" else int(most))
        total += max(1, inner)
    return total


class _Unclear(Exception):
    """Something of which the number of ways is not told."""


def _ways(parsed: Any, repeated: bool) -> tuple[int, int]:
    """In how many ways a parsed pattern may be gone through, and how many repetitions are without bound."""
    ways, endless = 1, 0
    for operation, argument in parsed:
        name = str(operation)
        if name not in (*_GROUPS, *_PLAIN, "AT"):
            raise _Unclear
        own = 1
        parts = [_ways(each, repeated or name.endswith("_REPEAT")) for each in _inside(argument)]
        if name == "BRANCH":
            own = sum(each[0] for each in parts)
        elif name.endswith("_REPEAT"):
            least, most, inner = argument
            if least != most and (repeated or len(inner) != 1 or str(inner[0][0]) not in _PLAIN):
                raise _Unclear
            if str(most) == "MAXREPEAT":
                endless += 1
            else:
                own = (most - least + 1) * parts[0][0] ** least
        elif parts:
            own = parts[0][0]
        ways *= own
        endless += sum(each[1] for each in parts)
        if ways > _MOST_STEPS:
            raise _Unclear
    return ways, endless


def _inside(argument: Any) -> list[Any]:
    """The parsed sequences in the argument of one operation."""
    if hasattr(argument, "getwidth"):
        return [argument]
    if isinstance(argument, list | tuple):
        return [part for item in argument for part in _inside(item)]
    return []


def _short(pattern: str) -> str:
    return pattern if len(pattern) <= 100 else f"{pattern[:100]}…"
