"""Values made from schemas fit them; authors' own values come first."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.base.schema.sample import NoSample, sample, sample_text
from cogcli.base.schema.validator import errors

MADE: list[tuple[Any, Any]] = [
    ({"type": "integer"}, 0),
    ({"type": "integer", "minimum": 5}, 5),
    ({"type": "integer", "exclusiveMinimum": 5}, 6),
    ({"type": "integer", "maximum": -3, "multipleOf": 2}, -4),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    ({"type": "boolean"}, False),
    ({"type": "string"}, ""),
    ({"type": "string", "minLength": 3}, "aaa"),
    ({"type": "string", "enum": ["x", "y"]}, "x"),
    ({"const": {"a": 1}}, {"a": 1}),
    ({"type": "string", "default": "d", "enum": ["c", "d"]}, "d"),
    ({"type": "string", "examples": ["e"], "default": "d"}, "e"),
    ({"type": "string", "example": "first", "examples": ["e"]}, "first"),
    ({"type": "integer", "example": "no integer", "default": 4}, 4),
    ({"type": ["null", "string"], "minLength": 1}, "a"),
    ({"type": "array", "items": {"type": "integer"}}, []),
    ({"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 2}, [1, 1]),
    (
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {}}},
        {"a": ""},
    ),
    ({"required": ["a"]}, {"a": None}),
    (
        {"type": "object", "minProperties": 2, "properties": {"a": {"const": 1}}},
        {"a": 1, "key0": None},
    ),
    ({"$ref": "#/$defs/N", "$defs": {"N": {"type": "integer", "minimum": 2}}}, 2),
    ({"allOf": [{"required": ["a"]}, {"properties": {"a": {"const": 3}}}]}, {"a": 3}),
    ({"oneOf": [{"type": "integer", "minimum": 7}, {"type": "string"}]}, 7),
    ({"not": {"type": "null"}}, False),
    (True, None),
    ({}, None),
]


@pytest.mark.parametrize(("schema", "value"), MADE)
def test_the_value_is_the_authors_or_the_smallest(schema: Any, value: Any) -> None:
    assert sample(schema) == value


def test_unique_elements_differ() -> None:
    made = sample(
        {"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True}
    )
    assert len(set(made)) == 3


def test_a_recursive_schema_ends() -> None:
    tree = {
        "$ref": "#/$defs/T",
        "$defs": {
            "T": {
                "type": "object",
                "required": ["left"],
                "properties": {"left": {"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]}},
            }
        },
    }
    assert not errors(tree, sample(tree))


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "minimum": 2, "maximum": 1},
        {"enum": []},
        {"type": "string", "const": 1},
        {"type": "integer", "minimum": 1e308, "multipleOf": 1e-300},
        {"type": "array", "minItems": "2"},
        {"type": "object", "properties": 1, "required": "ab"},
        {"anyOf": 1},
    ],
)
def test_where_nothing_fits_that_is_said(schema: Any) -> None:
    with pytest.raises(NoSample):
        sample(schema)


PATTERNS = [
    r"^[A-Z]{3}-\d{2,4}$", r"^(en|de)$", r"^n-[0-9]+$", r"^[^a-z]+$", r"^\w+@\w+\.org$", r"^a?b*c+$", r".",
    r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}$", r"^\S+\s\S+$", r"^(?:x|y)z$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_text_is_made_for_a_pattern(pattern: str) -> None:
    made = sample_text(pattern)
    assert made is not None
    assert re.search(pattern, made)
    assert not errors(
        {"type": "string", "pattern": pattern}, sample({"type": "string", "pattern": pattern})
    )


def test_a_pattern_without_an_answer_has_none() -> None:
    assert sample_text(r"(?!)") is None
    assert sample_text("[") is None


scalars = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "number", "boolean", "null"])}
)
bounded = st.builds(
    lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more},
    st.integers(-50, 50), st.integers(0, 9),
)  # fmt: skip
texts = st.builds(
    lambda least, more: {"type": "string", "minLength": least, "maxLength": least + more},
    st.integers(0, 9), st.integers(0, 9),
)  # fmt: skip
schemas = st.recursive(
    scalars | bounded | texts,
    lambda inner: (
        st.builds(
            lambda item, n: {"type": "array", "items": item, "minItems": n},
            inner,
            st.integers(0, 3),
        )
        | st.builds(
            lambda members: {"type": "object", "properties": members, "required": list(members)},
            st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
        )
        | st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=6,
)


@examples(60)
@given(schemas)
def test_every_made_value_fits_its_schema(schema: Any) -> None:
    assert not errors(schema, sample(schema))
