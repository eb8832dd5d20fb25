"""Checks the bounds of a TOML text before it is parsed (docs/reference/command-line.md#settings).

The parser of the standard library needs memory with the square of the parts of a dotted key: 100 KB
of dots took gigabytes. It also recurses once per array level.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

MAX_LEVELS = 16
"""Parts of a dotted key or a header, and levels of arrays and inline tables."""
LONGEST_KEY = 1000
"""Characters of a key or a header with all its parts."""
_LEXEME = (
    r'"""(?:[^"\\]++|\\.|"{1,2}+(?!"))*+"{3,5}+'
    r"|'''(?:[^']++|'{1,2}+(?!'))*+'{3,5}+"
    r'|"(?:[^"\\\n]++|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|#[^\n]*+"
    r"|[\[\]{}=,.\n]"
    r"|[^\[\]{}=,.\n\"'#]++|."
)
"""A string, a comment, a mark, or the text between them. Strings are read as the parser reads them."""


def find_excess(text: str) -> tuple[str, int, int] | None:
    """Return message, line and column of the first place that exceeds a bound; None if the text is within all
    bounds.
    """
    if not _may_exceed(text):
        return None
    import re

    return _scan_tokens(text, re.compile(_LEXEME, re.DOTALL))


def _may_exceed(text: str) -> bool:
    """Return whether a string may exceed a bound, by a quick count. For most strings this is false."""
    if text.count("[") + text.count("{") > MAX_LEVELS:
        return True
    return any(
        line.count(".") >= MAX_LEVELS or len(line) > LONGEST_KEY for line in text.split("\n")
    )


def _scan_tokens(text: str, lexeme: re.Pattern[str]) -> tuple[str, int, int] | None:
    """Return message, line and column of the first place that exceeds a bound, by reading each
    token.
    """
    level, dots, begin, is_value = 0, 0, 0, False
    for match in lexeme.finditer(text):
        found, place = match[0], match.start()
        if found in ("\n", ",", "=", "[", "{", "]", "}"):
            is_key = found == "=" or (found == "]" and not is_value)
            if is_key and place - begin > LONGEST_KEY:
                return _excess_at(f"a key has more than {LONGEST_KEY:,} characters", text, begin)
            is_value = found == "=" or (is_value and (found != "\n" or level > 0))
            level += (found in ("[", "{")) - (found in ("]", "}") and level > 0)
            dots, begin = 0, match.end()
        elif found == ".":
            dots += 1
        if dots >= MAX_LEVELS:
            return _excess_at(f"a key has more than {MAX_LEVELS} parts", text, begin)
        if level > MAX_LEVELS:
            return _excess_at(f"nested more than {MAX_LEVELS} levels deep", text, place)
    return None


def _excess_at(message: str, text: str, place: int) -> tuple[str, int, int]:
    line = text.count("\n", 0, place) + 1
    return message, line, place - (text.rfind("\n", 0, place) + 1) + 1
