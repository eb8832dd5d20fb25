"""Patterns of schemas in one meaning for every engine (docs/reference/spec-files.md#schemas), and only those
that never run away (ADR 9).

JSON Schema demands ECMA 262; Python's `re` and Rust's `regex` each differ from it in what `\\d`, `\\s`, `.` and `$`
match and in what must be escaped. So a pattern is parsed once and written again from parts that mean the same to
both. Rust's engine takes linear time for each of these; Python's backtracks, so that it gets only the patterns that
`regex_work` shows to take linear time as well.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Final, NamedTuple

from cogcli.base.schema.engine_choice import PYTHON, RUST, engine
from cogcli.base.schema.regex_parser import (
    EDGE,
    END,
    NO_EDGE,
    START,
    Anchor,
    Chars,
    Choice,
    RegexPart,
    Repetition,
    Sequence,
    UnsupportedRegex,
    parse_regex,
)
from cogcli.base.schema.regex_work import count_characters, most_steps, trim_ends

PYTHON_TEXT: Final = {START: "^", END: r"\Z", EDGE: r"(?a:\b)", NO_EDGE: r"(?a:\B)"}
RUST_TEXT: Final = {START: "^", END: "$", EDGE: r"(?-u:\b)", NO_EDGE: r"(?-u:\B)"}
"""The anchors in an engine's syntax; a word is of ASCII characters."""


def text_of(part: RegexPart, dialect: dict[str, str]) -> str:
    """A part as a regular expression with the anchors of a dialect."""
    match part:
        case Chars(((first, last),)) if first == last:
            return _escaped(first)
        case Chars(ranges):
            return f"[{''.join(_range(*each) for each in ranges)}]"
        case Anchor(kind):
            return dialect[kind]
        case Sequence(parts):
            return "".join(text_of(each, dialect) for each in parts)
        case Choice(parts):
            return f"(?:{'|'.join(text_of(each, dialect) for each in parts)})"
        case Repetition():
            most = "" if part.most is None else part.most
            lazy = "?" if part.lazy else ""
            return f"(?:{text_of(part.part, dialect)}){{{part.least},{most}}}{lazy}"


def _range(first: int, last: int) -> str:
    return _escaped(first) if first == last else f"{_escaped(first)}-{_escaped(last)}"


def _escaped(code: int) -> str:
    if code < 32 or code == 127:
        return f"\\x{code:02x}"
    char = chr(code)
    return char if code > 127 or char.isalnum() else f"\\x{code:02x}"


MAX_LENGTH: Final = 10_000
"""The most characters of a pattern."""
MAX_SIZE: Final = 20_000
"""The most characters that a pattern matches one after the other, its repetitions expanded."""


class Pattern(NamedTuple):
    """A pattern in the words of the engine in use. `steps`: the most steps of that engine for one character."""

    text: str
    steps: int


class _CompiledPattern(NamedTuple):
    """A pattern, or the reason why it is not run."""

    pattern: Pattern | None
    refusal: str = ""


def pattern_of(text: str) -> Pattern | None:
    """The pattern of a schema's text; None if it is malformed, or the engine in use cannot run it in linear time."""
    return _compile(text, engine()).pattern


def refusal(text: str, *, backtracking: bool = False) -> str:
    """Why the engine in use, or one that backtracks, cannot run a pattern in linear time; empty if it can."""
    return _compile(text, PYTHON if backtracking else engine()).refusal


@lru_cache(maxsize=64)
def parse_pattern(text: str) -> RegexPart:
    """The parts of a pattern. Raises UnsupportedRegex for one that no engine may run."""
    if len(text) > MAX_LENGTH:
        raise UnsupportedRegex(f"longer than {MAX_LENGTH:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parse_regex(text)
    except RecursionError:
        raise UnsupportedRegex("nested too deeply") from None


@lru_cache(maxsize=2048)
def _compile(text: str, used: str) -> _CompiledPattern:
    try:
        return _CompiledPattern(_pattern_for(parse_pattern(text), used))
    except UnsupportedRegex as error:
        return _CompiledPattern(None, str(error))
    except RecursionError:
        return _CompiledPattern(None, "nested too deeply")


def _pattern_for(part: RegexPart, used: str) -> Pattern:
    """The pattern for the engine that is used. Raises UnsupportedRegex."""
    part = trim_ends(part)
    size = count_characters(part)
    shown = most_steps(part)
    if size > MAX_SIZE:
        raise UnsupportedRegex(f"asks for more than {MAX_SIZE:,} characters")
    if used == RUST:
        rust = text_of(part, RUST_TEXT)
        if not _compiles(rust):
            raise UnsupportedRegex("too large for the engine that runs it")
        return Pattern(rust, size if shown is None else min(size, shown))
    if shown is None:
        raise UnsupportedRegex(
            "cannot be shown to take linear time, and jsonschema-rs, which would run it, is not in use"
        )
    return Pattern(text_of(part, PYTHON_TEXT), min(size, shown))


def _compiles(pattern: str) -> bool:
    import jsonschema_rs

    try:
        jsonschema_rs.Draft202012Validator(
            {"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions()
        )
    except ValueError:
        return False
    return True
