"""Lists in their five formats (docs/reference/command-line.md#lists): a table on terminals, TSV when piped,
JSON lines, CSV, Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cogcli.cli.context import CommandContext
from cogcli.cli.options import ListFlags
from cogcli.cli.run_flags import TraceFlags
from cogcli.core.terminal_text import cells, pad, shorten_middle, visible
from cogcli.report.styled_text import StyledLine

_TSV = {0x5C: "\\\\", 0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Column(NamedTuple):
    """One column: the key of a row, and how its value looks on a terminal if not simply as text."""

    key: str
    title: str = ""
    """The key with spaces where it is empty."""
    shown: Callable[[Any], str] | None = None
    style: Callable[[Any], str] | None = None
    right: bool = False

    @property
    def heading(self) -> str:
        """What stands above the column."""
        return self.title or self.key.replace("_", " ")


def show(
    context: CommandContext,
    columns: Sequence[Column],
    rows: Sequence[dict[str, Any]],
    flags: ListFlags | TraceFlags,
) -> None:
    """Write a list in the format of its flags."""
    format, header = flags.format or "text", flags.header
    out = context.screen.out
    if format == "text" and out.width is not None:
        context.screen.answer_lines(_table(columns, rows, out.width))
    else:
        context.screen.answer(_WRITERS[format](columns, rows, header))


def _table(columns: Sequence[Column], rows: Sequence[dict[str, Any]], width: int) -> list[StyledLine]:
    texts = [[visible(_on_terminal(column, row.get(column.key))) for column in columns] for row in rows]
    sizes = [
        max([len(column.heading), *(cells(row[n]) for row in texts)]) for n, column in enumerate(columns)
    ]
    kept = _fit(sizes, width)
    if not rows:
        return []
    lines: list[StyledLine] = [_line([(c.heading, "dim") for c in columns], columns, kept)]
    for row, text in zip(rows, texts, strict=True):
        styles = [column.style(row.get(column.key)) if column.style else "" for column in columns]
        lines.append(_line(list(zip(text, styles, strict=True)), columns, kept))
    return lines


def _fit(sizes: list[int], width: int) -> list[int]:
    """The widths of the columns that stay: from the right columns are dropped, then the widest is shortened."""
    kept = list(sizes)
    while len(kept) > 2 and sum(kept) + 2 * (len(kept) - 1) > width:
        kept.pop()
    over = sum(kept) + 2 * (len(kept) - 1) - width
    if over > 0 and kept:
        widest = kept.index(max(kept))
        kept[widest] = max(4, kept[widest] - over)
    return kept


def _line(texts: list[tuple[str, str]], columns: Sequence[Column], kept: list[int]) -> StyledLine:
    line: StyledLine = []
    for (text, style), column, size in zip(texts, columns, kept, strict=False):
        text = shorten_middle(text, size)
        fill = " " * (size - cells(text))
        line.append((("  " if line else "") + (fill + text if column.right else pad(text, size)), style))
    return line


def _on_terminal(column: Column, value: Any) -> str:
    return column.shown(value) if column.shown and value is not None else plain(value)


def plain(value: Any) -> str:
    """A value in one line; nothing for None."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={plain(item)}" for key, item in value.items())
    return str(value)


def _tsv(columns: Sequence[Column], rows: Sequence[dict[str, Any]], header: bool) -> str:
    lines = [[column.key for column in columns]] if header else []
    lines += [[plain(row.get(c.key)).translate(_TSV) for c in columns] for row in rows]
    return "".join("\t".join(visible(cell) for cell in line) + "\n" for line in lines)


def _csv(columns: Sequence[Column], rows: Sequence[dict[str, Any]], header: bool) -> str:
    lines = [[column.key for column in columns]]
    lines += [[_inert(plain(row.get(column.key))) for column in columns] for row in rows]
    return "".join(",".join(map(_quoted, line)) + "\n" for line in lines)


def _inert(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _quoted(text: str) -> str:
    text = visible(text)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in '",') else text


def _markdown(columns: Sequence[Column], rows: Sequence[dict[str, Any]], header: bool) -> str:
    lines = [[column.heading for column in columns], ["---"] * len(columns)]
    lines += [[visible(plain(row.get(c.key))).replace("|", "\\|") for c in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _jsonl(columns: Sequence[Column], rows: Sequence[dict[str, Any]], header: bool) -> str:
    from cogcli.cli.envelope import dumps

    return "".join(dumps(row) + "\n" for row in rows)


_WRITERS: dict[str, Callable[[Sequence[Column], Sequence[dict[str, Any]], bool], str]] = {
    "text": _tsv,
    "tsv": _tsv,
    "csv": _csv,
    "md": _markdown,
    "jsonl": _jsonl,
}
