from __future__ import annotations

from typing import Any

import pytest

from cogcli.declarations.field_spec import FieldSpec
from cogcli.specs.fields import are_plain, fields_from, find_plain_types, fit_values


def kinds(spec: dict[str, Any], values: dict[str, Any]) -> list[tuple[str, str]]:
    return [(v.kind, v.place) for v in fit_values(fields_from(spec), values)[1]]


def kept(spec: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    result, violations = fit_values(fields_from(spec), values)
    assert not violations
    return result


GOOD: list[tuple[str, Any]] = [
    ("string", ""), ("number", 1), ("number", 1.5), ("integer", 3), ("integer", -0.0), ("boolean", False),
    ("array", []), ("object", {}), ("any", 1), ("any", None),
]  # fmt: skip
BAD: list[tuple[str, Any]] = [
    ("string", 1), ("number", True), ("number", "1"), ("integer", True), ("integer", 3.5), ("integer", 1e300),
    ("integer", float("inf")), ("integer", float("nan")), ("integer", 2**53), ("boolean", 1), ("boolean", "true"),
    ("array", {}), ("object", []),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), GOOD)
def test_values_of_the_type_are_kept(kind: str, value: Any) -> None:
    assert kept({"a": {"type": kind, "required": True}}, {"a": value}) == {"a": value}


@pytest.mark.parametrize(("kind", "value"), BAD)
def test_nothing_is_coerced_to_the_type(kind: str, value: Any) -> None:
    assert kinds({"a": {"type": kind}}, {"a": value}) == [("type", "a")]


def test_whole_floats_become_integers() -> None:
    value = kept(
        {"a": {"type": "integer"}, "l": {"type": "array", "items": {"type": "integer"}}},
        {"a": 3.0, "l": [2.0]},
    )
    assert [type(value["a"]), type(value["l"][0])] == [int, int]


@pytest.mark.parametrize(("kind", "value"), [*GOOD, *BAD])
@pytest.mark.parametrize("limit", [{}, {"enum": [3, "a"]}, {"schema": {}}, {"default": 3}])
def test_what_is_plain_fits_unchanged(kind: str, value: Any, limit: dict[str, Any]) -> None:
    fields = fields_from({"a": {"type": "string"}, "b": {"type": kind, **limit}})
    types = find_plain_types(fields)
    for values in ({"a": "x", "b": value}, {"b": value, "a": "x"}, {"b": value}, {"a": "x"}, {}):
        if are_plain(values, types):
            fitted, violations = fit_values(fields, values)
            assert not violations
            assert repr(fitted) == repr(values)  # of the same types, in the same order


@pytest.mark.parametrize("value", ["x", 3, True, [1], {"k": None}], ids=repr)
def test_values_of_exact_types_are_plain(value: Any) -> None:
    names = {str: "string", int: "integer", bool: "boolean", list: "array", dict: "object"}
    assert are_plain(
        {"a": value}, find_plain_types(fields_from({"a": {"type": names[type(value)]}}))
    )


def test_absent_and_null_give_the_default_and_each_its_own_copy() -> None:
    fields = {"a": FieldSpec(type="array", default=[1]), "b": FieldSpec(type="string")}
    for values in ({}, {"a": None, "b": None}):
        first, _ = fit_values(fields, values)
        assert first == {"a": [1]}
        first["a"].append(2)
    assert fit_values(fields, {})[0] == {"a": [1]}


def test_required_without_value_is_missing_unless_there_is_a_default() -> None:
    assert kinds({"a": {"type": "string", "required": True}}, {"a": None}) == [("missing", "a")]
    assert kept({"a": {"type": "string", "required": True, "default": "d"}}, {}) == {"a": "d"}


def test_for_any_null_is_a_value_but_absence_is_not() -> None:
    assert kept({"a": {"type": "any", "required": True}}, {"a": None}) == {"a": None}
    assert kinds({"a": {"type": "any", "required": True}}, {}) == [("missing", "a")]


def test_undeclared_names_are_dropped() -> None:
    assert kept({"a": {"type": "any"}}, {"a": 1, "b": 2}) == {"a": 1}


def test_every_violation_is_told_with_its_place() -> None:
    spec = {
        "l": {
            "type": "array",
            "items": {"type": "object", "schema": {"properties": {"q": {"type": "integer"}}}},
        },
        "e": {"type": "string", "enum": ["a", "b"]},
    }
    assert kinds(spec, {"l": [{}, "x", {"q": "x"}], "e": "c"}) == [
        ("type", "l/1"),
        ("schema", "l/2/q"),
        ("enum", "e"),
    ]


def test_enum_compares_without_coercion() -> None:
    assert kinds({"a": {"type": "any", "enum": [1, "x"]}}, {"a": True}) == [("enum", "a")]
    assert kept({"a": {"type": "number", "enum": [1]}}, {"a": 1.0}) == {"a": 1.0}


@pytest.mark.parametrize(
    ("declared", "needs_value"),
    [({}, False), ({"required": True}, True), ({"required": True, "default": 0}, False)],
)
def test_a_required_field_with_a_default_needs_no_value(
    declared: dict[str, object], needs_value: bool
) -> None:
    (field,) = fields_from({"a": {"type": "any", **declared}}).values()
    assert field.needs_value is needs_value
