"""Regular expressions, parsed into parts that mean the same in every engine: characters, anchors,
choices, repetitions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

LAST: Final = 0x10FFFF
_DIGIT: Final = [(48, 57)]
_WORD: Final = [(48, 57), (65, 90), (95, 95), (97, 122)]
_SPACE: Final = [
    (9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
]  # fmt: skip
_LINE_ENDS: Final = [(10, 10), (13, 13), (0x2028, 0x2029)]
_CATEGORIES: Final = {"DIGIT": _DIGIT, "WORD": _WORD, "SPACE": _SPACE}
_SURROGATES: Final = (0xD800, 0xDFFF)
_MAX_CASELESS: Final = 2_000
"""The most characters in a class that ignores case, since each one is visited."""

Ranges = list[tuple[int, int]]

START: Final = "start"
END: Final = "end"
EDGE: Final = "edge"
NO_EDGE: Final = "no edge"


@dataclass(frozen=True, slots=True)
class Chars:
    """One character from ranges of code points. The ranges are sorted, disjoint, and without
    surrogates.
    """

    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Anchor:
    """A position between characters: the start or end of the text, or a word boundary or its
    absence.
    """

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts in sequence."""

    parts: tuple[RegexPart, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice between parts."""

    parts: tuple[RegexPart, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """A repeated part. If `maximum` is None, the number of repetitions is unbounded."""

    part: RegexPart
    minimum: int
    maximum: int | None
    lazy: bool


RegexPart = Chars | Anchor | Sequence | Choice | Repetition


class UnsupportedRegex(Exception):
    """The text is not a regular expression, or some engine lacks one of its constructs."""


def parse_regex(text: str) -> RegexPart:
    """Return a regular expression as a tree of parts.

    Raise UnsupportedRegex, or RecursionError if it is nested too deeply.
    """
    import re._parser as parser  # type: ignore[import-not-found]

    try:
        parsed = parser.parse(text)
    except (re.error, OverflowError) as error:
        raise UnsupportedRegex(f"not a regular expression ({error})") from error
    return _parse_sequence(parsed, parsed.state.flags & ~re.UNICODE & ~re.VERBOSE)


def _parse_sequence(operations: Any, flags: int) -> RegexPart:
    found = tuple(
        _parse_part(str(operation), argument, flags) for operation, argument in operations
    )
    return found[0] if len(found) == 1 else Sequence(found)


_PLACES: Final = {
    "AT_BEGINNING": START, "AT_BEGINNING_STRING": START, "AT_END": END, "AT_END_STRING": END,
    "AT_BOUNDARY": EDGE, "AT_NON_BOUNDARY": NO_EDGE,
}  # fmt: skip
_NO_LIKE: Final = {
    "ASSERT": "look-around",
    "ASSERT_NOT": "look-around",
    "GROUPREF": "a back-reference",
    "GROUPREF_EXISTS": "a back-reference",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive quantifier",
}


def _parse_part(name: str, argument: Any, flags: int) -> RegexPart:
    """Return one parsed element of Python's regular expression parser as a part."""
    if name == "LITERAL":
        return _build_chars([(argument, argument)], flags)
    if name == "NOT_LITERAL":
        return _build_chars(complement(_ignore_case([(argument, argument)], flags)), 0)
    if name == "ANY":
        return _build_chars([(0, LAST)] if flags & re.DOTALL else complement(_LINE_ENDS), 0)
    if name == "IN":
        return _parse_character_class(argument, flags)
    if name == "AT":
        kind = _PLACES.get(str(argument))
        if kind is None or (flags & re.MULTILINE and kind in (START, END)):
            raise UnsupportedRegex("the start and end of lines are not allowed")
        return Anchor(kind)
    if name == "BRANCH":
        return Choice(tuple(_parse_sequence(branch, flags) for branch in argument[1]))
    if name == "SUBPATTERN":
        _, added, removed, inner = argument
        return _parse_sequence(inner, (flags | added) & ~removed & ~re.VERBOSE)
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        minimum, maximum, inner = argument
        bound = None if str(maximum) == "MAXREPEAT" else int(maximum)
        return Repetition(_parse_sequence(inner, flags), int(minimum), bound, name == "MIN_REPEAT")
    raise UnsupportedRegex(f"{_NO_LIKE.get(name, name.lower())} is not allowed")


def _parse_character_class(argument: Any, flags: int) -> RegexPart:
    """Return the class of characters in a bracket expression."""
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
            category = str(value).removeprefix("CATEGORY_")
            plain = category.removeprefix("NOT_")
            if plain not in _CATEGORIES:
                raise UnsupportedRegex(f"{category.lower()} is not allowed")
            found += _CATEGORIES[plain] if plain == category else complement(_CATEGORIES[plain])
        else:
            raise UnsupportedRegex(f"{name.lower()} is not allowed")
    folded = _ignore_case(found, flags)
    return _build_chars(complement(folded) if negated else folded, 0)


def _ignore_case(ranges: Ranges, flags: int) -> Ranges:
    """Return the ranges, with the other case of each letter added if the flags ignore case."""
    if not flags & re.IGNORECASE:
        return ranges
    if sum(last - first + 1 for first, last in ranges) > _MAX_CASELESS:
        raise UnsupportedRegex("a large class of characters that ignores case is not allowed")
    codes = [code for first, last in ranges for code in range(first, last + 1)]
    others = [ord(char) for code in codes if len(char := chr(code).swapcase()) == 1]
    return [*ranges, *((code, code) for code in others)]


def _build_chars(ranges: Ranges, flags: int) -> Chars:
    whole: Ranges = []
    for first, last in merge_ranges(_ignore_case(ranges, flags)):
        if first < _SURROGATES[0]:
            whole.append((first, min(last, _SURROGATES[0] - 1)))
        if last > _SURROGATES[1]:
            whole.append((max(first, _SURROGATES[1] + 1), last))
    if not whole:
        raise UnsupportedRegex("a class without a character is not allowed")
    return Chars(tuple(whole))


def merge_ranges(ranges: Ranges) -> Ranges:
    """Return the same characters as sorted ranges that neither overlap nor touch."""
    found: Ranges = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def complement(ranges: Ranges) -> Ranges:
    """Return the ranges of all characters outside the given ranges."""
    rest: Ranges = []
    begin = 0
    for first, last in sorted(ranges):
        if first > begin:
            rest.append((begin, first - 1))
        begin = max(begin, last + 1)
    return [*rest, (begin, LAST)] if begin <= LAST else rest
