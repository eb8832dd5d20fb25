"""Regular expressions that match in linear time: no look-around, back-reference, nested quantifier."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final


def unsafe_reason(pattern: str) -> str:
    """Why a regular expression is malformed or may take more than linear time; empty if it is allowed."""
    import re._parser as parser  # type: ignore[import-not-found]

    try:
        return _refused_in(parser.parse(pattern), inside=False)
    except (re.error, RecursionError, OverflowError) as error:
        return f"not a regular expression ({error})"


_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_REFUSED: Final = {
    "ASSERT": "look-around",
    "ASSERT_NOT": "look-around",
    "GROUPREF": "back-reference",
    "GROUPREF_EXISTS": "back-reference",
}


def _refused_in(parsed: Any, *, inside: bool) -> str:
    """Why a parsed expression is refused, empty if it is allowed. `inside`: whether it is within a repeated group."""
    for operation, argument in parsed:
        name = str(operation)
        if name in _REFUSED:
            return f"{_REFUSED[name]} is not allowed"
        repeats = name in _REPEATS
        if repeats and inside and argument[0] != argument[1]:
            return "a quantifier inside a repeated group is not allowed"
        within = inside or (repeats and argument[1] > 1)
        for part in _parts(argument):
            reason = _refused_in(part, inside=within)
            if reason:
                return reason
    return ""


def _parts(argument: Any) -> Iterator[Any]:
    """The parsed sequences in the argument of one operation."""
    if hasattr(argument, "getwidth"):
        yield argument
    elif isinstance(argument, list | tuple):
        for item in argument:
            yield from _parts(item)
