"""Paths into documents."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.base.jsonpath import InvalidPath, PathNotFound, look_up, parse

DOCUMENT: dict[str, Any] = {"a": {"b": [{"c": 1}, None]}, "x.y": 2}


@pytest.mark.parametrize("path", ["a.b.0.c", ".a.b[0].c", 'a["b"][0].c', "a['b'].0['c']"])
def test_spellings_of_one_path(path: str) -> None:
    assert look_up(DOCUMENT, parse(path)) == 1


def test_names_with_dots_are_quoted_and_the_root_is_a_dot() -> None:
    assert look_up(DOCUMENT, parse('["x.y"]')) == 2
    assert look_up(DOCUMENT, parse(".")) is DOCUMENT
    assert look_up(DOCUMENT, parse("a.b.1")) is None


@pytest.mark.parametrize("path", ["a.", "a..b", "a[", "a[x]", 'a["b', "a[0]b", "[-1]"])
def test_text_that_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidPath):
        parse(path)


@pytest.mark.parametrize("path", ["b", "a.c", "a.b.2", "a.b.first", "a.b.0.c.d", "a.b.1.x"])
def test_a_path_that_leads_nowhere_says_where_it_ended(path: str) -> None:
    with pytest.raises(PathNotFound) as caught:
        look_up(DOCUMENT, parse(path))
    assert (
        caught.value.segment
        == parse(path)[len(caught.value.before.split(".")) if caught.value.before else 0]
    )


def test_values_on_the_way_are_expanded() -> None:
    held = {"@1": {"b": "@2"}, "@2": [3]}

    def expand(value: object) -> object:
        return held.get(value, value) if isinstance(value, str) else value

    assert look_up({"a": "@1"}, parse("a.b[0]"), expand) == 3
    assert look_up({"a": "@1"}, parse("a"), expand) == "@1"
    with pytest.raises(PathNotFound):
        look_up({"a": "@1"}, parse("a.b"), lambda value: value)
