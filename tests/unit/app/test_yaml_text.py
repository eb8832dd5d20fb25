"""The writer of YAML: what is read back is what was written, whatever texts are in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.base.jsonvalue import equal
from cogcli.base.yaml.reader import parse
from cogcli.base.yaml.writer import yaml_text

pytestmark = pytest.mark.sampled(6)

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs", "Cc", "Cf")), max_size=40),
    st.sampled_from(
        [
            "a: b # c",
            "- x",
            "yes",
            "1:30",
            "~",
            "*a",
            "&a",
            "!t",
            "%",
            "'",
            '"',
            "\\",
            "a\tb\n",
            "",
            " ",
            "#",
        ]
    ),
    st.sampled_from(
        [
            "{",
            "[",
            "|",
            ">",
            "1_000",
            "0x1F",
            ".nan",
            "null",
            "true",
            "?",
            "a,b",
            "é",
            "😀",
            "${A}",
            "@",
            "`",
        ]
    ),
)
SCALARS = st.one_of(
    TEXTS, st.booleans(), st.none(), st.integers(-(2**53) + 1, 2**53 - 1), st.floats(-1e15, 1e15)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=25,
)


@pytest.mark.sampled(12)
@examples(400)
@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=5))
def test_what_is_read_is_what_was_written(value: dict[str, Any]) -> None:
    text = yaml_text(value)
    read = parse(text.encode(), file="written.yaml")
    assert not read.problems, (text, read.problems)
    assert equal(read.value, value), text


def test_what_is_short_stays_on_its_line() -> None:
    field = {"type": "string", "required": True, "description": "What it is: a text."}
    assert yaml_text({"id": "a.b", "inputs": {"text": field}, "none": {}, "version": "1.0.0"}) == (
        'id: a.b\ninputs: {text: {type: string, required: true, description: "What it is: a text."}}\nnone: {}\n'
        'version: "1.0.0"\n'
    )
