"""Places in a text, and short excerpts of it for messages."""

from __future__ import annotations

from typing import Final

_SHOWN: Final = 40


def line_column(text: str, offset: int) -> tuple[int, int]:
    """Return the 1-based line and column of an offset."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def escape_hidden(text: str) -> str:
    """Return a string in which characters that cannot be printed are written as `\\u0000`."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def excerpt(text: str) -> str:
    """Return the first 40 characters of a string, escaped, and an ellipsis if it has more."""
    shown = escape_hidden(text[:_SHOWN])
    return shown if len(text) <= _SHOWN else f"{shown}…"
