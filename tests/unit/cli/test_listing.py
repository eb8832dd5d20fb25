"""Lists in five formats, inert in spreadsheets, on one line each."""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from typing import Any

import pytest

from cogcli.cli.context import CommandContext
from cogcli.cli.listing import Column, show
from cogcli.cli.streams import Screen
from cogcli.cli.typer_app import parse

ROWS: list[dict[str, Any]] = [
    {"name": "=HYPERLINK(1)", "note": 'a "b", c', "n": -5},
    {"name": "+1", "note": "x\ty\nz", "n": None},
    {"name": "@SUM", "note": ["p", "q"], "n": True},
    {"name": "-1", "note": {"k": "v|w"}, "n": 1.5},
]
COLUMNS = [Column("name"), Column("note"), Column("n")]


def listed(
    capsys: pytest.CaptureFixture[str], *flags: str, environ: dict[str, str] | None = None
) -> str:
    call = parse(["ls", *flags])
    assert isinstance(call.action, partial)
    show(
        CommandContext(call, Screen(environ or {}), {}),
        COLUMNS,
        ROWS,
        call.action.keywords["flags"],
    )
    return capsys.readouterr().out


def test_no_cell_of_a_csv_is_a_formula(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.reader(io.StringIO(listed(capsys, "--format", "csv"))))
    assert rows[0] == ["name", "note", "n"]
    assert [row[0] for row in rows[1:]] == ["'=HYPERLINK(1)", "'+1", "'@SUM", "'-1"]
    assert rows[1][1:] == ['a "b", c', "'-5"]
    assert all(len(row) == 3 for row in rows)


def test_tsv_has_a_header_only_where_it_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    plain = listed(capsys)
    assert plain.split("\n")[1] == "+1\tx\\ty\\nz\t"
    assert listed(capsys, "--header") == "name\tnote\tn\n" + plain
    assert listed(capsys, "--format", "tsv") == plain


def test_jsonl_is_the_rows_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    assert [json.loads(line) for line in listed(capsys, "--format", "jsonl").splitlines()] == ROWS


def test_markdown_keeps_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    lines = listed(capsys, "--format", "md").splitlines()
    assert lines[0] == "| name | note | n |"
    assert lines[-1] == "| -1 | k=v\\|w | 1.5 |"


@pytest.mark.parametrize("columns", [20, 30, 80])
def test_a_table_never_exceeds_the_terminal(
    capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    out = listed(capsys, environ={"COGCLI_FORCE_TTY": str(columns), "NO_COLOR": "1"})
    assert all(len(line) <= columns for line in out.splitlines())
    assert len(out.splitlines()) == len(ROWS) + 2


SPECS = [
    {
        "id": f"text.skill-{n}",
        "version": "1.0.0",
        "description": f"What it does, in some more words ({n}).",
    }
    for n in range(4)
]
LONG = {
    "id": "a-domain-of-a-name." + "x" * 60,
    "version": "1.0.0",
    "description": "One of a long name.",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "long", [[], [LONG], [{**SPECS[0], "version": "1.0.0-alpha.with.a.long.tail.of.it"}]]
)
def test_the_prose_of_a_list_stays_on_every_terminal_whatever_one_row_needs(
    capsys: pytest.CaptureFixture[str], long: list[dict[str, Any]]
) -> None:
    columns = [Column("id"), Column("version"), Column("description", prose=True)]
    for width in range(40, 121):
        call = parse(["ls"])
        assert isinstance(call.action, partial)
        screen = Screen({"COGCLI_FORCE_TTY": str(width), "NO_COLOR": "1"})
        show(CommandContext(call, screen, {}), columns, SPECS + long, call.action.keywords["flags"])
        head, _, *rows = capsys.readouterr().out.splitlines()
        place = head.index("description")
        assert all(row[place:].startswith(("What it d", "One of a ")) for row in rows), width
        assert all(len(row) <= width for row in rows), width
        assert "text.skill-3" in rows[3], width
        assert "version" in head or width < 48
