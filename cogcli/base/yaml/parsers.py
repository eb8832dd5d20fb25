"""The event streams of a YAML text from two parsers of one library. Only this package uses the
library.

The C parser reads an older YAML than 1.2 (`{url: http://host/?a=b}` stops it). If it stops, the
pure Python parser decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Protocol


class Mark(Protocol):
    """A place in a string: 0-based line and column."""

    line: int
    column: int


class ParserEvent(Protocol):
    """An event of a parser: its two marks, and the members of its kind."""

    start_mark: Mark
    end_mark: Mark
    anchor: str | None
    ctag: object
    flow_style: bool
    style: str | None
    value: str


Take = Callable[[], ParserEvent]
"""A function that returns the next event of a text."""


def has_c_parser() -> bool:
    """Return whether the C parser is installed. Without it, reading takes about ten times as long."""
    return _c_parser() is not None


def _c_parser() -> Any:
    """Return the class of the C parser, or None if it is not installed."""
    try:
        from ruamel.yaml.cyaml import CParser  # type: ignore[attr-defined]
    except ImportError:
        return None
    return CParser


def _pure_events(text: str) -> Iterator[ParserEvent]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = _pure_scanner()
    _, parser = yaml.get_constructor_parser(text)
    try:
        while parser.check_event():
            yield parser.get_event()
    except YAMLError:
        raise
    except Exception as error:
        # The parser's own slips, such as chr() of an escape beyond U+10FFFF.
        raise MarkedYAMLError(problem=str(error), problem_mark=yaml.reader.get_mark()) from error


@cache
def _pure_scanner() -> Any:
    """Return the pure parser's scanner without one check.

    The check refuses valid blocks for the blank lines before their text.
    """
    from ruamel.yaml.scanner import Scanner

    class BlockScanner(Scanner):
        def scan_block_scalar_indentation(self) -> tuple[list[str], int, Mark]:
            breaks: list[str] = []
            deepest, end = 0, self.reader.get_mark()
            while (char := self.reader.peek()) in " \r\n":
                if char == " ":
                    self.reader.forward()
                    deepest = max(deepest, self.reader.column)
                else:
                    breaks.append(self.scan_line_break())
                    end = self.reader.get_mark()
            return breaks, deepest, end

    return BlockScanner


def event_streams(text: str) -> Iterator[Callable[[], Take]]:
    """Yield the parsers to try, in order.

    Calling a parser starts it on the text and returns a function that returns the next event.
    """
    fast = _c_parser()
    if fast is not None:
        yield lambda: fast(text).get_event
    yield lambda: _pure_events(text).__next__
