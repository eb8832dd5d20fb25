"""The event streams of a YAML text, from two parsers of one library. Only this room uses the library.

The C parser reads an older YAML than 1.2 (`{url: http://host/?a=b}` stops it). Where it stops, the pure parser decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Protocol


class Mark(Protocol):
    """A place in a text: 0-based line and column."""

    line: int
    column: int


class ParserEvent(Protocol):
    """An event of a parser. It has its two marks, and of the other members those of its kind."""

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
    """Whether the C parser is installed; without it reading takes about ten times as long."""
    return _c_parser() is not None


def _c_parser() -> Any:
    """The class of the C parser, or None where it is not installed."""
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
    """The pure parser's scanner without a check of blank lines before a block's text, which refuses valid blocks."""
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
    """The parsers to try in order. Calling one starts it on the text and gives a function for the next event."""
    fast = _c_parser()
    if fast is not None:
        yield lambda: fast(text).get_event
    yield lambda: _pure_events(text).__next__
