"""Writing YAML that people keep: a text with other values at some paths, and values as a new text.

1. Unchanged parts keep their bytes: comments, order, quotes, blank lines. A comment inside a value
   that is replaced goes with it.
2. The written text reads back, by the rules of docs/reference/spec-files.md#yaml, as exactly the
   intended value."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from cogcli.base.problems import KeyPath
from cogcli.base.yaml.positions import Places, Span
from cogcli.base.yaml.reader import parse
from cogcli.base.yaml.writer import below_head, block, flow


class UneditableYaml(ValueError):
    """A text in which a value cannot be replaced without touching others."""


def replace_values(text: str, changes: Mapping[KeyPath, Any]) -> str:
    """Return the text with these values at their paths, all of which must exist. Raise
    UneditableYaml."""
    parsed = parse(text.encode(), file="")
    if parsed.value is None:
        raise UneditableYaml("the text cannot be read")
    places, starts = parsed.places, _line_starts(text)
    spliced = text
    # From the end: what comes before keeps its place.
    for path in sorted(
        changes, key=lambda path: _offsets(places.value(path), starts), reverse=True
    ):
        spliced = _splice(spliced, text, places, starts, path, changes[path])
    expected: Any = parsed.value
    for path, value in changes.items():
        expected = _changed(expected, path, value)
    if not _same(parse(spliced.encode(), file="").value, expected):
        raise UneditableYaml("the values cannot be written here without touching others")
    return spliced


def rename_key(text: str, path: KeyPath, name: str) -> str:
    """Return the text with another name for the last key of a path, which must exist. Raise
    UneditableYaml."""
    parsed = parse(text.encode(), file="")
    start, end = _offsets(parsed.places.key(path), _line_starts(text))
    spliced = f"{text[:start]}{flow(name)}{text[end:]}"
    if parsed.value is None or parse(spliced.encode(), file="").value != _renamed(
        parsed.value, path, name
    ):
        raise UneditableYaml("the key cannot be renamed here without touching others")
    return spliced


def source_of(text: str, span: Span) -> str:
    """Return the text at a span."""
    start, end = _offsets(span, _line_starts(text))
    return text[start:end]


def to_yaml(value: Mapping[str, Any]) -> str:
    """Return a mapping as YAML text. Raise UneditableYaml for a value that no file may hold."""
    text = "".join(f"{line}\n" for line in block(value, ""))
    parsed = parse(text.encode(), file="")
    if not _same(parsed.value, value):
        raise UneditableYaml(
            parsed.problems[0].message if parsed.problems else "a value cannot be written"
        )
    return text


def _same(a: Any, b: Any) -> bool:
    """Whether two values are written alike: a text with a number in it shows whether that is `1` or `1.0`."""
    return json.dumps(a) == json.dumps(b)


def _line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in re.finditer("\n", text))]


def _offsets(span: Span, starts: list[int]) -> tuple[int, int]:
    return starts[span.line - 1] + span.column - 1, starts[span.end_line - 1] + span.end_column - 1


def _splice(
    spliced: str, text: str, places: Places, starts: list[int], path: KeyPath, value: Any
) -> str:
    span, key = places.value(path), places.key(path)
    start, end = _offsets(span, starts)
    old, rest = text[start:end], text[end:].partition("\n")[0]
    if span == key and path and isinstance(path[-1], str):  # `key:` without a value
        start = end = text.index(":", end) + 1
        old, rest = "", text[end:].partition("\n")[0]
    outer = (places.value(path[:depth]) for depth in range(1, len(path)))
    in_flow = any(text[_offsets(each, starts)[0]] in "{[" for each in outer)
    keyed = bool(path) and isinstance(path[-1], str)
    new = flow(value) if old else f" {flow(value)}"
    head = (
        " " * (key.column + len(str(path[-1])))
        if keyed and not in_flow and not rest.strip()
        else None
    )
    below = below_head(head, value, " " * (key.column + 1)) if head is not None else None
    if below is not None:
        new = "\n".join(below)
        start = len(text[:start].rstrip(" "))
    tail = "\n" if old.endswith("\n") else ""
    return f"{spliced[:start]}{new}{tail}{spliced[end:]}"


def _changed(value: Any, path: KeyPath, new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, list):
        return [
            _changed(item, path[1:], new) if n == path[0] else item for n, item in enumerate(value)
        ]
    return {**value, path[0]: _changed(value[path[0]], path[1:], new)}


def _renamed(value: Any, path: KeyPath, name: str) -> Any:
    first, *rest = path
    if isinstance(value, list):
        return [
            _renamed(item, tuple(rest), name) if n == first else item
            for n, item in enumerate(value)
        ]
    if rest:
        return {**value, first: _renamed(value[first], tuple(rest), name)}
    return {name if key == first else key: item for key, item in value.items()}
