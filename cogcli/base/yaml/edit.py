"""Edits YAML that people maintain: replaces values at paths in a text, and renders values as new
text.

1. Unchanged parts keep their bytes: comments, order, quotes, blank lines. A comment inside a
replaced value is lost.

2. The written text reads back, by the rules of docs/reference/spec-files.md#yaml, as exactly the
intended value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from cogcli.base.json_pointer import with_value_at
from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath
from cogcli.base.yaml.positions import Span, YamlPositions
from cogcli.base.yaml.reader import parse
from cogcli.base.yaml.writer import below_head, block, flow


class UneditableYaml(ValueError):
    """A value in the text cannot be replaced without changing others."""


def replace_values(text: str, changes: Mapping[KeyPath, object]) -> str:
    """Return the text with new values at these existing paths. Raise UneditableYaml."""
    parsed = parse(text.encode(), file="")
    if parsed.value is None:
        raise UneditableYaml("the text cannot be read")
    source = _Source(text, parsed.places, _line_starts(text))
    spliced = text
    # From the end: what comes before keeps its place.
    for path in sorted(changes, key=source.value_offsets, reverse=True):
        spliced = _splice_value(spliced, source, path, changes[path])
    expected: object = parsed.value
    for path, value in changes.items():
        expected = with_value_at(expected, path, value)
    if not _has_same_json(parse(spliced.encode(), file="").value, expected):
        raise UneditableYaml("the values cannot be written here without touching others")
    return spliced


def rename_key(text: str, path: KeyPath, name: str) -> str:
    """Return the text with a new name for the last key of a path, which must exist.

    Raise UneditableYaml.
    """
    parsed = parse(text.encode(), file="")
    start, end = _span_offsets(parsed.places.key(path), _line_starts(text))
    spliced = f"{text[:start]}{flow(name)}{text[end:]}"
    if parsed.value is None or parse(spliced.encode(), file="").value != _rename_at(
        parsed.value, path, name
    ):
        raise UneditableYaml("the key cannot be renamed here without touching others")
    return spliced


def source_of(text: str, span: Span) -> str:
    """Return the text at a span."""
    start, end = _span_offsets(span, _line_starts(text))
    return text[start:end]


def to_yaml(value: Json) -> str:
    """Return a mapping as YAML text. Raise UneditableYaml for a value that YAML files may not
    contain.
    """
    text = "".join(f"{line}\n" for line in block(value, ""))
    parsed = parse(text.encode(), file="")
    if not _has_same_json(parsed.value, value):
        raise UneditableYaml(
            parsed.problems[0].message if parsed.problems else "a value cannot be written"
        )
    return text


def _has_same_json(a: object, b: object) -> bool:
    """Return whether two values are written alike, so that `1` differs from `1.0`."""
    return json.dumps(a) == json.dumps(b)


def _line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in re.finditer("\n", text))]


def _span_offsets(span: Span, starts: list[int]) -> tuple[int, int]:
    return starts[span.line - 1] + span.column - 1, starts[span.end_line - 1] + span.end_column - 1


class _Source(NamedTuple):
    """A string to edit, with the places of its values and the offsets of its lines."""

    text: str
    places: YamlPositions
    starts: list[int]

    def value_offsets(self, path: KeyPath) -> tuple[int, int]:
        """Return the start and end offsets of a value.

        For a key without a value, both are the offset after the colon.
        """
        span = self.places.value(path)
        start, end = _span_offsets(span, self.starts)
        if _is_key(path) and span == self.places.key(path):
            start = end = self.text.index(":", end) + 1
        return start, end

    def is_in_flow(self, path: KeyPath) -> bool:
        """Return whether a value is inside brackets or braces."""
        outer = (self.places.value(path[:depth]) for depth in range(1, len(path)))
        return any(self.text[_span_offsets(span, self.starts)[0]] in "{[" for span in outer)

    def block(self, path: KeyPath, end: int, value: object) -> list[str] | None:
        """Return the lines of a value below its key. None if the value begins on the line of its key."""
        rest = self.text[end:].partition("\n")[0]
        if not _is_key(path) or rest.strip() or self.is_in_flow(path):
            return None
        column = self.places.key(path).column
        return below_head(" " * (column + len(path[-1])), value, " " * (column + 1))


def _is_key(path: KeyPath) -> bool:
    return bool(path) and isinstance(path[-1], str)


def _splice_value(text: str, source: _Source, path: KeyPath, value: object) -> str:
    """Return the text with a new value at one path of its source."""
    start, end = source.value_offsets(path)
    old = source.text[start:end]
    new = flow(value) if old else f" {flow(value)}"
    block = source.block(path, end, value)
    if block is not None:
        new = "\n".join(block)
        start = len(source.text[:start].rstrip(" "))
    tail = "\n" if old.endswith("\n") else ""
    return f"{text[:start]}{new}{tail}{text[end:]}"


def _rename_at(value: Any, path: KeyPath, name: str) -> object:
    """Return the value with another name for the last key of a path."""
    first, *rest = path
    if isinstance(value, list):
        return [
            _rename_at(item, tuple(rest), name) if n == first else item
            for n, item in enumerate(value)
        ]
    if rest:
        return {**value, first: _rename_at(value[first], tuple(rest), name)}
    return {name if key == first else key: item for key, item in value.items()}
