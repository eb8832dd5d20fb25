"""Rules of YAML 1.2 that the parsers do not enforce: a blank before a comment, indentation, tabs.

Each parser is lenient in its own way. These rules check the text between and inside the scalars that a parser found,
so that both parsers refuse the same files, and none reads a file differently than it looks.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.yaml.parsers import Mark, ParserEvent, Take

SUSPECT: Final = lazy_pattern(
    r"\t"  # tabs
    r"|[^\s]#"  # what may be a comment
    r"|[\[{,]\s*\?\S|:[ ]*[,\]}]|[\[,]\s*-\s*[,\]]"  # text that begins or ends with an indicator
    r"|[\"'\]}][ ]*:\S"  # a value directly after its key
    r"|[|>][-+0-9]*[ ]*(?:#[^\n]*)?\r?\n *\r?\n"  # a block that begins with blanks
)
"""Characters that may break a rule within one line."""
_QUOTED: Final = ("'", '"')
_BLOCK: Final = ("|", ">")
_BRACKETS: Final = ("[", "{")
_TAB: Final = "a tab where only spaces are allowed"
_USE_SPACES: Final = "indent and separate with spaces"
_BLANK: Final = "a blank is missing before `#`"


class StyleViolation(NamedTuple):
    """A breach of a rule: its offset in the text, a message and a hint."""

    offset: int
    message: str
    hint: str


def find_first_breach(text: str, take: Take) -> StyleViolation | None:
    """Return the first breach of a rule, or None.

    `take` returns the next event of the text's only document. Raise the errors of the parser.
    """
    lines = _Lines(text)
    nodes = list(_iterate_nodes(take, lines))
    found = [*_faults_between(nodes, text)]
    for node in nodes:
        if node.style in _BLOCK:
            found += _block_faults(node, text)
        elif not node.style:
            found += _plain_faults(node, text[node.start : node.end])
        elif not node.inside:  # what is in a bracket is reported with the outermost one
            found += _indentation_faults(node, lines)
    return min(found, default=None)


class _Lines:
    """The offsets of a string's lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def offset(self, mark: Mark) -> int:
        """Return the offset of a parser's mark."""
        if mark.line >= len(self._starts):
            return len(self.text)
        return self._starts[mark.line] + mark.column

    def further_lines(self, node: _Node) -> Iterator[tuple[int, str]]:
        """Yield each whole line of a node after its first, with the offset of its start."""
        for line in range(bisect_right(self._starts, node.start), len(self._starts)):
            start = self._starts[line]
            if start >= node.end:
                return
            end = self.text.find("\n", start)
            yield start, self.text[start : len(self.text) if end < 0 else end]


class _Node(NamedTuple):
    """A scalar, or a collection in brackets.

    `style` is the style of the scalar, or the bracket. Further lines must start after the column `beyond`. `inside` is
    the enclosing bracket; empty at the top level.
    """

    start: int
    end: int
    style: str
    beyond: int
    inside: str


class _Collection(NamedTuple):
    """An open collection.

    `bracket` is empty for a collection without one. Further lines must start after the column
    `beyond`. `start` is the first event. It is None if the collection is written without a bracket
    inside another one.
    """

    start: ParserEvent | None
    bracket: str
    beyond: int

    def node(self, lines: _Lines, start: Mark, end: Mark, style: str) -> _Node:
        """Return a node inside the collection."""
        return _Node(lines.offset(start), lines.offset(end), style, self.beyond, self.bracket)


def _iterate_nodes(take: Take, lines: _Lines) -> Iterator[_Node]:
    """Yield the scalars and bracketed collections of the only document, inner ones first."""
    enclosing = [_Collection(None, "", -1)]
    while True:
        event = take()
        match event.__class__.__name__:
            case "MappingStartEvent" | "SequenceStartEvent":
                enclosing.append(_open_collection(event, enclosing[-1], lines))
            case "MappingEndEvent" | "SequenceEndEvent":
                ended = enclosing.pop()
                if ended.bracket and ended.start is not None:
                    start = ended.start.start_mark
                    yield enclosing[-1].node(lines, start, event.end_mark, ended.bracket)
            case "ScalarEvent":
                style = event.style or ""
                yield enclosing[-1].node(lines, event.start_mark, event.end_mark, style)
            case "DocumentEndEvent" | "StreamEndEvent":
                return


def _open_collection(event: ParserEvent, enclosing: _Collection, lines: _Lines) -> _Collection:
    """Return the open collection that an event starts inside `enclosing`."""
    own = lines.text[lines.offset(event.start_mark)] if event.flow_style else ""
    # One `key: value` in a list, without braces, is still in the list.
    bracket = enclosing.bracket if own and own not in _BRACKETS else own
    beyond = enclosing.beyond if bracket else event.start_mark.column
    return _Collection(event if own == bracket else None, bracket, beyond)


def _plain_faults(node: _Node, text: str) -> Iterator[StyleViolation]:
    tab = text.find("\t")
    if tab >= 0:
        yield StyleViolation(node.start + tab, _TAB, _USE_SPACES)
    if node.inside and text.endswith(":"):
        message = "text in brackets cannot end with `:`"
        yield StyleViolation(node.start, message, "quote the text, or write a value behind it")
    if node.inside and text == "-":
        yield StyleViolation(node.start, "`- ` is not expected here", "quote the text")


def _indentation_faults(node: _Node, lines: _Lines) -> Iterator[StyleViolation]:
    """Yield a breach for the first line with too little indentation.

    A closing bracket may be in any column, because its meaning does not change.
    """
    for start, line in lines.further_lines(node):
        rest = line.lstrip(" ")
        column = len(line) - len(rest)
        closes = node.style in _BRACKETS and rest[:1] in ("]", "}", "#")
        if rest.strip() and column <= node.beyond and not closes:
            what = "quoted text" if node.style in _QUOTED else "what stands in brackets"
            message = f"a line of {what} begins too far left"
            yield StyleViolation(
                start + column, message, "indent it deeper than the key or the `- ` before it"
            )
            return


def _block_faults(node: _Node, text: str) -> Iterator[StyleViolation]:
    """Yield breaches in the header of a block, and for blank lines indented deeper than its text."""
    header, *rest = text[node.start :].split("\n")
    marks = len(header) - len(header[1:].lstrip("-+0123456789"))
    after = header[marks:]
    if after.startswith("#"):
        message = "`|` or `>` must end its line"
        yield StyleViolation(node.start + marks, message, "put the text on the next line, indented")
    if "\t" in after.partition("#")[0]:
        yield StyleViolation(node.start + header.index("\t"), _TAB, _USE_SPACES)
    deepest = 0
    for line in () if any(map(str.isdigit, header[:marks])) else rest:
        column = len(line) - len(line.lstrip(" "))
        if line.strip(" \r"):
            if deepest > column > node.beyond:
                message = "a blank line before the text is indented deeper than it"
                yield StyleViolation(node.start, message, "empty the line")
            return
        deepest = max(deepest, column)


def _faults_between(nodes: list[_Node], text: str) -> Iterator[StyleViolation]:
    """Yield breaches in the text between the scalars: indicators, blanks, comments."""
    brackets = _OpenBrackets(sorted(node for node in nodes if node.style in _BRACKETS))
    scalars = [node for node in nodes if node.style not in _BRACKETS]
    reached = 0
    for start, end in [*((node.start, node.end) for node in scalars), (len(text), len(text))]:
        for match in _MARKS.finditer(text, reached, max(start, reached)):
            yield from _marker_faults(match, brackets)
        reached = max(reached, end)


class _OpenBrackets:
    """The brackets around places that are requested in ascending order."""

    def __init__(self, brackets: list[_Node]) -> None:
        self._coming = iter([*brackets, None])
        self._next = next(self._coming)
        self._open: list[_Node] = []

    def style_at(self, at: int) -> str:
        """Return the innermost bracket around a position; empty outside all brackets."""
        while self._next is not None and self._next.start < at:
            self._open.append(self._next)
            self._next = next(self._coming)
        while self._open and self._open[-1].end <= at:
            self._open.pop()
        return self._open[-1].style or "" if self._open else ""


_MARKS: Final = lazy_pattern(r"(?P<comment>#[^\n]*)|[\t?:]")


def _marker_faults(match: re.Match[str], brackets: _OpenBrackets) -> Iterator[StyleViolation]:
    """Yield the breach of a comment or an indicator, if it has one."""
    at, text = match.start(), match.string
    if match["comment"]:
        if at and not text[at - 1].isspace():
            yield StyleViolation(at, _BLANK, "write one, or quote the text")
        return
    inside = brackets.style_at(at)
    fault = _indicator_fault(text[at], text[at + 1 : at + 2], inside)
    if fault is not None:
        yield StyleViolation(at, *fault)


def _indicator_fault(char: str, follows: str, bracket: str) -> tuple[str, str] | None:
    """Return message and hint for an indicator that is not allowed here, or None.

    `bracket` is the enclosing bracket, or empty.
    """
    if char == "\t":
        return None if bracket else (_TAB, _USE_SPACES)
    if not follows.strip():
        return None
    if char == "?" and bracket and follows not in ",]}":
        return "text in brackets cannot start with `?`", "quote the text"
    if char == ":" and bracket == "[" and follows not in ",[]{}":
        return "a blank is missing after `:`", "write one, or quote the text"
    return None
