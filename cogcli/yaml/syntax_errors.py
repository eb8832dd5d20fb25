"""What the parsers' syntax errors mean, in our words."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cogcli.core.problems import Problem
from cogcli.yaml.characters import excerpt

MAX_KEY: Final = 256
LONG_KEY: Final = (f"key longer than {MAX_KEY} characters", "shorten it")


class _Explanation(NamedTuple):
    """Part of a parser's message, our message, our hint, and whether the problem is at the start of the construct."""

    part: str
    message: str
    hint: str
    at_start: bool = False


_BAD_TAG: Final = _Explanation("", "a tag is not allowed", "remove it, or quote text that starts with `!`")
_BAD_ALIAS: Final = _Explanation(
    "", "an anchor or alias is not allowed", "quote text that starts with `*` or `&`"
)
_LONG_KEY: Final = _Explanation("", *LONG_KEY)

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
    _Explanation(r"'\t'", "a tab where only spaces may stand", "indent and separate with spaces"),
    _Explanation("cannot start any token", "text cannot start with this character", "quote the text"),
    _Explanation("unexpected end of stream", "quoted text is never closed", "add the closing quote", True),
    _Explanation(
        "unexpected document separator", "quoted text is never closed", "add the closing quote", True
    ),
    _Explanation(
        "entries are not allowed", "`- ` is not expected here", "start the list on a line of its own"
    ),
    _Explanation("got '<stream end>'", "a bracket or brace is never closed", "close it", True),
    _Explanation("expected ',' or", "a comma or the closing bracket is missing", "add it"),
    _Explanation(
        "found '<scalar>'", "text after the end of a value", "quote the whole text, or line up the keys"
    ),
    _Explanation(
        "expected <block end>", "this does not fit the lines above", "line up keys and `- ` of one level"
    ),
    _Explanation("block scalar", "`|` or `>` must end its line", "put the text on the next line, indented"),
    _Explanation("chr()", "no such character", "write a character that exists"),
    _Explanation(
        "escape", "unknown escape in double quotes", r"write \\ for a backslash, or use single quotes"
    ),
    _Explanation("the node content", "a value is missing here", "write it, or remove what announces it"),
    _Explanation("document", "text after the end of the document", "remove it"),
)


def syntax_problem(error: Any, text: str, file: str) -> Problem:
    """The problem of a parser's error."""
    code, known = _explain_syntax(error, text)
    mark = (known.at_start and getattr(error, "context_mark", None)) or getattr(error, "problem_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    return Problem(code, "E", file, line, column, "", known.message, known.hint)


def _explain_syntax(error: Any, text: str) -> tuple[str, _Explanation]:
    mark, problem = getattr(error, "problem_mark", None), str(getattr(error, "problem", None))
    words = f"{getattr(error, 'context', None)}: {problem}"
    if "a tag" in words or "tag handle" in words:
        return "yaml.tag", _BAD_TAG
    if "an anchor" in words or "an alias" in words:
        return "yaml.alias", _BAD_ALIAS
    if mark is not None and ("':'" in problem or "values are not allowed" in problem):
        # No parser reads more than 1,024 characters as a key.
        before = "".join(text.split("\n")[mark.line : mark.line + 1])[: mark.column]
        if len(before) > 1024 and ": " not in before[-1024:]:
            return "yaml.limit", _LONG_KEY
    unknown = _Explanation("", f"not YAML: {excerpt(words)}", "see the line before as well")
    return "yaml.syntax", next((known for known in _SYNTAX if known.part in words), unknown)
