"""Gates and constraints: in doubt no."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.official.guards import as_lines, check_constraint, gate_output
from cogcli.sdk import Refused

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
)


def nested(value: object, depth: int) -> dict[str, object]:
    for _ in range(depth):
        value = {"in": [value]}
    return {"out": value}


@pytest.mark.parametrize(
    ("output", "policy", "reason"),
    [
        (nested("ana@ruiz.es", 5), {"block_pii": True}, "personal data: email"),
        (nested(4111111111111111, 2), {"block_pii": True}, "personal data: card"),
        ({"ana@ruiz.es": 1}, {"block_pii": True}, "personal data: email"),
        ({"password": "tide-9-Plan!"}, {"block_secrets": True}, "credential: password"),
        ({"a": "é" * 10}, {"max_size": 20}, "29 bytes, at most 20 may leave"),
        ({"a": {"b": 1}}, {"required_keys": ["a.b", "a.c"]}, "required key a.c is missing"),
        (nested({"debug": None}, 3), {"forbidden_keys": ["debug"]}, "forbidden key debug"),
        ({"a": {"b": 1}}, {"forbidden_keys": ["a.b"]}, "forbidden key a.b"),
        ({}, {"block_pii": "yes"}, "the policy's block_pii is no bool"),
        ({}, {"max_size": True}, "the policy's max_size is no int"),
        (
            nested(1, 300),
            {"block_pii": True},
            "block_pii cannot be checked: nested deeper than 200",
        ),
    ],
)
def test_each_rule_of_a_policy_gives_its_reason(
    output: dict[str, object], policy: dict[str, object], reason: str
) -> None:
    assert gate_output(output, policy) == {"allowed": False, "reasons": [reason]}


@given(
    st.dictionaries(st.text(), JSON, max_size=3),
    st.text().filter(lambda key: key not in ("block_pii", "block_secrets")),
)
def test_a_key_that_is_unknown_or_of_no_use_is_a_no(output: dict[str, object], key: str) -> None:
    assert gate_output(output, {key: None})["allowed"] is False


@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_without_rules_all_may_leave(output: dict[str, object]) -> None:
    assert gate_output(output, {})["allowed"] is True
    assert gate_output(output, {"block_pii": False, "max_size": 10**9})["allowed"] is True


def test_all_of_a_value_is_in_its_lines() -> None:
    assert as_lines({"a": [{"b": "x"}, 2], "c": True}).splitlines() == [
        "a:",
        "c:",
        "b:",
        "b: x",
        "a: 2",
        "c: true",
    ]


@pytest.mark.parametrize(
    ("op", "value", "holds", "breaks"),
    [
        ("eq", 1, 1.0, True),
        ("ne", "a", "b", "a"),
        ("lt", 3, 2, "2"),
        ("le", "b", "a", "c"),
        ("gt", 1, 2, True),
        ("ge", 1, 1, None),
        ("in", ["a"], "a", "b"),
        ("not_in", ["a"], "b", "a"),
        ("contains", "x", "axb", 3),
        ("matches", "^a+$", "aa", "ab"),
        ("type", "integer", 3, True),
        ("min_length", 2, "ab", "a"),
        ("max_length", 2, [1], [1, 2, 3]),
    ],
)
def test_a_rule_holds_or_is_a_violation(
    op: str, value: object, holds: object, breaks: object
) -> None:
    rule = {"field": "a.b", "op": op, "value": value}
    assert check_constraint({"a": {"b": holds}}, rule) == {"valid": True, "violations": []}
    for payload in ({"a": {"b": breaks}}, {}):
        broken: Any = check_constraint(payload, {"rules": [rule]})
        assert broken["valid"] is False
        assert [one["path"] for one in broken["violations"]] == ["a.b"]


def test_a_schema_an_expression_and_keys_are_constraints() -> None:
    constraint = {
        "schema": {"properties": {"total": {"maximum": 100}}},
        "expression": "payload.total < 100",
        "required_keys": ["owner"],
    }
    broken: Any = check_constraint({"total": 120}, constraint)
    assert [one["rule"] for one in broken["violations"]] == [
        "schema",
        "expression",
        "required_keys",
    ]
    assert check_constraint({"total": 1, "owner": "ana"}, constraint)["valid"] is True
    assert (
        check_constraint({"total": 120}, {"properties": {"total": {"maximum": 100}}})["valid"]
        is False
    )


def test_an_unknown_key_is_a_violation() -> None:
    assert check_constraint({}, {"requierd_keys": []})["valid"] is False


@pytest.mark.parametrize(
    "constraint",
    [{"rules": ["x"]}, {"field": "a", "op": "like", "value": 1}, {"expression": "payload +"}],
)
def test_a_constraint_that_cannot_be_read_is_refused(constraint: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        check_constraint({"a": 1}, constraint)
    assert refused.value.reason == "bad-data"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"op": "matches", "value": "^x"}, 'a must match "^x"'),
        ({"op": "is_null"}, "a must be null"),
        ({"op": "le", "value": 3}, "a must be at most 3"),
        ({"field": "b"}, "b is missing: must be there"),
    ],
)
def test_a_broken_rule_reads_as_a_sentence(rule: dict[str, object], message: str) -> None:
    found: Any = check_constraint({"a": "y"}, {"rules": [{"field": "a", **rule}]})
    assert [one["message"] for one in found["violations"]] == [message]
