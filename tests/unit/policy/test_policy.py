"""Permission, rule and situation (docs/reference/pack.md#checks)."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import pytest

from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import (
    VERDICTS,
    ArgumentLimit,
    PackIntent,
    PolicyRule,
    RuleOutcome,
    RuleScope,
)
from cogcli.policy.pack_policy import STATE_PARTS, GovernedCall, Policy, applies, paths_overlap
from cogcli.policy.verdict import Verdict, approval_mode, is_stricter


def _rule(id: str, verdict: str, condition: Any = True, **members: Any) -> PolicyRule:
    """A rule; members that are none of its own are those of its outcome."""
    own = {name: members.pop(name) for name in ("mode", "scope") if name in members}
    rule = PolicyRule(
        rule_id=id, mode="enforce", condition=condition, then=RuleOutcome(verdict=verdict)
    )
    return _with_outcome(rule.replace(**own), **members)


def _with_outcome(rule: PolicyRule, **members: Any) -> PolicyRule:
    if "limits" in members:
        members["limits"] = {
            name: ArgumentLimit.of(limit) for name, limit in members["limits"].items()
        }
    return rule.replace(then=rule.then.replace(**members))


def _scope(intents: tuple[str, ...] = (), capabilities: tuple[str, ...] = ()) -> RuleScope:
    return RuleScope(intents=intents, capabilities=capabilities)


WINDOW = _rule(
    "refund_window",
    "deny",
    {">": [{"var": "order.age_days"}, 30]},
    scope=_scope(("support.refund",), ("payments.*",)),
)
LIMIT = _rule(
    "refund_limit",
    "allow_with_gate",
    {">": [{"var": "args.amount"}, 200]},
    scope=_scope((), ("payments.refund",)),
    gate="GATE_FINANCE_APPROVAL",
)
STAFF = _rule("staff_only", "deny", {"!=": [{"var": "user.role"}, "staff"]})
DATA: dict[str, Any] = {
    "user": {"role": "staff"},
    "order": {"id": "ord_881", "age_days": 12, "total": 240},
    "args": {"amount": 240},
}


def _policy(*rules: PolicyRule, hosts: list[str] | None = None) -> Policy:
    return Policy(
        permissions={"support": ["orders.lookup", "payments.refund"], "other": []},
        intents={
            "support.refund": PackIntent(
                id="support.refund", capabilities=("orders.lookup", "payments.refund")
            ),
            "support.status": PackIntent(id="support.status", capabilities=("orders.lookup",)),
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
    assert (verdict.outcome, verdict.stage, verdict.reason) == ("deny", stage, reason)
    assert verdict.decision == "veto"
    assert not verdict.allows


def test_no_match_allows() -> None:
    verdict = _decide(WINDOW, hosts=["pay.example"], host="pay.example")
    assert (verdict.outcome, verdict.decision, verdict.reason) == ("allow", "allow", "no_rule")
    assert verdict.stage == "situation"
    assert verdict.reads == {"order.age_days": 12}
    assert _decide(hosts=[]).outcome == "allow"
    assert verdict.obligations == ("idempotency_key",)


def test_the_strictest_enforced_match_counts() -> None:
    gated = _decide(WINDOW, LIMIT)
    assert (gated.outcome, gated.gate, gated.reason) == (
        "allow_with_gate",
        "GATE_FINANCE_APPROVAL",
        "refund_limit",
    )
    denied = _decide(LIMIT, WINDOW, data=_with("order.age_days", 31))
    assert (denied.outcome, denied.rule, denied.gate) == ("deny", "refund_window", "")
    assert denied.matched == ("refund_limit", "refund_window")


def test_what_is_destructive_has_a_gate_whatever_rules_say() -> None:
    assert _decide(approval_mode="destructive").gate == "GATE_OPERATOR"
    assert _decide(LIMIT, approval_mode="destructive").gate == "GATE_FINANCE_APPROVAL"


def test_a_shadow_rule_only_says_what_it_would_do() -> None:
    verdict = _decide(WINDOW.replace(mode="shadow"), data=_with("order.age_days", 31))
    assert (verdict.outcome, verdict.decision) == ("allow", "audit")
    assert verdict.would == ({"rule": "refund_window", "verdict": "deny"},)
    assert verdict.matched == ()


def test_a_rule_over_all_that_is_known_before_is_of_the_second_check() -> None:
    known = {"missing": [f"{part}.x" for part in ("request", "user", "agent", "run", "call")]}
    assert _decide(_rule("known", "deny", {"!!": known})).stage == "rule"
    assert (
        _decide(_rule("more", "deny", {"!!": {"missing": [*known["missing"], "args.x"]}})).stage
        == "situation"
    )


def test_rules_without_facts_are_the_second_check() -> None:
    verdict = _decide(WINDOW, STAFF, data=_with("user.role", "guest") | {"order": {}})
    assert (verdict.outcome, verdict.stage, verdict.reason) == ("deny", "rule", "staff_only")
    assert verdict.rule_errors == ()


@pytest.mark.parametrize("value", [..., None])
def test_a_fact_that_is_gone_denies_and_is_named(value: Any) -> None:
    verdict = _decide(WINDOW, data=_with("order.age_days", value))
    assert (verdict.outcome, verdict.reason) == ("deny", "evidence_missing:order.age_days")
    assert verdict.rule_errors == (
        {"rule": "refund_window", "code": "missing", "pointer": "/>/0/var"},
    )


@pytest.mark.parametrize("rule", [WINDOW, LIMIT, STAFF])
@pytest.mark.parametrize("value", [..., None, "12", True, [], {}, [31]])
def test_no_fact_that_is_gone_or_of_another_type_widens_a_verdict(
    rule: PolicyRule, value: Any
) -> None:
    for path in ("order.age_days", "args.amount", "user.role"):
        data = _with(path, value)
        before = _decide(rule)
        after = _decide(rule, data=data, arguments=data["args"])
        assert not is_stricter(before.outcome, after.outcome)
        assert before.outcome == after.outcome or after.outcome == "deny"


def test_a_rule_that_is_none_denies_and_one_in_the_shadow_does_not() -> None:
    broken = WINDOW.replace(condition={"log": "x"})
    assert _decide(broken).reason == "policy_eval_error"
    assert _decide(broken.replace(mode="shadow")).outcome == "allow"
    assert (
        _decide(_with_outcome(WINDOW.replace(condition="yes"), verdict="allow")).reason
        == "policy_eval_error"
    )


def test_each_rule_has_operations_of_its_own() -> None:
    long = STAFF.replace(condition={"some": [{"var": "order.items"}, {"!": [True]}]})
    data = {**DATA, "order": {"items": [0] * 6000}}
    assert _decide(long, long, data=data).outcome == "allow"
    assert (
        _decide(long, data={**DATA, "order": {"items": [0] * 10_000}}).reason == "policy_eval_error"
    )


def test_obligations_are_collected_and_unknown_ones_deny() -> None:
    kept = _decide(_with_outcome(LIMIT, obligations=("evidence", "mask:receipt.card")))
    assert kept.obligations == ("evidence", "mask:receipt.card", "idempotency_key")
    assert _decide(_with_outcome(LIMIT, obligations=("evidense",))).reason == "policy_eval_error"


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
    verdict = _decide(_with_outcome(LIMIT, limits={"amount": limit}))
    assert (verdict.outcome == "allow_with_gate") is kept
    assert verdict.reason == "refund_limit"
    gone = _decide(_with_outcome(LIMIT, limits={"currency": limit}))
    assert gone.outcome == "deny"


def test_rules_on_arguments_wait_for_the_call() -> None:
    verdict = _decide(LIMIT, data={"user": {}, "order": DATA["order"]}, arguments=None)
    assert verdict.outcome == "allow"
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
        ("a*x*c", "abc", False),
        ("a*b*b*c", "abc", False),
        ("a*b*b*c", "abbc", True),
        ("a*bc*c", "abc", False),
        ("a**b", "ab", True),
        ("*a", "a", True),
        ("a*", "b", False),
        ("*b", "ba", False),
        ("a*b*", "ab", True),
        ("*a*b", "ab", True),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_only_a_star_stands_for_other_text(pattern: str, name: str, fits: bool) -> None:
    assert applies((pattern,), name) is fits
    assert applies((), name)


def test_rules_are_found_once_by_capability() -> None:
    policy = _policy(WINDOW, LIMIT, STAFF)
    found = policy.rules_for("support.refund", "payments.refund")
    assert [rule.declared.rule_id for rule in found] == [
        "refund_window",
        "refund_limit",
        "staff_only",
    ]
    again = policy.rules_for("support.refund", "payments.refund")
    assert all(before is after for before, after in zip(found, again, strict=True))
    assert [r.declared.rule_id for r in policy.rules_for("support.status", "orders.lookup")] == [
        "staff_only"
    ]


@pytest.mark.parametrize(
    ("spec", "declared", "mode"),
    [
        ({"properties": {"side_effects": False}}, "", "read_only"),
        ({"properties": {"side_effects": True, "idempotent": True}}, "", "local_write"),
        ({"properties": {"side_effects": True}}, "", "network"),
        ({}, "", "network"),
        (
            {"properties": {"side_effects": False}, "safety": {"trust_level": "elevated"}},
            "",
            "delegated",
        ),
        (
            {"properties": {"side_effects": False}, "safety": {"trust_level": "privileged"}},
            "",
            "destructive",
        ),
        (
            {"properties": {"side_effects": True}, "safety": {"reversible": False}},
            "",
            "destructive",
        ),
        ({"properties": {"side_effects": True}, "safety": {"reversible": True}}, "", "network"),
        ({"properties": {"side_effects": False}, "safety": {"reversible": False}}, "", "read_only"),
        ({"properties": {"side_effects": False}}, "destructive", "destructive"),
        ({"properties": {"side_effects": True}}, "read_only", "network"),
    ],
)
def test_the_mode_of_a_capability_is_the_highest_that_anything_asks_for(
    spec: dict[str, Any], declared: str, mode: str
) -> None:
    raw = {"id": "a.b", "version": "1.0.0", "description": "x", "inputs": {}, "outputs": {}, **spec}
    assert approval_mode(Capability.of(raw), declared) == mode


def test_a_whole_verdict() -> None:
    rules = (
        _rule("first", "allow", obligations=("evidence",)),
        _rule("ghost", "escalate", mode="shadow", gate="GATE_X"),
        _rule("lost", "allow", {"==": [{"var": "order.x"}, 1]}, mode="shadow"),
        _rule(
            "third",
            "allow_with_gate",
            {">": [{"var": "args.amount"}, 200]},
            gate="GATE_FINANCE_APPROVAL",
        ),
        _rule("fourth", "allow_with_gate", {"==": [{"var": "order.total"}, 240]}, gate="GATE_Y"),
    )
    assert _decide(*rules, approval_mode="delegated") == Verdict(
        "allow_with_gate",
        "situation",
        "third",
        rule="third",
        gate="GATE_FINANCE_APPROVAL",
        approval_mode="delegated",
        matched=("first", "third", "fourth"),
        would=({"rule": "ghost", "verdict": "escalate"}, {"rule": "lost", "verdict": "deny"}),
        rule_errors=({"rule": "lost", "code": "missing", "pointer": "/==/0/var"},),
        obligations=("evidence", "idempotency_key", "named_user"),
        reads={"order.x": None, "args.amount": 240, "order.total": 240},
    )


def test_a_no_before_any_rule_reads_nothing() -> None:
    assert _decide(WINDOW, role="other") == Verdict(
        "deny", "permission", "permission_denied", approval_mode="network"
    )


@pytest.mark.parametrize(
    ("rules", "verdict", "stage", "reason", "rule", "gate"),
    [
        ([("a", "allow"), ("b", "allow")], "allow", "rule", "a", "a", ""),
        (
            [("a", "allow"), ("b", "allow_with_gate")],
            "allow_with_gate",
            "rule",
            "b",
            "b",
            "GATE_OPERATOR",
        ),
        (
            [("a", "escalate"), ("b", "allow_with_gate")],
            "escalate",
            "rule",
            "a",
            "a",
            "GATE_OPERATOR",
        ),
        ([("a", "refuse"), ("b", "deny"), ("c", "deny")], "deny", "rule", "b", "b", ""),
        ([("a", "refuse"), ("b", "allow")], "refuse", "rule", "a", "a", ""),
    ],
)
def test_of_equals_the_first_counts(
    rules: list[tuple[str, str]], verdict: str, stage: str, reason: str, rule: str, gate: str
) -> None:
    found = _decide(*[_rule(id, word) for id, word in rules])
    assert (found.outcome, found.stage, found.reason, found.rule, found.gate) == (
        verdict,
        stage,
        reason,
        rule,
        gate,
    )


def test_a_gate_is_that_of_the_verdict_it_came_with() -> None:
    lost = _rule("lost", "allow_with_gate", {"==": [{"var": "order.x"}, 1]}, gate="GATE_X")
    denied = _decide(lost)
    assert (denied.outcome, denied.rule, denied.gate) == ("deny", "lost", "")
    assert _decide(_rule("a", "escalate", gate="GATE_X")).gate == "GATE_X"
    assert _decide(_rule("a", "allow", gate="GATE_X"), approval_mode="destructive").gate == "GATE_X"
    destructive = _decide(_rule("a", "allow"), approval_mode="destructive")
    assert (destructive.outcome, destructive.gate, destructive.reason, destructive.rule) == (
        "allow_with_gate",
        "GATE_OPERATOR",
        "destructive",
        "a",
    )


@pytest.mark.parametrize(
    ("verdict", "goes_on"),
    [
        ("deny", False),
        ("refuse", False),
        ("escalate", True),
        ("allow_with_gate", True),
        ("allow", True),
    ],
)
def test_the_third_check_comes_only_after_the_second_did_not_say_no(
    verdict: str, goes_on: bool
) -> None:
    fact = _rule("fact", "allow", {"==": [{"var": "order.total"}, 240]})
    for rules in ((_rule("known", verdict), fact), (fact, _rule("known", verdict))):
        assert ("order.total" in _decide(*rules).reads) is goes_on


@pytest.mark.parametrize(
    ("rule", "stage", "waits"),
    [
        (_rule("a", "deny"), "rule", False),
        (_rule("a", "deny", {"==": [{"var": "user.role"}, 1]}), "rule", False),
        (
            _rule("a", "deny", {"==": [{"var": "request.params.x"}, {"var": "run.turn"}]}),
            "rule",
            False,
        ),
        (_rule("a", "deny", {"==": [{"var": "agent.role"}, {"var": "call.step"}]}), "rule", False),
        (_rule("a", "deny", {"==": [{"var": "order.total"}, 1]}), "situation", False),
        (_rule("a", "deny", {"==": [{"var": "users"}, 1]}), "situation", False),
        (_rule("a", "deny", {"==": [{"var": ""}, 1]}), "situation", False),
        (_rule("a", "deny", {"==": [{"var": "state.goal"}, 1]}), "situation", False),
        (_rule("a", "deny", {"!": [{"missing": {"merge": [["user.id"]]}}]}), "situation", False),
        (_rule("a", "deny", {"==": [{"var": "args.amount"}, 1]}), "situation", True),
        (_rule("a", "deny", {"==": [{"var": "args"}, 1]}), "situation", True),
        (_rule("a", "deny", limits={"amount": {"max": 1}}), "situation", True),
    ],
)
def test_what_a_rule_reads_says_when_it_is_asked(rule: PolicyRule, stage: str, waits: bool) -> None:
    (compiled,) = _policy(rule).rules_for("support.refund", "payments.refund")
    assert (compiled.stage, compiled.needs_arguments) == (stage, waits)
    found = _decide(rule, arguments=None)
    assert bool(found.reads or found.matched) is not waits


def test_rules_for_arguments_that_are_not_known_yet_are_not_read() -> None:
    assert _decide(LIMIT, WINDOW, arguments=None).reads == {"order.age_days": 12}


@pytest.mark.parametrize(
    ("scope", "applies_to"),
    [
        (_scope(), [("support.refund", "payments.refund"), ("support.status", "orders.lookup")]),
        (_scope((), ("payments.refund",)), [("support.refund", "payments.refund")]),
        (_scope((), ("orders.lookup", "payments.refund", "payments.refund")),
         [("support.refund", "payments.refund"), ("support.status", "orders.lookup")]),
        (_scope((), ("orders.*", "mail.send")), [("support.status", "orders.lookup")]),
        (_scope(("support.refund",), ()), [("support.refund", "payments.refund")]),
        (_scope(("*.status",), ("orders.lookup",)), [("support.status", "orders.lookup")]),
        (_scope(("*.status",), ("payments.*",)), []),
    ],
)  # fmt: skip
def test_where_a_rule_applies(scope: RuleScope, applies_to: list[tuple[str, str]]) -> None:
    policy = _policy(_rule("a", "deny", scope=scope))
    calls = [("support.refund", "payments.refund"), ("support.status", "orders.lookup")]
    assert [call for call in calls if policy.rules_for(*call)] == applies_to


def test_rules_stay_in_the_order_of_the_pack_however_they_are_found() -> None:
    named, every, pattern = (
        _scope((), ("payments.refund",)),
        _scope(),
        _scope((), ("pay*",)),
    )
    rules = [
        _rule(f"r{n}", "allow", scope=scope)
        for n, scope in enumerate([named, every, pattern, named])
    ]
    found = _policy(*rules).rules_for("support.refund", "payments.refund")
    assert [rule.declared.rule_id for rule in found] == ["r0", "r1", "r2", "r3"]


@pytest.mark.parametrize(
    ("mode", "obligations"),
    [
        ("read_only", ()),
        ("local_write", ("idempotency_key",)),
        ("network", ("idempotency_key",)),
        ("delegated", ("idempotency_key", "named_user")),
        ("destructive", ("idempotency_key", "named_user")),
    ],
)
def test_what_a_mode_adds(mode: str, obligations: tuple[str, ...]) -> None:
    assert _decide(approval_mode=mode).obligations == obligations
    assert _decide(_rule("a", "deny"), approval_mode=mode).obligations == ()
    assert _decide(_rule("a", "escalate"), approval_mode=mode).obligations == ()


def test_a_rule_may_want_a_named_user_of_a_lower_mode() -> None:
    rule = _rule("a", "allow", obligations=("named_user",))
    assert _decide(rule).outcome == "allow"
    denied = _decide(rule, named_user=False)
    assert (denied.outcome, denied.reason, denied.rule, denied.gate) == (
        "deny",
        "named_user",
        "",
        "",
    )
    assert _decide(named_user=False).outcome == "allow"


def test_a_host_that_is_not_listed_goes_before_a_user_without_a_name() -> None:
    both = _decide(
        LIMIT, hosts=["a.example"], host="b.example", named_user=False, approval_mode="delegated"
    )
    assert (both.stage, both.reason, both.rule, both.gate) == (
        "situation",
        "host_not_listed",
        "",
        "",
    )
    assert _decide(hosts=["a.example"], host="").outcome == "allow"
    assert _decide(hosts=None, host="b.example").outcome == "allow"


def test_a_rule_of_the_second_check_without_a_result() -> None:
    lost = _decide(_rule("a", "allow", {"==": [{"var": "user.name"}, "x"]}))
    assert (lost.stage, lost.reason) == ("rule", "policy_eval_error")
    broken = _decide(_rule("a", "allow", {"==": [{"var": "order.total"}, "x"]}))
    assert (broken.stage, broken.reason) == ("situation", "policy_eval_error")


@pytest.mark.parametrize(
    ("value", "limit", "kept"),
    [
        (5, {}, True),
        (5, {"max": 5, "min": 5}, True),
        (5.5, {"max": 5.5}, True),
        (True, {"max": 5}, False),
        ("5", {"max": 5}, False),
        (None, {"min": 0}, False),
        (True, {"enum": [1]}, False),
        (1, {"enum": [True, 1.0]}, True),
        ("a", {"enum": ["a"], "max": 5}, False),
        (4, {"enum": [4], "max": 3}, False),
        ({"a": [1]}, {"enum": [{"a": [1.0]}]}, True),
        (None, {}, True),
    ],
)
def test_what_keeps_a_limit(value: Any, limit: dict[str, Any], kept: bool) -> None:
    found = _decide(_rule("a", "allow", limits={"amount": limit}), data=_with("args.amount", value))
    assert (found.outcome, found.reason, found.matched) == (
        "allow" if kept else "deny",
        "a",
        ("a",),
    )


def test_every_limit_is_kept() -> None:
    limits: dict[str, dict[str, Any]] = {"amount": {"max": 300}, "currency": {"enum": ["EUR"]}}
    assert _decide(_rule("a", "allow", limits=limits)).outcome == "deny"
    assert _decide(_rule("a", "allow", limits={"amount": {"max": 300}})).outcome == "allow"
    broken = _rule("a", "allow", limits=limits, obligations=("evidense",))
    assert _decide(broken).reason == "a"


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ({">": [{"var": "args.n"}, 9]}, set()),
        ({"==": [{"var": "states.plan"}, "state.goal"]}, set()),
        ({"==": [{"var": "order.state"}, 9]}, set()),
        ({"==": [{"var": "state.beliefs"}, 9]}, set()),
        ({"==": [{"var": "state.goal.task"}, "x"]}, {"goal"}),
        ({"!": [{"missing": ["state.plan.steps.0", "state.memory"]}]}, {"plan", "memory"}),
        ({"!": [{"missing_some": [1, ["state.plan"]]}]}, {"plan"}),
        ({"some": [{"var": "state.outcomes.actions"}, {"var": "state.goal"}]}, {"outcomes"}),
        (
            {"or": [{"!": {"missing": ["state.goal"]}}, {"==": [{"var": "state.plan.id"}, ""]}]},
            {"goal", "plan"},
        ),
        ({"==": [{"var": "state"}, {}]}, STATE_PARTS),
        ({"==": [{"var": ""}, {}]}, STATE_PARTS),
        ({"!!": [{"missing": {"merge": [["state.goal"], ["x"]]}}]}, STATE_PARTS),
        ({"!!": [{"missing": {"var": "names"}}]}, STATE_PARTS),
    ],
)
def test_which_parts_of_the_state_rules_may_read(condition: Any, parts: set[str]) -> None:
    assert {"goal", "plan", "memory", "outcomes"} == STATE_PARTS
    assert _policy(STAFF, _rule("a", "deny", condition), WINDOW).state_parts == parts
    assert _policy().state_parts == set()


@pytest.mark.parametrize(
    ("modes", "mode"),
    [
        ([], "advisory"),
        (["shadow", "shadow"], "advisory"),
        (["enforce", "enforce"], "interventive"),
        (["shadow", "enforce"], "hybrid"),
        (["enforce", "shadow"], "hybrid"),
    ],
)
def test_how_rules_take_part_in_a_run(modes: list[str], mode: str) -> None:
    rules = [_rule(f"r{number}", "deny", mode=each) for number, each in enumerate(modes)]
    assert _policy(*rules).intuition_mode == mode


def test_verdicts_are_ordered() -> None:
    assert all(is_stricter(a, b) for a, b in pairwise(VERDICTS))


def _offering(*rules: PolicyRule, listed: tuple[str, ...] = ("skill:t.pay",)) -> Policy:
    """A pack that permits a skill only."""
    return Policy(
        permissions={"support": ["skill:t.pay", "orders.lookup"]},
        intents={"support.refund": PackIntent(id="support.refund", capabilities=listed)},
        rules=rules,
    )


def _inside(
    policy: Policy, *inside: str, intent: str = "support.refund", **members: Any
) -> tuple[str, str]:
    """Verdict and reason of a call in these tools, with rules about an order of 31 days."""
    call = GovernedCall(
        "payments.refund", "network", "support", "destructive", {"amount": 240}, inside=inside
    )
    verdict = policy.decide(intent, call._replace(**members), _with("order.age_days", 31))
    return verdict.outcome, verdict.reason


def test_a_call_inside_a_tool_needs_no_entry_of_its_own() -> None:
    assert _inside(_offering(), "skill:t.pay") == ("allow", "no_rule")
    assert _inside(_offering(), "skill:t.outer", "skill:t.pay") == ("allow", "no_rule")


@pytest.mark.parametrize(
    ("policy", "inside", "members", "reason"),
    [
        (_offering(), (), {}, "permission_denied"),
        (_offering(), ("skill:t.other",), {}, "permission_denied"),
        (_offering(), ("skill:t.pay",), {"role": "other"}, "permission_denied"),
        (_offering(), ("skill:t.pay",), {"intent": "support.status"}, "permission_denied"),
        (_offering(listed=()), ("skill:t.pay",), {}, "permission_denied"),
        (_offering(listed=()), ("skill:t.pay",), {"capability": "orders.lookup"}, "not_in_intent"),
        (_offering(), ("skill:t.pay",), {"safety_mode": "local_write"}, "above_safety_mode"),
        (_offering(WINDOW), ("skill:t.pay",), {"capability": "payments.void"}, "refund_window"),
    ],
)
def test_nothing_else_is_widened(
    policy: Policy, inside: tuple[str, ...], members: dict[str, Any], reason: str
) -> None:
    assert _inside(policy, *inside, **members) == ("deny", reason)


def test_a_tool_whose_calls_ask_is_not_asked_for_itself() -> None:
    call = GovernedCall("skill:t.pay", "destructive", "support", "destructive", {})
    policy = _offering()
    assert policy.decide("support.refund", call, DATA).outcome == "allow_with_gate"
    assert policy.decide("support.refund", call._replace(asks_inside=True), DATA).outcome == "allow"
    limit = LIMIT.replace(scope=_scope((), ("skill:t.pay",)))
    ruled = _offering(limit).decide("support.refund", call._replace(asks_inside=True), DATA)
    assert (ruled.outcome, ruled.gate) == ("allow_with_gate", "GATE_FINANCE_APPROVAL")


@pytest.mark.parametrize(
    ("unknown", "verdict", "waiting"),
    [
        (("args.amount",), "allow", ("amounts",)),
        (("args",), "allow", ("amounts",)),
        (("args.amount.cents",), "allow", ("amounts",)),
        (("",), "allow", ("amounts",)),
        (("args.amounts", "order", "vars"), "deny", ()),
        ((), "deny", ()),
    ],
)
def test_a_rule_waits_for_a_value_that_is_not_known(
    unknown: tuple[str, ...], verdict: str, waiting: tuple[str, ...]
) -> None:
    rule = _rule("amounts", "deny", condition={">": [{"var": "args.amount"}, 200]})
    decided = _decide(rule, unknown=unknown)
    assert (decided.outcome, decided.waiting) == (verdict, waiting)


COMPUTED_NAME = {"if": [{"var": "args.urgent"}, "outputs.order", "args.gone"]}


@pytest.mark.parametrize(
    "condition", [{"!": [{"missing": [""]}]}, {"!!": [{"missing": [COMPUTED_NAME]}]}]
)
def test_a_rule_that_may_read_anything_waits_for_whatever_is_not_known(condition: Any) -> None:
    rule = _rule("anything", "deny", condition=condition)
    data = _with("args.urgent", False)
    waits = _decide(rule, data=data, unknown=("outputs.order",))
    assert (waits.outcome, waits.waiting) == ("allow", ("anything",))
    assert _decide(rule, data=data, unknown=()).reason == "anything"


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("", "args", True),
        ("", "", True),
        ("args", "args", True),
        ("args", "args.amount", True),
        ("args.amount", "args.amount.cents", True),
        ("args", "argsx", False),
        ("args.amount", "args.total", False),
        ("order.id", "args.id", False),
    ],
)
def test_paths_overlap_where_one_is_within_the_other(one: str, other: str, overlap: bool) -> None:
    assert paths_overlap(one, other) is overlap
    assert paths_overlap(other, one) is overlap
