from __future__ import annotations

from collections import OrderedDict, namedtuple
from enum import IntEnum
from typing import Any

import pytest

from cogcli.core.jsonvalue import MAX_DEPTH, MAX_INTEGER, NotJson, deep_copy, equal, to_plain_json


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


class Odd(IntEnum):
    ONE = 1


class Shy:
    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        raise ValueError("no")


Pair = namedtuple("Pair", "a b")


def test_tuples_become_lists_at_any_depth() -> None:
    assert to_plain_json({"a": (1, (2, [3]))}) == {"a": [1, [2, [3]]]}
    assert deep_copy({"a": (1, ("x",))}) == {"a": [1, ["x"]]}


def test_what_is_admitted_or_copied_shares_nothing() -> None:
    value: dict[str, Any] = {"a": [{"b": []}]}
    for give in (to_plain_json, deep_copy):
        other = give(value)
        other["a"][0]["b"].append(1)
        assert value == {"a": [{"b": []}]}


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1, float("nan")]}, "a.1"),
        (float("inf"), ""),
        ({"a": {"b": MAX_INTEGER + 1}}, "a.b"),
        ([-MAX_INTEGER - 1], "0"),
        ({"a": b"x"}, "a"),
        ({"a": {1, 2}}, "a"),
        ({"a": object()}, "a"),
        ({"a": {1: "x"}}, "a"),
        ({"a": {Shy(): "x"}}, "a"),
        ({"a": "\ud800"}, "a"),
        ({"a": {"\ud800": 1}}, "a"),
        ({"a": Odd.ONE}, "a"),
        ({"a": OrderedDict()}, "a"),
        ({"a": Pair(1, 2)}, "a"),
        ((n for n in "x"), ""),
    ],
)
def test_foreign_values_are_refused_with_their_place(value: Any, place: str) -> None:
    with pytest.raises(NotJson) as caught:
        to_plain_json(value)
    assert caught.value.place == place


def test_depth_has_a_cap_and_cycles_meet_it() -> None:
    to_plain_json(nested(MAX_DEPTH))
    with pytest.raises(NotJson):
        to_plain_json(nested(MAX_DEPTH + 1))
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(NotJson):
        to_plain_json(cycle)


def test_extremes_are_admitted() -> None:
    value = [MAX_INTEGER, -MAX_INTEGER, 0.0, -1e308, True, None, "", "ö\u2028"]
    assert to_plain_json(value) == value


def test_same_coerces_nothing_but_number_to_number() -> None:
    assert equal({"a": [1, {"b": 1.0}]}, {"a": [1.0, {"b": 1}]})
    for a, b in (
        (True, 1),
        (0, False),
        ("1", 1),
        ([True], [1]),
        ({"a": 1}, {"a": 1, "b": None}),
        (None, False),
    ):
        assert not equal(a, b)
