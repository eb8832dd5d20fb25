"""Patterns of schemas in one meaning for every engine (protocols.md 7).

JSON Schema says ECMA 262; Python's `re` and Rust's `regex` each differ from it in what `\\d`, `\\s`, `.` and `$`
match and in what must be escaped. So a pattern is parsed once and written anew, out of parts that mean the same to
both.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Any, Final, NamedTuple

from cogcli.specs.linear import refused

_LAST: Final = 0x10FFFF
_SURROGATES: Final = (0xD800, 0xDFFF)
_DIGIT: Final = [(48, 57)]
_WORD: Final = [(48, 57), (65, 90), (95, 95), (97, 122)]
_SPACE: Final = [
    (9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
]  # fmt: skip
_LINE_ENDS: Final = [(10, 10), (13, 13), (0x2028, 0x2029)]
_CATEGORIES: Final = {"DIGIT": _DIGIT, "WORD": _WORD, "SPACE": _SPACE}
_ENDS: Final = {
    "AT_BEGINNING": "^",
    "AT_BEGINNING_STRING": "^",
    "AT_END": "$",
    "AT_END_STRING": "$",
}
_FINAL: Final = r"\Z"

Ranges = list[tuple[int, int]]


class Pattern(NamedTuple):
    """A pattern as Python's engine takes it, and as Rust's does; there None where it cannot be written."""

    python: str
    rust: str | None


class _Elsewhere(Exception):
    """A construct that has no like in the other engine."""


@lru_cache(maxsize=1024)
def pattern_of(text: str) -> Pattern | None:
    """The pattern that a schema's text means; None if it is refused: not linear, or none."""
    import re._parser as parser  # type: ignore[import-not-found]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if refused(text):
            return None
        try:
            parsed = parser.parse(text)
            if parsed.state.flags & ~re.UNICODE:
                return Pattern(text, None)
            plain = _written(parsed)
        except _Elsewhere:
            return Pattern(text, None)
    return Pattern(plain.replace("\0", _FINAL), plain.replace("\0", "$"))


def _written(parsed: Any) -> str:
    """A parsed sequence as text, `\\0` standing for the end of the text."""
    return "".join(_part(str(operation), argument) for operation, argument in parsed)


def _part(name: str, argument: Any) -> str:
    if name == "LITERAL":
        return _class([(argument, argument)])
    if name == "NOT_LITERAL":
        return _class(_complement([(argument, argument)]))
    if name == "ANY":
        return _class(_complement(_LINE_ENDS))
    if name == "IN":
        return _class(_members(argument))
    if name == "AT" and str(argument) in _ENDS:
        return _ENDS[str(argument)].replace("$", "\0")
    if name == "BRANCH":
        return f"(?:{'|'.join(_written(branch) for branch in argument[1])})"
    if name == "SUBPATTERN" and not argument[1] and not argument[2]:
        return f"(?:{_written(argument[3])})"
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        return _repeated(*argument, lazy=name == "MIN_REPEAT")
    raise _Elsewhere


def _repeated(least: int, most: Any, inner: Any, *, lazy: bool) -> str:
    bounds = f"{{{least},}}" if str(most) == "MAXREPEAT" else f"{{{least},{most}}}"
    return f"(?:{_written(inner)}){bounds}{'?' if lazy else ''}"


def _members(argument: Any) -> Ranges:
    found: Ranges = []
    negated = False
    for operation, value in argument:
        name = str(operation)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            found.append((value, value))
        elif name == "RANGE":
            found.append((value[0], value[1]))
        elif name == "CATEGORY":
            found += _category(str(value).removeprefix("CATEGORY_"))
        else:
            raise _Elsewhere
    return _complement(found) if negated else found


def _category(name: str) -> Ranges:
    plain = name.removeprefix("NOT_")
    if plain not in _CATEGORIES:
        raise _Elsewhere
    return _CATEGORIES[plain] if plain == name else _complement(_CATEGORIES[plain])


def _complement(ranges: Ranges) -> Ranges:
    rest: Ranges = []
    begin = 0
    for first, last in sorted(ranges):
        if first > begin:
            rest.append((begin, first - 1))
        begin = max(begin, last + 1)
    return [*rest, (begin, _LAST)] if begin <= _LAST else rest


def _class(ranges: Ranges) -> str:
    """A class of characters. No text holds half of a surrogate pair, and Rust cannot name one."""
    whole: Ranges = []
    for first, last in ranges:
        if first < _SURROGATES[0]:
            whole.append((first, min(last, _SURROGATES[0] - 1)))
        if last > _SURROGATES[1]:
            whole.append((max(first, _SURROGATES[1] + 1), last))
    if not whole:
        raise _Elsewhere
    if len(whole) == 1 and whole[0][0] == whole[0][1]:
        return _escaped(whole[0][0])
    return f"[{''.join(_range(*each) for each in whole)}]"


def _range(first: int, last: int) -> str:
    return _escaped(first) if first == last else f"{_escaped(first)}-{_escaped(last)}"


def _escaped(code: int) -> str:
    if code < 32 or code == 127:
        return f"\\x{code:02x}"
    char = chr(code)
    return char if code > 127 or char.isalnum() else f"\\x{code:02x}"
