"""Paths into JSON documents: `outcomes.actions.0.tool` = `.outcomes.actions[0].tool`, `vars["a.b"]`
(docs/reference/command-line.md#paths)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class InvalidPath(ValueError):
    """A string is not a path; `position` is the 0-based place of the error."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


class PathNotFound(KeyError):
    """A path has no value: the missing segment, the path before it, and the keys that exist there."""

    def __init__(self, segment: str, before: str, known: list[str], kind: str) -> None:
        super().__init__(segment)
        self.segment = segment
        self.before = before
        self.known = known
        self.kind = kind


def parse(path: str) -> list[str]:
    """Return the segments of a path. Raise InvalidPath."""
    segments: list[str] = []
    at = 1 if path.startswith(".") else 0
    while at < len(path):
        segment, at = _parse_bracket(path, at) if path[at] == "[" else _parse_name(path, at)
        segments.append(segment)
        follows = path[at : at + 1]
        if follows == ".":
            at += 1
            if at == len(path):
                raise InvalidPath(at, "a name is missing")
        elif follows not in ("", "["):
            raise InvalidPath(at, "`.` or `[` expected")
    if not segments and path not in ("", "."):
        raise InvalidPath(0, "a name is missing")
    return segments


def _parse_name(path: str, at: int) -> tuple[str, int]:
    ends = (path.find(char, at) for char in ".[")
    end = min((place for place in ends if place >= 0), default=len(path))
    if end == at:
        raise InvalidPath(at, "a name is missing")
    return path[at:end], end


def _parse_bracket(path: str, at: int) -> tuple[str, int]:
    quote = path[at + 1 : at + 2]
    if quote and quote in "\"'":
        end = path.find(f"{quote}]", at + 2)
        if end < 0:
            raise InvalidPath(at, f"`{quote}]` is missing")
        return path[at + 2 : end], end + 2
    end = path.find("]", at)
    if end < 0 or not path[at + 1 : end].isdigit():
        raise InvalidPath(at, 'a number in brackets, or ["name"], is expected')
    return path[at + 1 : end], end + 1


def look_up(
    document: object,
    segments: list[str],
    expand: Callable[[object], Any] = lambda value: value,
) -> Any:
    """Return the value at a path. Raise PathNotFound. `expand` replaces each value on the path, such as a reference, by
    the value behind it. The last value is not expanded.
    """
    value: Any = document
    for position, segment in enumerate(segments):
        before = ".".join(segments[:position])
        value = expand(value)
        if isinstance(value, dict):
            if segment not in value:
                raise PathNotFound(segment, before, list(value), "object")
            value = value[segment]
        elif isinstance(value, list):
            if not (segment.isascii() and segment.isdigit()) or int(segment) >= len(value):
                raise PathNotFound(segment, before, [], f"list of {len(value)}")
            value = value[int(segment)]
        else:
            raise PathNotFound(segment, before, [], "null" if value is None else "scalar")
    return value
