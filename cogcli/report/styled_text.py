"""A rendered line as spans of text and style: what pure renderings hand to whoever prints."""

from __future__ import annotations

from cogcli.core.terminal_text import cells

StyledSpan = tuple[str, str]
"""Text, and one of the words of `SGR` or the empty string."""
StyledLine = list[StyledSpan]

SGR = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36", "error": "1;31",
    "warning": "1;33",
}  # fmt: skip


def plain_text(line: StyledLine) -> str:
    """The line without styles or trailing spaces."""
    return "".join([text for text, _ in line]).rstrip()


def coloured_text(line: StyledLine) -> str:
    """The line with terminal colours."""
    return "".join(
        [f"\x1b[{SGR[style]}m{text}\x1b[0m" if style and text.strip() else text for text, style in line]
    ).rstrip()


def width(line: StyledLine) -> int:
    """Columns of the whole line."""
    return sum(cells(text) for text, _ in line)
