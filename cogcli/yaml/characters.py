"""The characters and directives that a text may hold; excerpts of a text for messages."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from cogcli.core.problems import Problem

MAX_PROBLEMS: Final = 100
_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_BIDI_CONTROL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
LONE_RETURN = re.compile(r"\r(?!\n)")
# In a file, what only some programs take for the end of a line could hide a key behind a comment.
_UNSEEN = re.compile(f"[{_CONTROL}{_BIDI_CONTROL}\u2028\u2029\ufeff\ufffe\uffff]")
# In text that was written with escapes.
UNSAFE = re.compile(f"[{_CONTROL}{_BIDI_CONTROL}\r\ud800-\udfff]")
_HARMLESS = bytes((9, 10, *range(32, 127)))
_DIRECTIVES = re.compile(r"(?:[ \t]*(?:#[^\n]*|\r)?\n|%[^\n]*\n?)*+")
_DIRECTIVE = re.compile(r"^%[^\r\n]*", re.MULTILINE)


def line_column(text: str, offset: int | None) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def clean_text(text: str, file: str) -> tuple[list[Problem], str]:
    """The problems of single characters and directives, and the text without them, its lines unchanged in number."""
    problems: list[Problem] = []
    suspect = text.encode().translate(None, _HARMLESS)
    for match in islice(_UNSEEN.finditer(text), MAX_PROBLEMS) if suspect else ():
        found, hint = character_fault(match[0])
        problems.append(
            Problem("yaml.characters", "E", file, *line_column(text, match.start()), "", found, hint)
        )
    if problems:
        # For private characters, each its own: distinct keys stay distinct.
        text = _UNSEEN.sub(lambda match: chr(0xF0000 + ord(match[0])), text)
    head = _DIRECTIVES.match(text)
    end = head.end() if head else 0
    for match in islice(_DIRECTIVE.finditer(text, 0, end), MAX_PROBLEMS):
        found = f"directive `{excerpt(match[0])}` is not allowed"
        at = line_column(text, match.start())
        problems.append(Problem("yaml.directive", "E", file, *at, "", found, "remove the line"))
    return problems, _DIRECTIVE.sub("#", text[:end]) + text[end:] if problems else text


def character_fault(char: str) -> tuple[str, str]:
    kind = "invisible character"
    if char < "\xa0":
        kind = "control character"
    elif char in _BIDI_CONTROL:
        kind = "bidi control character"
    elif "\ud800" <= char <= "\udfff":
        kind = "half of a surrogate pair,"
    return f"{kind} U+{ord(char):04X} is not allowed", "remove it"


def excerpt(text: str) -> str:
    shown = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:40])
    return shown if len(text) <= 40 else f"{shown}…"
