"""Values replaced in a text that people wrote, and values written as a new one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.base.yaml.edit import UneditableYaml, replace_values, to_yaml
from cogcli.base.yaml.reader import parse

TEXT = """\
# What this shows
cases:
  - description: one   # said once
    expect:
      outputs: {status: open, n: 1}  # exactly
      # about the report
      report:   'a "quoted" text'
      empty:
      long: |
        first
        second

    last: [1, 2]
"""
EXPECT = ("cases", 0, "expect")


def changed(path: tuple[Any, ...], value: Any) -> list[str]:
    """The lines that differ, the new ones."""
    new = replace_values(TEXT, {path: value})
    before = TEXT.splitlines()
    return [line for line in new.splitlines() if line not in before]


def test_only_the_value_changes() -> None:
    assert changed((*EXPECT, "outputs", "status"), "sent") == [
        "      outputs: {status: sent, n: 1}  # exactly"
    ]
    assert changed((*EXPECT, "outputs"), {}) == ["      outputs: {}  # exactly"]
    assert changed((*EXPECT, "report"), "yes") == ['      report:   "yes"']
    assert changed((*EXPECT, "empty"), 3) == ["      empty: 3"]
    assert changed((*EXPECT, "long"), "x") == ["      long: x"]
    assert changed((*EXPECT, "report"), "a\nb\n") == ["      report: |", "        a", "        b"]
    assert changed(("cases", 0, "last"), [{"a": "x" * 60}, {"b": "y" * 60}]) == [
        "    last:", f"      - {{a: {'x' * 60}}}", f"      - {{b: {'y' * 60}}}"
    ]  # fmt: skip
    assert changed((*EXPECT, "outputs", "status"), "a\nb") == [
        r'      outputs: {status: "a\nb", n: 1}  # exactly'
    ]


def test_several_at_once_and_none() -> None:
    assert replace_values(TEXT, {}) == TEXT
    new = replace_values(
        TEXT,
        {
            (*EXPECT, "outputs", "n"): 2,
            ("cases", 0, "last", 1): None,
            ("cases", 0, "description"): "b",
        },
    )
    assert "{status: open, n: 2}  # exactly" in new
    assert "last: [1, null]" in new
    assert "description: b   # said once" in new


def test_a_number_keeps_its_kind() -> None:
    assert to_yaml({"a": [10.0, 10, {"b": 0.5}]}) == "a: [10.0, 10, {b: 0.5}]\n"
    assert changed((*EXPECT, "outputs", "n"), 1.0) == [
        "      outputs: {status: open, n: 1.0}  # exactly"
    ]


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(UneditableYaml):
        to_yaml({"a": "bell \a"})
    for text, path in ((TEXT, ("cases", 1)), (TEXT, (*EXPECT, "no")), ("a: [", ("a",))):
        with pytest.raises((UneditableYaml, KeyError)):
            replace_values(text, {path: 1})


TEXTS = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e6, 1e6) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.sampled(3)
@given(VALUES)
def test_whatever_is_written_reads_back(value: Any) -> None:
    text = to_yaml({"value": value})
    parsed = parse(text.encode(), file="f")
    assert parsed.value == {"value": value}, (text, parsed.problems)
    for old in (
        "a: 1\nvalue: 1 \nb: 2\n",
        "a: 1\nvalue:\n  - 1\n  - 2\nb: 2\n",
        "{a: 1, value: {c: 1}, b: 2}\n",
        "a: 1\nvalue: |\n  x\nb: 2\n",
    ):
        assert parse(replace_values(old, {("value",): value}).encode(), file="f").value == {
            "a": 1,
            "value": value,
            "b": 2,
        }
