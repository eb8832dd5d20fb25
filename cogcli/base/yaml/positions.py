"""The positions of keys and values in a YAML or JSON text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cogcli.base.yaml.limits import MAX_NODES
from cogcli.base.yaml.parsers import ParserEvent, Take, event_streams

Path = tuple[str | int, ...]
_DEEPEST: Final = 33
"""Beyond these limits of spec files, a value has the position of the enclosing value."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range in a string: the 1-based line and column of its first character, and of the next after
    its last.
    """

    line: int
    column: int
    end_line: int
    end_column: int

    def column_of(self, text: str, offset: int) -> int:
        """Return the column of an offset in a value.

        If the file does not contain the value literally, return the column where the value starts.
        """
        if self.line != self.end_line:
            return self.column
        quotes = self.end_column - self.column - len(text)
        return self.column + offset + quotes // 2 if quotes in (0, 2) else self.column


_START: Final = Span(1, 1, 1, 1)


class YamlPositions:
    """The positions of the keys and values of one text by path: `("steps", 0, "uses")`.

    A missing path has the position of its nearest existing ancestor, so that a missing key is
    reported there. An empty value (`key:`) has the position of its key. The text is parsed for
    positions at the first lookup, which most files never need.
    """

    __slots__ = ("_nodes", "_root", "_text")

    def __init__(self, text: str, nodes: int = MAX_NODES) -> None:
        self._text = text
        self._nodes = nodes
        self._root: _Place | None = None

    def value(self, path: Path) -> Span:
        """Return the position of the value at `path`."""
        return self._find_nearest(path)[0].value

    def key(self, path: Path) -> Span:
        """Return the position of the last key of `path`.

        For a list item and for the root, return the position of the value.
        """
        place, found = self._find_nearest(path)
        return place.key if found and place.key else place.value

    def position(
        self, path: Path, *, key: bool, within: tuple[str, int] | None = None
    ) -> tuple[int, int]:
        """Return the line and column of the value or key at a path, or of an offset in the value's
        text.
        """
        span = self.key(path) if key else self.value(path)
        return span.line, span.column_of(*within) if within else span.column

    def declares(self, path: Path) -> bool:
        """Return whether the text contains the last key of a path."""
        # The position of a missing key is that of its mapping.
        return self.key(path) != self.value(path[:-1])

    def at_pointer(self, pointer: Sequence[str]) -> Span:
        """Return the position of the value that the parts of a JSON pointer lead to.

        If it is missing, return the position of its nearest existing ancestor.
        """
        place = self._find_nearest(())[0]
        for part in pointer:
            inner = place.children.get(part) or place.children.get(
                int(part) if part.isdecimal() else -1
            )
            if inner is None:
                break
            place = inner
        return place.value

    def _find_nearest(self, path: Path) -> tuple[_Place, bool]:
        if self._root is None:
            self._root = _read_places(self._text, self._nodes)
        place = self._root
        for step in path:
            inner = place.children.get(step)
            if inner is None:
                return place, False
            place = inner
        return place, True


@dataclass(slots=True)
class _Place:
    key: Span | None
    value: Span
    children: dict[str | int, _Place] = field(default_factory=dict)


def _read_places(text: str, nodes: int) -> _Place:
    """Return the positions in the part of a YAML document that can be parsed within the limits."""
    from ruamel.yaml.error import YAMLError

    root = _Place(None, _START)
    for begin in event_streams(text):
        take = begin()
        try:
            for event in iter(take, None):
                if hasattr(event, "anchor"):
                    root = _place_of(event, None)
                    _fill_places(root, event, take, [nodes], 1)
                    break
        except YAMLError:
            continue
        except _TooLarge:
            pass
        break
    return root


def _fill_places(
    place: _Place, start: ParserEvent, take: Take, nodes_left: list[int], depth: int
) -> None:
    """Add the positions inside the node that the event `start` begins, and the end of the node."""
    nodes_left[0] -= 1
    if nodes_left[0] < 0 or depth > _DEEPEST:
        raise _TooLarge
    if not hasattr(start, "flow_style"):
        return
    last = place.value
    keyed = start.__class__.__name__ == "MappingStartEvent"
    while hasattr(event := take(), "anchor"):
        step: str | int | None = len(place.children)
        key: Span | None = None
        if keyed:
            step, key = getattr(event, "value", None), _event_span(event)
            _fill_places(
                _Place(key, key), event, take, nodes_left, depth + 1
            )  # a key that is a collection leads nowhere
            event = take()
        inner = _place_of(event, key)
        if step is not None:
            place.children.setdefault(step, inner)
        _fill_places(inner, event, take, nodes_left, depth + 1)
        last = inner.value
    # The end of an indented block has no width: it is found where the next thing starts.
    if event.start_mark.column != event.end_mark.column:
        last = _event_span(event)
    place.value = Span(place.value.line, place.value.column, last.end_line, last.end_column)


def _place_of(event: ParserEvent, key: Span | None) -> _Place:
    unwritten = getattr(event, "value", None) == "" and not event.style
    return _Place(key, key if key and unwritten else _event_span(event))


def _event_span(event: ParserEvent) -> Span:
    start, end = event.start_mark, event.end_mark
    return Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)


class _TooLarge(Exception):
    """The text exceeds the limits."""
