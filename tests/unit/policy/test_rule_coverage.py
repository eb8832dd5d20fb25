"""What the tests of rules reach (docs/reference/pack.md#coverage)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.declarations.pack_spec import PolicyRule
from cogcli.policy.rule_coverage import cover_rules, share_reached

A = {"var": "args.a"}
B = {"var": "args.b"}
C = {"var": "args.c"}


def missing(condition: Any, *data: dict[str, Any], **then: Any) -> list[str]:
    raw = {
        "rule_id": "r",
        "mode": "enforce",
        "if": condition,
        "then": {"verdict": "deny", **then},
        "tests": [{"data": {"args": each}, "expect": "match"} for each in data],
    }
    (found,) = cover_rules([PolicyRule.of(raw)])
    assert found.to_payload()["missing"] == found.missing
    return found.missing


@pytest.mark.parametrize(
    ("condition", "data", "expected"),
    [
        (True, [{}], []),
        (A, [{"a": True}], ["if false"]),
        ({"and": [A, B]}, [{"a": True, "b": True}, {"a": False}], ["if/and/1 false"]),
        ({"or": [A, B]}, [{"a": True}, {"a": False, "b": False}], ["if/or/1 true"]),
        (
            {"and": [A, B]},
            [{"a": True, "b": True}, {"a": False, "b": False}],
            ["if/and/1 false"],
        ),
        (
            {"or": [A, B]},
            [{"a": True, "b": True}, {"a": False, "b": False}],
            ["if/or/1 true"],
        ),
        (
            {"and": [A, B, C]},
            [{"a": True, "c": True}],
            [
                "if true",
                "if false",
                "if/and/0 false",
                "if/and/1 true",
                "if/and/1 false",
                "if/and/2 true",
                "if/and/2 false",
                "verdict deny",
            ],
        ),
        (
            {"or": [A, B]},
            [{"b": True}, {"a": True}],
            ["if false", "if/or/0 false", "if/or/1 true", "if/or/1 false"],
        ),
        ({"!": [A]}, [{"a": True}, {"a": False}], []),
        ({"if": [A, True]}, [{"a": True}, {"a": False}], ["if false"]),
        (
            {"if": [A, B, C]},
            [{"a": True, "b": True}, {"a": False, "c": False}],
            ["if/if/1 false", "if/if/2 true"],
        ),
        (
            {"?:": [A, B, C]},
            [{"a": True, "b": True}, {"a": False, "b": True, "c": False}],
            ["if/?:/1 false", "if/?:/2 true"],
        ),
        (
            {"if": [A, B]},
            [{}],
            [f"if{p} {w}" for p in ("", "/if/0", "/if/1") for w in ("true", "false")]
            + ["verdict deny"],
        ),
        (
            {"if": [A, True, B, True]},
            [{"a": False, "b": True}, {"a": True}],
            ["if false", "if/if/2 false"],
        ),
    ],
)
def test_branches(condition: Any, data: list[dict[str, Any]], expected: list[str]) -> None:
    assert missing(condition, *data) == expected


def test_conditions_are_looked_into_to_a_depth_that_both_sides_share() -> None:
    def nested(levels: int) -> PolicyRule:
        condition: Any = A
        for _ in range(levels):
            condition = {"!": [condition]}
        tests = [{"data": {"args": {"a": each}}, "expect": "match"} for each in (True, False)]
        raw = {"rule_id": "r", "mode": "enforce", "if": condition, "tests": tests}
        return PolicyRule.of({**raw, "then": {"verdict": "deny"}})

    shallow, deepest, deeper = cover_rules(map(nested, (3, 32, 40)))
    assert (len(shallow.wanted), shallow.missing) == (2 * 4 + 1, [])
    assert (len(deepest.wanted), deepest.missing) == (2 * 33 + 1, [])
    assert (deeper.wanted, deeper.missing) == (deepest.wanted, [])


def test_broken_limits_are_a_verdict_of_their_own() -> None:
    limits = {"verdict": "allow", "args": {"n": {"max": 5}}}
    assert missing(True, {"n": 1}, **limits) == ["verdict deny"]
    assert missing(True, {"n": 1}, {}, **limits) == []


def test_the_share_of_nothing_is_all() -> None:
    assert share_reached([]) == 100


def test_the_share_counts_what_the_tests_of_all_rules_reach() -> None:
    rules = [
        PolicyRule.of(
            {
                "rule_id": id,
                "mode": "enforce",
                "if": A,
                "then": {"verdict": "deny"},
                "tests": [{"data": {"args": {"a": each}}, "expect": "match"} for each in values],
            }
        )
        for id, values in (("half", [True]), ("whole", [True, False]))
    ]
    half, whole = (found.to_payload() for found in cover_rules(rules))
    total = whole["wanted"]
    assert half == {"rule": "half", "wanted": total, "reached": total - 1, "missing": ["if false"]}
    assert whole == {"rule": "whole", "wanted": total, "reached": total, "missing": []}
    assert share_reached(iter(cover_rules(rules))) == 100 * (2 * total - 1) / (2 * total)
