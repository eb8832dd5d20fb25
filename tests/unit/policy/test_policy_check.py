"""Rules that can never decide, and gates that nobody can answer (docs/reference/pack.md#policy-check)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from fakes.support_desk import CAPABILITIES, PACK_FILE, pack, raw_pack

from cogcli.base.yaml import reader
from cogcli.base.yaml.positions import YamlPositions
from cogcli.policy.jsonlogic import compile_rule, evaluate
from cogcli.policy.policy_check import check_reach
from cogcli.specs.problem_report import ProblemReport

RULES = "/policy_layer/rules"


def _report(
    change: Callable[[dict[str, Any]], None], places: YamlPositions | None = None
) -> ProblemReport:
    raw = copy.deepcopy(raw_pack())
    change(raw["policy_layer"])
    report = ProblemReport("pack.yaml", places)
    check_reach(pack(**raw), report, CAPABILITIES)
    return report


def _found(change: Callable[[dict[str, Any]], None]) -> list[tuple[str, str, str]]:
    return [(problem.code, problem.path, problem.message) for problem in _report(change).problems]


def _with_rule(condition: Any, verdict: str = "allow", **more: Any) -> list[tuple[str, str, str]]:
    def add(layer: dict[str, Any]) -> None:
        scope = more.pop("applies_to", {"capabilities": ["payments.refund"]})
        then = {"verdict": verdict, **more.pop("then", {})}
        rule = {
            "rule_id": "new",
            "mode": "enforce",
            "if": condition,
            "then": then,
            "applies_to": scope,
            **more,
        }
        layer["rules"].append(rule)

    return _found(add)


def test_the_support_desk_reaches_all_of_its_rules() -> None:
    assert _found(lambda layer: None) == []


AGE, AMOUNT = {"var": "order.age_days"}, {"var": "args.amount"}


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ({">": [AGE, 30]}, "allow"),
        ({">": [AGE, 40]}, "allow_with_gate"),
        ({">=": [AGE, 31]}, "allow"),
        ({"<": [40, AGE]}, "allow"),
        ({"==": [AGE, 45]}, "escalate"),
        ({"and": [{">": [AGE, 30]}, {">": [AMOUNT, 5]}]}, "allow"),
        ({"<": [30, AGE, 60]}, "allow"),
    ],
)
def test_a_rule_under_a_stricter_one_never_decides(condition: Any, verdict: str) -> None:
    (found,) = _with_rule(condition, verdict)
    assert found[:2] == ("policy.unreachable", f"{RULES}/2/then/verdict")
    assert found[2] == f"rule `new`: says {verdict} only where `refund_window` says deny"


@pytest.mark.parametrize(
    ("condition", "more"),
    [
        ({">": [AGE, 20]}, {}),
        ({">=": [AGE, 30]}, {}),
        ({"<": [AGE, 30]}, {}),
        ({">": [AMOUNT, 30]}, {}),
        ({"or": [{">": [AGE, 30]}, {">": [AMOUNT, 5]}]}, {}),
        ({"==": [{"var": "user.role"}, "guest"]}, {}),
        ({"!=": [AGE, 40]}, {}),
        ({"and": [{"<": [1, 2]}, {">": [AGE, 40]}]}, {}),
        ({"==": [{"var": ["order.age_days", 0]}, 5]}, {}),
        ({"!": {"missing": {"merge": ["order.seen"]}}}, {}),
        ({"==": [1, 1]}, {"verdict": "deny"}),
        ({}, {}),
        ({"<": [AGE]}, {}),
        ({"!=": [AGE, 40]}, {"verdict": "deny", "applies_to": {"capabilities": ["payment.*"]}}),
        ({">": [AGE, 40]}, {"verdict": "deny"}),
        ({">": [AGE, 40]}, {"mode": "shadow"}),
        ({">": [AGE, 40]}, {"then": {"obligations": ["evidence"]}}),
        ({">": [AGE, 40]}, {"then": {"args": {"amount": {"max": 5}}}}),
        ({">": [AGE, 40]}, {"applies_to": {"capabilities": ["orders.lookup"]}}),
        ({">": [AGE, 40]}, {"applies_to": {}}),
    ],
)
def test_a_rule_that_decides_somewhere_is_reached(condition: Any, more: dict[str, Any]) -> None:
    assert _with_rule(condition, **more) == []


@pytest.mark.parametrize("condition", [{"==": [1, 2]}, False, {"and": [True, {"!": [True]}]}])
def test_a_condition_that_never_holds(condition: Any) -> None:
    (found,) = _with_rule(condition)
    assert found == (
        "policy.unreachable",
        f"{RULES}/2/if",
        "rule `new`: never holds, whatever the facts are",
    )


@pytest.mark.parametrize(
    "scope",
    [{"capabilities": ["orders.*"], "intents": ["support.status"]}, {"intents": ["sales.*"]}],
)
def test_a_rule_for_calls_that_no_intent_lists(scope: dict[str, Any]) -> None:
    (found,) = _with_rule({">": [AMOUNT, 5]}, applies_to=scope)
    assert found[:2] == ("policy.unreachable", f"{RULES}/2/applies_to")


@pytest.mark.parametrize(
    "change",
    [{"mode": "shadow"}, {"if": {"or": [{">": [AGE, 30]}]}}, {"if": {"<": [AGE]}}, {"if": {}}],
    ids=str,
)
def test_what_never_decides_or_asks_for_more_than_numbers_overrules_nothing(
    change: dict[str, Any],
) -> None:
    def rules(layer: dict[str, Any]) -> None:
        layer["rules"][0] |= change
        layer["rules"].append({**layer["rules"][0], "rule_id": "new", "mode": "enforce"})
        layer["rules"][2] |= {"if": {">": [AGE, 40]}, "then": {"verdict": "escalate"}}

    assert _found(rules) == []


@pytest.mark.parametrize("known", [True, False])
def test_a_call_is_of_a_capability_that_a_role_may_make(known: bool) -> None:
    def change(layer: dict[str, Any]) -> None:
        scope = {"capabilities": ["mail.send", "policy.eval"], "intents": ["support.order_status"]}
        layer["permissions"][0]["allow"] += [] if known else ["mail.send"]
        layer["rules"].append(
            {**layer["rules"][0], "rule_id": "new", "if": True, "applies_to": scope}
        )

    raw = copy.deepcopy(raw_pack())
    change(raw["policy_layer"])
    raw["decision_layer"]["intents"][1]["capabilities"].append("mail.send")
    report = ProblemReport("pack.yaml", None)
    check_reach(pack(**raw), report, (*CAPABILITIES, *(["mail.send"] if known else [])))
    assert [problem.path for problem in report.problems] == [f"{RULES}/2/applies_to"]


def test_gates_that_nobody_can_answer_or_asks_for() -> None:
    def change(layer: dict[str, Any]) -> None:
        layer["gates"]["GATE_FINANCE_APPROVAL"]["approver_roles"] = ["support_agent"]
        layer["gates"]["GATE_IDLE"] = {"approver_roles": ["legal"]}

    assert [found[:2] for found in _found(change)] == [
        ("policy.gate", "/policy_layer/gates/GATE_FINANCE_APPROVAL/approver_roles"),
        ("policy.gate", "/policy_layer/gates/GATE_IDLE"),
    ]


def test_a_gate_that_only_a_guardrail_asks_for_is_asked_for() -> None:
    def change(layer: dict[str, Any]) -> None:
        layer["gates"]["GATE_LEGAL"] = {"approver_roles": ["legal"]}
        layer["guardrails"]["must_escalate"][0]["gate"] = "GATE_LEGAL"

    assert _found(change) == []


def test_roles_that_no_agent_has() -> None:
    def change(layer: dict[str, Any]) -> None:
        layer["permissions"] = [{"role": "clerk", "allow": ["orders.lookup"]}]

    codes = [found[:2] for found in _found(change)]
    assert codes[:2] == [
        ("policy.role", "/policy_layer/permissions/0/role"),
        ("policy.role", "/policy_layer/permissions"),
    ]


def test_what_is_wanting_as_a_whole_is_told_at_its_key() -> None:
    def change(layer: dict[str, Any]) -> None:
        layer["permissions"][0]["role"] = "clerk"
        layer["rules"] = layer["rules"][:1]
        layer["rules"][0]["applies_to"] = {"intents": ["sales.*"]}

    places = reader.parse(PACK_FILE.read_bytes(), file="pack.yaml").places
    problems = _report(change, places).problems
    layer = "policy_layer"
    keys = [
        (layer, "permissions"),
        (layer, "gates", "GATE_FINANCE_APPROVAL"),
        (layer, "rules", 0, "applies_to"),
    ]
    at = [places.value((layer, "permissions", 0, "role")), *map(places.key, keys)]
    assert [(found.line, found.column) for found in problems] == [
        (place.line, place.column) for place in at
    ]


def test_what_each_warning_says() -> None:
    def change(layer: dict[str, Any]) -> None:
        layer["permissions"][0]["role"] = "clerk"
        layer["gates"]["GATE_FINANCE_APPROVAL"]["approver_roles"] = ["support_agent"]
        layer["gates"]["GATE_IDLE"] = {"approver_roles": ["support_agent", "legal"]}
        layer["rules"].append(
            {**layer["rules"][0], "rule_id": "late", "then": {"verdict": "escalate"}}
        )
        layer["rules"][1]["applies_to"] = {"intents": ["sales.*"]}

    assert [(found.message, found.hint) for found in _report(change).problems] == [
        ("role `clerk`: the agent's is `support_agent`, so nobody has it", ""),
        ("the agent's role `support_agent` may call nothing", ""),
        (
            "gate `GATE_FINANCE_APPROVAL`: only the agent's own role may answer it, and an agent answers nothing",
            "",
        ),
        ("gate `GATE_IDLE`: no rule or guardrail asks for it", ""),
        (
            "rule `refund_limit`: applies to no capability that an intent of it lists and a role may call",
            "",
        ),
        (
            "rule `late`: says escalate only where `refund_window` says deny",
            "remove it, or narrow the other",
        ),
    ]


def test_a_rule_reaches_what_a_skill_of_the_pack_calls() -> None:
    raw = copy.deepcopy(raw_pack())
    raw["policy_layer"]["permissions"][0]["allow"] = ["skill:t.refund"]
    raw["decision_layer"]["intents"][0]["capabilities"] = ["skill:t.refund"]
    refund = CAPABILITIES["payments.refund"]
    tools = {
        "skill:t.refund": refund.replace(id="skill:t.refund", reaches=tuple(CAPABILITIES.values()))
    }
    codes = []
    for known in (tools, {}):
        report = ProblemReport("pack.yaml", None)
        check_reach(pack(**raw), report, {**CAPABILITIES, **tools}, known)
        codes.append([problem.code for problem in report.problems])
    assert codes == [[], ["policy.unreachable"] * 2]


ORDERED = ("<", "<=", ">", ">=")
ORDERED = ("<", "<=", ">", ">=")
SIDES = [{each: [AGE, bound]} for each in (*ORDERED, "==", "===") for bound in (2, 3)]
TURNED = [{each: [2, AGE]} for each in (*ORDERED, "==")]
BETWEEN = [{each: [2, AGE, 3]} for each in ("<", "<=")]
JOINED = [
    {"and": [{one: [AGE, 2]}, {other: [AGE, bound]}]}
    for one in ORDERED
    for other in ORDERED
    for bound in (2, 3)
]
CONDITIONS = [True, *SIDES, *TURNED, *BETWEEN, *JOINED]
NUMBERS = [number / 2 for number in range(9)]


def test_a_rule_that_a_stricter_one_always_overrules_is_told_and_no_other() -> None:
    holds = [{number for number in NUMBERS if _holds(each, number)} for each in CONDITIONS]
    mild = [(each, at) for each, at in zip(CONDITIONS, holds, strict=True) if at]
    for strict, strict_at in zip(CONDITIONS, holds, strict=True):
        verdicts = [(strict, "deny"), *((each, "escalate") for each, _ in mild)]
        rules = [
            {
                "rule_id": f"r{number}",
                "mode": "enforce",
                "if": condition,
                "then": {"verdict": verdict},
            }
            for number, (condition, verdict) in enumerate(verdicts)
        ]
        told = [
            f"{RULES}/{number}/then/verdict"
            for number, (_, at) in enumerate(mild, 1)
            if at <= strict_at
        ]
        layer = {"gates": {}, "rules": rules}
        assert [found[1] for found in _found(lambda raw, layer=layer: raw.update(layer))] == told, (
            strict
        )


def _holds(condition: Any, number: float) -> bool:
    found = evaluate(compile_rule(condition), {"order": {"age_days": number}})
    assert found.error is None
    return found.result
