from __future__ import annotations

from typing import Any

import pytest

from cogcli.base.merge import find_conflict


@pytest.mark.parametrize(
    ("a", "b", "leaf"),
    [
        ({"a": 1}, {"b": 2}, None),
        ({"a": 1}, {"a": 1}, None),
        ({"a": 1}, {"a": 1.0}, None),
        ({"a": 1}, {"a": True}, "a"),
        ({"a": [1]}, {"a": [True]}, "a"),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, "a.c"),
        ({"a": {"b": 1}}, {"a": None}, "a"),
        ({"a": {}}, {"a": {"b": 1}}, None),
        ({"a": [1]}, {"a": [1, 2]}, "a"),
    ],
)
def test_conflict_names_the_first_leaf_set_differently(a: Any, b: Any, leaf: str | None) -> None:
    assert find_conflict(a, b) == leaf
    assert find_conflict(b, a) == leaf


def test_of_several_conflicts_the_first_by_order_is_found() -> None:
    names = [f"name{number}" for number in range(20)]
    first = dict.fromkeys(names, 1)
    second = dict.fromkeys(reversed(names), 2)
    assert find_conflict(first, second) == "name0"
