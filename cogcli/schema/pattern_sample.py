"""A short text that a regular expression matches."""

from __future__ import annotations

from typing import Final

from cogcli.schema.patterns import refusal
from cogcli.schema.regex_parser import LAST, Anchor, Chars, Choice, RegexPart, Sequence, parts_of
from cogcli.schema.validator import errors

_PRINTABLE: Final = "".join(map(chr, range(33, 127))) + " "
_LONGEST: Final = 100_000


class _Lost(Exception):
    """A construct that no text is made for."""


def text_like(pattern: str, *, repeats: int = 0) -> str | None:
    """A text that the pattern finds, every repetition `repeats` times more than it must; None where none is made."""
    if refusal(pattern):
        return None
    try:
        made = _made(parts_of(pattern), repeats)
    except (_Lost, RecursionError):
        return None
    return None if errors({"pattern": pattern}, made) else made


def _made(part: RegexPart, repeats: int) -> str:
    if isinstance(part, Chars):
        return _one_of(part)
    if isinstance(part, Anchor):
        return ""
    if isinstance(part, Sequence):
        made = "".join(_made(each, repeats) for each in part.parts)
    elif isinstance(part, Choice):
        made = _made(part.parts[0], repeats)
    else:
        once = _made(part.part, repeats)
        most = part.least + repeats
        times = most if part.most is None else min(most, part.most)
        if len(once) * times > _LONGEST:
            raise _Lost
        made = once * times
    if len(made) > _LONGEST:
        raise _Lost
    return made


def _one_of(chars: Chars) -> str:
    """A character that can be read; of a class that leaves only some out an `a`, if it may be."""
    found = [char for char in _PRINTABLE if any(first <= ord(char) <= last for first, last in chars.ranges)]
    if chars.ranges[-1][1] == LAST and "a" in found:
        return "a"
    return found[0] if found else chr(chars.ranges[0][0])
