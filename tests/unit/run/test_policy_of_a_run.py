"""Calls under the policy of a run (docs/reference/pack.md#governed-calls)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fakes.runner import ScriptedRunner, gives, member, raises
from fakes.runs import Ran, run
from fakes.sink import payload_of
from fakes.specs import capability, gate, skill, step
from fakes.support_desk import pack as support_pack
from fakes.support_desk import policy as policy_of
from fakes.support_desk import raw_pack

from cogcli.base.errors import TransportError
from cogcli.declarations.pack_spec import Pack
from cogcli.policy.approvals import ApprovalAnswer, Approvals, RequestedAction
from cogcli.policy.budgets import Budgets
from cogcli.policy.run_policy import Requester, RunPolicy

LOOKUP = capability("orders.lookup", "order_id", "age_days total", effect="none")
EVAL = capability("policy.eval", "days", "ok", effect="none")
REFUND = capability("payments.refund", "order_id amount", "receipt", effect="effect")
REQUEST = "approval.requested"
READS = {"age_days": "vars.age", "total": "vars.total"}
DESK = skill(
    step("order", "orders.lookup", {"order_id": "inputs.x"}, output=READS),
    step("rule", "policy.eval", {"days": "vars.age"}, output={"ok": "vars.ok"}),
    step(
        "refund",
        "payments.refund",
        {"order_id": "inputs.x", "amount": "vars.total"},
        output={"receipt": "outputs.r"},
    ),
)


def _policy(
    pack: Pack | None = None, *, limits: dict[str, int] | None = None, **members: Any
) -> RunPolicy:
    of = pack or support_pack()
    requester = Requester(
        "support.refund", members.pop("user", "cust_7"), role=members.pop("role", "support_agent")
    )
    required = ("order.age_days", "order.total")
    given: dict[str, Any] = {
        "safety_mode": "destructive",
        "slots": {"order": "order:ord_881"},
        "required": required,
    }
    return RunPolicy(of, policy_of(of), Budgets(limits or {}), requester, **(given | members))


def _ran(policy: RunPolicy | None, *, age: int = 12, total: float = 20, **options: Any) -> Ran:
    scripts: Any = {
        "orders.lookup": gives(age_days=age, total=total),
        "policy.eval": gives(ok=True),
        "payments.refund": gives(receipt={"id": "r1", "status": "done"}),
    }
    return run(
        DESK,
        ScriptedRunner(scripts),
        LOOKUP,
        EVAL,
        REFUND,
        inputs={"x": "ord_881"},
        policy=policy,
        **options,
    )


def _decided(ran: Ran) -> list[tuple[str, str, str]]:
    return [
        (event.step_id or "", event.payload["verdict"], event.payload["reason"])
        for event in ran.sink.events
        if event.event_type == "policy.decided"
    ]


def test_a_call_waits_for_the_gate_that_its_rule_names() -> None:
    ran = _ran(_policy(), total=240)
    assert (ran.outcome.status, ran.code) == ("pending", "policy.approval")
    assert ran.runner.called() == ["order", "rule"]
    assert _decided(ran) == [
        ("order", "allow", "no_rule"),
        ("rule", "allow", "no_rule"),
        ("refund", "allow_with_gate", "refund_limit"),
    ]
    request = payload_of(ran.sink.events, "approval.requested")
    assert (request["gate"], request["kind"], request["approver_roles"], request["allow_self"]) == (
        "GATE_FINANCE_APPROVAL",
        "gate",
        ["finance"],
        False,
    )


def test_facts_of_one_call_decide_about_the_next() -> None:
    ran = _ran(_policy(), age=31)
    assert (ran.outcome.status, ran.code) == ("vetoed", "policy.denied")
    assert _decided(ran)[-1] == ("refund", "deny", "refund_window")
    assert ran.steps == {"order": "done", "rule": "done", "refund": "vetoed"}
    assert ran.outcome.error is not None
    assert "refund_window" in ran.outcome.error.message


def test_evidence_that_is_missing_lets_nothing_above_read_only_run() -> None:
    tooling = {"capabilities": {"payments.refund": {}}}
    ran = _ran(_policy(support_pack(tooling_layer=tooling)))
    assert _decided(ran)[-1][1:] == ("deny", "evidence_missing:order.age_days")
    assert ran.runner.called() == ["order", "rule"]


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"role": "stranger"}, "permission_denied"),
        ({"safety_mode": "network"}, "above_safety_mode"),
        ({"user": "default"}, "named_user"),
    ],
)
def test_what_the_pack_denies_is_vetoed_and_nothing_is_called(
    members: dict[str, Any], reason: str
) -> None:
    ran = _ran(_policy(**members))
    assert (ran.outcome.status, ran.code) == ("vetoed", "policy.denied")
    assert _decided(ran)[-1][2] == reason
    assert "refund" not in ran.runner.called()


def test_the_intent_event_names_the_decision() -> None:
    ran = _ran(_policy(), total=20)
    started = {e.step_id: e.payload for e in ran.sink.events if e.event_type == "step.started"}
    decided = {e.step_id: e for e in ran.sink.events if e.event_type == "policy.decided"}
    assert started["order"]["decision"]["event"] == decided["order"].id
    assert started["order"]["decision"]["policy"].startswith("support-desk@4.0.0#sha256:")
    assert decided["order"].payload["input_hash"].startswith("sha256:")


def test_without_a_policy_nothing_is_decided_in_the_log() -> None:
    ran = _ran(None)
    assert ran.outcome.status == "ok"
    assert _decided(ran) == []
    started = payload_of(ran.sink.of("order"), "step.started")
    assert started["decision"] == {"verdict": "allow", "policy": "builtin.default"}


def test_a_budget_that_is_spent_stops_the_next_call() -> None:
    ran = _ran(_policy(limits={"tool_calls.per_workflow": 1}))
    assert (ran.outcome.status, ran.code) == ("vetoed", "budget.exceeded")
    assert ran.runner.called() == ["order"]
    assert payload_of(ran.sink.events, "budget.exceeded") == {
        "key": "tool_calls.per_workflow",
        "used": 1,
        "limit": 1,
    }


def test_each_attempt_counts() -> None:
    from cogcli.base.errors import TransportError

    def down(given: Any) -> Any:
        raise TransportError("call.transport", "down", left=False)

    runner = ScriptedRunner({"orders.lookup": down})
    runner.members["orders.lookup"] = (member("b", retries=5, base=0.0),)
    policy = _policy(limits={"tool_calls.per_turn": 3, "tool_calls.per_workflow": 9})
    lone = skill(step("order", "orders.lookup", {"order_id": "inputs.x"}))
    ran = run(lone, runner, LOOKUP, inputs={"x": "o"}, policy=policy)
    assert len(runner.attempts) == 3
    assert ran.code == "budget.exceeded"


def test_safety_gates_need_no_entry_and_no_budget() -> None:
    guarded = capability(
        "orders.lookup",
        "order_id",
        "age_days total",
        effect="none",
        safety={"mandatory_pre_gates": ["g.one"]},
    )
    runner = ScriptedRunner(
        {"orders.lookup": gives(age_days=1, total=2), "g.one": gives(allowed=True)}
    )
    lone = skill(step("order", "orders.lookup", {"order_id": "inputs.x"}))
    policy = _policy(limits={"tool_calls.per_workflow": 1})
    ran = run(lone, runner, guarded, gate("g.one"), inputs={"x": "o"}, policy=policy)
    assert ran.outcome.status == "ok"
    assert _decided(ran) == [("order", "allow", "no_rule")]


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("pay.example", "refund_limit"),
        ("", "refund_limit"),
        ("evil.example", "host_not_listed"),
        ("?", "host_not_listed"),
        (None, "host_not_listed"),
    ],
)
def test_a_pack_lists_the_hosts_that_calls_may_reach(host: str | None, reason: str) -> None:
    tooling = {**raw_pack()["tooling_layer"], "hosts": ["pay.example"]}
    hosts = dict.fromkeys(("s_b_orders.lookup", "s_b_policy.eval"), "")
    if host is not None:
        hosts["s_b_payments.refund"] = host
    ran = _ran(_policy(support_pack(tooling_layer=tooling), hosts=hosts), total=240)
    assert _decided(ran)[-1][2] == reason


def _with_rule(**then: Any) -> RunPolicy:
    layer = raw_pack()["policy_layer"]
    rule = {
        "rule_id": "always",
        "mode": "enforce",
        "if": {"==": [1, 1]},
        "then": {"verdict": "allow", **then},
    }
    return _policy(support_pack(policy_layer={**layer, "rules": [rule]}))


def _redeemed(policy: Callable[[], RunPolicy], *later: str) -> Ran:
    """A run in which a person approved, at these times, what was asked."""
    answers: list[ApprovalAnswer] = []
    for at in later:
        request = payload_of(
            _ran(policy(), total=240, approvals=Approvals(tuple(answers))).sink.events[::-1],
            REQUEST,
        )
        recorded = {name: request[name] for name in RequestedAction._fields if name in request}
        asked = RequestedAction(**recorded)
        answers.append(
            ApprovalAnswer(asked, True, "ann", "", at, used=True, event=f"ev_{len(answers)}")
        )
    return _ran(policy(), total=240, approvals=Approvals(tuple(answers)))


def _timeless(**sections: Any) -> Pack:
    """The pack without a limit to the age of evidence."""
    references = {**raw_pack()["intelligence_refs"], "freshness_s": {}}
    return support_pack(intelligence_refs=references, **sections)


def test_an_approved_call_on_evidence_that_went_stale_is_denied() -> None:
    ran = _redeemed(_policy, "2031-01-01T00:00:00.000Z")
    assert ran.code == "policy.denied"
    assert _decided(ran)[-1][1:] == ("deny", "evidence_missing:order.age_days")
    assert "refund" not in ran.runner.called()


def test_an_approved_call_is_judged_again_as_of_the_answer() -> None:
    ran = _redeemed(lambda: _policy(_timeless()), "2026-05-04T09:30:00.000Z")
    assert ran.outcome.status == "ok"
    assert _decided(ran)[-2:] == [
        ("refund", "allow_with_gate", "refund_limit"),
        ("refund", "allow", "approved"),
    ]
    (second,) = [event for event in ran.sink.events if event.caused_by == "ev_0"]
    assert (second.payload["rule"], second.payload["gate"]) == (
        "refund_limit",
        "GATE_FINANCE_APPROVAL",
    )


def _later(**then: Any) -> RunPolicy:
    """The pack's policy, with a rule that holds in 2031 only."""
    layer = raw_pack()["policy_layer"]
    year = {"substr": [{"var": "run.now"}, 0, 4]}
    rule = {
        "rule_id": "later",
        "mode": "enforce",
        "applies_to": {"capabilities": ["payments.refund"]},
        "if": {"==": [year, "2031"]},
        "then": then,
    }
    return _policy(_timeless(policy_layer={**layer, "rules": [*layer["rules"], rule]}))


def test_what_holds_by_the_time_of_the_answer_denies() -> None:
    ran = _redeemed(lambda: _later(verdict="deny"), "2031-01-01T00:00:00.000Z")
    assert ran.code == "policy.denied"
    assert _decided(ran)[-1] == ("refund", "deny", "later")
    assert "refund" not in ran.runner.called()


def test_an_answer_lifts_its_gate_only() -> None:
    def policy() -> RunPolicy:
        return _later(verdict="escalate", gate="GATE_OPERATOR")

    asked = _redeemed(policy, "2031-01-01T00:00:00.000Z")
    assert (asked.code, _decided(asked)[-1][1]) == ("policy.escalated", "escalate")
    assert payload_of(asked.sink.events[::-1], REQUEST)["gate"] == "GATE_OPERATOR"
    done = _redeemed(policy, "2031-01-01T00:00:00.000Z", "2031-01-02T00:00:00.000Z")
    assert done.outcome.status == "ok"
    assert [verdict for step, verdict, _ in _decided(done) if step == "refund"] == [
        "allow_with_gate",
        "escalate",
        "allow",
    ]


def test_an_escalated_call_asks_a_person() -> None:
    ran = _ran(_with_rule(verdict="escalate"))
    assert (ran.outcome.status, ran.code) == ("pending", "policy.escalated")
    request = payload_of(ran.sink.events, "approval.requested")
    assert (request["kind"], request["gate"], request["step_id"]) == (
        "escalation",
        "GATE_OPERATOR",
        "order",
    )
    assert ran.runner.called() == []


@pytest.mark.parametrize(
    ("obligation", "reason"),
    [("evidence", "evidence_missing:order.age_days")],
)
def test_an_obligation_that_is_not_kept_denies(obligation: str, reason: str) -> None:
    ran = _ran(_with_rule(obligations=[obligation]))
    assert (ran.code, _decided(ran)[-1][2]) == ("policy.denied", reason)
    assert ran.runner.called() == []


@pytest.mark.parametrize(("retries", "attempts"), [(None, 5), (2, 3), (0, 1)])
def test_a_call_is_repeated_as_often_as_the_policy_leaves(
    retries: int | None, attempts: int
) -> None:
    runner = ScriptedRunner(
        {"orders.lookup": raises(lambda: TransportError("call.transport", "away", left=False))}
    )
    runner.members["orders.lookup"] = (member("b", retries=4, base=0.0),)
    wanted = skill(step("order", "orders.lookup", {"order_id": "inputs.x"}))
    ran = run(wanted, runner, LOOKUP, inputs={"x": "a"}, policy=_policy(retries=retries))
    assert (len(runner.attempts), ran.code) == (attempts, "call.transport")
