"""CSV, columns and groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cogcli.official.table import read_csv, summarize_column, total_groups
from cogcli.sdk import Refused

SAMPLES = Path(__file__).parents[3] / "docs" / "samples"


def columns(text: str, **options: Any) -> dict[str, str]:
    found: Any = read_csv(text, **options)["columns"]
    return {column["name"]: column["type"] for column in found}


def test_the_sample_columns_get_the_narrowest_type() -> None:
    assert columns((SAMPLES / "arrivals.csv").read_text()) == {
        "arrival": "date",
        "ship": "string",
        "harbour": "string",
        "quay": "string",
        "cargo": "string",
        "length_m": "number",
        "tonnes": "integer",
        "delay_min": "integer",
        "pilot": "boolean",
    }


@pytest.mark.parametrize(
    ("cell", "kind", "value"),
    [
        ("7", "integer", 7),
        ("-0.5", "number", -0.5),
        ("1e3", "number", 1000.0),
        ("TRUE", "boolean", True),
        ("2026-05-18", "date", "2026-05-18"),
        ("2026-02-30", "string", "2026-02-30"),
        ("007", "string", "007"),
        ("+5", "integer", 5),
        ("+4930901820", "string", "+4930901820"),
        ("9" * 20, "string", "9" * 20),
        ("NaN", "string", "NaN"),
        ("1e999", "string", "1e999"),
        ("1,5", "string", "1,5"),
        ("٣", "string", "٣"),
        ("=1+1", "string", "=1+1"),
    ],
)
def test_a_cell_keeps_its_meaning(cell: str, kind: str, value: object) -> None:
    found = read_csv(f"x;y\n{cell};\n", delimiter=";")
    assert columns(f"x;y\n{cell};\n", delimiter=";")["x"] == kind
    assert found["rows"] == [{"x": value, "y": None}]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_commonest_separator_of_the_first_line_counts(mark: str) -> None:
    assert read_csv(f"a{mark}b{mark}c\n1{mark}2{mark}3\n")["delimiter"] == mark


def test_quoted_cells_may_hold_separators_and_lines() -> None:
    assert read_csv('a,b\n"x, y","1\n2"\n')["rows"] == [{"a": "x, y", "b": "1\n2"}]


def test_uneven_rows_are_filled_or_cut_and_told() -> None:
    found = read_csv("a,b\n1\n1,2,3\n")
    assert found["rows"] == [{"a": 1, "b": None}, {"a": 1, "b": 2}]
    assert found["problems"] == [
        {"line": 2, "message": "1 cells, expected 2"},
        {"line": 3, "message": "3 cells, expected 2"},
    ]


def test_empty_and_repeated_names_become_distinct() -> None:
    assert list(columns("a,,a,a\n1,2,3,4\n")) == ["a", "column_2", "a_2", "a_3"]


def test_without_header_columns_are_numbered() -> None:
    assert read_csv("1,2\n3,4\n", header=False)["rows"] == [
        {"column_1": 1, "column_2": 2},
        {"column_1": 3, "column_2": 4},
    ]


def test_rows_over_the_limit_are_left_out_and_told() -> None:
    found = read_csv("a\n1\n2\n3\n", max_rows=2)
    assert (found["row_count"], found["truncated"]) == (2, True)
    assert read_csv("a\n1\n2\n", max_rows=2)["truncated"] is False


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff", "a,b\n"])
def test_a_table_without_rows_is_empty(text: str) -> None:
    assert read_csv(text)["rows"] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a\n"open', "CSV line"),
        ("a" * 200_000, "larger than field limit"),
        ("," * 5_000, "5001 columns"),
    ],
)
def test_what_cannot_be_a_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        read_csv(text)


@pytest.mark.parametrize("mark", [",,", '"', "\n"])
def test_a_separator_is_one_plain_character(mark: str) -> None:
    with pytest.raises(Refused, match="delimiter must be one character"):
        read_csv("a", delimiter=mark)


def test_a_number_column_has_sum_mean_median_and_range() -> None:
    rows: list[dict[str, object]] = [{"n": 1}, {"n": 2}, {"n": 9}, {"n": None}]
    assert summarize_column(rows, "n")["facts"] == {
        "filled": 3,
        "missing": 1,
        "distinct": 3,
        "sum": 12,
        "mean": 4.0,
        "median": 2,
        "min": 1,
        "max": 9,
    }


def test_a_text_column_has_its_commonest_values() -> None:
    found = summarize_column([{"c": "b"}, {"c": "a"}, {"c": "a"}], "c")
    assert found["top"] == [{"value": "a", "count": 2}, {"value": "b", "count": 1}]
    assert "sum" not in found["facts"]  # type: ignore[operator]


def test_an_unknown_column_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Refused, match="no column 'x'") as refused:
        summarize_column([{"a": 1, "b": 2}], "x")
    assert refused.value.hint == "there are a, b"


def test_no_rows_have_no_figures() -> None:
    assert summarize_column([], "x")["facts"] == {"filled": 0, "missing": 0, "distinct": 0}
    assert total_groups([], "x", "y") == {"groups": [], "group_count": 0, "counts": {}}


def test_groups_come_largest_first() -> None:
    rows: list[dict[str, object]] = [
        {"h": "a", "t": 1},
        {"h": "b", "t": 5},
        {"h": "a", "t": 2},
        {"h": None, "t": "x"},
    ]
    assert total_groups(rows, "h", "t")["groups"] == [
        {"group": "b", "count": 1, "sum": 5, "mean": 5.0},
        {"group": "a", "count": 2, "sum": 3, "mean": 1.5},
        {"group": "", "count": 1, "sum": 0, "mean": None},
    ]
    counted: Any = total_groups(rows, "h", max_groups=1)
    assert counted == {"groups": [{"group": "a", "count": 2}], "group_count": 3, "counts": {"a": 2}}


def test_sums_beyond_safe_integers_become_floats() -> None:
    rows: list[dict[str, object]] = [{"n": 2**53 - 1}, {"n": 2**53 - 1}]
    facts: Any = summarize_column(rows, "n")["facts"]
    assert isinstance(facts["sum"], float)


def test_numbers_too_large_to_add_are_refused() -> None:
    with pytest.raises(Refused, match="too large to add"):
        summarize_column([{"n": 10**400}, {"n": 1.5}], "n")


def test_a_separator_inside_quotes_of_the_first_line_does_not_count() -> None:
    found = read_csv('"Name, full, as written";"Age"\n"Roe, Jo";7\n')
    assert found["rows"] == [{"Name, full, as written": "Roe, Jo", "Age": 7}]


def test_a_problem_is_told_at_the_line_where_its_record_begins() -> None:
    found = read_csv('a,b\n"one\ntwo",2,3\n4\n')
    assert found["problems"] == [
        {"line": 2, "message": "3 cells, expected 2"},
        {"line": 4, "message": "1 cells, expected 2"},
    ]


def test_problems_beyond_the_hundredth_are_counted() -> None:
    found: Any = read_csv("a,b\n" + "1\n" * 250)
    assert len(found["problems"]) == 101
    assert found["problems"][-1] == {"line": 102, "message": "from here on 150 more such lines"}


def test_text_in_two_bytes_a_character_is_no_table() -> None:
    with pytest.raises(Refused, match="line 1: a NUL character") as refused:
        read_csv("name,qty\nAda,3\n".encode("utf-16-le").decode())
    assert "UTF-8" in refused.value.hint


def test_a_table_that_goes_on_is_a_problem() -> None:
    found = read_csv("a\n1\n2\n3\n", max_rows=2)
    assert (found["row_count"], found["truncated"]) == (2, True)
    assert found["problems"] == [
        {"line": 4, "message": "the table goes on from here, and the rest is not read"}
    ]
