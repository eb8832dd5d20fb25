"""Estimates the work of a regular expression, and decides whether a backtracking engine runs it in
linear time.

Backtracking is linear if the next character decides between alternatives: all but one fail at once.
It is also linear, with a larger factor, for a small number of alternatives, and for one unbounded
repetition before parts of bounded width. Any other expression is treated as not linear, even if it
is.
"""

from __future__ import annotations

from itertools import combinations
from math import inf
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.schema import regex_parser
from cogcli.base.schema.regex_parser import (
    END,
    Anchor,
    Chars,
    Choice,
    RegexPart,
    Repetition,
    Sequence,
)

MAX_STEPS: Final = 1_000
"""The most steps for one character; a pattern that may take more is not shown to be linear."""


def count_characters(part: RegexPart) -> int:
    """Return the number of characters and classes in a part with its repetitions expanded."""
    match part:
        case Sequence(parts) | Choice(parts):
            return 1 + sum(map(count_characters, parts))
        case Repetition():
            times = part.minimum if part.maximum is None else part.maximum
            return count_characters(part.part) * max(1, times)
        case _:
            return 1


def trim_ends(part: RegexPart) -> RegexPart:
    """Return a part that is found in the same strings, with repetitions at its ends reduced to their
    minimum.
    """
    if isinstance(part, Choice):
        return Choice(tuple(map(_trim_part, part.parts)))
    return _trim_part(part)


def max_steps(part: RegexPart) -> int | None:
    """Return the maximum number of steps per character when a backtracking engine searches for a
    part.

    Return None if linear time cannot be proved.
    """
    branches = part.parts if isinstance(part, Choice) else (part,)
    try:
        steps = sum(map(_search_steps, branches))
    except _NotLinear:
        return None
    return int(steps) if steps <= MAX_STEPS else None


class _NotLinear(Exception):
    """The part may take more than linear time."""


class _Continuation(NamedTuple):
    """The text after a part: its possible first characters, whether it always matches, and its maximum width in
    characters.
    """

    begins: tuple[tuple[int, int], ...]
    succeeds: bool
    width: float


_NOTHING: Final = _Continuation((), True, 0)


def _search_steps(part: RegexPart) -> float:
    """Return the number of steps per character of a search for a part at every position."""
    steps = _count_steps(part, _NOTHING, repeated=False)
    match part:
        case Anchor(kind=regex_parser.START) | Sequence((Anchor(kind=regex_parser.START), *_)):
            return steps  # it is tried at one position only
        case _:
            return steps * (_width_range(part)[1] + 1)


def _trim_part(part: RegexPart) -> RegexPart:
    """Return a part without the optional repetitions at its start and end."""
    parts = part.parts if isinstance(part, Sequence) else (part,)
    while parts and (trimmed := _trim_repetition(parts[0])) is not None:
        parts = (*trimmed, *parts[1:])
    while parts and (trimmed := _trim_repetition(parts[-1])) is not None:
        parts = (*parts[:-1], *trimmed)
    return parts[0] if len(parts) == 1 else Sequence(parts)


def _trim_repetition(part: RegexPart) -> tuple[RegexPart, ...] | None:
    """Return a repetition reduced to its minimum number, empty if the minimum is 0.

    Return None for a part that is not a repetition, or whose number is fixed.
    """
    if not isinstance(part, Repetition) or part.minimum == part.maximum:
        return None
    return (Repetition(part.part, part.minimum, part.minimum, False),) if part.minimum else ()


def _count_steps(part: RegexPart, after: _Continuation, *, repeated: bool) -> float:
    """Return the number of ways to match a part before `after`.

    `repeated`: whether the part is inside a repetition.
    """
    found: float = 1
    match part:
        case Sequence(parts):
            for each in reversed(parts):
                found *= _count_steps(each, after, repeated=repeated)
                after = _prepend_part(each, after)
        case Choice():
            found = _choice_steps(part, after, repeated=repeated)
        case Repetition():
            found = _repetition_steps(part, after, repeated=repeated)
    if found > MAX_STEPS:
        raise _NotLinear
    return found


def _choice_steps(part: Choice, after: _Continuation, *, repeated: bool) -> float:
    steps = [_count_steps(each, after, repeated=repeated) for each in part.parts]
    begins = [_prepend_part(each, after).begins for each in part.parts]
    if not any(_share_character(one, other) for one, other in combinations(begins, 2)):
        return max(steps)
    if repeated:
        raise _NotLinear
    return sum(steps)


def _repetition_steps(part: Repetition, after: _Continuation, *, repeated: bool) -> float:
    many = part.maximum is None or part.maximum > 1
    if many and _width_range(part.part)[0] == 0:
        raise _NotLinear
    inner = _count_steps(
        part.part, _continuation_of_iteration(part, after), repeated=repeated or many
    )
    if part.minimum == part.maximum:
        return int(int(inner) ** part.minimum)
    begins = _prepend_part(part.part, after).begins
    if after.succeeds or not _share_character(begins, after.begins):
        return inner
    if repeated:
        raise _NotLinear
    return inner * ((after.width if part.maximum is None else part.maximum - part.minimum) + 1)


def _continuation_of_iteration(part: Repetition, after: _Continuation) -> _Continuation:
    """Return the continuation after one iteration: another iteration, or `after`."""
    if part.maximum == 1:
        return after
    begins = _union_ranges(_prepend_part(part.part, after).begins, after.begins)
    return _Continuation(
        begins, after.succeeds and part.minimum <= 1, _width_range(part)[1] + after.width
    )


def _prepend_part(part: RegexPart, after: _Continuation) -> _Continuation:
    """Return the continuation that consists of this part, then `after`."""
    minimum, maximum = _width_range(part)
    width = maximum + after.width
    match part:
        case Chars(ranges):
            return _Continuation(ranges, False, width)
        case Anchor(kind):
            return _Continuation(() if kind == END else after.begins, False, width)
        case Sequence(parts):
            for each in reversed(parts):
                after = _prepend_part(each, after)
            return after
        case Choice(parts):
            found = [_prepend_part(each, after) for each in parts]
            begins = _union_ranges(*(each.begins for each in found))
            return _Continuation(begins, any(each.succeeds for each in found), width)
        case Repetition():
            begins = () if part.maximum == 0 else _prepend_part(part.part, after).begins
            if minimum == 0:
                return _Continuation(_union_ranges(begins, after.begins), after.succeeds, width)
            return _Continuation(begins, False, width)


def _width_range(part: RegexPart) -> tuple[int, float]:
    """Return the minimum and maximum number of characters that a part matches. The maximum may be
    infinite.
    """
    match part:
        case Chars():
            return 1, 1
        case Anchor():
            return 0, 0
        case Sequence(parts):
            minimum, maximum = zip((0, 0), *map(_width_range, parts), strict=True)
            return sum(minimum), sum(maximum)
        case Choice(parts):
            minimum, maximum = zip(*map(_width_range, parts), strict=True)
            return min(minimum), max(maximum)
        case Repetition():
            return _repetition_widths(part)


def _repetition_widths(part: Repetition) -> tuple[int, float]:
    minimum, maximum = _width_range(part.part)
    # A float product becomes infinite, not large.
    times = inf if part.maximum is None else float(part.maximum)
    return part.minimum * minimum, maximum * times if maximum and times else 0


def _union_ranges(*ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    return tuple(regex_parser.merge_ranges([each for some in ranges for each in some]))


def _share_character(one: tuple[tuple[int, int], ...], other: tuple[tuple[int, int], ...]) -> bool:
    """Return whether two sorted classes share a character."""
    first, second = 0, 0
    while first < len(one) and second < len(other):
        if one[first][0] <= other[second][1] and other[second][0] <= one[first][1]:
            return True
        if one[first][1] < other[second][1]:
            first += 1
        else:
            second += 1
    return False
