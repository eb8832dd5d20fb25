"""Rendered lines as spans of text and style, and the signs and colors of statuses. Pure renderers
return them to the code that prints them (docs/reference/command-line.md#colour)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cogcli.base.terminal_text import cells, pad, truncate, visible

StyledSpan = tuple[str, str]
"""Text, and a key of `SGR` or an empty string."""
StyledLine = list[StyledSpan]

SGR = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36", "error": "1;31",
    "warning": "1;33",
}  # fmt: skip

CUT_OFF = "cut off"
IN_DOUBT = "in doubt"
WAITS = "waits"
"""Statuses of a step that has not ended although no process drives its run any more."""


def plain_text(line: StyledLine) -> str:
    """Return the line without styles or trailing spaces."""
    return "".join([text for text, _ in line]).rstrip()


def coloured_text(line: StyledLine) -> str:
    """Return the line with terminal colours."""
    return "".join(
        [
            f"\x1b[{SGR[style]}m{text}\x1b[0m" if style and text.strip() else text
            for text, style in line
        ]
    ).rstrip()


def named_rows(
    rows: Iterable[tuple[str, str]], *, indent: str = "  ", style: str = "dim", minimum: int = 0
) -> list[StyledLine]:
    """Return one line per pair of name and text. The texts start in one column, after at least
    `minimum` columns for names.

    Control characters in strings are made visible."""
    pairs = list(rows)
    size = max([minimum, *(cells(name) for name, _ in pairs)])
    return [[(f"{indent}{pad(name, size)}  ", style), (visible(text), "")] for name, text in pairs]


def fit(text: str, width: int | None, used_columns: int = 0) -> str:
    """Return the beginning of the text that fits after `used_columns` columns. Without a width, return the whole
    text.
    """
    return text if width is None else truncate(text, width - used_columns)


def fit_line(line: StyledLine, width: int | None) -> StyledLine:
    """Return the beginning of the line that fits. Without a width, return the whole line."""
    if width is None:
        return line
    kept: StyledLine = []
    for text, style in line:
        if width <= 0:
            break
        kept.append((truncate(text, width), style))
        width -= cells(text)
    return kept


def fold_prose(line: StyledLine, width: int) -> list[StyledLine]:
    """Break a line at blanks into lines of at most `width` columns, with a hanging indent.

    A word wider than the terminal is not broken. Neither is a line with a command, because a copied
    command must run."""
    text = plain_text(line)
    if cells(text) <= width:
        return [line]
    import re  # only for a line that is too wide: most commands print none

    if re.search(_COMMAND, text):
        return [line]
    indent = _measure_indent(line)
    lines: list[StyledLine] = []
    row: StyledLine = []
    used = 0
    for word, style in _split_words(line):
        size = cells(word)
        if row and used + cells(word.rstrip(" ")) > width and used > indent:
            last, its_style = row[-1]
            lines.append([*row[:-1], (last.rstrip(" "), its_style)])
            row, used = [(" " * indent, "")], indent
        row.append((word, style))
        used += size
    return [*lines, row]


_COMMAND = r"(?:^|[\s:])(?:cogcli|pip install|export|curl) \S|: --[a-z]"
"""The pattern of a command, or of a flag to add to a command."""
_DEEPEST = 26
"""The widest hanging indent in columns."""


def _measure_indent(line: StyledLine) -> int:
    """Return the indent of continuation lines. It is below the text if the line starts with a sign
    or name."""
    (first, style), *rest = line
    if rest and first.endswith(" ") and cells(first) <= _DEEPEST:
        return cells(first)
    return len(first) - len(first.lstrip(" ")) + (2 if style in ("error", "warning") else 0)


def _split_words(line: StyledLine) -> Iterator[StyledSpan]:
    """Yield the words of a line, each with the blanks after it. The first word includes its leading blanks."""
    import re

    begins = True
    for text, style in line:
        for word in re.findall(r" *[^ ]+ *|^ +$" if begins else r"[^ ]+ *| +", text):
            yield word, style
        begins = False


def width(line: StyledLine) -> int:
    """Return the number of columns of the line."""
    return sum(cells(text) for text, _ in line)


class Glyphs:
    """One set of signs, boxes and bars: characters, or words for terminals that cannot display the
    characters."""

    __slots__ = ("arrow", "branch", "dot", "ellipsis", "last", "parallel", "pipe", "signs")

    def __init__(
        self,
        signs: str,
        parallel: str,
        lines: tuple[str, str, str],
        arrow: str,
        dot: str,
        ellipsis: str,
    ) -> None:
        self.signs: dict[str, str] = dict(zip(_ORDER, signs.split(), strict=True))
        self.parallel = parallel
        self.branch, self.last, self.pipe = lines
        self.arrow = arrow
        self.dot = dot
        self.ellipsis = ellipsis

    def sign(self, status: str) -> str:
        """Return the sign of a step status or outcome."""
        return self.signs[_STATUS.get(status, "pending")]

    def outcome(self, status: str) -> str:
        """Return the sign for the outcome of a run. For a pending run it means that the run waits for a person."""
        return self.sign("waits" if status == "pending" else status)


_ORDER = ("done", "failed", "skipped", "vetoed", "running", "pending", "asks", "warning")
_STATUS = {
    **{name: name for name in _ORDER},
    "ok": "done", "error": "failed", "partial": "failed", "aborted": "failed", "interrupted": "warning",
    "stalled": "warning", "altered": "failed", "unsealed": "warning",
    "cut off": "warning", "in doubt": "warning", "waits": "asks",
}  # fmt: skip
UNICODE = Glyphs("✓ ✗ – ⊘ ● · ? !", "∥", ("├─ ", "└─ ", "│  "), "→", "·", "…")
ASCII = Glyphs("ok FAIL skip veto run wait ask warn", "||", ("|- ", "`- ", "|  "), "->", "-", "...")
STYLES = {
    "done": "green", "failed": "red", "skipped": "dim", "vetoed": "yellow", "running": "cyan",
    "pending": "dim", "asks": "yellow", "warning": "yellow",
}  # fmt: skip


def outcome_style(status: str) -> str:
    """Return the style of a whole run, which is the name of a color."""
    return style_of("waits" if status == "pending" else status)


def style_of(status: str) -> str:
    """Return the style of a status, which is the name of a color. The sign has the same
    information."""
    return STYLES[_STATUS.get(status, "pending")]
