"""Tables in files: there and back, against polars, and files that are not what they say."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook

from cogcli.official import sheets
from cogcli.official.sheet_files import as_workbook, read_workbook
from cogcli.official.sheets import read_sheet, write_sheet
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(4)


@pytest.fixture(autouse=True)
def tmp_path(ordinary_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where these tests read and write."""
    monkeypatch.chdir(ordinary_path)
    return ordinary_path


PRINTED = st.text(
    st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=8
)
TEXTS = st.one_of(
    PRINTED,
    st.sampled_from(["=1+1", "+1", "-1", "@x", "'x", "#N/A", "007", "TRUE", "2026-01-31", "a\nb"]),
)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), st.floats(-1e15, 1e15), TEXTS
)
NAMES = st.lists(PRINTED.map(str.strip).filter(bool), min_size=1, max_size=4, unique=True)


@st.composite
def tables(draw: Any) -> list[dict[str, Any]]:
    names = draw(NAMES)
    rows = draw(
        st.lists(st.fixed_dictionaries(dict.fromkeys(names, VALUES)), min_size=1, max_size=6)
    )
    return [row for row in rows if any(value is not None for value in row.values())]


def as_kept(row: dict[str, Any]) -> dict[str, Any]:
    """The library writes sixteen digits of a number, of which a spreadsheet program keeps fifteen."""
    return {
        name: float(f"{value:.14g}") if type(value) in (int, float) else value
        for name, value in row.items()
    }


@pytest.mark.sampled(8)
@given(table=tables())
def test_an_excel_file_gives_back_what_was_written(table: list[dict[str, Any]]) -> None:
    names = list(table[0]) if table else ["a"]
    content = as_workbook([names, *[[row[name] for name in names] for row in table]], "Sheet1")
    found: Any = read_workbook(None, None, 100, content)
    assert [as_kept(row) for row in found["table"]] == [as_kept(row) for row in table]
    assert [[type(row[name]) is bool for name in names] for row in found["table"]] == [
        [type(row[name]) is bool for name in names] for row in table
    ]
    assert (found["headers"], found["problems"], found["truncated"]) == (names, [], False)


def test_files_of_each_kind_give_back_a_table() -> None:
    table: list[dict[str, Any]] = [
        {"ship": "Petrel", "t": 9.5, "in": True},
        {"ship": "=1+1", "t": None, "in": False},
    ]
    for name, kept in (("a.xlsx", "=1+1"), ("a.csv", "'=1+1"), ("a.tsv", "'=1+1")):
        assert write_sheet(name, table) == {"written": True, "row_count": 2, "path": name}
        found = read_sheet(name)
        assert found["table"] == [table[0], table[1] | {"ship": kept}]
        assert found["headers"] == ["ship", "t", "in"]
    polars.DataFrame(table).write_parquet("a.parquet")
    found = read_sheet("a.parquet")
    assert (found["table"], found["headers"], found["row_count"]) == (table, ["ship", "t", "in"], 2)


def test_cells_that_begin_like_formulas_are_texts_in_both() -> None:
    starts = ["=cmd|' /C calc'!A0", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1"]
    write_sheet("a.csv", [{"x": text} for text in starts])
    with open("a.csv", newline="", encoding="utf-8") as file:
        assert [row[0] for row in csv.reader(file)] == ["x", *[f"'{text}" for text in starts]]
    write_sheet("a.xlsx", [{"x": text} for text in starts[:4]])
    cells = [row[0] for row in load_workbook("a.xlsx")["Sheet1"].iter_rows(min_row=2)]
    assert [(cell.data_type, cell.value) for cell in cells] == [("s", text) for text in starts[:4]]
    write_sheet("b.csv", [{"x": -5}])
    assert Path("b.csv").read_bytes() == b"x\r\n-5\r\n"


def test_columns_are_chosen_and_ordered() -> None:
    write_sheet("a.csv", [{"a": 1, "b": [1, "é"]}, {"c": {"x": 1}}], ["c", "b"])
    assert Path("a.csv").read_text() == 'c,b\n,"[1, ""é""]"\n"{""x"": 1}",\n'


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.ods", [{"a": 1}]), "no table"),
        (("a.csv", [{"a": 1}], ["b"]), "no column 'b'"),
        (("a.csv", [3]), "`table.0` is number"),
        (("a.csv", [{"a": 1}], None, "Sheet"), "has no sheets"),
        (("a.xlsx", [{"a": 1}], None, "a/b"), "not a name of a sheet"),
        (("a.xlsx", [{"a": "\x01"}]), "control characters"),
        (("a.xlsx", [{"a": "x" * 40_000}]), "over 32,767"),
        (("/etc/a.csv", [{"a": 1}]), "below the working directory"),
        (("../a.csv", [{"a": 1}]), "below the working directory"),
        (("link.csv", [{"a": 1}]), "not a regular file"),
        (("missing/a.csv", [{"a": 1}]), "cannot be written"),
        ((".ssh/a.csv", [{"a": 1}]), "credentials"),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_is_left(
    arguments: Any, message: str
) -> None:
    Path("other.csv").write_text("kept")
    os.symlink("other.csv", "link.csv")
    with pytest.raises(Refused, match=message):
        write_sheet(*arguments)
    assert sorted(os.listdir()) == ["link.csv", "other.csv"]
    assert Path("other.csv").read_text() == "kept"


def test_a_file_is_replaced_as_a_whole() -> None:
    Path("a.csv").write_text("old\n" * 1000)
    write_sheet("a.csv", [{"a": 1}])
    assert Path("a.csv").read_text() == "a\n1\n"
    assert os.listdir() == ["a.csv"]


@given(table=tables())
def test_csv_is_read_as_polars_does(table: list[dict[str, Any]]) -> None:
    frame = polars.DataFrame(
        [{name: str(value) for name, value in row.items()} for row in table] or [{"a": "1"}]
    )
    content = frame.write_csv()
    text, problems = sheets._decode_lines(content.encode(), "a.csv")
    assert (text, problems) == (content, [])


def test_a_range_takes_these_cells_alone() -> None:
    Path("a.csv").write_text("title\n\n,ship,t,x\n,Petrel,9,1\n,Gull,4,2\nend\n")
    book = Workbook()
    for row in (
        ["title"],
        [],
        [None, "ship", "t", "x"],
        [None, "Petrel", 9, 1],
        [None, "Gull", 4, 2],
        ["end"],
    ):
        book.active.append(row)
    book.save("a.xlsx")
    for name in ("a.csv", "a.xlsx"):
        found = read_sheet(name, range="B3:c5")
        assert found["table"] == [{"ship": "Petrel", "t": 9}, {"ship": "Gull", "t": 4}]
    for wrong in ("B3:", "5", "C3:B5", "B5:B3", "A0"):
        with pytest.raises(Refused, match="`range`"):
            read_sheet("a.csv", range=wrong)


@pytest.mark.sampled(16)
def test_a_sheet_is_named_or_the_first() -> None:
    book = Workbook()
    book.active.title = "One"
    book.active.append(["a"])
    two = book.create_sheet("Two")
    two.append(["b", None, "b"])
    two.append([1, 2, 3, 4])
    two.append([])
    two.append(["=1/0"])
    two["A4"].data_type = "e"
    two["A4"].value = "#DIV/0!"
    book.save("a.xlsx")
    assert read_sheet("a.xlsx")["headers"] == ["a"]
    found = read_sheet("a.xlsx", "Two")
    assert found["table"] == [
        {"b": 1, "column_2": 2, "b_2": 3},
        {"b": None, "column_2": None, "b_2": None},
    ]
    assert found["problems"] == [
        {"line": 2, "message": "more cells than the 3 columns"},
        {"line": 4, "message": "a cell holds an error of the spreadsheet program"},
    ]
    with pytest.raises(Refused, match=r"a\.xlsx: no sheet 'Three'") as refused:
        read_sheet("a.xlsx", "Three")
    assert refused.value.hint == "there are One, Two"


def test_days_and_times_are_texts_and_formulas_without_value_are_told() -> None:
    import datetime

    book = Workbook()
    book.active.append(["day", "time", "sum"])
    book.active.append([datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 9, 30), "=1+1"])
    book.save("a.xlsx")
    found: Any = read_sheet("a.xlsx")
    assert found["table"] == [{"day": "2026-01-31", "time": "2026-01-31T09:30:00", "sum": None}]
    assert "formulas without a stored value" in found["problems"][0]["message"]


def test_lines_in_another_encoding_are_told_and_left_out() -> None:
    Path("a.csv").write_bytes(b"\xef\xbb\xbfship,t\nPetrel,1\nM\xf6we,2\nGull\n")
    found = read_sheet("a.csv")
    assert found["table"] == [{"ship": "Petrel", "t": 1}, {"ship": "Gull", "t": None}]
    assert found["problems"] == [
        {"line": 3, "message": "byte 1 is not UTF-8 text; the line is left out"},
        {"line": 4, "message": "1 cells, expected 2"},
    ]
    for wrong in ("sh\xf6p\n1\n".encode("latin-1"), "ship\n1\n".encode("utf-16")):
        Path("a.csv").write_bytes(wrong)
        with pytest.raises(Refused, match=r"a\.csv: line 1: not UTF-8 text"):
            read_sheet("a.csv")


@pytest.mark.sampled(8)
@pytest.mark.slow
def test_of_five_gigabytes_the_first_rows_are_read() -> None:
    with open("large.csv", "wb") as file:
        file.write(b"a,b\n" + b"1,2\n" * 200_000)
        file.truncate(5 * 1024**3)
    found = read_sheet("large.csv")
    assert (found["row_count"], found["truncated"]) == (50_000, True)
    Path("wide.csv").write_bytes(b"a\n" + (b"x" * 100_000 + b"\n") * 200)
    wide: Any = read_sheet("wide.csv")
    assert wide["truncated"]
    assert 100 < wide["row_count"] < 200
    assert {len(row["a"]) for row in wide["table"]} == {100_000}


def changed(**parts: bytes | None) -> bytes:
    """A good workbook with other parts."""
    out = io.BytesIO()
    with (
        ZipFile(io.BytesIO(as_workbook([["a"], [1]], "S"))) as good,
        ZipFile(out, "w", ZIP_DEFLATED) as bad,
    ):
        for name in good.namelist():
            if parts.get(name, b"") is not None:
                bad.writestr(name, parts.pop(name, None) or good.read(name))
        for name, content in parts.items():
            if content is not None:
                bad.writestr(name, content)
    return out.getvalue()


SHEET = "xl/worksheets/sheet1.xml"
ENTITIES = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><worksheet>&b;</worksheet>'


@pytest.mark.parametrize(
    ("content", "reason", "message"),
    [
        (b"", "bad-data", "not a readable workbook"),
        (b"PK\x03\x04" + bytes(100), "bad-data", "not a readable workbook"),
        (as_workbook([["a"], [1]], "S")[:900], "bad-data", "not a readable workbook"),
        (changed(**{"xl/workbook.xml": None}), "bad-data", "."),
        (changed(**{SHEET: b"<worksheet><sheetData><row>"}), "bad-data", "."),
        (changed(**{SHEET: ENTITIES}), "unsupported", "declares entities"),
        (changed(**{SHEET: ENTITIES.decode().encode("utf-16")}), "unsupported", "not UTF-8"),
        (
            changed(**{"xl/externalLinks/externalLink1.xml": b"<x/>"}),
            "unsupported",
            "refers to other files",
        ),
        (changed(**{"xl/media/a.bin": bytes(101 * 1024 * 1024)}), "too-large", "unpacks to 101 MB"),
        (changed(**{"xl/media/a.bin": bytes(8 * 1024 * 1024)}), "too-large", "times its size"),
    ],
)
def test_a_workbook_that_is_none_or_means_harm_is_refused(
    content: bytes, reason: str, message: str
) -> None:
    Path("a.xlsx").write_bytes(content)
    with pytest.raises(Refused, match=message) as refused:
        read_sheet("a.xlsx")
    assert refused.value.reason == reason
    assert refused.value.message.startswith("a.xlsx: ")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("a.ods", {}, "no table"),
        ("a.csv", {"sheet_name": "x"}, "has no sheets"),
        ("a.parquet", {}, "not a readable Parquet file"),
        ("a.parquet", {"range": "A1:B2"}, "neither sheets nor cells"),
        ("pipe.csv", {}, "not a regular file"),
        ("none.csv", {}, "does not exist"),
        ("quote.csv", {}, "CSV line"),
        ("a\0.csv", {}, "NUL"),
    ],
)
def test_what_is_no_table_is_refused(name: str, arguments: Any, message: str) -> None:
    for other in ("a.ods", "a.csv", "a.parquet"):
        Path(other).write_text("a\n1\n")
    Path("quote.csv").write_text('a\n"open\n')
    os.mkfifo("pipe.csv")
    with pytest.raises(Refused, match=message):
        read_sheet(name, **arguments)


def test_a_first_line_without_end_is_no_empty_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheets, "_MAX_CSV", 1024)
    (tmp_path / "line.csv").write_text("a" * 2000)
    with pytest.raises(Refused, match="line 1 is longer") as refused:
        read_sheet("line.csv")
    assert refused.value.reason == "too-large"
    (tmp_path / "more.csv").write_text("a,b\n" + "1,2\n" * 500)
    found: Any = read_sheet("more.csv")
    assert (found["row_count"], found["truncated"]) == (255, True)
    assert found["problems"] == [
        {"line": 257, "message": "the table goes on from here, and the rest is not read"}
    ]
