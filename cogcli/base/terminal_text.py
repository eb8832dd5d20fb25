"""Text from anywhere, made safe and measurable for a terminal (docs/reference/command-line.md#streams).

Control, bidi and invisible characters are shown as `\\x1b` or `\\u202e`; nothing else changes.
"""

from __future__ import annotations

_HIDDEN = (
    *range(0x20), *range(0x7F, 0xA0), 0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x2028, 0x202F),
    *range(0x2060, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC), *range(0xE0000, 0xE0080),
)  # fmt: skip
_NAMED = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}


def _escape(code: int) -> str:
    if code < 0x100:
        return _NAMED.get(code, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    rest = code - 0x10000
    return f"\\u{0xD800 + (rest >> 10):04x}\\u{0xDC00 + (rest & 0x3FF):04x}"


_LINE = {code: _escape(code) for code in _HIDDEN}
_BLOCK = {code: text for code, text in _LINE.items() if code not in (0x09, 0x0A)}
_JSON = {code: _json_escape(code) for code in _HIDDEN if code >= 0x7F}


def is_plain_name(text: str) -> bool:
    """Whether a text can name a user: not empty, without outer spaces or invisible characters."""
    return bool(text) and text.isprintable() and text.strip() == text


def visible(text: str) -> str:
    """Return one line of text, with line ends and tabs escaped as well."""
    return text if text.isascii() and text.isprintable() else _whole(text.translate(_LINE))


def visible_block(text: str) -> str:
    """Return text of several lines; line ends and tabs are kept."""
    return _whole(text.translate(_BLOCK))


def visible_json(text: str) -> str:
    """Return JSON text with the same meaning to programs, in which invisible characters are
    escaped."""
    return text if text.isascii() else text.translate(_JSON)


def _whole(text: str) -> str:
    """Lone surrogates, as undecodable bytes of file names become, are escaped too."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def cells(text: str) -> int:
    """Return how many columns a terminal uses for a text without control characters."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def truncate(text: str, width: int) -> str:
    """Return the beginning of the text in at most `width` columns; an ellipsis ends a text that was
    cut."""
    return text if cells(text) <= width else f"{_head(text, width - 1)}…" if width > 0 else ""


def shorten_middle(text: str, width: int) -> str:
    """Return the text in at most `width` columns without its middle, because names differ at both
    ends."""
    if cells(text) <= width:
        return text
    if width < 4:
        return truncate(text, width)
    head = _head(text, (width - 1) // 2)
    tail = _head(text[::-1], width - 1 - cells(head))[::-1]
    return f"{head}…{tail}"


def _head(text: str, width: int) -> str:
    taken = 0
    for position, char in enumerate(text):
        taken += cells(char)
        if taken > width:
            return text[:position]
    return text


LONGEST_SHOWN = 4096
"""Bytes of one value on a screen."""


def truncate_bytes(text: str, most: int | None) -> tuple[str, str]:
    """Return the first `most` bytes of a text, and a note about the remaining ones; the whole text
    for None."""
    if most is None or len(text) * 4 <= most:
        return text, ""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= most:
        return text, ""
    head = data[:most].decode("utf-8", "ignore")
    return head, f"… {len(data) - len(head.encode()):,} bytes more"


def pad(text: str, width: int) -> str:
    """Return the text filled with spaces up to `width` columns."""
    return text + " " * (width - cells(text))
