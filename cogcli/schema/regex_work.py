"""How much work a regular expression is, and whether an engine that goes back takes linear time for it.

An engine that goes back is linear where the next character alone says which way leads on: of two ways one fails at
once. Two more kinds are linear with a factor: ways of which there are few, and one repetition without bound before
parts of bounded width. Everything else is not shown, whatever it may be in truth.
"""

from __future__ import annotations

from itertools import combinations
from typing import Final, NamedTuple

from cogcli.schema.regex_parser import (
    END,
    START,
    Anchor,
    Chars,
    Choice,
    Ranges,
    RegexPart,
    Repetition,
    Sequence,
    merge_ranges,
)

MAX_STEPS: Final = 1_000
"""Steps for one character; a pattern that may take more is not shown to be linear."""


def size_of(part: RegexPart) -> int:
    """How many characters a part asks for one after the other or beside each other, repetitions written out."""
    if isinstance(part, Sequence | Choice):
        return 1 + sum(map(size_of, part.parts))
    if isinstance(part, Repetition):
        return size_of(part.part) * max(1, part.least if part.most is None else part.most)
    return 1


def needed_part(part: RegexPart) -> RegexPart:
    """The part that is found in the same texts: at its ends a repetition counts as often as it must."""
    if isinstance(part, Choice):
        return Choice(tuple(map(_needed, part.parts)))
    return _needed(part)


def most_steps(part: RegexPart) -> int | None:
    """The most steps that an engine that goes back takes for one character, looking for a part everywhere in a text.

    None where that is not shown.
    """
    branches = part.parts if isinstance(part, Choice) else (part,)
    try:
        steps = sum(map(_looking, branches))
    except _NotShown:
        return None
    return steps if steps <= MAX_STEPS else None


class _NotShown(Exception):
    """It may take more than linear time."""


class _After(NamedTuple):
    """What may follow: the characters it begins with, whether it succeeds whatever follows, its greatest width."""

    begins: tuple[tuple[int, int], ...]
    succeeds: bool
    width: int | None


_NOTHING: Final = _After((), True, 0)


def _looking(part: RegexPart) -> int:
    steps = _steps(part, _NOTHING, repeated=False)
    if part == Anchor(START) or (isinstance(part, Sequence) and part.parts[:1] == (Anchor(START),)):
        return steps
    width = _width(part)
    if width is None:
        raise _NotShown
    return steps * (width + 1)


def _needed(part: RegexPart) -> RegexPart:
    parts = list(part.parts) if isinstance(part, Sequence) else [part]
    for end in (0, -1):
        while parts and isinstance(last := parts[end], Repetition) and last.least != last.most:
            rest = [Repetition(last.part, last.least, last.least, False)] if last.least else []
            parts = [*rest, *parts[1:]] if end == 0 else [*parts[:-1], *rest]
    return parts[0] if len(parts) == 1 else Sequence(tuple(parts))


def _steps(part: RegexPart, after: _After, *, repeated: bool) -> int:
    """In how many ways a part may be gone through before what follows; `repeated` tells of a repetition around it."""
    found = 1
    if isinstance(part, Sequence):
        for each in reversed(part.parts):
            found *= _steps(each, after, repeated=repeated)
            after = _before(each, after)
    elif isinstance(part, Choice):
        found = _choosing(part, after, repeated=repeated)
    elif isinstance(part, Repetition):
        found = _repeating(part, after, repeated=repeated)
    if found > MAX_STEPS:
        raise _NotShown
    return found


def _choosing(part: Choice, after: _After, *, repeated: bool) -> int:
    steps = [_steps(each, after, repeated=repeated) for each in part.parts]
    begins = [_before(each, after).begins for each in part.parts]
    if not any(_meet(one, other) for one, other in combinations(begins, 2)):
        return max(steps)
    if repeated:
        raise _NotShown
    return sum(steps)


def _repeating(part: Repetition, after: _After, *, repeated: bool) -> int:
    many = part.most is None or part.most > 1
    if many and _may_be_empty(part.part):
        raise _NotShown
    inner = _steps(part.part, _after_inner(part, after), repeated=repeated or many)
    if part.least == part.most:
        return int(inner**part.least)
    begins = _before(part.part, after).begins
    if after.succeeds or not _meet(begins, after.begins):
        return inner
    if repeated:
        raise _NotShown
    if part.most is not None:
        return inner * (part.most - part.least + 1)
    if after.width is None:
        raise _NotShown
    return inner * (after.width + 1)


def _after_inner(part: Repetition, after: _After) -> _After:
    """What follows one round of a repetition: another round, or what follows the repetition."""
    if part.most == 1:
        return after
    again = _before(part.part, after)
    width = _width(part)
    more = None if width is None or after.width is None else width + after.width
    return _After(_union(again.begins, after.begins), after.succeeds and part.least <= 1, more)


def _before(part: RegexPart, after: _After) -> _After:
    """What a part is and what follows it, together."""
    if isinstance(part, Chars):
        return _After(part.ranges, False, None if after.width is None else after.width + 1)
    if isinstance(part, Anchor):
        return _After(() if part.kind == END else after.begins, False, after.width)
    if isinstance(part, Sequence):
        for each in reversed(part.parts):
            after = _before(each, after)
        return after
    if isinstance(part, Choice):
        found = [_before(each, after) for each in part.parts]
        widths = [each.width for each in found]
        width = None if None in widths else max(each for each in widths if each is not None)
        begins = _union(*(each.begins for each in found))
        return _After(begins, any(each.succeeds for each in found), width)
    return _before_repeat(part, after)


def _before_repeat(part: Repetition, after: _After) -> _After:
    own = _width(part)
    width = None if own is None or after.width is None else own + after.width
    begins = () if part.most == 0 else _before(part.part, after).begins
    if part.least == 0 or _may_be_empty(part.part):
        return _After(_union(begins, after.begins), after.succeeds, width)
    return _After(begins, False, width)


def _width(part: RegexPart) -> int | None:
    """The most characters that a part matches; None is without bound."""
    if isinstance(part, Chars):
        return 1
    if isinstance(part, Anchor):
        return 0
    if isinstance(part, Repetition):
        inner = _width(part.part)
        if inner == 0 or part.most == 0:
            return 0
        return None if inner is None or part.most is None else inner * part.most
    widths = [_width(each) for each in part.parts]
    known = [each for each in widths if each is not None]
    if len(known) < len(widths):
        return None
    return sum(known) if isinstance(part, Sequence) else max(known, default=0)


def _may_be_empty(part: RegexPart) -> bool:
    if isinstance(part, Chars):
        return False
    if isinstance(part, Anchor):
        return True
    if isinstance(part, Repetition):
        return part.least == 0 or _may_be_empty(part.part)
    if isinstance(part, Sequence):
        return all(map(_may_be_empty, part.parts))
    return any(map(_may_be_empty, part.parts))


def _union(*ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    every: Ranges = [each for some in ranges for each in some]
    return tuple(merge_ranges(every))


def _meet(one: tuple[tuple[int, int], ...], other: tuple[tuple[int, int], ...]) -> bool:
    """Whether two classes share a character; both are in order."""
    first, second = 0, 0
    while first < len(one) and second < len(other):
        if one[first][0] <= other[second][1] and other[second][0] <= one[first][1]:
            return True
        if one[first][1] < other[second][1]:
            first += 1
        else:
            second += 1
    return False
