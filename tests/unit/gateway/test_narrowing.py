"""Rules of a pack about arguments narrow the input schema of a tool, and by no more than they deny."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cogcli.declarations.pack_spec import PackIntent, PolicyRule
from cogcli.gateway.narrowing import find_constraints, narrow_schema
from cogcli.policy.pack_policy import GovernedCall, Policy

TEXT = {"type": "string"}
X: Any = {"var": "args.x"}


def policy_of(*rules: dict[str, Any]) -> Policy:
    """A policy with these rules over one capability."""
    read = [
        PolicyRule.of(
            {"rule_id": f"r{number}", "mode": "enforce", "then": {"verdict": "deny"}} | rule
        )
        for number, rule in enumerate(rules)
    ]
    return Policy(
        permissions={"clerk": ["mcp.a.b"]},
        intents={"help": PackIntent.of({"id": "help", "capabilities": ["mcp.a.b"]})},
        rules=read,
    )


def narrowed(schema: dict[str, Any], *rules: dict[str, Any]) -> dict[str, Any]:
    """The input schema of a tool with one argument `x`."""
    found = find_constraints(policy_of(*rules), "help", "mcp.a.b")
    whole = {"type": "object", "properties": {"x": schema}}
    return narrow_schema(whole, found, {"x": "x"})


CASES = [
    ({"!": {"in": [X, ["a", "b"]]}}, TEXT, {"type": "string", "enum": ["a", "b"]}),
    ({"in": [X, ["a", "b"]]}, TEXT, {"type": "string", "not": {"enum": ["a", "b"]}}),
    ({"in": [X, ["a"]]}, {"enum": ["a", "b"]}, {"enum": ["b"]}),
    ({"!=": [X, "a"]}, TEXT, {"type": "string", "enum": ["a"]}),
    ({"==": ["a", X]}, TEXT, {"type": "string", "not": {"enum": ["a"]}}),
    ({"!=": [{"substr": [X, 0, 5]}, "/tmp/"]}, TEXT, {"type": "string", "pattern": "^\\/tmp\\/"}),
    ({"==": [{"substr": [X, 0, 1]}, "/"]}, TEXT, {"type": "string", "not": {"pattern": "^\\/"}}),
    ({">": [X, 5]}, {"type": "number"}, {"type": "number", "maximum": 5}),
    ({"<": [5, X]}, {"maximum": 9}, {"maximum": 5}),
    ({">": [X, 50]}, {"maximum": 9}, {"maximum": 9}),
    ({"<=": [X, 0]}, {"type": "integer"}, {"type": "integer", "exclusiveMinimum": 0}),
    (
        {"or": [{"<": [X, 1]}, {">": [X, 5]}]},
        {"type": "integer"},
        {"type": "integer", "minimum": 1, "maximum": 5},
    ),
    ({"!": {"and": [{">=": [X, 1]}, {"<": [X, 5]}]}}, {}, {"minimum": 1, "exclusiveMaximum": 5}),
]


@pytest.mark.parametrize(("condition", "schema", "expected"), CASES)
def test_a_condition_that_denies_narrows_its_argument(
    condition: Any, schema: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = narrowed(schema, {"if": condition})
    assert found["properties"]["x"] == expected
    assert found["required"] == ["x"], "a rule over a missing value denies"


VALUES = ("a", "b", "c", "/tmp/x", "/etc", "", 0, 1, 3, 5, 6, 50, 51, None)


@pytest.mark.parametrize(("condition", "schema"), [(each[0], each[1]) for each in CASES])
def test_a_narrowed_schema_rejects_what_is_denied_and_nothing_else(
    condition: Any, schema: dict[str, Any]
) -> None:
    """For values that the schema of the tool takes, and that have the type that the rule is about."""
    policy = policy_of({"if": condition})
    found = Draft202012Validator(narrowed(schema, {"if": condition}))
    takes = Draft202012Validator(schema)
    for value in VALUES:
        call = GovernedCall("mcp.a.b", "read_only", "clerk", "network", {"x": value})
        verdict = policy.decide("help", call, {"args": {"x": value}})
        if verdict.outcome == "allow" and takes.is_valid(value):
            assert found.is_valid({"x": value}), value
        if verdict.matched:
            assert not found.is_valid({"x": value}), value


@pytest.mark.parametrize(
    "rule",
    [
        {"if": {"==": [X, "a"]}, "mode": "shadow"},
        {"if": {"==": [X, "a"]}, "then": {"verdict": "escalate"}},
        {"if": {"==": [X, "a"]}, "applies_to": {"capabilities": ["mcp.other.*"]}},
        {"if": {"and": [{"==": [X, "a"]}, {"==": [{"var": "user.id"}, "b"]}]}},
        {"if": {"==": [X, {"var": "user.id"}]}},
        {"if": {"==": [{"var": "args.x.y"}, 1]}},
        {"if": {"==": [{"substr": [X, 1, 2]}, "ab"]}},
        {"if": {"==": [{"substr": [X, 0, 3]}, "ab"]}},
        {"if": {"in": ["a", X]}},
        {"if": {"in": [X, [1, "a"]]}},
        {"if": {"some": [X, {"==": [{"var": ""}, 1]}]}},
        {"if": True},
        {"if": {"==": [{"var": "args.z"}, 1]}},
    ],
)
def test_any_other_rule_narrows_nothing(rule: dict[str, Any]) -> None:
    assert narrowed(TEXT, rule) == {"type": "object", "properties": {"x": TEXT}}


def test_an_argument_with_a_default_is_not_required() -> None:
    found = narrowed(TEXT, {"if": {"==": [{"var": ["args.x", "b"]}, "a"]}})
    assert found == {
        "type": "object",
        "properties": {"x": {"type": "string", "not": {"enum": ["a"]}}},
    }


def test_limits_of_a_rule_that_always_applies_narrow() -> None:
    then = {"verdict": "allow", "args": {"x": {"min": 1, "max": 5, "enum": [1, 2, 9]}}}
    found = narrowed({"type": "number"}, {"if": {"==": [1, 1]}, "then": then})
    assert found["properties"]["x"] == {
        "type": "number",
        "minimum": 1,
        "maximum": 5,
        "enum": [1, 2, 9],
    }
    some = narrowed({"type": "number"}, {"if": {"==": [{"var": "user.id"}, "a"]}, "then": then})
    assert some["properties"]["x"] == {"type": "number"}


def test_branches_that_a_rule_excludes_are_dropped() -> None:
    def branch(kind: str) -> dict[str, Any]:
        return {"properties": {"x": {"const": kind}}, "required": ["x"]}

    schema = {
        "type": "object",
        "properties": {"x": TEXT},
        "oneOf": [branch("refund"), branch("note")],
        "anyOf": [{"properties": {"x": {"enum": ["refund", "note"]}}}, {"required": ["y"]}],
    }
    found = find_constraints(policy_of({"if": {"==": [X, "refund"]}}), "help", "mcp.a.b")
    result = narrow_schema(schema, found, {"x": "x"})
    assert result["oneOf"] == [branch("note")]
    assert result["anyOf"] == schema["anyOf"]
    assert schema["oneOf"] == [branch("refund"), branch("note")], "the accepted tool is unchanged"


def test_constraints_that_meet_are_all_kept() -> None:
    found = narrowed(
        {"type": "string", "pattern": "x$"},
        {"if": {"!=": [{"substr": [X, 0, 1]}, "a"]}},
        {"if": {"==": [X, "ax"]}},
        {"if": {"==": [X, "abx"]}},
    )
    check = Draft202012Validator(found)
    valid = {value: check.is_valid({"x": value}) for value in ("ax", "abx", "acx", "bx", "ac")}
    assert valid == {"ax": False, "abx": False, "acx": True, "bx": False, "ac": False}


def test_arguments_are_found_by_the_names_of_the_tool() -> None:
    found = find_constraints(
        policy_of({"if": {"==": [{"var": "args.a_x_y"}, 1]}}), "help", "mcp.a.b"
    )
    schema = {"properties": {"x y": {"type": "integer"}}}
    result = narrow_schema(schema, found, {"x y": "a_x_y"})
    assert result["properties"]["x y"] == {"type": "integer", "not": {"enum": [1]}}
