"""Choosing, ordering and totalling rows, against polars."""

from __future__ import annotations

from typing import Any

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.growth import assert_linear

from cogcli.official.table_rows import aggregate_columns, filter_rows, sort_rows
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(2)

NUMBERS = st.one_of(
    st.none(), st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6, allow_subnormal=False)
)
TEXTS = st.one_of(st.none(), st.text("ab", max_size=3))
TABLES = st.lists(
    st.fixed_dictionaries({"n": NUMBERS, "t": TEXTS, "g": st.sampled_from(["x", "y", None])})
)
TYPES = {"n": polars.Float64, "t": polars.String, "g": polars.String}
COMPARE = {
    "eq": lambda column, value: column.eq_missing(polars.lit(value)),
    "ne": lambda column, value: column.ne_missing(polars.lit(value)),
    "<": lambda column, value: column < value,
    "le": lambda column, value: column <= value,
    "gt": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
}


def framed(table: Any) -> polars.DataFrame:
    return polars.DataFrame(table, schema=TYPES).with_row_index("row")


def rows_of(table: Any, kept: polars.DataFrame) -> list[Any]:
    return [table[number] for number in kept["row"]]


@pytest.mark.parametrize("op", list(COMPARE))
@given(table=TABLES, number=st.integers(-3, 3), text=st.text("ab", max_size=2))
@examples(100)
def test_comparisons_are_those_of_polars(op: str, table: Any, number: int, text: str) -> None:
    for field, value in (("n", number), ("t", text)):
        found: Any = filter_rows(table, {"field": field, "op": op, "value": value})
        expected = framed(table).filter(COMPARE[op](polars.col(field), value))
        assert found["table"] == rows_of(table, expected)
        assert found["removed"] == len(table) - len(expected)


@given(table=TABLES, text=st.text("ab", max_size=2))
def test_parts_of_texts_lists_and_nulls_are_those_of_polars(table: Any, text: str) -> None:
    column = polars.col("t")
    for op, value, expected in (
        ("contains", text, column.str.contains(text, literal=True)),
        ("starts_with", text, column.str.starts_with(text)),
        ("ends_with", text, column.str.ends_with(text)),
        ("in", [text, "a"], column.is_in([text, "a"])),
        ("is_null", None, column.is_null()),
        ("not_null", None, column.is_not_null()),
    ):
        found = filter_rows(table, {"field": "t", "op": op, "value": value})["table"]
        assert found == rows_of(table, framed(table).filter(expected))


@given(table=TABLES)
def test_conditions_are_joined(table: Any) -> None:
    one, two = {"g": "x"}, {"field": "n", "op": "gt", "value": 0}
    both = [row for row in table if row["g"] == "x" and (row["n"] or 0) > 0]
    assert filter_rows(table, {"all": [one, two]})["table"] == both
    kept: Any = filter_rows(table, {"not": {"any": [{"not": one}, {"not": two}]}})["table"]
    assert kept == both
    assert filter_rows(table, {"g": "x", "t": None})["table"] == [
        row for row in table if row["g"] == "x" and row["t"] is None
    ]


def test_a_column_may_have_the_name_of_a_word() -> None:
    table: list[dict[str, object]] = [{"all": 1, "field": "x"}, {"all": 2, "field": "y"}]
    assert filter_rows(table, {"all": 1})["table"] == table[:1]
    assert filter_rows(table, {"field": "y"})["table"] == table[1:]


DEEP: Any = {"a": 1}
for _ in range(200):
    DEEP = {"not": DEEP}


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({}, "a condition is an object"),
        ({"all": [3]}, "a condition is an object"),
        ({"b": 1}, "no column 'b'"),
        ({"any": [{"a": 1}, {"field": "b", "op": "eq", "value": 1}]}, "no column 'b'"),
        ({"field": "a", "op": "like", "value": "x"}, "no operator 'like'"),
        ({"field": "a", "op": "lt", "value": None}, "takes a number or a text"),
        ({"field": "a", "op": "lt", "value": True}, "takes a number or a text"),
        ({"field": "a", "op": "lt", "value": "x"}, "row 1: 'a' is number, compared with text"),
        ({"field": "a", "op": "contains", "value": "x"}, "row 1: 'a' is number"),
        ({"field": "a", "op": "in", "value": "x"}, "takes a list"),
        ({"field": "a", "op": "eq"}, "has `field`, `op` and `value`"),
        (DEEP, "deeper than 20"),
        ({"any": [{"a": 1}] * 1_000}, "over 500 parts"),
    ],
)
def test_a_condition_that_does_not_fit_is_refused(condition: Any, message: str) -> None:
    with pytest.raises(Refused, match=message):
        filter_rows([{"a": 1}], condition)


@given(table=TABLES, down=st.booleans(), then_down=st.booleans())
@examples(100)
def test_the_order_is_that_of_polars(table: Any, down: bool, then_down: bool) -> None:
    keys = [
        {"field": "g", "order": "desc" if down else "asc"},
        {"field": "n", "order": "desc" if then_down else "asc"},
    ]
    ordered = framed(table).sort(
        "g", "n", descending=[down, then_down], nulls_last=True, maintain_order=True
    )
    assert sort_rows(table, keys)["table"] == rows_of(table, ordered)


def test_a_name_alone_is_ascending() -> None:
    assert sort_rows([{"a": "b"}, {"a": "a"}], ["a"])["table"] == [{"a": "a"}, {"a": "b"}]


@pytest.mark.parametrize(
    ("table", "sort_by", "message"),
    [
        ([{"a": 1}], ["b"], "no column 'b'"),
        ([{"a": 1}, {"a": "x"}], ["a"], "holds number and text"),
        ([{"a": [1]}], ["a"], "holds array"),
        ([{"a": 1}], [{"field": "a", "order": "up"}], "asc or desc"),
        ([{"a": 1}], [3], "asc or desc"),
        ([3], ["a"], "`table.0` is number"),
    ],
)
def test_what_has_no_order_is_refused(table: Any, sort_by: Any, message: str) -> None:
    with pytest.raises(Refused, match=message):
        sort_rows(table, sort_by)


@given(table=TABLES)
@examples(100)
def test_figures_are_those_of_polars(table: Any) -> None:
    functions = {
        "sum": "sum",
        "avg": "mean",
        "min": "min",
        "max": "max",
        "median": "median",
        "count": "count",
    }
    asked = [{"field": "n", "function": name, "as": name} for name in functions]
    asked += [
        {"function": "count", "as": "rows"},
        {"field": "t", "function": "distinct", "as": "texts"},
    ]
    figures = [getattr(polars.col("n"), theirs)().alias(ours) for ours, theirs in functions.items()]
    figures += [polars.len().alias("rows"), polars.col("t").drop_nulls().n_unique().alias("texts")]
    frame = framed(table).drop("row")
    found: Any = aggregate_columns(table, asked)["results"]
    assert found == [pytest.approx(frame.select(figures).to_dicts()[0], abs=1e-6)]
    grouped: Any = aggregate_columns(table, asked, "g")
    expected = frame.group_by("g", maintain_order=True).agg(figures).to_dicts()
    assert grouped["row_count"] == len(table)
    assert [row.pop("g") for row in grouped["results"]] == [row.pop("g") for row in expected]
    assert grouped["results"] == [pytest.approx(row, abs=1e-6) for row in expected]


@pytest.mark.parametrize(
    ("aggregations", "group_by", "message"),
    [
        ([], None, "is empty"),
        ([{"field": "n", "function": "mode"}], None, "no aggregation"),
        ([{"function": "sum"}], None, "no aggregation"),
        ([{"field": "z", "function": "sum"}], None, "no column 'z'"),
        ([{"field": "n", "function": "sum"}], "z", "no column 'z'"),
        ([{"field": "t", "function": "sum"}], None, "holds text, of which there is no sum"),
        ([{"field": "m", "function": "min"}], None, "holds boolean and text"),
        ([{"field": "n", "function": "sum"}, {"field": "n", "function": "sum"}], None, "one name"),
        ([{"field": "n", "function": "sum", "as": "t"}], "t", "one name"),
    ],
)
def test_figures_that_there_are_not_are_refused(
    aggregations: Any, group_by: Any, message: str
) -> None:
    table: list[dict[str, object]] = [{"n": 1, "t": "x", "m": True}, {"n": 2, "t": "y", "m": "z"}]
    with pytest.raises(Refused, match=message):
        aggregate_columns(table, aggregations, group_by)


def test_sums_stay_exact_and_end_at_what_a_number_holds() -> None:
    large: list[dict[str, object]] = [{"n": 2**53 - 2}, {"n": 1}]
    assert aggregate_columns(large, [{"field": "n", "function": "sum"}])["results"] == [
        {"n_sum": 2**53 - 1}
    ]
    with pytest.raises(Refused, match="too large to add"):
        aggregate_columns([{"n": 1e308}, {"n": 1e308}], [{"field": "n", "function": "sum"}])


@pytest.mark.sampled(4)
@pytest.mark.slow
def test_a_hundred_thousand_rows_take_time_in_proportion() -> None:
    def compute(rows: int) -> None:
        table: list[dict[str, object]] = [
            {"n": number % 997, "t": str(number % 10)} for number in range(rows)
        ]
        filter_rows(table, {"any": [{"t": "3"}, {"field": "n", "op": "gt", "value": 500}]})
        sort_rows(table, ["t", {"field": "n", "order": "desc"}])
        aggregate_columns(table, [{"field": "n", "function": "median"}], "t")

    assert_linear(compute, 100_000)
