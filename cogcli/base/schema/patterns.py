r"""Patterns of schemas with the same meaning in every engine
(docs/reference/spec-files.md#schemas). Only patterns that run in linear time are accepted (ADR 9).

JSON Schema demands ECMA 262. Python's `re` and Rust's `regex` differ from it in what `\d`, `\s`,
`.` and `$` match and in what must be escaped. So a pattern is parsed once and rewritten from parts
that have the same meaning in both. Rust's engine takes linear time for each of them. Python's
engine backtracks, so it only gets patterns that `regex_work` proves linear.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Final

from cogcli.base.named_tuple import NamedTuple
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
from cogcli.base.schema.regex_work import count_characters, max_steps, trim_ends

PYTHON_TEXT: Final = {START: "^", END: r"\Z", EDGE: r"(?a:\b)", NO_EDGE: r"(?a:\B)"}
RUST_TEXT: Final = {START: "^", END: "$", EDGE: r"(?-u:\b)", NO_EDGE: r"(?-u:\B)"}
"""The anchors in an engine's syntax; a word is of ASCII characters."""


def render_pattern(part: RegexPart, dialect: dict[str, str]) -> str:
    """Return a part as a regular expression with the anchors of a dialect."""
    match part:
        case Chars(((first, last),)) if first == last:
            return _escape_character(first)
        case Chars(ranges):
            return f"[{''.join(_render_range(*each) for each in ranges)}]"
        case Anchor(kind):
            return dialect[kind]
        case Sequence(parts):
            return "".join(render_pattern(each, dialect) for each in parts)
        case Choice(parts):
            return f"(?:{'|'.join(render_pattern(each, dialect) for each in parts)})"
        case Repetition():
            maximum = "" if part.maximum is None else part.maximum
            lazy = "?" if part.lazy else ""
            return f"(?:{render_pattern(part.part, dialect)}){{{part.minimum},{maximum}}}{lazy}"


def _render_range(first: int, last: int) -> str:
    """Return a range of code points as it appears inside brackets."""
    return (
        _escape_character(first)
        if first == last
        else f"{_escape_character(first)}-{_escape_character(last)}"
    )


def _escape_character(code: int) -> str:
    """Return a character as regular expression text, escaped if necessary."""
    if code < 32 or code == 127:
        return f"\\x{code:02x}"
    char = chr(code)
    return char if code > 127 or char.isalnum() else f"\\x{code:02x}"


MAX_LENGTH: Final = 10_000
"""The most characters of a pattern."""
MAX_SIZE: Final = 20_000
"""The most characters that a pattern matches one after the other, its repetitions expanded."""


class Pattern(NamedTuple):
    """A pattern rewritten for the engine in use.

    `steps`: the maximum number of steps that this engine takes for one character.
    """

    text: str
    steps: int


class _CompiledPattern(NamedTuple):
    """A pattern, or the reason why it is not run."""

    pattern: Pattern | None
    refusal: str = ""


def pattern_of(text: str) -> Pattern | None:
    """Return the rewritten pattern of a schema's text.

    Return None if the text is malformed, or the engine in use cannot run it in linear time.
    """
    return _compile_pattern(text, engine()).pattern


def refusal(text: str, *, backtracking: bool = False) -> str:
    """Return why a pattern cannot run in linear time; empty if it can.

    With `backtracking`, the reason is for an engine that backtracks, otherwise for the engine in
    use.
    """
    return _compile_pattern(text, PYTHON if backtracking else engine()).refusal


@lru_cache(maxsize=64)
def parse_pattern(text: str) -> RegexPart:
    """Return the parsed form of a pattern. Raise UnsupportedRegex if no engine may run it."""
    if len(text) > MAX_LENGTH:
        raise UnsupportedRegex(f"longer than {MAX_LENGTH:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parse_regex(text)
    except RecursionError:
        raise UnsupportedRegex("nested too deeply") from None


@lru_cache(maxsize=2048)
def _compile_pattern(text: str, engine_name: str) -> _CompiledPattern:
    try:
        return _CompiledPattern(_pattern_for(parse_pattern(text), engine_name))
    except UnsupportedRegex as error:
        return _CompiledPattern(None, str(error))
    except RecursionError:
        return _CompiledPattern(None, "nested too deeply")


def _pattern_for(part: RegexPart, engine_name: str) -> Pattern:
    """Return the pattern rewritten for an engine. Raise UnsupportedRegex."""
    part = trim_ends(part)
    size = count_characters(part)
    shown = max_steps(part)
    if size > MAX_SIZE:
        raise UnsupportedRegex(f"asks for more than {MAX_SIZE:,} characters")
    if engine_name == RUST:
        rust = render_pattern(part, RUST_TEXT)
        if not _is_accepted(rust):
            raise UnsupportedRegex("too large for the engine that runs it")
        return Pattern(rust, size if shown is None else min(size, shown))
    if shown is None:
        raise UnsupportedRegex(
            "cannot be shown to take linear time, and jsonschema-rs, which would run it, is not in use"
        )
    return Pattern(render_pattern(part, PYTHON_TEXT), min(size, shown))


def _is_accepted(pattern: str) -> bool:
    """Return whether jsonschema-rs accepts a pattern."""
    import jsonschema_rs

    try:
        jsonschema_rs.Draft202012Validator(
            {"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions()
        )
    except ValueError:
        return False
    return True
