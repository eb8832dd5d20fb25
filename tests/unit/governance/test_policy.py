"""Permission, rule and situation (docs/reference/pack.md#checks)."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import pytest

from cogcli.governance.policy import GovernedCall, Policy, applies
from cogcli.governance.verdict import Verdict, approval_mode, is_stricter
from cogcli.specs.capability import capability_from
from cogcli.specs.pack import VERDICTS, PackIntent, PolicyRule, RuleScope

WINDOW = PolicyRule(
    "refund_window",
    "enforce",
    {">": [{"var": "order.age_days"}, 30]},
    "deny",
    RuleScope(("support.refund",), ("payments.*",)),
)
LIMIT = PolicyRule(
    "refund_limit",
    "enforce",
    {">": [{"var": "args.amount"}, 200]},
    "allow_with_gate",
    RuleScope((), ("payments.refund",)),
    "GATE_FINANCE_APPROVAL",
)
STAFF = PolicyRule("staff_only", "enforce", {"!=": [{"var": "user.role"}, "staff"]}, "deny")
DATA: dict[str, Any] = {
    "user": {"role": "staff"},
    "order": {"id": "ord_881", "age_days": 12, "total": 240},
    "args": {"amount": 240},
}


def _policy(*rules: PolicyRule, hosts: list[str] | None = None) -> Policy:
    return Policy(
        permissions={"support": ["orders.lookup", "payments.refund"], "other": []},
        intents={
            "support.refund": PackIntent("support.refund", capabilities=("orders.lookup", "payments.refund")),
            "support.status": PackIntent("support.status", capabilities=("orders.lookup",)),
        },
        rules=rules,
        hosts=hosts,
    )


def _decide(
    *rules: PolicyRule,
    intent: str = "support.refund",
    data: dict[str, Any] = DATA,
    hosts: list[str] | None = None,
    **members: Any,
) -> Verdict:
    call: dict[str, Any] = {
        "capability": "payments.refund",
        "approval_mode": "network",
        "role": "support",
        "safety_mode": "destructive",
        "arguments": data.get("args"),
        **members,
    }
    return _policy(*rules, hosts=hosts).decide(intent, GovernedCall(**call), data)


def _with(path: str, value: Any) -> dict[str, Any]:
    data = copy.deepcopy(DATA)
    head, _, name = path.partition(".")
    if value is ...:
        del data[head][name]
    else:
        data[head][name] = value
    return data


@pytest.mark.parametrize(
    ("members", "stage", "reason"),
    [
        ({"role": "other"}, "permission", "permission_denied"),
        ({"role": "nobody"}, "permission", "permission_denied"),
        ({"capability": "mail.send"}, "permission", "permission_denied"),
        ({"safety_mode": "local_write"}, "permission", "above_safety_mode"),
        ({"intent": "support.status"}, "rule", "not_in_intent"),
        ({"intent": "unknown"}, "rule", "not_in_intent"),
        ({"approval_mode": "delegated", "named_user": False}, "situation", "named_user"),
        ({"hosts": ["pay.example"], "host": "evil.example"}, "situation", "host_not_listed"),
        ({"hosts": [], "host": "pay.example"}, "situation", "host_not_listed"),
    ],
)
def test_what_denies_without_a_rule(members: dict[str, Any], stage: str, reason: str) -> None:
    verdict = _decide(**members)
    assert (verdict.verdict, verdict.stage, verdict.reason) == ("deny", stage, reason)
    assert verdict.decision == "veto"
    assert not verdict.allows


def test_no_match_allows() -> None:
    verdict = _decide(WINDOW, hosts=["pay.example"], host="pay.example")
    assert (verdict.verdict, verdict.decision, verdict.reason) == ("allow", "allow", "no_rule")
    assert verdict.reads == {"order.age_days": 12}
    assert verdict.obligations == ("idempotency_key",)


def test_the_strictest_enforced_match_counts() -> None:
    gated = _decide(WINDOW, LIMIT)
    assert (gated.verdict, gated.gate, gated.reason) == (
        "allow_with_gate",
        "GATE_FINANCE_APPROVAL",
        "refund_limit",
    )
    denied = _decide(LIMIT, WINDOW, data=_with("order.age_days", 31))
    assert (denied.verdict, denied.rule, denied.gate) == ("deny", "refund_window", "")
    assert denied.matched == ("refund_limit", "refund_window")


def test_what_is_destructive_has_a_gate_whatever_rules_say() -> None:
    assert _decide(approval_mode="destructive").gate == "GATE_OPERATOR"
    assert _decide(LIMIT, approval_mode="destructive").gate == "GATE_FINANCE_APPROVAL"


def test_a_shadow_rule_only_says_what_it_would_do() -> None:
    verdict = _decide(WINDOW._replace(mode="shadow"), data=_with("order.age_days", 31))
    assert (verdict.verdict, verdict.decision) == ("allow", "audit")
    assert verdict.would == ({"rule": "refund_window", "verdict": "deny"},)
    assert verdict.matched == ()


def test_rules_without_facts_are_the_second_check() -> None:
    verdict = _decide(WINDOW, STAFF, data=_with("user.role", "guest") | {"order": {}})
    assert (verdict.verdict, verdict.stage, verdict.reason) == ("deny", "rule", "staff_only")
    assert verdict.rule_errors == ()


@pytest.mark.parametrize("value", [..., None])
def test_a_fact_that_is_gone_denies_and_is_named(value: Any) -> None:
    verdict = _decide(WINDOW, data=_with("order.age_days", value))
    assert (verdict.verdict, verdict.reason) == ("deny", "evidence_missing:order.age_days")
    assert verdict.rule_errors == ({"rule": "refund_window", "code": "missing", "pointer": "/>/0/var"},)


@pytest.mark.parametrize("rule", [WINDOW, LIMIT, STAFF])
@pytest.mark.parametrize("value", [..., None, "12", True, [], {}, [31]])
def test_no_fact_that_is_gone_or_of_another_type_widens_a_verdict(rule: PolicyRule, value: Any) -> None:
    for path in ("order.age_days", "args.amount", "user.role"):
        data = _with(path, value)
        before = _decide(rule)
        after = _decide(rule, data=data, arguments=data["args"])
        assert not is_stricter(before.verdict, after.verdict)
        assert before.verdict == after.verdict or after.verdict == "deny"


def test_a_rule_that_is_none_denies_and_one_in_the_shadow_does_not() -> None:
    broken = WINDOW._replace(condition={"log": "x"})
    assert _decide(broken).reason == "policy_eval_error"
    assert _decide(broken._replace(mode="shadow")).verdict == "allow"
    assert _decide(WINDOW._replace(condition="yes", verdict="allow")).reason == "policy_eval_error"


def test_each_rule_has_operations_of_its_own() -> None:
    long = STAFF._replace(condition={"some": [{"var": "order.items"}, {"!": [True]}]})
    data = {**DATA, "order": {"items": [0] * 6000}}
    assert _decide(long, long, data=data).verdict == "allow"
    assert _decide(long, data={**DATA, "order": {"items": [0] * 10_000}}).reason == "policy_eval_error"


def test_obligations_are_collected_and_unknown_ones_deny() -> None:
    kept = _decide(LIMIT._replace(obligations=("evidence", "mask:receipt.card")))
    assert kept.obligations == ("evidence", "mask:receipt.card", "idempotency_key")
    assert _decide(LIMIT._replace(obligations=("evidense",))).reason == "policy_eval_error"


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        ({"max": 240}, True),
        ({"max": 239}, False),
        ({"min": 241}, False),
        ({"min": 1, "max": 300}, True),
        ({"enum": [240]}, True),
        ({"enum": [1, "240"]}, False),
    ],
)
def test_broken_limits_of_arguments_deny(limit: dict[str, Any], kept: bool) -> None:
    verdict = _decide(LIMIT._replace(limits={"amount": limit}))
    assert (verdict.verdict == "allow_with_gate") is kept
    assert verdict.reason == "refund_limit"
    gone = _decide(LIMIT._replace(limits={"currency": limit}))
    assert gone.verdict == "deny"


def test_rules_on_arguments_wait_for_the_call() -> None:
    verdict = _decide(LIMIT, data={"user": {}, "order": DATA["order"]}, arguments=None)
    assert verdict.verdict == "allow"
    assert verdict.rule_errors == ()


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("payments.*", "payments.refund", True),
        ("payments.*", "payment.refund", False),
        ("*.refund", "payments.refund", True),
        ("*", "a.b", True),
        ("a*b*c", "a1b2c", True),
        ("a*b*c", "acb", False),
        ("ab*ba", "aba", False),
        ("a.b", "a.bc", False),
        ("a.b", "axb", False),
    ],
)
def test_only_a_star_stands_for_other_text(pattern: str, name: str, fits: bool) -> None:
    assert applies((pattern,), name) is fits
    assert applies((), name)


def test_rules_are_found_once_by_capability() -> None:
    policy = _policy(WINDOW, LIMIT, STAFF)
    found = policy.rules_for("support.refund", "payments.refund")
    assert [rule.declared.rule_id for rule in found] == ["refund_window", "refund_limit", "staff_only"]
    again = policy.rules_for("support.refund", "payments.refund")
    assert all(before is after for before, after in zip(found, again, strict=True))
    assert [r.declared.rule_id for r in policy.rules_for("support.status", "orders.lookup")] == ["staff_only"]


@pytest.mark.parametrize(
    ("spec", "declared", "mode"),
    [
        ({"properties": {"side_effects": False}}, "", "read_only"),
        ({"properties": {"side_effects": True, "idempotent": True}}, "", "local_write"),
        ({"properties": {"side_effects": True}}, "", "network"),
        ({}, "", "network"),
        ({"properties": {"side_effects": False}, "safety": {"trust_level": "elevated"}}, "", "delegated"),
        ({"properties": {"side_effects": False}, "safety": {"trust_level": "privileged"}}, "", "destructive"),
        ({"properties": {"side_effects": True}, "safety": {"reversible": False}}, "", "destructive"),
        ({"properties": {"side_effects": False}, "safety": {"reversible": False}}, "", "read_only"),
        ({"properties": {"side_effects": False}}, "destructive", "destructive"),
        ({"properties": {"side_effects": True}}, "read_only", "network"),
    ],
)
def test_the_mode_of_a_capability_is_the_highest_that_anything_asks_for(
    spec: dict[str, Any], declared: str, mode: str
) -> None:
    raw = {"id": "a.b", "version": "1.0.0", "description": "x", "inputs": {}, "outputs": {}, **spec}
    assert approval_mode(capability_from(raw), declared) == mode


def test_verdicts_are_ordered() -> None:
    assert all(is_stricter(a, b) for a, b in pairwise(VERDICTS))
