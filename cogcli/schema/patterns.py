"""Patterns of schemas in one meaning for every engine (docs/reference/spec-files.md#schemas), and only those
that never run away (ADR 9).

JSON Schema says ECMA 262; Python's `re` and Rust's `regex` each differ from it in what `\\d`, `\\s`, `.` and `$`
match and in what must be escaped. So a pattern is parsed once and written anew, out of parts that mean the same to
both. Rust's engine takes linear time for each of these; Python's goes back, so that it gets only the patterns of
which `pattern_steps` shows that it takes linear time as well.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any, Final, NamedTuple

from cogcli.schema.engine_choice import RUST, engine
from cogcli.schema.regex_parser import Unwritable, parts_of
from cogcli.schema.regex_work import most_steps, needed_part, size_of
from cogcli.schema.regex_writer import PYTHON_TEXT, RUST_TEXT, text_of

MAX_LENGTH: Final = 10_000
"""Characters of a pattern."""
MAX_SIZE: Final = 20_000
"""Characters that a pattern asks for one after the other, its repetitions written out."""


class Pattern(NamedTuple):
    """A pattern as Python's engine takes it, and as Rust's does.

    `steps` says how many steps the engine in use takes at most for one character of a text.
    """

    python: str
    rust: str
    steps: int


def pattern_of(text: str) -> Pattern | None:
    """The pattern that a schema's text means; None if the engine in use cannot run it in linear time, or it is none."""
    found = _read(text, engine())
    return found if isinstance(found, Pattern) else None


def refusal(text: str) -> str:
    """Why the engine in use cannot run a pattern in linear time; empty if it can."""
    found = _read(text, engine())
    return found if isinstance(found, str) else ""


@lru_cache(maxsize=2048)
def _read(text: str, used: str) -> Pattern | str:
    if len(text) > MAX_LENGTH:
        return f"longer than {MAX_LENGTH:,} characters"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = needed_part(parts_of(text))
        size = size_of(parts)
        shown = most_steps(parts)
    except Unwritable as error:
        return str(error)
    except RecursionError:
        return "nested too deeply"
    if size > MAX_SIZE:
        return f"asks for more than {MAX_SIZE:,} characters"
    if used != RUST and shown is None:
        return "cannot be shown to take linear time, and jsonschema-rs, which would run it, is not in use"
    found = Pattern(
        text_of(parts, PYTHON_TEXT), text_of(parts, RUST_TEXT), size if shown is None else min(size, shown)
    )
    if used == RUST and not _compiles(found.rust):
        return "too large for the engine that runs it"
    return found


def _compiles(pattern: str) -> bool:
    import jsonschema_rs

    try:
        judge: Any = jsonschema_rs.Draft202012Validator
        judge({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
    except ValueError:
        return False
    return True
