"""What rich draws of names that somebody else chose: it is text, whatever it looks like
(docs/reference/command-line.md#drawing)."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.cli.drawing import (
    CheckDisplay,
    TableColumn,
    TableSection,
    draw_checks,
    draw_lines,
    draw_paragraph,
    draw_table,
)
from cogcli.cli.streams import OutputStream

HOSTILE = (
    "[red]alarm[/red]",
    "[link=https://example.com]here[/link]",
    "[/]",
    ":warning: :smile:",
    "\x1b[31mred\x1b[0m",
    "\x1b]8;;https://example.com\x07x\x1b]8;;\x07",
    "\u202egnp.exe",
    "a\tb\nc\rd",
    "\x9b2J\x00",
    "\\[bold]",
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def stream(*, color: bool = False, width: int = 80, locale: str = "C.UTF-8") -> OutputStream:
    environ = {"COGCLI_FORCE_TTY": str(width), "LANG": locale}
    return OutputStream(io.StringIO(), environ, "always" if color else "never")


def drawn(text: str, out: OutputStream) -> list[str]:
    table = draw_table(
        out,
        [TableColumn("name", 40), TableColumn("n", 4, right=True)],
        [TableSection("", [[(text, "red"), ("1", "")]])],
    )
    check = CheckDisplay(("!", "yellow"), text, text, [text])
    return [
        table,
        draw_lines(out, [[(text, "bold")]]),
        draw_checks(out, [(text, [check])]),
        draw_paragraph(out, text),
    ]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("color", [False, True])
def test_a_hostile_name_is_shown_as_text(text: str, color: bool) -> None:
    for shown in drawn(text, stream(color=color)):
        plain = _COLOURS.sub("", shown)
        assert "\x1b" not in plain
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", plain)
        for part in ("[red]", "[link=", "[/]", ":smile:", "[bold]"):
            assert (part in plain) is (part in text)
        if not color:
            assert shown == plain


@given(st.text(max_size=60), st.booleans())
def test_no_text_makes_drawing_fail_or_break_its_lines(text: str, color: bool) -> None:
    table, line, _, _ = drawn(text, stream(color=color, width=60))
    lines = _COLOURS.sub("", table).splitlines()
    assert lines[2].endswith(" 1")
    # A text wider than its column is folded at blanks.
    assert len(lines) == 3 or all(each.strip() for each in lines[3:])
    assert line.count("\n") == 1
    assert "\x1b" not in _COLOURS.sub("", table + line)


def test_a_table_has_a_line_below_its_headings_and_above_each_part() -> None:
    columns = [TableColumn("id", 6), TableColumn("took", 5, right=True)]
    parts = [
        TableSection("", [[("a", ""), ("1ms", "")]]),
        TableSection("shipped", [[("b", ""), ("12ms", "")]]),
    ]
    assert draw_table(stream(), columns, parts).splitlines() == [
        "id       took",
        "─────────────",
        "a         1ms",
        "shipped ─────",
        "b        12ms",
    ]
    ascii_lines = draw_table(stream(locale="C"), columns, parts).splitlines()
    assert ascii_lines == ["id       took", "a         1ms", "shipped -----", "b        12ms"]


def test_a_very_long_table_is_written_without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.table", None)  # any import of it fails
    rows: list[Any] = [[(f"n{number}", ""), ("1", "")] for number in range(501)]
    lines = draw_table(
        stream(), [TableColumn("id", 6), TableColumn("n", 3)], [TableSection("", rows)]
    ).splitlines()
    assert (len(lines), lines[1]) == (502, "n0      1")


def test_a_long_text_of_a_check_goes_on_in_its_column() -> None:
    check = CheckDisplay(("!", "yellow"), "name", "word " * 30, ["fix: cogcli doctor --fix"])
    lines = draw_checks(stream(width=60), [("project", [check])]).splitlines()
    assert lines[0] == "project"
    assert lines[1].startswith("  !  name  word word")
    assert all(line.startswith("           word") for line in lines[2:-1])
    assert lines[-1].strip() == "fix: cogcli doctor --fix"
    assert max(map(len, lines)) <= 60
