"""A short text that a regular expression matches."""

from __future__ import annotations

from typing import Final

from cogcli.schema.patterns import refusal
from cogcli.schema.regex_parser import LAST, Anchor, Chars, Choice, RegexPart, Sequence, parse_regex
from cogcli.schema.validator import errors

_PRINTABLE: Final = "".join(map(chr, range(33, 127))) + " "
_MAX_LENGTH: Final = 100_000


class _NoSample(Exception):
    """A construct that no sample is made for, or a sample that would be too long."""


def sample_text(pattern: str, *, repeats: int = 0) -> str | None:
    """A text that the pattern matches, each repetition `repeats` times more often than its minimum; None where none is
    made."""
    if refusal(pattern):
        return None
    try:
        text = _sample(parse_regex(pattern), repeats)
    except (_NoSample, RecursionError):
        return None
    return None if errors({"pattern": pattern}, text) else text


def _sample(part: RegexPart, repeats: int) -> str:
    if isinstance(part, Chars):
        found = [
            char for char in _PRINTABLE if any(first <= ord(char) <= last for first, last in part.ranges)
        ]
        if part.ranges[-1][1] == LAST and "a" in found:
            return "a"
        return found[0] if found else chr(part.ranges[0][0])
    if isinstance(part, Anchor):
        return ""
    if isinstance(part, Sequence):
        text = "".join(_sample(each, repeats) for each in part.parts)
    elif isinstance(part, Choice):
        text = _sample(part.parts[0], repeats)
    else:
        once = _sample(part.part, repeats)
        most = part.least + repeats
        times = most if part.most is None else min(most, part.most)
        if len(once) * times > _MAX_LENGTH:
            raise _NoSample
        text = once * times
    if len(text) > _MAX_LENGTH:
        raise _NoSample
    return text
