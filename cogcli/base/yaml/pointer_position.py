"""Where a JSON pointer leads in the text of a large JSON or YAML document.

Only what the pointer passes is looked at. Everything next to it is skipped, so that a document of any size takes
little more memory than its text. `YamlPositions` keeps every place, and is meant for spec files.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.yaml.parsers import ParserEvent, Take, event_streams

Position = tuple[int, int]
"""A line and a column, from 1."""
_FIRST: Final = 4096
"""The first character of JSON is among so many."""
_SPACE: Final = lazy_pattern(r"[ \t\n\r]*")
_LARGE: Final = 4 * 1024 * 1024
"""A longer YAML text is read only by the first parser, because the second would take minutes."""


def find_pointer(text: str, pointer: Sequence[str]) -> Position:
    """Return the position of the value at a pointer, or of its nearest existing ancestor."""
    if text[:_FIRST].lstrip()[:1] in ("{", "["):
        try:
            return _find_in_json(text, pointer)
        except (ValueError, StopIteration, IndexError, RecursionError):
            pass  # a flow mapping of YAML begins like this, too
    return _find_in_yaml(text, pointer)


# -- JSON -------------------------------------------------------------------------------------------------------------


def _find_in_json(text: str, pointer: Sequence[str]) -> Position:
    scanner = _JsonScanner(text)
    at = scanner.skip_space(0)
    for part in pointer:
        is_object = text[at] == "{"
        inner = scanner.find_member(at, part) if is_object else scanner.find_item(at, part)
        if inner is None:
            break
        at = inner
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


class _JsonScanner:
    """Finds values in one JSON text by their indices. Its methods raise ValueError, StopIteration or IndexError for
    other text.
    """

    def __init__(self, text: str) -> None:
        from json import JSONDecoder

        self._text = text
        # Long integers stay text: `int` refuses thousands of digits.
        self._decode = JSONDecoder(parse_int=str, parse_float=str).raw_decode

    def find_member(self, at: int, name: str) -> int | None:
        """Return the index of a member's value in the object at an index. None if it has no such member."""
        text = self._text
        at = self.skip_space(at + 1)
        while text[at] == '"':
            key, at = self._decode(text, at)
            at = self.skip_space(self.skip_space(at) + 1)
            if key == name:
                return at
            at = self._skip_value(at, "}")
        if text[at] != "}":
            raise ValueError("not a key of JSON")
        return None

    def find_item(self, at: int, number: str) -> int | None:
        """Return the index of an element of the list at an index. None if the value is no list, or the list is
        shorter.
        """
        text = self._text
        if text[at] != "[" or not number.isdecimal():
            return None
        at = self.skip_space(at + 1)
        for _ in range(int(number)):
            if text[at] == "]":
                return None
            at = self._skip_value(at, "]")
        return None if text[at] == "]" else at

    def skip_space(self, at: int) -> int:
        """Return the index of the next character that is no space."""
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def _skip_value(self, at: int, end: str) -> int:
        """Return the index of the next key or element after the value at an index, or of the end of its
        collection.
        """
        _, at = self._decode(self._text, at)
        at = self.skip_space(at)
        if self._text[at] == end:
            return at
        if self._text[at] != ",":
            raise ValueError("not JSON")
        return self.skip_space(at + 1)


# -- YAML -------------------------------------------------------------------------------------------------------------


def _find_in_yaml(text: str, pointer: Sequence[str]) -> Position:
    from ruamel.yaml.error import YAMLError

    for begin in islice(event_streams(text), 1 if len(text) > _LARGE else None):
        take = begin()
        try:
            for event in iter(take, None):
                if hasattr(event, "anchor"):
                    return _follow_pointer(event, take, pointer)
        except YAMLError:
            continue
    return 1, 1


def _follow_pointer(event: ParserEvent, take: Take, pointer: Sequence[str]) -> Position:
    """Return the position to which a pointer leads from the node that an event begins."""
    found = _event_position(event)
    for part in pointer:
        inner = _find_child(event, take, part)
        if inner is None:
            break
        found, event = inner
    return found


def _find_child(start: ParserEvent, take: Take, part: str) -> tuple[Position, ParserEvent] | None:
    """Return the position and the event of a child of the node that `start` begins, or None.

    A value that is not written has the position of its key.
    """
    if not hasattr(start, "flow_style"):
        return None
    keyed = start.__class__.__name__ == "MappingStartEvent"
    number = 0
    while hasattr(event := take(), "anchor"):
        name, key = str(number), event
        if keyed:
            name = getattr(key, "value", "")
            _skip_node(key, take)
            event = take()
        if name == part:
            unwritten = keyed and getattr(event, "value", None) == "" and not event.style
            return _event_position(key if unwritten else event), event
        _skip_node(event, take)
        number += 1
    return None


def _skip_node(event: ParserEvent, take: Take) -> None:
    """Consume the events of the node that `event` begins."""
    depth = int(hasattr(event, "flow_style"))
    while depth:
        event = take()
        depth += 1 if hasattr(event, "flow_style") else -(not hasattr(event, "anchor"))


def _event_position(event: ParserEvent) -> Position:
    return event.start_mark.line + 1, event.start_mark.column + 1
