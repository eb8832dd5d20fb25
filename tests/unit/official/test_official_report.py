"""Markdown reports."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.official.report import compose_sections
from cogcli.sdk import Refused


def body(**parts: object) -> str:
    text = str(compose_sections("T", [{"heading": "H", **parts}])["text"])
    return text.removeprefix("# T\n\n## H\n\n").removesuffix("\n")


def test_parts_appear_in_their_order() -> None:
    sections: list[dict[str, object]] = [
        {"heading": "One", "text": "Para."},
        {"heading": "Two", "items": ["a", 2]},
    ]
    found = compose_sections("Title", sections, note="why")
    assert found["text"] == "# Title\n\n> why\n\n## One\n\nPara.\n\n## Two\n\n- a\n- 2\n"
    assert found["headings"] == ["One", "Two"]


@pytest.mark.parametrize("parts", [{}, {"text": ""}, {"items": []}, {"facts": {}}, {"rows": None}])
def test_a_section_without_parts_says_so(parts: dict[str, object]) -> None:
    assert body(**parts) == "Nothing to report."


def test_zero_and_false_are_values() -> None:
    assert body(facts={"n": 0, "b": False}).splitlines()[2:] == ["| n | 0 |", "| b | false |"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# not a heading", "\\# not a heading"),
        ("> quote", "\\> quote"),
        ("1. item", "1\\. item"),
        ("- item", "\\- item"),
        ("-5 degrees", "-5 degrees"),
        ("<script>alert(1)</script>", "\\<script>alert(1)\\</script>"),
        ("[x](javascript:y)", "\\[x](javascript:y)"),
        ("*b* _i_ snake_case `c`", "\\*b\\* \\_i\\_ snake_case \\`c\\`"),
        ("back\\slash", "back\\\\slash"),
        ("two\n\n# lines", "two # lines"),
    ],
)
def test_data_cannot_pose_as_markup(text: str, shown: str) -> None:
    assert body(text=text) == shown


def test_cells_keep_their_bars_and_lines_inside() -> None:
    assert body(rows=[{"a|b": "x|y\nz"}]).splitlines() == ["| a\\|b |", "| --- |", "| x\\|y z |"]


def test_rows_have_every_column_that_any_of_them_has() -> None:
    assert body(rows=[{"a": 1}, {"b": None}, 3]).splitlines() == [
        "| a | b | value |",
        "| --- | --- | --- |",
        "| 1 | – | – |",
        "| – | – | – |",
        "| – | – | 3 |",
    ]


def test_long_lists_and_values_are_cut_and_told() -> None:
    lines = body(items=list(range(60))).splitlines()
    assert (len(lines), lines[-1]) == (51, "- … and 10 more")
    assert body(rows=[{"n": n} for n in range(51)]).endswith("\n\n… and 1 more")
    assert len(body(items=["a" * 1_000_000])) < 310


def test_nested_values_are_written_in_one_line() -> None:
    assert body(items=[{"k": [1, {"x": None}], "t": True}]) == "- k: 1, x: –; t: true"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"heading": "H", "table": []}, "unknown part 'table'"),
        ({"heading": "H", "rows": "x"}, "part 'rows': expected list, found str"),
        ({"heading": "H", "text": 3}, "part 'text': expected str, found int"),
    ],
)
def test_what_is_no_section_is_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        compose_sections("T", [section])
