"""The policy of a run tree (docs/reference/pack.md#governed-calls)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from fakes.sink import event_of
from fakes.support_desk import CAPABILITIES, READ, capability, pack, raw_pack

from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Draft, Event
from cogcli.declarations.pack_spec import PackGate
from cogcli.policy.budgets import Budgets
from cogcli.policy.pack_policy import Policy
from cogcli.policy.run_policy import (
    LimitsPolicy,
    OwnSkill,
    Requester,
    RunPolicy,
    with_value,
)
from cogcli.policy.verdict import Verdict
from cogcli.state.execution import RunState

LOOKUP, REFUND = CAPABILITIES["orders.lookup"], CAPABILITIES["payments.refund"]
FRESH = {"age_days": 12, "total": 240}
NOW = "2026-05-04T09:30:00Z"


UNNAMED = Requester("support.refund", role="support_agent")


def _policy(rules: list[dict[str, Any]] | None = None, **members: Any) -> RunPolicy:
    """The support desk's, with other rules where some are given."""
    layer = raw_pack()["policy_layer"]
    sections = members.pop("sections", {})
    of = pack(
        **({"policy_layer": {**layer, "rules": rules}} if rules is not None else {}), **sections
    )
    asked = members.pop("requester", Requester("support.refund", "cust_7", role="support_agent"))
    given: dict[str, Any] = {
        "safety_mode": "destructive",
        "slots": {"order": "order:ord_881"},
        **members,
    }
    return RunPolicy(of, Policy.of(of), Budgets({}), asked, **given)


def _rule(condition: Any = True, **then: Any) -> dict[str, Any]:
    return {
        "rule_id": "it",
        "mode": "enforce",
        "if": condition,
        "then": {"verdict": "deny", **then},
    }


def _judged(
    policy: RunPolicy, of: Any = LOOKUP, arguments: Mapping[str, Any] | None = None, now: str = NOW
) -> Verdict:
    state = RunState({"a": 1}, {"b": 2}, {"c": 3}, now)
    return policy.judge(of, arguments or {}, state, "outer/step", ("crm",))


ASKED = Requester(
    "support.refund",
    "cust_7",
    "staff",
    ("preference",),
    "support_agent",
    "neutral",
    "hello",
    "mail",
    "de",
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (
            "request",
            {"intent": "support.refund", "message": "hello", "channel": "mail", "locale": "de", "params": {"a": 1}},
        ),
        ("user", {"id": "cust_7", "role": "staff", "consent": ["preference"]}),
        ("agent", {"role": "support_agent", "voice": "neutral"}),
        ("run", {"safety_mode": "destructive", "turn": 1, "now": "2026-05-04T09:30:00Z"}),
        ("call", {"capability": "orders.lookup", "approval_mode": "read_only", "step": "outer/step"}),
        ("args", {"order_id": "x"}),
        ("inputs", {"a": 1}),
        ("vars", {"b": 2}),
        ("outputs", {"c": 3}),
        ("state", {}),
        ("order", {"id": "ord_881"}),
    ],
)  # fmt: skip
def test_what_a_rule_sees(path: str, value: Any) -> None:
    policy = _policy([_rule({"!": [{"missing": [path]}]})], requester=ASKED)
    assert _judged(policy, arguments={"order_id": "x"}).reads == {path: value}


class View:
    """A state that counts its events."""

    def __init__(self) -> None:
        self.seen = 0

    def apply(self, event: Event) -> None:
        self.seen += 1

    def read(self) -> Mapping[str, Any]:
        return {"outcomes": {"seen": self.seen}}


def test_rules_see_the_state_as_of_the_last_event() -> None:
    view = View()
    policy = _policy([_rule({"==": [{"var": "state.outcomes.seen"}, 1]})], view=view)
    assert policy.observe == view.apply
    assert _judged(policy).outcome == "allow"
    view.apply(event_of(Draft("policy.decided", "governance", "run_1", {}), 0, "0", "t"))
    assert _judged(policy).reads == {"state.outcomes.seen": 1}
    assert _judged(policy).outcome == "deny"
    assert policy.snapshot == {"outcomes": {"seen": 1}}
    assert (_policy().observe, _policy().snapshot) == (None, {})


def test_rules_see_the_turn() -> None:
    policy = _policy([_rule({"==": [{"var": "run.turn"}, 2]})])
    assert _judged(policy).outcome == "allow"
    policy.turn = 2
    assert _judged(policy).outcome == "deny"


def test_what_is_known_before_any_call_stands_below_what_calls_gave() -> None:
    policy = _policy(
        [_rule({"!": [{"missing": ["order"]}]})], required=("order.total", "order.age_days")
    )
    assert policy.unresolved == ("order.total", "order.age_days")
    policy.learn("orders.lookup", {"age_days": 12}, NOW)
    policy.merge_known_facts(
        {"order": {"id": "other", "age_days": 99, "total": 5}, "parcel": {"size": 1}}
    )
    assert _judged(policy).reads == {"order": {"id": "ord_881", "age_days": 12, "total": 5}}
    assert policy.unresolved == ()
    policy.merge_known_facts({"order": {"total": 6}})
    assert policy.unresolved == ()


def test_a_user_without_a_name_is_the_default_one() -> None:
    assert Requester("x") == Requester("x", "default", "", (), "", "", "", "", "")
    assert not Requester("x").is_named
    assert Requester("x", "cust_7").is_named


def test_outputs_that_a_pack_names_are_facts_for_the_next_call() -> None:
    policy = _policy([_rule({"==": [{"var": "order.age_days"}, 31]})])
    assert _judged(policy).reason == "evidence_missing:order.age_days"
    policy.learn("orders.lookup", {"age_days": 31, "total": {"in": [1]}}, NOW)
    assert _judged(policy).reason == "it"
    policy.learn("orders.lookup", {"age_days": None}, NOW)
    assert _judged(policy).reason == "it"
    policy.learn("payments.refund", {"age_days": 1}, NOW)
    policy.learn("mail.send", {"age_days": 1}, NOW)
    assert _judged(policy).reason == "it"
    policy.learn("orders.lookup", {"age_days": 12}, NOW)
    assert _judged(policy).reason == "no_rule"


def test_a_fact_may_lie_deep_begin_a_slot_and_is_the_outputs_no_more() -> None:
    facts = {"parcel.size": "output.box.size", "parcel.lines.first": "output.lines"}
    sections = {"tooling_layer": {"capabilities": {"orders.lookup": {"facts": facts}}}}
    policy = _policy([_rule({"!": [{"missing": ["parcel"]}]})], sections=sections)
    output: dict[str, Any] = {"box": {"size": 3}, "lines": [1]}
    policy.learn("orders.lookup", output, NOW)
    output["lines"].append(2)
    assert _judged(policy).reads == {"parcel": {"size": 3, "lines.first": [1]}}


def test_a_fact_cannot_stand_in_for_what_the_run_says() -> None:
    sections = {
        "tooling_layer": {
            "capabilities": {"orders.lookup": {"facts": {"user.id": "output.age_days"}}}
        }
    }
    policy = _policy([_rule({"!": [{"missing": ["user.id"]}]})], sections=sections)
    policy.learn("orders.lookup", {"age_days": 7}, NOW)
    assert _judged(policy).reads == {"user.id": "cust_7"}


def test_required_evidence_lets_nothing_above_read_only_run_before_it_is_there() -> None:
    policy = _policy([], required=("order.age_days", "order.total"))
    assert _judged(policy).outcome == "allow"
    denied = _judged(policy, REFUND)
    assert (denied.outcome, denied.stage, denied.reason) == (
        "deny",
        "situation",
        "evidence_missing:order.age_days",
    )
    assert (denied.rule, denied.gate, denied.decision) == ("", "", "veto")
    policy.learn("orders.lookup", {"age_days": 12}, NOW)
    assert _judged(policy, REFUND).reason == "evidence_missing:order.total"
    policy.learn("orders.lookup", FRESH, NOW)
    assert _judged(policy, REFUND).outcome == "allow_with_gate"
    assert (
        _judged(_policy([], required=("parcel.size",)), REFUND).reason
        == "evidence_missing:parcel.size"
    )


def test_a_no_of_a_rule_keeps_its_reason_where_evidence_is_missing_too() -> None:
    refused = _judged(_policy([_rule(verdict="refuse")], required=("order.total",)), REFUND)
    assert (refused.outcome, refused.reason, refused.rule) == ("refuse", "it", "it")


@pytest.mark.parametrize(
    ("obligations", "reason"),
    [
        ([], "it"),
        (["idempotency_key"], "it"),
        (["evidence"], "evidence_missing:order.total"),
        (["mask:receipt.card"], "it"),
        (["evidence", "mask:receipt.card"], "evidence_missing:order.total"),
    ],
)
def test_obligations_that_are_not_kept_deny(obligations: list[str], reason: str) -> None:
    policy = _policy([_rule(verdict="allow", obligations=obligations)], required=("order.total",))
    verdict = _judged(policy)
    assert verdict.reason == reason
    assert verdict.allows is (reason == "it")


def test_a_run_of_the_first_edition_masks_nothing_so_that_it_is_denied() -> None:
    policy = _policy([_rule(verdict="allow", obligations=["mask:receipt.card"])], edition=1)
    assert (_judged(policy).outcome, _judged(policy).reason) == ("deny", "obligation_not_kept")


@pytest.mark.parametrize(
    ("obligation", "reason"),
    [("evidence", "evidence_missing:order.total"), ("named_user", "named_user")],
)
def test_an_obligation_binds_a_call_that_a_person_decides_about(
    obligation: str, reason: str
) -> None:
    rules = [_rule(verdict="escalate", obligations=[obligation])]
    policy = _policy(rules, required=("order.total",), requester=UNNAMED)
    assert (_judged(policy).outcome, _judged(policy).reason) == ("deny", reason)
    policy = _policy([_rule(verdict="escalate")], requester=UNNAMED)
    assert _judged(policy).outcome == "escalate"


@pytest.mark.parametrize(
    ("hosts", "listed", "services", "reason"),
    [
        ({"a": "pay.example"}, ["pay.example"], ("a",), "no_rule"),
        ({"a": "evil.example"}, ["pay.example"], ("a",), "host_not_listed"),
        ({"a": "pay.example", "b": "evil.example"}, ["pay.example"], ("a", "b"), "host_not_listed"),
        ({"a": "evil.example", "b": "pay.example"}, ["pay.example"], ("a", "b"), "host_not_listed"),
        ({"a": "", "b": ""}, ["pay.example"], ("a", "b"), "no_rule"),
        ({"a": "", "b": "evil.example"}, ["pay.example"], ("a", "b"), "host_not_listed"),
        ({}, ["pay.example"], ("a",), "host_not_listed"),
        ({}, ["pay.example"], (), "no_rule"),
        ({"a": "evil.example"}, [], ("a",), "host_not_listed"),
        ({"a": "evil.example"}, None, ("a",), "no_rule"),
    ],
)
def test_every_service_that_a_call_may_go_to_is_listed(
    hosts: dict[str, str], listed: list[str] | None, services: tuple[str, ...], reason: str
) -> None:
    tooling = raw_pack()["tooling_layer"] | ({} if listed is None else {"hosts": listed})
    policy = _policy([], hosts=hosts, sections={"tooling_layer": tooling})
    state = RunState({}, {}, {}, "")
    for _ in range(2):
        assert policy.judge(LOOKUP, {}, state, "s", services).reason == reason


@pytest.mark.parametrize(
    ("capability", "required", "requester", "host", "reason"),
    [
        (LOOKUP, ("order.total",), UNNAMED, "", "it"),  # a read-only call may look for evidence
        (REFUND, (), ASKED, "", "it"),
        (REFUND, ("order.total",), ASKED, "", "evidence_missing:order.total"),
        (REFUND, (), UNNAMED, "", "named_user"),
        (LOOKUP, (), ASKED, "evil.example", "host_not_listed"),
    ],
)
def test_a_person_who_decides_lifts_neither_hosts_nor_evidence(
    capability: Capability, required: tuple[str, ...], requester: Requester, host: str, reason: str
) -> None:
    tooling = raw_pack()["tooling_layer"] | {"hosts": ["pay.example"]}
    policy = _policy(
        [_rule(verdict="escalate")],
        required=required,
        requester=requester,
        hosts={"a": host},
        sections={"tooling_layer": tooling},
    )
    state = RunState({}, {}, {}, "")
    verdict = policy.judge(capability, {}, state, "s", ("a",))
    assert (verdict.reason, verdict.asks) == (reason, reason == "it")


def test_the_mode_is_the_packs_where_that_is_higher() -> None:
    policy = _policy()
    for _ in range(2):
        assert [policy.mode_of(each) for each in (LOOKUP, REFUND)] == ["read_only", "destructive"]


def test_gates_by_name() -> None:
    policy = _policy()
    assert policy.gate("GATE_FINANCE_APPROVAL") == PackGate(
        approver_roles=("finance",), ttl_s=86_400
    )
    assert policy.gate("GATE_OPERATOR") == policy.gate("unknown") == PackGate()
    assert policy.name.startswith("support-desk@4.0.0#sha256:")
    assert policy.records_allow
    assert policy.intuition_mode == "interventive"


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ([1, 2, 3], "args.it.0", [9, 2, 3]),
        ([1, 2, 3], "args.it.1", [1, 9, 3]),
        ([1, 2, 3], "args.it.2", [1, 2, 9]),
        ([1, 2, 3], "args.it.3", {"3": 9}),
        ([1, 2, 3], "args.it.x", {"x": 9}),
        ({"1": 2, "3": 4}, "args.it.1", {"1": 9, "3": 4}),
        (5, "args.it.x", {"x": 9}),
        (5, "args.it", 9),
    ],
)
def test_another_value_at_a_path(before: Any, path: str, after: Any) -> None:
    data = {"args": {"it": before, "b": 1}, "user": {}}
    assert with_value(data, path, 9) == {"args": {"it": after, "b": 1}, "user": {}}
    assert data == {"args": {"it": before, "b": 1}, "user": {}}


def test_what_reaches_nothing_asks_for_itself() -> None:
    privileged = capability("payments.refund", {}, {}, safety={"trust_level": "privileged"})
    policy = _policy([], sections={"tooling_layer": {}})
    assert _judged(policy, privileged).outcome == "allow_with_gate"


@pytest.mark.parametrize(
    ("ceiling", "verdict", "reason"),
    [
        ("", "allow", "no_rule"),
        ("network", "allow", "no_rule"),
        ("local_write", "deny", "above_safety_mode"),
    ],
)
def test_without_a_pack_only_the_ceiling_counts(ceiling: str, verdict: str, reason: str) -> None:
    policy = LimitsPolicy(Budgets({"turns": 2}), ceiling)
    found = policy.judge(REFUND, {}, RunState({}, {}, {}, ""), "s")
    assert found == Verdict(verdict, "permission", reason, approval_mode="network")
    assert (
        LimitsPolicy(Budgets({})).judge(REFUND, {}, RunState({}, {}, {}, ""), "s").outcome
        == "allow"
    )
    assert (policy.name, policy.records_allow, policy.observe) == ("builtin.default", False, None)
    assert policy.gate("GATE_FINANCE_APPROVAL") == PackGate()
    assert (policy.intuition_mode, policy.budgets.limits) == (None, {"turns": 2})
    policy.learn("a.b", {"x": 1}, NOW)


def test_a_capability_with_effects_only_where_its_role_may() -> None:
    mail = capability("mail.send", {}, {}, properties=READ)
    assert _judged(_policy(), mail).reason == "permission_denied"
    stranger = _policy(requester=Requester("support.refund", role="stranger"))
    assert _judged(stranger).reason == "permission_denied"
    assert _judged(_policy(safety_mode="network"), REFUND).reason == "above_safety_mode"


TOOL = REFUND.replace(id="skill:t.refund", reaches=(LOOKUP, REFUND))
GATED = REFUND.replace(id="skill:t.once", reaches=(LOOKUP,))


def _offering(rules: list[dict[str, Any]] | None = None, **members: Any) -> RunPolicy:
    """The support desk with two skills as all that its agent may call."""
    layer, decisions = raw_pack()["policy_layer"], raw_pack()["decision_layer"]
    names = ["skill:t.refund", "skill:t.once"]
    first = {**decisions["intents"][0], "capabilities": names}
    tooling = {
        "capabilities": {
            "payments.refund": {"approval_mode": "destructive"},
            "skill:t.once": {"approval_mode": "destructive"},
            "skill:t.refund": {"facts": {"order.total": "output.paid"}},
        }
    }
    of = pack(
        policy_layer={
            **layer,
            "permissions": [{"role": "support_agent", "allow": names}],
            "rules": rules or [],
        },
        decision_layer={**decisions, "intents": [first, *decisions["intents"][1:]]},
        tooling_layer=tooling,
    )
    asked = members.pop("requester", Requester("support.refund", "cust_7", role="support_agent"))
    tools = {each.id: each for each in (TOOL, GATED)}
    given: dict[str, Any] = {
        "safety_mode": "destructive",
        "slots": {"order": "order:o"},
        "tools": tools,
    }
    return RunPolicy(of, Policy.of(of), Budgets({}), asked, **{**given, **members})


def _judged_inside(policy: RunPolicy, *inside: str) -> Verdict:
    state = RunState({}, {}, {}, "2026-05-04T09:30:00Z", inside)
    return policy.judge(LOOKUP, {}, state, "outer/step", ("crm",))


def test_a_tool_is_a_skill_that_the_role_is_permitted_and_the_intent_lists() -> None:
    assert _offering().tool("t.refund") is TOOL
    assert _offering().tool("t.other") is None
    for asked in (
        Requester("support.order_status", role="support_agent"),
        Requester("support.refund", role="x"),
    ):
        assert _offering(requester=asked).tool("t.refund") is None
    without_pack = LimitsPolicy(Budgets({}))
    assert without_pack.tool("t.refund") is None
    assert (without_pack.explain_refusal("stale"), without_pack.decision_evidence({"a": 1})) == (
        "",
        {},
    )


def test_a_tool_is_decided_about_with_the_highest_mode_and_asks_only_for_itself() -> None:
    policy = _offering()
    assert policy.mode_of(TOOL) == "destructive"
    through = _judged(policy, TOOL)
    assert (through.outcome, through.approval_mode) == ("allow", "destructive")
    assert _judged(policy, GATED).outcome == "allow_with_gate"
    above = _judged(_offering(safety_mode="network"), TOOL)
    assert (above.outcome, above.reason) == ("deny", "above_safety_mode")
    unnamed = _offering(requester=Requester("support.refund", role="support_agent"))
    assert _judged(unnamed, TOOL).reason == "named_user"


def test_only_calls_inside_a_tool_need_no_entry() -> None:
    assert _judged_inside(_offering(), "skill:t.refund").outcome == "allow"
    assert _judged_inside(_offering()).reason == "permission_denied"


def test_what_a_tool_gives_may_be_a_fact() -> None:
    policy = _offering()
    policy.learn("skill:t.refund", {"paid": 20}, NOW)
    assert policy.facts["order"]["total"] == 20


def _only(capabilities: list[str], condition: Any = True, **then: Any) -> list[dict[str, Any]]:
    return [{**_rule(condition, **then), "applies_to": {"capabilities": capabilities}}]


def test_the_run_of_a_tool_is_inside_it() -> None:
    own = OwnSkill("skill:t.refund", {"amount": 5})
    assert _judged_inside(_offering(own=own)).outcome == "allow"
    assert (
        _judged_inside(_offering(own=OwnSkill("skill:t.other", {}))).reason == "permission_denied"
    )


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [("deny", "deny"), ("allow_with_gate", "allow_with_gate"), ("allow", "allow")],
)
def test_what_a_rule_says_of_the_own_skill_counts_for_each_call(
    verdict: str, expected: str
) -> None:
    condition = {"and": [{"==": [{"var": "args.amount"}, 5]}, {"==": [{"var": "call.step"}, ""]}]}
    rules = _only(["skill:t.refund"], condition, verdict=verdict)
    for amount, found in ((5, expected), (6, "allow")):
        policy = _offering(rules, own=OwnSkill("skill:t.refund", {"amount": amount}))
        judged = _judged_inside(policy)
        assert judged.outcome == found
        assert judged.rule == ("it" if found != "allow" else "")


LATE, DAY = "2026-05-07T09:30:00Z", 86_400


def test_a_fact_of_a_call_counts_as_long_as_it_is_fresh() -> None:
    sections = {"intelligence_refs": {"freshness_s": {"age_days": DAY}}}
    policy = _policy([], required=("order.age_days", "order.total"), sections=sections)
    policy.learn("orders.lookup", FRESH, NOW)
    assert _judged(policy, REFUND).outcome == "allow_with_gate"
    assert policy.explain_refusal("evidence_missing:order.age_days") == ""
    assert _judged(policy, REFUND, now=LATE).reason == "evidence_missing:order.age_days"
    assert policy.facts == {"order": {"id": "ord_881", "total": 240}}
    assert "freshness_s" in policy.explain_refusal("evidence_missing:order.age_days")
    assert policy.explain_refusal("evidence_missing:order.never") == ""
    policy.learn("orders.lookup", FRESH, LATE)
    assert _judged(policy, REFUND, now=LATE).outcome == "allow_with_gate"


def test_what_the_stores_gave_counts_as_they_give_it_at_the_time() -> None:
    policy = _policy([], required=("order.age_days",))
    policy.merge_known_facts(
        {"order": {"age_days": 5}}, lambda now: {"order": {"age_days": 5}} if now == NOW else {}
    )
    assert _judged(policy, REFUND).outcome == "allow_with_gate"
    assert _judged(policy, REFUND, now=LATE).reason == "evidence_missing:order.age_days"
    policy.learn("orders.lookup", FRESH, LATE)
    assert _judged(policy, REFUND, now=LATE).outcome == "allow_with_gate"


def test_a_fact_of_a_call_goes_before_the_stores_of_a_pack_that_lets_nothing_become_stale() -> None:
    policy = _policy([], sections={"intelligence_refs": {}})
    policy.merge_known_facts({}, lambda now: {"order": {"age_days": 5, "total": 1}})
    policy.learn("orders.lookup", {"age_days": 12}, NOW)
    assert _judged(policy, LOOKUP, now=LATE).outcome == "allow"
    assert policy.facts == {"order": {"age_days": 12, "total": 1}}


def test_an_output_of_a_skill_is_recorded_before_it_could_be_masked() -> None:
    policy = _offering(_only(["skill:*"], verdict="allow", obligations=["mask:receipt"]))
    refused = _judged(policy, TOOL)
    assert (refused.outcome, refused.reason) == ("deny", "obligation_not_kept")
    of_a_call = _policy([_rule(verdict="allow", obligations=["mask:receipt"])])
    assert _judged(of_a_call).outcome == "allow"


@pytest.mark.parametrize(("edition", "outcome"), [(2, "deny"), (1, "allow")])
def test_the_own_skill_whose_output_is_to_be_masked_makes_no_call(
    edition: int, outcome: str
) -> None:
    rules = _only(["skill:t.refund"], verdict="allow", obligations=["mask:receipt"])
    policy = _offering(rules, own=OwnSkill("skill:t.refund", {}), edition=edition)
    judged = _judged_inside(policy)
    assert judged.outcome == outcome
    if outcome == "deny":
        assert (judged.reason, judged.rule, judged.gate) == ("obligation_not_kept", "", "")


def _with_texts(limit_per: str = "user") -> dict[str, Any]:
    layer = raw_pack()["policy_layer"]
    window, *rest = layer["rules"]
    said = "Order ${order.id} is ${order.age_days} days old and cost ${order.total}."
    layer["rules"] = [{**window, "say": said}, *rest]
    layer["limits"] = [
        {
            "id": "day",
            "applies_to": {"capabilities": ["payments.refund"]},
            "sum": "amount",
            "max": 100,
            "per": limit_per,
            "say": "Of ${limit.max} there are ${limit.left} left for order ${order.id}.",
        }
    ]
    return {"policy_layer": layer}


def test_a_text_for_the_customer_has_ids_and_the_safe_facts_that_calls_gave() -> None:
    sections = {**_with_texts(), "intelligence_refs": {"freshness_s": {"age_days": DAY}}}
    policy = _policy(safe_facts=("order.age_days", "order.total"), sections=sections)
    policy.merge_known_facts({"order": {"total": 99}})
    _judged(policy)
    assert policy.find_say("refund_window") == "Order ord_881 is days old and cost ."
    policy.learn("orders.lookup", FRESH, NOW)
    _judged(policy)
    assert policy.find_say("refund_window") == "Order ord_881 is 12 days old and cost 240."
    _judged(policy, now=LATE)
    assert policy.find_say("refund_window") == "Order ord_881 is days old and cost 240."
    assert policy.find_say("refund_limit") == policy.find_say("no_rule") == ""
    unsafe = _policy(safe_facts=("order.total",), sections=sections)
    unsafe.learn("orders.lookup", FRESH, NOW)
    _judged(unsafe)
    assert unsafe.find_say("refund_window") == "Order ord_881 is days old and cost 240."


def test_the_text_of_a_limit_has_what_the_decision_read() -> None:
    policy = _policy(sections=_with_texts())
    reads = {"limits.day": {"used": "80.5", "amount": "30"}}
    told = policy.find_say("limit_exceeded:day", reads)
    assert told == "Of 100 there are 19.5 left for order ord_881."
    assert policy.find_say("limit_exceeded:other", reads) == ""


def test_limits_count_for_the_user_the_tenant_and_the_entity_of_the_request() -> None:
    owners = {}
    for per in ("user", "tenant", "order"):
        policy = _policy(sections=_with_texts(per))
        owners[per] = [each.owner for each in policy.find_claims("payments.refund", {"amount": 1})]
    assert owners["user"] == ["user:cust_7"]
    assert owners["order"] == ["order:ord_881"]
    assert [owner.partition(":")[0] for owner in owners["tenant"]] == ["tenant"]
    assert _policy().find_claims("payments.refund", {"amount": 1}) == ()
