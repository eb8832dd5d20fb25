"""Duplicates, joins, merges and changed fields of records."""

from __future__ import annotations

from typing import Any

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.official.records import deduplicate, join_records, merge_records, transform_records
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(2)

KEYS = st.one_of(st.none(), st.integers(0, 4))
LEFT = st.lists(
    st.fixed_dictionaries({"k": KEYS, "a": st.integers(0, 3), "both": st.text("xy", max_size=2)})
)
RIGHT = st.lists(
    st.fixed_dictionaries({"k": KEYS, "b": st.booleans(), "both": st.text("xy", max_size=2)})
)
TYPES_A = {"k": polars.Int64, "a": polars.Int64, "both": polars.String}
TYPES_B = {"k": polars.Int64, "b": polars.Boolean, "both": polars.String}


def in_any_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


@pytest.mark.parametrize(
    ("join", "how"), [("inner", "inner"), ("left", "left"), ("right", "right"), ("outer", "full")]
)
@given(left=LEFT, right=RIGHT)
@examples(100)
def test_joins_are_those_of_polars(join: str, how: Any, left: Any, right: Any) -> None:
    a, b = polars.DataFrame(left, schema=TYPES_A), polars.DataFrame(right, schema=TYPES_B)
    expected = a.join(b, on="k", how=how, suffix="_b", coalesce=True).to_dicts()
    found: Any = join_records(left, right, "k", join)
    if left and right:
        # Without records there are no names that could be null.
        assert in_any_order(found["records"]) == in_any_order(expected)
    assert found["matched_count"] == len(a.join(b, on="k"))
    assert found["unmatched_count"] == len(a.join(b, on="k", how="anti")) + len(
        b.join(a, on="k", how="anti")
    )
    assert found["truncated"] is False


@pytest.mark.parametrize("join", ["inner", "left", "right", "outer"])
def test_a_join_that_explodes_is_cut_and_told(join: str) -> None:
    many: list[dict[str, object]] = [{"k": 1}] * 3_000
    found: Any = join_records(many, many, "k", join)
    assert (len(found["records"]), found["truncated"], found["matched_count"]) == (
        100_000,
        True,
        9_000_000,
    )


def test_a_name_in_the_way_gets_another_mark() -> None:
    found = join_records([{"k": 1, "x": 1, "x_b": 2}], [{"k": 1, "x": 3}], "k")
    assert found["records"] == [{"k": 1, "x": 1, "x_b": 2, "x_b_b": 3}]


def test_keys_are_compared_as_json() -> None:
    found = join_records(
        [{"k": 1}, {"k": True}, {"k": "1"}, {"k": [1]}],
        [{"k": 1.0, "n": 1}, {"k": [1.0], "n": 2}],
        "k",
    )
    assert found["records"] == [{"k": 1.0, "n": 1}, {"k": [1.0], "n": 2}]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (([{"a": 1}], [{"k": 1}], "k"), "bad-data"),
        (([{"k": 1}], [{"b": 1}], "k"), "bad-data"),
        (([{"k": 1}], [3], "k"), "bad-data"),
        (([{"k": 1}], [{"k": 1}], "k", "cross"), "unsupported"),
    ],
)
def test_what_cannot_be_joined_is_refused(arguments: Any, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        join_records(*arguments)
    assert refused.value.reason == reason


@given(
    st.lists(
        st.fixed_dictionaries({"a": st.integers(0, 2), "b": st.sampled_from(["x", "y", None])})
    )
)
def test_the_first_of_equal_records_stays(records: list[dict[str, Any]]) -> None:
    frame = polars.DataFrame(records, schema={"a": polars.Int64, "b": polars.String})
    for fields in (["a"], ["a", "b"], None):
        expected = frame.unique(fields, keep="first", maintain_order=True).to_dicts()
        found: Any = deduplicate(records, fields)
        assert (found["records"], found["duplicates"]) == (expected, len(records) - len(expected))
        assert deduplicate(found["records"], fields) == {"records": expected, "duplicates": 0}


def test_a_key_that_no_record_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(Refused) as refused:
        deduplicate([{"a": 1}, {"b": 2}], ["c"])
    assert (refused.value.message, refused.value.hint) == ("no field 'c'", "there are a, b")


@pytest.mark.parametrize(
    ("strategy", "record", "conflicts"),
    [
        ("first", {"a": 1, "o": {"x": 1}, "n": 5}, ["/a", "/o"]),
        ("last", {"a": 2, "o": {"y": 2}, "n": 5}, ["/a", "/o"]),
        ("deep", {"a": 2, "o": {"x": 1, "y": 2}, "n": 5}, ["/a"]),
    ],
)
def test_the_strategy_says_which_value_counts(
    strategy: str, record: Any, conflicts: list[str]
) -> None:
    records: list[dict[str, Any]] = [
        {"a": 1, "o": {"x": 1}, "n": None},
        {"a": 2, "o": {"y": 2}, "n": 5},
        {"n": None},
    ]
    found: Any = merge_records(records, strategy)
    assert found == {"record": record, "field_count": 3, "conflicts": conflicts}
    assert list(found["record"]) == ["a", "o", "n"]


def test_strict_takes_records_that_agree_and_refuses_others() -> None:
    assert merge_records([{"a": 1}, {"a": 1.0, "b": None}], "strict")["record"] == {
        "a": 1.0,
        "b": None,
    }
    for other in (2, True, "1"):
        with pytest.raises(Refused, match="disagree at /a"):
            merge_records([{"a": 1}, {"a": other}], "strict")
    with pytest.raises(Refused, match="no strategy"):
        merge_records([], "average")


def test_fields_are_renamed_then_filled_then_selected() -> None:
    mapping = {
        "rename": {"a": "x", "b": "a"},
        "defaults": {"x": 0, "new": []},
        "select": ["a", "x", "new"],
    }
    found = transform_records([{"a": None, "b": 2, "c": 3}, {"a": 1}], mapping)
    assert found["records"] == [{"a": 2, "x": 0, "new": []}, {"x": 1, "new": []}]


def test_fields_are_computed_by_our_expressions() -> None:
    computed = {
        "large": "t > 5 and harbour == 'Veld'",
        "sum": "sum([record.t, 1])",
        "none": "missing is null",
    }
    records: list[dict[str, object]] = [
        {"t": 9, "harbour": "Veld"},
        {"t": 1, "harbour": "Veld", "missing": 3},
    ]
    found: Any = transform_records(
        records, {"computed": computed, "select": ["large", "sum", "none"]}
    )
    assert found["records"] == [
        {"large": True, "sum": 10, "none": True},
        {"large": False, "sum": 2, "none": False},
    ]
    assert found["transform_summary"]["computed"] == 3
    assert transform_records([], {"computed": computed, "select": ["large"]})["records"] == []


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({}, "says nothing to do"),
        ({"rename": {"z": "x"}}, "no field 'z'"),
        ({"rename": {"a": "b"}}, "two fields would have one name"),
        ({"rename": ["a"]}, "is not an object of names"),
        ({"rename": {"a": 3}}, "is not an object of names"),
        ({"select": "a"}, "is not a list of names"),
        ({"select": ["z"]}, "no field 'z'"),
        ({"select": ["a"], "delete": ["b"]}, "has 'delete'"),
        ({"x": "z"}, "no field 'z'"),
        ({"computed": {"x": "a + b"}}, "expression `a \\+ b`"),
        ({"computed": {"x": "__import__('os')"}}, "expression"),
        ({"computed": {"x": "record.z > 1"}}, "record 1: expression"),
        ({"computed": {"x": "upper(a)"}}, "record 1: expression"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(mapping: Any, message: str) -> None:
    with pytest.raises(Refused, match=message):
        transform_records([{"a": 1, "b": 2}], mapping)
