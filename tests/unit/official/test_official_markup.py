"""Bodies without markup, fields of lines."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.official.markup import extract_body

WORDS = st.text(alphabet="abcdefg ", min_size=1, max_size=30).map(str.strip).filter(bool)
HIDDEN = ["script", "style", "template", "noscript", "head", "textarea"]


@given(WORDS, st.sampled_from(HIDDEN))
def test_what_a_page_hides_is_never_in_its_text(secret: str, tag: str) -> None:
    page = f"<p>seen</p><{tag} x='y'>HIDDEN{secret}<b>x</b></{tag}><!-- HIDDEN --><p>also</p>"
    assert extract_body(page)["text"] == "seen\n\nalso"


def test_a_script_without_an_end_hides_the_rest() -> None:
    assert extract_body("<p>seen<script>alert('x')")["text"] == "seen"


def test_a_page_of_ten_thousand_levels_is_read() -> None:
    assert extract_body("<div>" * 10_000 + "deep" + "</div>" * 10_000)["text"] == "deep"


def test_marks_go_and_words_stay() -> None:
    text = "# Quay\n\n- **Open** at `six`, see [plan](https://a.example/x)\n\n```py\nmy_snake_name = 2*3\n```\n"
    assert extract_body(text)["text"] == "Quay\n\nOpen at six, see plan\n\nmy_snake_name = 2*3"


@given(st.text(alphabet="abc .,\n", max_size=200))
def test_a_text_without_marks_keeps_its_words(text: str) -> None:
    assert str(extract_body(text)["text"]).split() == text.split()


def test_less_than_is_no_tag() -> None:
    assert extract_body("a < b and c > d")["text"] == "a < b and c > d"


@pytest.mark.parametrize(
    ("kind", "stated", "value"),
    [
        ("string", "Ana Holm", "Ana Holm"),
        ("number", "1,200.5", 1200.5),
        ("integer", "12", 12),
        ("integer", "12.5", None),
        ("number", "twelve", None),
        ("boolean", "No", False),
        ("boolean", "perhaps", None),
        ("array", "a, b; c", ["a", "b", "c"]),
        (["integer", "null"], "7", 7),
        ("object", "x", None),
    ],
)
def test_a_field_is_read_as_its_type_or_is_null(kind: object, stated: str, value: object) -> None:
    found: Any = extract_body(
        f"Unit Price: {stated}", {"properties": {"unit_price": {"type": kind}}}
    )
    assert found["fields"] == {"unit_price": value}


def test_a_field_that_no_line_states_is_null_and_the_first_line_counts() -> None:
    found: Any = extract_body(
        "Fee: 3\nFee: 4\nowner:\n", {"fee": "integer", "owner": "string", "day": "string"}
    )
    assert found["fields"] == {"fee": 3, "owner": None, "day": None}


def test_a_value_outside_its_choices_is_null() -> None:
    schema = {"properties": {"state": {"enum": ["open", "closed"]}}}
    assert extract_body("State: ajar", schema)["fields"] == {"state": None}


def test_without_a_schema_there_are_no_fields() -> None:
    assert "fields" not in extract_body("Fee: 3")
