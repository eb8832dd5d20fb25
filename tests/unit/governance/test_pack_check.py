"""What is wrong with a pack as a whole, and the tests of its rules (docs/reference/pack.md#check)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from fakes.support_desk import CAPABILITIES, pack, raw_pack

from cogcli.governance.pack_check import check_references, check_rules, run_tests
from cogcli.specs.pack import Pack
from cogcli.specs.problem_report import ProblemReport


def _problems(change: Callable[[dict[str, Any]], None]) -> list[tuple[str, str]]:
    report = ProblemReport("pack.yaml", None)
    changed = _changed(change)
    check_references(changed, report, CAPABILITIES)
    check_rules(changed, report, CAPABILITIES)
    return [(problem.code, problem.path) for problem in report.problems]


def _changed(change: Callable[[dict[str, Any]], None]) -> Pack:
    raw = copy.deepcopy(raw_pack())
    change(raw)
    return pack(**raw)


def test_the_support_desk_has_no_problem() -> None:
    assert _problems(lambda raw: None) == []


RULES = "/policy_layer/rules"
LAYER = "/decision_layer"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("policy_layer/permissions/0/allow/2", "a.b", "/policy_layer/permissions/0/allow/2"),
        ("policy_layer/rules/1/then/gate", "GATE", f"{RULES}/1/then/gate"),
        ("policy_layer/rules/0/applies_to", {"intents": ["x"]}, f"{RULES}/0/applies_to/intents/0"),
        (
            "policy_layer/guardrails/must_escalate/0/gate",
            "GATE",
            "/policy_layer/guardrails/must_escalate/0",
        ),
        ("tooling_layer/capabilities/a.b", {}, "/tooling_layer/capabilities/a.b"),
        ("decision_layer/intents/0/templates", ["x"], f"{LAYER}/intents/0/templates/0"),
        ("decision_layer/intents/0/capabilities/0", "a.b", f"{LAYER}/intents/0/capabilities/0"),
        (
            "decision_layer/decisions/0/required_evidence/1",
            "parcel.size",
            f"{LAYER}/decisions/0/required_evidence/1",
        ),
        ("decision_layer/task_templates/0/decision", "x", f"{LAYER}/task_templates/0/decision"),
        ("decision_layer/task_templates/0/outcome", {"met": "paid"}, f"{LAYER}/task_templates/0/outcome/met"),
        ("decision_layer/objectives/0/intents", ["x"], f"{LAYER}/objectives/0/intents/0"),
    ],
)
def test_names_that_nothing_has(path: str, value: Any, expected: str) -> None:
    def change(raw: Any) -> None:
        *above, last = [int(part) if part.isdigit() else part for part in path.split("/")]
        for part in above:
            raw = raw[part]
        raw[last] = value

    assert _problems(change) == [("pack.reference", expected)]


def test_conditions_that_are_no_rules() -> None:
    def change(raw: dict[str, Any]) -> None:
        raw["policy_layer"]["rules"][0]["if"] = {"and": [{"log": "x"}, {"==": [1]}]}

    assert _problems(change) == [
        ("policy.rule", f"{RULES}/0/if/and/0/log"),
        ("policy.rule", f"{RULES}/0/if/and/1/=="),
    ]


def test_obligations_scopes_and_contradictions() -> None:
    def change(raw: dict[str, Any]) -> None:
        rules = raw["policy_layer"]["rules"]
        rules[0]["then"]["obligations"] = ["evidense", "mask:receipt.card"]
        rules[1]["applies_to"] = {"capabilities": ["payment.*"]}
        rules.append({**rules[0], "rule_id": "other", "then": {"verdict": "allow"}})

    assert _problems(change) == [
        ("policy.obligation", f"{RULES}/0/then/obligations/0"),
        ("policy.unused", f"{RULES}/1/applies_to"),
        ("policy.contradiction", f"{RULES}/2/then/verdict"),
    ]


def test_tests_beside_rules() -> None:
    tests = run_tests(pack().policy.rules)
    assert [(test.rule_id, test.number, test.found) for test in tests] == [
        ("refund_window", 1, "match"),
        ("refund_window", 2, "no_match"),
        ("refund_window", 3, "error"),
        ("refund_limit", 1, "match"),
        ("refund_limit", 2, "no_match"),
    ]
    assert all(test.passed for test in tests)


def test_a_test_that_fails_and_one_that_is_lacking() -> None:
    rule = pack().policy.rules[0]
    wrong = rule._replace(tests=({"data": {"order": {"age_days": 40}}, "expect": "no_match"},))
    found = [(test.number, test.expected, test.found, test.passed) for test in run_tests([wrong])]
    assert found == [(1, "no_match", "match", False), (0, "match", "absent", False)]
    assert run_tests([wrong._replace(mode="shadow", tests=())]) == []
