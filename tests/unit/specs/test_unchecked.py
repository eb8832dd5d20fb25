"""Reads of values that no check has passed yet: another type than the expected one counts as absent."""

from __future__ import annotations

import pytest

from cogcli.specs.unchecked import (
    list_at,
    members_of,
    object_at,
    objects_at,
    text_at,
    texts_at,
    value_at,
)

RAW = {"a": {"text": "x", "list": [{"id": 1}, 2, {"id": 3}], "null": None}, "b": "text"}


@pytest.mark.parametrize("path", [("c",), ("b", "text"), ("a", "list", "id"), ("a", "null", "x")])
def test_what_is_absent_is_empty(path: tuple[str, ...]) -> None:
    assert value_at(RAW, *path) is None
    assert text_at(RAW, *path) is None
    assert object_at(RAW, *path) == {}
    assert list_at(RAW, *path) == []


@pytest.mark.parametrize("value", [None, True, 1, 1.5])
def test_what_is_of_another_type_is_empty(value: object) -> None:
    assert (text_at(value), object_at(value), list_at(value)) == (None, {}, [])
    assert list(members_of(value)) == []


def test_an_existing_value_is_returned_unchanged() -> None:
    assert text_at(RAW, "a", "text") == "x"
    assert object_at(RAW, "a") is RAW["a"]
    assert list_at(RAW, "a", "list") == [{"id": 1}, 2, {"id": 3}]


def test_entries_that_are_objects_keep_their_index() -> None:
    assert list(objects_at(RAW, "a", "list")) == [(0, {"id": 1}), (2, {"id": 3})]


def test_entries_that_are_texts_keep_their_index() -> None:
    assert list(texts_at({"needs": ["a", 1, None, "b"]}, "needs")) == [(0, "a"), (3, "b")]
    assert list(texts_at({"needs": "a"}, "needs")) == []


def test_members_have_their_key_or_their_index() -> None:
    assert list(members_of({"x": 1, "y": 2})) == [("x", 1), ("y", 2)]
    assert list(members_of(["p", "q"])) == [(0, "p"), (1, "q")]
