"""Finds faults of a text before its value is built: characters and directives. It also explains the
parsers' errors.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem
from cogcli.base.text_places import excerpt, line_column
from cogcli.base.yaml.parsers import Mark

MAX_PROBLEMS: Final = 100
_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_BIDI_CONTROL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
LONE_RETURN = lazy_pattern(r"\r(?!\n)")
# Some programs end a line at these characters, others read on: a comment could hide a key.
_UNSEEN = lazy_pattern(f"[{_CONTROL}{_BIDI_CONTROL}\u2028\u2029\ufeff\ufffe\uffff]")
# In text that was written with escapes.
UNSAFE = lazy_pattern(f"[{_CONTROL}{_BIDI_CONTROL}\r\ud800-\udfff]")
_HARMLESS = bytes((9, 10, *range(32, 127)))
_DIRECTIVES = lazy_pattern(r"(?:[ \t]*(?:#[^\n]*|\r)?\n|%[^\n]*\n?)*+")
_DIRECTIVE = lazy_pattern(r"^%[^\r\n]*", re.MULTILINE)


def clean_text(text: str, file: str) -> tuple[list[Problem], str]:
    """Return the problems of characters and directives, and the text without them.

    The number of lines stays the same.
    """
    problems: list[Problem] = []
    suspect = text.encode().translate(None, _HARMLESS)
    for match in islice(_UNSEEN.finditer(text), MAX_PROBLEMS) if suspect else ():
        found, hint = character_fault(match[0])
        problems.append(
            Problem(
                "yaml.characters", "E", file, *line_column(text, match.start()), "", found, hint
            )
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
    """Return message and hint for a character that is not allowed."""
    kind = "invisible character"
    if char < "\xa0":
        kind = "control character"
    elif char in _BIDI_CONTROL:
        kind = "bidi control character"
    elif "\ud800" <= char <= "\udfff":
        kind = "half of a surrogate pair,"
    return f"{kind} U+{ord(char):04X} is not allowed", "remove it"


# -- syntax: what the parsers' errors mean -----------------------------------------------------------------------------

MAX_KEY: Final = 256
_MAX_READ: Final = 1024
"""The most characters that the parsers read as a key."""
LONG_KEY: Final = (f"key longer than {MAX_KEY} characters", "shorten it")


class _Explanation(NamedTuple):
    """Part of a parser's message, the message and hint that users get, and where the problem is.

    `at_start`: the problem is at the start of the construct.
    """

    part: str
    message: str
    hint: str
    at_start: bool = False


_BAD_TAG: Final = _Explanation(
    "", "a tag is not allowed", "remove it, or quote text that starts with `!`"
)
_BAD_ALIAS: Final = _Explanation(
    "", "an anchor or alias is not allowed", "quote text that starts with `*` or `&`"
)
_LONG_KEY: Final = _Explanation("", *LONG_KEY)

_FILLED: Final = lazy_pattern(r"\$\{\s*([A-Za-z_][\w-]*(?:\.[\w-]+)+)\s*\}")
"""A reference as texts are filled with; a name alone is a variable of a service."""
# The first that fits.
_SYNTAX: Final = (
    _Explanation(
        "values are not allowed",
        "`: ` is not expected here",
        "quote text that holds `: `, or fix the line above",
    ),
    _Explanation(
        "could not find expected ':'",
        "a line that is no `key: value`",
        "write `key: value`, or indent it",
        True,
    ),
    _Explanation(r"'\t'", "a tab where only spaces are allowed", "indent and separate with spaces"),
    _Explanation(
        "cannot start any token", "text cannot start with this character", "quote the text"
    ),
    _Explanation(
        "unexpected end of stream", "quoted text is never closed", "add the closing quote", True
    ),
    _Explanation(
        "unexpected document separator",
        "quoted text is never closed",
        "add the closing quote",
        True,
    ),
    _Explanation(
        "entries are not allowed",
        "`- ` is not expected here",
        "start the list on a line of its own",
    ),
    _Explanation("got '<stream end>'", "a bracket or brace is never closed", "close it", True),
    _Explanation(
        "expected ',' or", "a comma or the closing bracket is missing", "add it, or quote the text"
    ),
    _Explanation(
        "found '<scalar>'",
        "text after the end of a value",
        "quote the whole text, or line up the keys",
    ),
    _Explanation(
        "expected <block end>",
        "this does not fit the lines above",
        "line up keys and `- ` of one level",
    ),
    _Explanation(
        "block scalar", "`|` or `>` must end its line", "put the text on the next line, indented"
    ),
    _Explanation("chr()", "no such character", "write a character that exists"),
    _Explanation(
        "escape",
        "unknown escape in double quotes",
        r"write \\ for a backslash, or use single quotes",
    ),
    _Explanation(
        "the node content", "a value is missing here", "write it, or remove what announces it"
    ),
    _Explanation("document", "text after the end of the document", "remove it"),
)


class _ParserError(NamedTuple):
    """The members of a parser's error. A member that the error lacks is None."""

    context: str | None
    problem: str | None
    context_mark: Mark | None
    problem_mark: Mark | None

    @property
    def message(self) -> str:
        """Return the whole message."""
        return f"{self.context}: {self.problem}"

    def line(self, text: str) -> str:
        """Return the line of the problem; empty if its place is not known."""
        mark = self.problem_mark
        return "".join(text.split("\n")[mark.line : mark.line + 1]) if mark is not None else ""


def syntax_problem(error: Exception | None, text: str, file: str) -> Problem:
    """Return the problem that a parser's error reports."""
    found = _ParserError(*(getattr(error, name, None) for name in _ParserError._fields))
    code, known = _explain_syntax(found, text)
    mark = (known.at_start and found.context_mark) or found.problem_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    return Problem(code, "E", file, line, column, "", known.message, known.hint)


def _explain_syntax(error: _ParserError, text: str) -> tuple[str, _Explanation]:
    """Return the code of a parser's error and its explanation for users."""
    message = error.message
    if "a tag" in message or "tag handle" in message:
        return "yaml.tag", _BAD_TAG
    if "an anchor" in message or "an alias" in message:
        return "yaml.alias", _BAD_ALIAS
    if _is_long_key(error, text):
        return "yaml.limit", _LONG_KEY
    unknown = _Explanation("", f"not YAML: {excerpt(message)}", "see the line before as well")
    known = next((known for known in _SYNTAX if known.part in message), unknown)
    return "yaml.syntax", _explain_reference(error, text) or known


def _is_long_key(error: _ParserError, text: str) -> bool:
    """Return whether a parser stopped because a key is longer than 1,024 characters."""
    problem, mark = str(error.problem), error.problem_mark
    if mark is None or not ("':'" in problem or "values are not allowed" in problem):
        return False
    before = error.line(text)[: mark.column]
    return len(before) > _MAX_READ and ": " not in before[-_MAX_READ:]


def _explain_reference(error: _ParserError, text: str) -> _Explanation | None:
    """Return the explanation for a `${...}` reference without quotes; None for any other error."""
    mark = error.problem_mark
    if mark is None or "expected ',' or" not in error.message:
        return None
    filled = _FILLED.match(error.line(text), max(mark.column - 1, 0))
    if filled is None:
        return None
    path = filled[1]
    hint = f'write {path}, or {{$text: "... ${{{path}}}"}} for a text with it'
    return _Explanation("", f"`${{{path}}}` cannot stand here without quotes", hint)
