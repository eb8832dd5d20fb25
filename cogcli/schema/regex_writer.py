"""The parts of a regular expression written for an engine."""

from __future__ import annotations

from typing import Final, NamedTuple

from cogcli.schema.regex_parser import EDGE, END, NO_EDGE, START, Anchor, Chars, Choice, RegexPart, Sequence


class Dialect(NamedTuple):
    """An engine's syntax for anchors; a word is of ASCII characters."""

    places: dict[str, str]


PYTHON_TEXT: Final = Dialect({START: "^", END: r"\Z", EDGE: r"(?a:\b)", NO_EDGE: r"(?a:\B)"})
RUST_TEXT: Final = Dialect({START: "^", END: "$", EDGE: r"(?-u:\b)", NO_EDGE: r"(?-u:\B)"})


def text_of(part: RegexPart, dialect: Dialect) -> str:
    """A part as a regular expression in a dialect."""
    if isinstance(part, Chars):
        return _class(part)
    if isinstance(part, Anchor):
        return dialect.places[part.kind]
    if isinstance(part, Sequence):
        return "".join(text_of(each, dialect) for each in part.parts)
    if isinstance(part, Choice):
        return f"(?:{'|'.join(text_of(each, dialect) for each in part.parts)})"
    bounds = f"{{{part.least},{'' if part.most is None else part.most}}}"
    return f"(?:{text_of(part.part, dialect)}){bounds}{'?' if part.lazy else ''}"


def _class(chars: Chars) -> str:
    ranges = chars.ranges
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _escaped(ranges[0][0])
    return f"[{''.join(_range(*each) for each in ranges)}]"


def _range(first: int, last: int) -> str:
    return _escaped(first) if first == last else f"{_escaped(first)}-{_escaped(last)}"


def _escaped(code: int) -> str:
    if code < 32 or code == 127:
        return f"\\x{code:02x}"
    char = chr(code)
    return char if code > 127 or char.isalnum() else f"\\x{code:02x}"
