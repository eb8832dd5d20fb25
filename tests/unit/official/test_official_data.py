"""JSON, merging, profiles and schemas."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.growth import assert_linear

from cogcli.official import patterns
from cogcli.official.data import check_json, merge_objects, parse_json, profile_records
from cogcli.official.schema import validate
from cogcli.sdk import Refused

SAMPLES = Path(__file__).parents[3] / "docs" / "samples"


@pytest.mark.parametrize(
    "value", [None, True, 0, -3.5, "", "ä\u0000", [], {}, {"a": [1, {"b": None}]}]
)
def test_what_json_writes_is_read_back(value: object) -> None:
    found = {"valid": True, "data": value, "errors": []}
    assert parse_json(json.dumps(value)) == check_json(json.dumps(value)) == found


def test_a_byte_order_mark_is_tolerated() -> None:
    assert parse_json("\ufeff[1]")["data"] == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expecting value"),
        ('{"a": 1,}', "not JSON"),
        ('{"a": 1, "a": 2}', "key 'a' is repeated"),
        ("NaN", "NaN is not a JSON number"),
        ("-Infinity", "-Infinity is not"),
        ("9007199254740993", "outside 2^53"),
        ("9" * 1_000_000, "outside 2^53"),
        ("1e999", "too large"),
        ("[" * 1_000_000, "not JSON"),
        ("[" * 102 + "]" * 102, "deeper than 100"),
        ("{'a': 1}", "not JSON"),
        ('"\x01"', "not JSON"),
    ],
)
def test_what_is_no_strict_json_is_an_answer(text: str, message: str) -> None:
    found: Any = check_json(text)
    assert (found["valid"], found["data"]) == (False, None)
    assert message in found["errors"][0]["message"]
    assert len(found["errors"][0]["message"]) < 200
    with pytest.raises(Refused) as refused:
        parse_json(text)
    assert refused.value.reason == "bad-data"
    assert refused.value.message.endswith(found["errors"][0]["message"])


def test_an_error_names_line_and_column() -> None:
    found: Any = check_json('{\n  "a": 1,\n  b\n}')
    assert (found["errors"][0]["line"], found["errors"][0]["column"]) == (3, 3)
    with pytest.raises(Refused) as refused:
        parse_json('{\n  "a": 1,\n  b\n}')
    assert refused.value.message.startswith("line 3, column 3: not JSON")


def test_later_objects_win_key_by_key_and_it_is_told() -> None:
    merged = merge_objects(
        [{"a": {"x": 1, "y": 2}, "b": [1]}, {"a": {"y": 3}, "b": [2]}, {"a/b": 0}]
    )
    assert merged == {
        "object": {"a": {"x": 1, "y": 3}, "b": [2], "a/b": 0},
        "conflicts": ["/a/y", "/b"],
    }


def test_merging_leaves_its_inputs_alone() -> None:
    base: dict[str, object] = {"a": {"x": 1}}
    merge_objects([base, {"a": {"y": 2}}])
    assert base == {"a": {"x": 1}}


def test_nothing_merged_is_an_empty_object() -> None:
    assert merge_objects([]) == {"object": {}, "conflicts": []}


def test_a_profile_tells_types_gaps_and_ranges() -> None:
    found: Any = profile_records([{"n": 1, "s": "ab"}, {"n": 3, "s": None}, {"n": "x"}, 7])
    numbers, texts = found["fields"]
    assert numbers == {
        "name": "n",
        "types": {"integer": 2, "string": 1},
        "missing": 0,
        "distinct": 3,
        "min": 1,
        "max": 3,
        "mean": 2.0,
        "min_length": 1,
        "max_length": 1,
    }
    assert (texts["missing"], found["record_count"], found["skipped"]) == (2, 3, 1)


def test_booleans_are_no_numbers() -> None:
    found: Any = profile_records([{"b": True}, {"b": False}])
    assert found["fields"] == [{"name": "b", "types": {"boolean": 2}, "missing": 0, "distinct": 2}]


@pytest.mark.parametrize(
    ("records", "count", "names"),
    [
        ({"rows": [{"a": 1}, {"a": 2}]}, 2, ["a"]),
        ({"rows": [{"a": 1}], "total": 1}, 1, ["rows", "total"]),
        ({"rows": []}, 1, ["rows"]),
        ({"rows": [1, 2]}, 1, ["rows"]),
        ({"rows": {"a": 1}}, 1, ["rows"]),
    ],
)
def test_an_object_that_only_wraps_records_stands_for_them(
    records: Any, count: int, names: list[str]
) -> None:
    found: Any = profile_records(records)
    assert (found["record_count"], [field["name"] for field in found["fields"]]) == (count, names)


@pytest.mark.parametrize("records", [None, 3, "text", [], [1, None, []]])
def test_what_holds_no_objects_has_no_fields(records: object) -> None:
    assert profile_records(records)["fields"] == []


def test_numbers_too_large_to_average_have_no_mean() -> None:
    found: Any = profile_records([{"n": 10**400}, {"n": 1}])
    assert found["fields"][0]["max"] == 10**400
    assert "mean" not in found["fields"][0]


def test_large_floats_still_have_a_finite_mean() -> None:
    found: Any = profile_records([{"n": 1.7e308}, {"n": 1.7e308}])
    assert found["fields"][0]["mean"] == 1.7e308


def test_the_sample_orders_break_their_schema_in_five_places() -> None:
    data = json.loads((SAMPLES / "orders.json").read_text())
    schema = json.loads((SAMPLES / "orders.schema.json").read_text())
    found: Any = validate(data, schema)
    assert [(error["path"], error["rule"]) for error in found["errors"]] == [
        ("/4/id", "pattern"),
        ("/4/ordered", "format"),
        ("/5/neighbours", "minimum"),
        ("/6/price", "type"),
        ("/6/contact", "format"),
    ]


def test_formats_are_only_notes_when_asked_so() -> None:
    assert validate("x", {"format": "email"})["valid"] is False
    assert validate("x", {"format": "email"}, check_formats=False)["valid"] is True


def test_a_pointer_escapes_its_keys() -> None:
    found: Any = validate({"a/b~c": 1}, {"additionalProperties": {"type": "string"}})
    assert found["errors"][0]["path"] == "/a~1b~0c"


def test_errors_over_the_limit_are_told() -> None:
    found = validate(["x"] * 50, {"items": {"type": "integer"}}, max_errors=10)
    assert (len(found["errors"]), found["truncated"]) == (10, True)  # type: ignore[arg-type]


def test_a_message_about_a_huge_value_stays_short() -> None:
    found: Any = validate("a" * 1_000_000, {"type": "integer"})
    assert len(found["errors"][0]["message"]) <= 201


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "text"}, "schema: at '/type'"),
        ({"$ref": "https://schemas.example/x.json"}, "unresolved reference"),
        ({"$ref": "#/nowhere"}, "unresolved reference"),
        ({"$ref": "#"}, "without end"),
        ({"$schema": "https://schemas.example/draft"}, "unknown draft"),
        ({"pattern": "("}, "schema: at '/pattern'"),
        ({"patternProperties": {"^(x*)*$": {}}}, "of keys: cannot be shown to take linear time"),
        ({"pattern": "(a{300}){300}"}, "asks for more than"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match="schema") as refusal:
        validate("a", schema)
    assert message in str(refusal.value)


RUNAWAY = [
    ("^(a|a)*$", "a" * 5000 + "b"), ("a*" * 20 + "b", "a" * 100_000), ("^(a+)+$", "a" * 5000 + "!"),
    ("(.*,)*x$", "," * 5000), (r"(\w+\s?)*!$", "a " * 2500), ("((a?)b)*c$", "ab" * 2500), ("x$", "a" * 1_000_000),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "text"), RUNAWAY)
def test_a_pattern_takes_time_that_grows_with_the_text_alone(pattern: str, text: str) -> None:
    assert_linear(lambda size: validate(text[-size:], {"pattern": pattern}), len(text))
    assert validate(text, {"pattern": pattern})["valid"] is False


@pytest.mark.parametrize(
    "pattern",
    [
        "^[a-z]+(-[a-z]+)*$",
        r"^([a-z0-9]+\.)+[a-z]+$",
        "^(foo|bar)*$",
        "^(/[^/]+)+$",
        "^(?=.*[A-Z]).{8,}$",
        "(?m)^a-b$",
    ],
)
def test_patterns_as_they_are_written_are_run(pattern: str) -> None:
    assert isinstance(validate("a-b", {"type": "string", "pattern": pattern})["valid"], bool)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(a+)\1+$", "a" * 5000 + "b"),
        ("^(a{1,100}){1,100}c", "a" * 100_000),
        ("(?=b)a", "a" * 100_000),
    ],
)
def test_what_takes_too_long_is_refused_and_not_waited_for(pattern: str, text: str) -> None:
    with pytest.raises(Refused) as refused:
        validate(text, {"pattern": pattern})
    assert refused.value.reason == "too-large"


@pytest.mark.parametrize("pattern", ["^(a|a)*$", ".*a.*b", "^(?:a?){2,50}b", r"(a)\1", "(?=a)a"])
def test_without_the_fast_engine_only_what_is_shown_to_be_linear_is_run(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGCLI_SCHEMA_ENGINE", "jsonschema")
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    patterns._limited_search.cache_clear()
    with pytest.raises(Refused, match="pattern"):
        validate("a", {"pattern": pattern})
    assert validate("aab", {"pattern": "^a*b$"})["valid"]
    assert validate("x-12", {"pattern": r"[a-z]-\d{1,3}$"})["valid"]
    patterns._limited_search.cache_clear()
