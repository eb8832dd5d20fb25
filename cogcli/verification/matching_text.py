"""A short text that a regular expression matches."""

from __future__ import annotations

import re
from typing import Any, Final

_PRINTABLE: Final = [chr(n) for n in range(33, 127)] + [" "]
_CLASSES: Final = {
    "CATEGORY_DIGIT": "0", "CATEGORY_WORD": "a", "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_DIGIT": "a", "CATEGORY_NOT_WORD": "-", "CATEGORY_NOT_SPACE": "a",
}  # fmt: skip


class _Lost(Exception):
    """A construct that no text is made for."""


def text_like(pattern: str, *, repeats: int = 0) -> str | None:
    """A text that the pattern finds, every repetition `repeats` times more than it must; None where none is made."""
    import re._parser as parser  # type: ignore[import-not-found]

    try:
        made = _sequence(parser.parse(pattern), repeats)
        return made if re.search(pattern, made) else None
    except (_Lost, re.error, RecursionError, OverflowError):
        return None


def _sequence(parsed: Any, repeats: int) -> str:
    return "".join(_part(str(operation), argument, repeats) for operation, argument in parsed)


def _part(operation: str, argument: Any, repeats: int) -> str:
    if operation == "LITERAL":
        return chr(argument)
    if operation == "ANY":
        return "a"
    if operation == "NOT_LITERAL":
        return "a" if argument != ord("a") else "b"
    if operation == "AT":
        return ""
    if operation == "IN":
        return _one_of(argument)
    if operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, inner = argument
        times: int = min(least + repeats, int(most), 10_000)
        return _sequence(inner, repeats) * times
    if operation == "SUBPATTERN":
        return _sequence(argument[-1], repeats)
    if operation == "BRANCH":
        return _sequence(argument[1][0], repeats)
    if operation == "ATOMIC_GROUP":
        return _sequence(argument, repeats)
    raise _Lost


def _one_of(choices: Any) -> str:
    if str(choices[0][0]) == "NEGATE":
        for char in ("a", *_PRINTABLE):
            if not any(_holds(str(operation), argument, char) for operation, argument in choices[1:]):
                return char
        raise _Lost
    operation, argument = choices[0]
    word = str(operation)
    if word == "LITERAL":
        return chr(argument)
    if word == "RANGE":
        return chr(argument[0])
    if word == "CATEGORY":
        return _CLASSES[str(argument)]
    raise _Lost


def _holds(operation: str, argument: Any, char: str) -> bool:
    if operation == "LITERAL":
        return chr(argument) == char
    if operation == "RANGE":
        return bool(argument[0] <= ord(char) <= argument[1])
    name = str(argument)
    member = {
        "DIGIT": char.isdigit(),
        "WORD": char.isalnum() or char == "_",
        "SPACE": char.isspace(),
    }[name.rpartition("_")[2]]
    return member != ("NOT" in name)
