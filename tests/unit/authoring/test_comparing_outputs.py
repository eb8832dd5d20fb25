from __future__ import annotations

from typing import Any

import pytest

from cogcli.authoring.verification.check_result import join_differences
from cogcli.base.output_diff import MISSING, differences
from cogcli.protocols.exchange_checks import find_in_json

SAME: list[tuple[str, Any, Any]] = [
    ("exact", {"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}),
    ("subset", {"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}),
    ("subset", [{"a": 1}, {}], [{"a": 1, "b": 2}, {"c": 3}]),
    ("shape", {"a": "x", "b": [0]}, {"a": "other", "b": [1, 2, 3], "c": None}),
    ("shape", {"b": []}, {"b": [1, "two"]}),
    ("shape", {"b": [{"c": True}]}, {"b": []}),
]
OTHER: list[tuple[str, Any, Any, list[tuple[str, Any, Any]]]] = [
    ("exact", {"a": 1}, {"a": True}, [("a", 1, True)]),
    ("exact", {"a": 1}, {"a": 1, "b": 2}, [("b", MISSING, 2)]),
    ("exact", {"a": []}, {"a": None}, [("a", [], None)]),
    ("exact", {"a": [1, 2]}, {"a": [1]}, [("a.1", 2, MISSING)]),
    ("subset", {"a": 1}, {"b": 1}, [("a", 1, MISSING)]),
    ("subset", [{"a": 1}], [{"a": 1}, {}], [("1", MISSING, {})]),
    ("shape", {"a": 1}, {"a": "1"}, [("a", 1, "1")]),
    ("shape", {"b": [0]}, {"b": [1, "two"]}, [("b.1", 0, "two")]),
]


@pytest.mark.parametrize(("match", "expected", "found"), SAME)
def test_these_are_as_expected(match: str, expected: Any, found: Any) -> None:
    assert differences(expected, found, match) == []


@pytest.mark.parametrize(("match", "expected", "found", "wanted"), OTHER)
def test_these_differ_there(match: str, expected: Any, found: Any, wanted: Any) -> None:
    assert differences(expected, found, match) == wanted


def test_differences_are_told_in_a_line() -> None:
    assert join_differences(differences({"errors": []}, {"errors": None}, "exact"), "exact") == (
        '- "errors": []   + "errors": null'
    )
    assert (
        join_differences(differences({"n": 1}, {"n": "x"}, "shape"), "shape")
        == "n: expected number, found text"
    )
    many = differences(list(range(9)), [], "exact")
    assert join_differences(many, "exact").endswith("and 6 more")


def test_a_secret_key_is_told_without_its_value() -> None:
    said = join_differences(
        differences({"token": "a"}, {"token": "hunter2-hunter2"}, "exact"), "exact"
    )
    assert "hunter2" not in said


def test_a_place_in_a_short_reply_is_framed_on_its_line() -> None:
    frame = find_in_json({"valid": True, "errors": None}, "errors")
    assert frame is not None
    assert frame == (1, '{"valid": true, "errors": null}', 27, 4)


def test_a_place_in_a_long_reply_has_a_line_of_its_own() -> None:
    value = {"notes": [{"id": "n-1", "text": "x" * 100}, {"id": 7}]}
    frame = find_in_json(value, "notes/1/id")
    assert frame is not None
    assert frame.text.strip() == '"id": 7'
    assert frame.text[frame.column - 1 : frame.column - 1 + frame.width] == "7"
    assert frame.line == 8


def test_what_is_not_there_has_no_frame() -> None:
    assert find_in_json({"a": 1}, "b/c") is None
