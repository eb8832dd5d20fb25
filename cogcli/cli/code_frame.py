"""A location in a file as `-->` line, source line and carets
(docs/reference/command-line.md#errors).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from cogcli.base.redact import names_secret
from cogcli.base.source_lines import hide_secrets
from cogcli.base.terminal_text import cells, truncate, visible
from cogcli.report.styled_text import StyledLine

_STOP = " \t,]}"
_LARGEST = 256 * 1024
_WIDEST = 400
"""The most columns of a source line that is neither folded nor cut."""


class Sources:
    """The source lines of files below `base`. `contents` replaces the content of files by name.

    `typed` maps locations to strings of the command line. If such a string refers to a secret, none of its lines is
    displayed.
    """

    def __init__(
        self,
        base: str = "",
        contents: Mapping[str, bytes] | None = None,
        typed: Mapping[str, bytes] | None = None,
    ) -> None:
        self._base = base
        self._typed = typed or {}
        self._contents = {**(contents or {}), **self._typed}

    def line(self, file: str, number: int) -> str | None:
        """Return one line without its newline; None if the file cannot be read or displayed."""
        if not number:
            return None
        if file in self._contents:
            lines = self._contents[file].decode("utf-8-sig", "replace").split("\n")
            text = lines[number - 1].rstrip("\r") if number <= len(lines) else None
        else:
            text = _read_line(os.path.join(self._base, file), number)
        if text is None or (file in self._typed and _names_secret(f"{file} {text}")):
            return None
        if file.endswith(".toml") and "=" not in text and not text.lstrip().startswith("["):
            return None  # the key of a secret may be in another line of this text
        return hide_secrets(text)

    def end(self, file: str, line: int, column: int) -> int:
        """Return the column after the token at a location; 0 if it is unknown."""
        text = self.line(file, line)
        if text is None or not 1 <= column <= len(text):
            return 0
        return column + max(1, _token_length(text[column - 1 :]))


def _names_secret(text: str) -> bool:
    """Return whether a string contains the name of a secret."""
    return any(map(names_secret, _WORD.findall(text)))


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def frame(
    file: str, line: int, column: int, *, base: str = "", width: int | None = None,
    sources: Sources | None = None, note: str = "",
) -> list[StyledLine]:  # fmt: skip
    """Return the `-->` line and the marked source line, followed by `note`; only the `-->` line if
    the source cannot be displayed.
    """
    place = visible(file) + (f":{line}" if line else "") + (f":{column}" if line and column else "")
    head: StyledLine = [("  --> ", "dim"), (place, "")]
    text = (sources or Sources(base)).line(file, line)
    if text is None or column < 1 or column > len(text) + 1:
        return [head]
    number = str(line)
    gutter = " " * max(2, len(number))
    shown, before, marked = _visible_part(text, column, width)
    marks = f"{'^' * marked} {visible(note)}".rstrip()
    if width is not None:
        marks = truncate(marks, max(marked, width - 6 - before))
    return [
        head,
        [(f"{gutter} |", "dim")],
        [(f"{number:>{len(gutter)}} | ", "dim"), (shown, "")],
        [(f"{gutter} | ", "dim"), (" " * before, ""), (marks, "red")],
        [(f"{gutter} |", "dim")],
    ]


def _read_line(path: str, line: int) -> str | None:
    """Return a line of a file; None if it cannot be read or displayed."""
    try:
        if os.path.getsize(path) > _LARGEST:
            return None
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            for number, text in enumerate(file, 1):
                if number == line:
                    return text.rstrip("\r\n")
    except (OSError, ValueError):
        return None
    return None


def _visible_part(text: str, column: int, width: int | None) -> tuple[str, int, int]:
    """Return the displayed part of a line, the number of columns before the mark, and the mark's
    length.
    """
    width = min(width or _WIDEST, _WIDEST)
    before, rest = text[: column - 1], text[column - 1 :]
    token = rest[: _token_length(rest)]
    head, mark = visible(before.replace("\t", " ")), max(1, cells(visible(token)))
    if cells(head) + mark > width - 8:
        head = "…" + head[-(width // 4) :] if cells(head) > width // 4 else head
    shown = truncate(head + visible(rest[:width].replace("\t", " ")), width - 6)
    mark = max(1, min(mark, width - 6 - cells(head)))
    return shown, cells(head), mark


def _token_length(text: str) -> int:
    """Return the length of the token at the beginning of a string."""
    if text[:1] in ('"', "'"):
        end = text.find(text[0], 1)
        return end + 1 if end > 0 else len(text)
    for position, char in enumerate(text):
        if char in _STOP or (char == ":" and text[position + 1 : position + 2] in ("", " ")):
            return position
    return len(text)
