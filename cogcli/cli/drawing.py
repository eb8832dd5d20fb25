"""Tables, checks and lines on a terminal, drawn by rich (docs/reference/command-line.md#drawing).

rich is imported on first use, and only for a terminal. It gets only `Text` objects with visible
control characters, and interprets no markup, emoji codes or links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import cells, visible_block
from cogcli.cli.streams import OutputStream
from cogcli.report.styled_text import ASCII, StyledLine, StyledSpan

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_STYLES = {"error": "bold red", "warning": "bold yellow"}
"""The styles of rich for those of our style words that it does not know."""
_ELLIPSIS = {0x2026: "~"}
_MAX_DRAWN = 500
"""The maximum number of table rows drawn by rich. Each takes about a millisecond."""


class TableColumn(NamedTuple):
    """A column of a table: its heading, and its maximum width."""

    heading: str
    width: int
    right: bool = False


class TableSection(NamedTuple):
    """Rows of a table below a heading line. The first part usually has no heading."""

    heading: str
    rows: Sequence[Sequence[StyledSpan]]


def draw_table(
    out: OutputStream, columns: Sequence[TableColumn], parts: Sequence[TableSection]
) -> str:
    """Return a table with a line below its headings and above each part with a heading.

    Cells are truncated to the widths of their columns.
    """
    if sum(len(part.rows) for part in parts) > _MAX_DRAWN:
        return "".join(_plain_lines(out, columns, parts))
    from rich.rule import Rule

    console, drawn = _buffered_console(out)
    size = sum(column.width for column in columns) + 2 * (len(columns) - 1)
    for number, part in enumerate(parts):
        if part.heading:
            heading = _rich_text(out, [(part.heading, "dim")])
            signs = "-" if out.glyphs is ASCII else "─"
            console.print(Rule(heading, align="left", characters=signs, style="dim"), width=size)
        table = _empty_table(out, columns, has_header=number == 0)
        for row in part.rows:
            table.add_row(*[_rich_text(out, [span]) for span in row])
        console.print(table)
    return _trim_lines(drawn)


def _empty_table(out: OutputStream, columns: Sequence[TableColumn], *, has_header: bool) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    is_ascii = out.glyphs is ASCII
    table = Table(
        box=None if is_ascii else SIMPLE_HEAD, show_header=has_header, show_edge=False, pad_edge=False,
        padding=(0, 2 if is_ascii else 1, 0, 0), header_style="dim", border_style="dim",
    )  # fmt: skip
    for column in columns:
        heading = _rich_text(out, [(column.heading, "dim")])
        side = "right" if column.right else "left"
        table.add_column(heading, width=column.width, justify=side, no_wrap=True)  # type: ignore[arg-type]
    return table


def _plain_lines(
    out: OutputStream, columns: Sequence[TableColumn], parts: Sequence[TableSection]
) -> Iterator[str]:
    """Yield the lines of a table that has too many rows for rich."""
    headings = [(column.heading, "dim") for column in columns]
    yield out.line(_plain_row(headings, columns))
    for part in parts:
        if part.heading:
            yield out.line([(part.heading, "dim")])
        for row in part.rows:
            yield out.line(_plain_row(row, columns))


def _plain_row(row: Sequence[StyledSpan], columns: Sequence[TableColumn]) -> StyledLine:
    line: StyledLine = []
    for (text, style), column in zip(row, columns, strict=True):
        fill = " " * (column.width - cells(text))
        line.append(
            (("  " if line else "") + (fill + text if column.right else text + fill), style)
        )
    return line


def draw_lines(out: OutputStream, lines: Sequence[StyledLine]) -> str:
    """Return lines, each truncated to the width of the terminal."""
    console, drawn = _buffered_console(out)
    for line in lines:
        console.print(_rich_text(out, line), no_wrap=True, overflow="ellipsis", crop=True)
    return _trim_lines(drawn)


def draw_paragraph(out: OutputStream, text: str) -> str:
    """Return a string wrapped at spaces."""
    console, drawn = _buffered_console(out)
    console.print(_rich_text(out, [(text, "")]))
    return _trim_lines(drawn)


class CheckDisplay(NamedTuple):
    """A check: its sign, name and finding, and the remedies below it."""

    sign: StyledSpan
    name: str
    message: str
    details: Sequence[str]


def draw_checks(out: OutputStream, groups: Sequence[tuple[str, Sequence[CheckDisplay]]]) -> str:
    """Return checks by group, with the findings in one column. A long string wraps in its column."""
    from rich.table import Table
    from rich.text import Text

    console, drawn = _buffered_console(out)
    names = max((cells(check.name) for _, found in groups for check in found), default=0)
    signs = max((cells(check.sign[0]) for _, found in groups for check in found), default=0)
    for heading, checks in groups:
        console.print(_rich_text(out, [(heading, "bold")]))
        table = Table(
            box=None, show_header=False, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0)
        )
        table.add_column(no_wrap=True, width=2 + signs)
        table.add_column(no_wrap=True, width=names)
        table.add_column(overflow="fold")
        for check in checks:
            table.add_row(Text("  ") + _rich_text(out, [check.sign]), _rich_text(out, [(check.name, "")]),
                          _rich_text(out, [(check.message, "")]))  # fmt: skip
            for detail in check.details:
                table.add_row("", "", _rich_text(out, [(detail, "dim")]))
        console.print(table)
    return _trim_lines(drawn)


def _buffered_console(out: OutputStream) -> tuple[Console, StringIO]:
    """Return a console with the width and colors of a stream, and the buffer into which it draws."""
    from rich.console import Console

    drawn = StringIO()
    console = Console(
        file=drawn, width=out.width, color_system="standard" if out.color else None, force_terminal=out.color,
        no_color=not out.color, legacy_windows=False, markup=False, emoji=False, highlight=False, _environ={},
    )  # fmt: skip
    return console, drawn


def _rich_text(out: OutputStream, line: StyledLine) -> Text:
    from rich.text import Text

    text = Text(no_wrap=False)
    for span, style in line:
        safe = visible_block(span).replace("\n", "\\n").replace("\t", "\\t")
        text.append(
            safe.translate(_ELLIPSIS) if out.glyphs is ASCII else safe,
            style=_STYLES.get(style, style),
        )
    return text


def _trim_lines(drawn: StringIO) -> str:
    """Return the drawing without spaces at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in drawn.getvalue().split("\n")[:-1])
