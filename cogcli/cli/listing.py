"""Lists in their five formats (docs/reference/command-line.md#lists): a table on terminals, TSV when piped,
JSON lines, CSV, Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from cogcli.base.jsonvalue import items_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import cells, shorten_middle, truncate, visible
from cogcli.cli.context import CommandContext
from cogcli.cli.drawing import TableColumn, TableSection, draw_table
from cogcli.cli.options import ListFlags
from cogcli.cli.streams import OutputStream
from cogcli.declarations.value_types import Json
from cogcli.report.styled_text import StyledSpan

if TYPE_CHECKING:
    from cogcli.cli.run_flags import TraceFlags

_TSV = {0x5C: "\\\\", 0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


LONGEST: Final = 100
"""The most table rows on a terminal."""


class Column(NamedTuple):
    """A column of a list: the key of a row, and an optional formatter for terminals."""

    key: str
    title: str = ""
    """The heading; if it is empty, the key with spaces."""
    shown: Callable[[Any], str] | None = None
    style: Callable[[Any], str] | None = None
    right: bool = False
    prose: bool = False
    """Whether it is a sentence: it is shown on every terminal, cut at its end."""

    @property
    def heading(self) -> str:
        """The heading of the column."""
        return self.title or self.key.replace("_", " ")


def show(
    context: CommandContext,
    columns: Sequence[Column],
    rows: Sequence[Json],
    flags: ListFlags | TraceFlags,
    *,
    section: Callable[[Json], str] = lambda row: "",
    whole: bool = False,
    for_all: str = "| cat",
) -> None:
    """Write a list in the format of its flags. In a table, rows of a named section begin with a heading line.

    Unless `whole` is set, a table on a terminal ends after `LONGEST` rows. Then a note on stderr contains the number of
    other rows, and the flag `for_all` that displays them.
    """
    format, header = flags.format or "text", flags.header
    out = context.screen.out
    if format == "text" and out.width is not None:
        shown = rows if whole else rows[:LONGEST]
        context.screen.answer(_draw_table(out, columns, shown, out.width, section))
        if len(shown) < len(rows):
            context.note(f"and {len(rows) - len(shown)} more: {for_all} shows all")
    else:
        context.screen.answer(_WRITERS[format](columns, rows, header))


Wanted = Sequence[tuple[str, object]]
"""Flags of a filter with their values; None, False and empty values were not typed."""


def report_empty_list(
    context: CommandContext,
    noun: str,
    filters: Wanted,
    count_all: Callable[[], int],
    place: str = "",
) -> None:
    """Report on stderr, unless `-q`, that a list is empty, with its filters and the number of all that
    were there to select from. `noun` names one of them.
    """
    if context.screen.quiet:
        return
    words = _filter_text(filters)
    where = f" in {place}" if place else ""
    total = count_all() if words else 0
    if words and total:
        verb = "is" if total == 1 else "are"
        context.note(visible(f"no {noun} fits `{words}`; there {verb} {total}{where}"))
    elif words or context.screen.err.tty:
        context.note(visible(f"there is no {noun}{where}"))


def _filter_text(filters: Wanted) -> str:
    """Return the flags of a filter as typed."""
    return " ".join(
        _flag_text(flag, each) for flag, value in filters for each in _flag_values(value)
    )


def _flag_values(value: object) -> list[object]:
    """Return the values of a flag as a list; empty if it was not typed."""
    return items_of(value) if value else []


def _flag_text(flag: str, value: object) -> str:
    """Return a flag with its value as typed."""
    return " ".join(([flag] if flag else []) + ([] if value is True else [str(value)]))


def _draw_table(
    out: OutputStream,
    columns: Sequence[Column],
    rows: Sequence[Json],
    width: int,
    section: Callable[[Json], str],
) -> str:
    """Return the table for a terminal of this width; empty without rows."""
    if not rows:
        return ""
    texts = [
        [visible(_terminal_cell(column, row.get(column.key))) for column in columns] for row in rows
    ]
    sizes = [[cells(row[n]) for row in texts] for n in range(len(columns))]
    widths = _fit_columns(columns, sizes, width)
    drawn = [TableColumn(columns[n].heading, size, columns[n].right) for n, size in widths.items()]
    parts: list[TableSection] = []
    for heading, pairs in groupby(zip(rows, texts, strict=True), lambda pair: section(pair[0])):
        spans = [_row_spans(columns, widths, row, text) for row, text in pairs]
        parts.append(TableSection(heading, spans))
    # Only a table above shows the heading of the first part.
    parts[0] = parts[0]._replace(heading="")
    return draw_table(out, drawn, parts)


def _row_spans(
    columns: Sequence[Column], widths: dict[int, int], row: Json, texts: list[str]
) -> list[StyledSpan]:
    """Return the cells of a row in the displayed columns. `widths` has their widths by column
    number.
    """
    spans: list[StyledSpan] = []
    for number, size in widths.items():
        column = columns[number]
        style = column.style(row.get(column.key)) if column.style else ""
        spans.append((_shorten_cell(column, texts[number], size), style))
    return spans


def _shorten_cell(column: Column, text: str, size: int) -> str:
    """Return a cell shortened to a width: prose at its end, other text in the middle."""
    return truncate(text, size) if column.prose else shorten_middle(text, size)


_GAP = 2
_WORD = 16
"""Columns that a status, a time or a short id needs to stay readable."""
_SHORTEST_PROSE = 12
_FIXED_COLUMNS = 2
"""The number of leading columns that are always shown, as prose is."""


def _fit_columns(
    columns: Sequence[Column], sizes: Sequence[list[int]], width: int
) -> dict[int, int]:
    """Return the widths of the displayed columns, by number; `sizes` are the cell widths of each
    column.

    Columns are dropped from the right until the typical widths fit. Then prose is shortened first,
    because users copy names. Then cells above the typical width are shortened, and at last the
    widest column.
    """
    whole = {n: max([cells(column.heading), *sizes[n]]) for n, column in enumerate(columns)}
    usual = {
        n: min(whole[n], _typical_width(column, sizes[n], width))
        for n, column in enumerate(columns)
    }
    shown = _columns_that_fit(columns, usual, width)
    return _shorten_columns(columns, {n: whole[n] for n in shown}, usual, width)


def _excess_cells(sizes: Iterable[int], width: int) -> int:
    """Return how many cells columns of these sizes are too wide for the terminal."""
    return sum(size + _GAP for size in sizes) - _GAP - width


def _columns_that_fit(columns: Sequence[Column], usual: dict[int, int], width: int) -> list[int]:
    """Return the numbers of the columns that remain after dropping others from the right."""
    shown = list(usual)
    while _excess_cells((usual[n] for n in shown), width) > 0:
        less_needed = [n for n in shown if n >= _FIXED_COLUMNS and not columns[n].prose]
        if not less_needed:
            break
        shown.remove(less_needed[-1])
    return shown


def _shorten_columns(
    columns: Sequence[Column], full_widths: dict[int, int], usual_widths: dict[int, int], width: int
) -> dict[int, int]:
    """Return the widths of columns, reduced until they fit."""
    by_excess = sorted(
        full_widths, key=lambda n: (not columns[n].prose, usual_widths[n] - full_widths[n])
    )
    prose = [n for n in by_excess if columns[n].prose]
    limits = [(n, usual_widths[n]) for n in prose]
    limits += [(n, _SHORTEST_PROSE) for n in prose]
    limits += [(n, usual_widths[n]) for n in by_excess]
    widths = dict(full_widths)
    for n, limit in limits:
        widths[n] -= max(0, min(widths[n] - limit, _excess_cells(widths.values(), width)))
    more = _excess_cells(widths.values(), width)
    if widths and more > 0:
        widest = max(widths, key=lambda n: widths[n])
        widths[widest] = max(4, widths[widest] - more)
    return widths


def _typical_width(column: Column, sizes: list[int], width: int) -> int:
    """Return the width that most cells need: one and a half times the median, and enough for a
    word.

    For prose it is a third of the terminal.
    """
    if column.prose:
        return max(_SHORTEST_PROSE, width // 3)
    middle = sorted(sizes)[(len(sizes) - 1) // 2]
    return max(_WORD, cells(column.heading), middle + middle // 2)


def _terminal_cell(column: Column, value: object) -> str:
    """Return a cell as displayed on a terminal."""
    return column.shown(value) if column.shown and value is not None else plain(value)


def plain(value: object) -> str:
    """Return a value as one line of text; empty for None."""
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


def _write_tsv(columns: Sequence[Column], rows: Sequence[Json], header: bool) -> str:
    lines = [[column.key for column in columns]] if header else []
    lines += [[plain(row.get(c.key)).translate(_TSV) for c in columns] for row in rows]
    return "".join("\t".join(visible(cell) for cell in line) + "\n" for line in lines)


def _write_csv(columns: Sequence[Column], rows: Sequence[Json], header: bool) -> str:
    lines = [[column.key for column in columns]]
    lines += [[_escape_formula(plain(row.get(column.key))) for column in columns] for row in rows]
    return "".join(",".join(map(_quote_cell, line)) + "\n" for line in lines)


def _escape_formula(text: str) -> str:
    """Return a cell that no spreadsheet interprets as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _quote_cell(text: str) -> str:
    """Return a CSV cell, in quotes if necessary."""
    text = visible(text)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in '",') else text


def _write_markdown(columns: Sequence[Column], rows: Sequence[Json], header: bool) -> str:
    lines = [[column.heading for column in columns], ["---"] * len(columns)]
    lines += [[visible(plain(row.get(c.key))).replace("|", "\\|") for c in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _write_jsonl(columns: Sequence[Column], rows: Sequence[Json], header: bool) -> str:
    from cogcli.cli.envelope import dumps

    return "".join(dumps(row) + "\n" for row in rows)


_WRITERS: dict[str, Callable[[Sequence[Column], Sequence[Json], bool], str]] = {
    "text": _write_tsv,
    "tsv": _write_tsv,
    "csv": _write_csv,
    "md": _write_markdown,
    "jsonl": _write_jsonl,
}
