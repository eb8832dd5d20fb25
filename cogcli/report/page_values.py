"""The display of values on a page: readable, truncated to a number of bytes, with the file that
contains the full value."""

from __future__ import annotations

import json

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import truncate_bytes
from cogcli.declarations.value_types import Json


class PageValue(NamedTuple):
    """A value with a label. `more` contains the omitted size and the location of the full value."""

    word: str
    text: str
    more: str = ""


class ValueLimit(NamedTuple):
    """The number of bytes that are displayed of one value."""

    bytes: int

    def value(self, word: str, value: object, file_name: str) -> PageValue | None:
        """Return a value as JSON, a string unchanged, or None for an empty value. `file_name` is
        the file that contains it.
        """
        if value is None or value in ("", {}, []):
            return None
        text = page_text(value)
        head, omitted = truncate_bytes(text, self.bytes)
        return PageValue(word, head, f"{omitted}; all of it: {file_name}" if omitted else "")

    def members(self, values: Json, file_name: str) -> list[PageValue]:
        """Return each member of an object by name, empty ones included."""
        return [
            self.value(name, value, file_name) or PageValue(name, json_text(value))
            for name, value in values.items()
        ]


def page_text(value: object) -> str:
    """Return a string unchanged, any other value as `json_text`."""
    return value if isinstance(value, str) else json_text(value)


def json_text(value: object) -> str:
    """Return JSON in declared order, indented. Short values and lists of scalars are on one line."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    plain = isinstance(value, list) and not any(isinstance(each, dict | list) for each in value)
    return (
        text
        if plain or len(text) <= 72
        else json.dumps(value, ensure_ascii=False, default=str, indent=2)
    )


def line_of(number: int | None) -> str:
    """Return the location of an event in the log as text."""
    return f"events.jsonl, line {number}" if number else "events.jsonl"
