r"""Makes text from any source safe and measurable for a terminal
(docs/reference/command-line.md#streams).

Control, bidi and invisible characters are displayed as `\x1b` or `\u202e`; nothing else changes.
"""

from __future__ import annotations

_HIDDEN = (
    *range(0x20), *range(0x7F, 0xA0), 0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x2028, 0x202F),
    *range(0x2060, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC), *range(0xE0000, 0xE0080),
)  # fmt: skip
_NAMED = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}


def _escape_code(code: int) -> str:
    if code < 0x100:
        return _NAMED.get(code, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    rest = code - 0x10000
    return f"\\u{0xD800 + (rest >> 10):04x}\\u{0xDC00 + (rest & 0x3FF):04x}"


_LINE = {code: _escape_code(code) for code in _HIDDEN}
_BLOCK = {code: text for code, text in _LINE.items() if code not in (0x09, 0x0A)}
_JSON = {code: _json_escape(code) for code in _HIDDEN if code >= 0x7F}


def is_plain_name(text: str) -> bool:
    """Return whether a string is usable as a name: not empty, no outer spaces or invisible characters."""
    return bool(text) and text.isprintable() and text.strip() == text


def visible(text: str) -> str:
    """Return text as one line, with line ends and tabs escaped as well."""
    return (
        text if text.isascii() and text.isprintable() else _escape_surrogates(text.translate(_LINE))
    )


def visible_block(text: str) -> str:
    """Return text of several lines. Line ends and tabs are kept."""
    return _escape_surrogates(text.translate(_BLOCK))


def visible_json(text: str) -> str:
    """Return JSON text that means the same to programs, with invisible characters escaped."""
    return text if text.isascii() else text.translate(_JSON)


def _escape_surrogates(text: str) -> str:
    """Return a string with lone surrogates escaped. They come from undecodable bytes of file names."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def cells(text: str) -> int:
    """Return how many columns a terminal uses for a string without control characters."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def truncate(text: str, width: int) -> str:
    """Return the beginning of the text in at most `width` columns.

    An ellipsis ends a truncated text.
    """
    return (
        text if cells(text) <= width else f"{_first_columns(text, width - 1)}…" if width > 0 else ""
    )


def shorten_middle(text: str, width: int) -> str:
    """Return the text in at most `width` columns, shortened in the middle.

    The middle is dropped because names differ at both ends.
    """
    if cells(text) <= width:
        return text
    if width < 4:
        return truncate(text, width)
    head = _first_columns(text, (width - 1) // 2)
    tail = _first_columns(text[::-1], width - 1 - cells(head))[::-1]
    return f"{head}…{tail}"


def _first_columns(text: str, width: int) -> str:
    """Return the beginning of a string in at most `width` columns."""
    taken = 0
    for position, char in enumerate(text):
        taken += cells(char)
        if taken > width:
            return text[:position]
    return text


LONGEST_SHOWN = 4096
"""Bytes of one value on a screen."""


def truncate_bytes(text: str, limit: int | None) -> tuple[str, str]:
    """Return the first `limit` bytes of a string, and a note about the rest; the whole text if None."""
    if limit is None or len(text) * 4 <= limit:
        return text, ""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= limit:
        return text, ""
    head = data[:limit].decode("utf-8", "ignore")
    return head, f"… {len(data) - len(head.encode()):,} bytes more"


def pad(text: str, width: int) -> str:
    """Return the text padded with spaces to `width` columns."""
    return text + " " * (width - cells(text))
