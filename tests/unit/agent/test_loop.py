"""Turns of an agent with a planner that proposes what a test says (docs/reference/agent-run.md)."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.agents import ScriptedPlanner, calls, invocation, invoke, lookup, says
from fakes.runner import gives, raises
from fakes.sink import payload_of
from fakes.support_desk import CAPABILITIES, capability, edge, raw_pack
from fakes.support_desk import pack as support_pack

from cogcli.agent.cognition.invocation import StoredValues
from cogcli.agent.cognition.layers import ORDER
from cogcli.agent.cognition.planner import Candidate, ProposedCall
from cogcli.base.errors import RejectedError
from cogcli.episode.decision import DecisionFold
from cogcli.policy.approvals import ApprovalAnswer, Approvals, RequestedAction

REFUND = ("payments.refund", {"order_id": "ord_881", "amount": 20})
GATED = ("payments.refund", {"order_id": "ord_881", "amount": 240})


def _without_gate() -> Any:
    """The pack, with refunds that need no person."""
    raw = raw_pack()
    tooling = {"capabilities": {**raw["tooling_layer"]["capabilities"], "payments.refund": {}}}
    return support_pack(tooling_layer=tooling)


def test_results_reach_the_next_turn_and_a_response_ends() -> None:
    planner = ScriptedPlanner(lookup(), says("It is on its way."))
    ran = invoke(planner)
    assert (ran.status, ran.ending) == ("ok", ("completed", ""))
    assert ran.finished.outcome.outputs == {"response": "It is on its way."}
    assert [view.turn for view in planner.views] == [1, 2]
    (effect,) = planner.views[1].effects
    assert (effect["capability"], effect["status"]) == ("orders.lookup", "done")
    assert {fact["key"] for fact in effect["facts"]} == {"order.age_days", "order.total"}
    assert planner.views[1].context.compilation.evidence.facts["order"]["age_days"] == 12


def test_every_turn_passes_every_layer_in_order() -> None:
    ran = invoke(ScriptedPlanner(lookup(), says("Done.")))
    layers = [(each["turn"], each["layer"]) for each in ran.payloads("layer.completed")]
    assert layers == [(turn, layer.name) for turn in (1, 2) for layer in ORDER]
    for event in ran.sink.events:
        if event.event_type == "layer.completed":
            assert set(event.payload["writes"]) <= set(
                next(layer for layer in ORDER if layer.name == event.payload["layer"]).writes
            )


def test_the_decision_is_recorded_once_right_before_the_end() -> None:
    ran = invoke(given=invocation(_without_gate()))
    types = ran.sink.types()
    assert types[-2:] == ["decision.recorded", "run.terminated"]
    assert types.count("decision.recorded") == 1
    fold = DecisionFold(ran.sink.events[0])
    for event in ran.sink.events[1:]:
        fold.apply(event)
    assert fold.record()["record_hash"] == ran.decision["record_hash"]


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (calls(("orders.delete", {})), "unknown_capability:orders.delete"),
        (calls(("orders.lookup", {})), "args_invalid"),
        (calls(("orders.lookup", {"order_id": "x", "why": 1})), "args_invalid:no input why"),
        (calls(REFUND), "missing_evidence:order.age_days"),
        (
            Candidate("model", calls=(ProposedCall("a", "policy.eval", {"days": 1}, ("b",)),)),
            "dependency_cycle",
        ),
        (
            Candidate(
                "model",
                calls=(
                    ProposedCall("a", "policy.eval", {"days": 1}, ("b",)),
                    ProposedCall("b", "policy.eval", {"days": 2}, ("a",)),
                ),
            ),
            "dependency_cycle",
        ),
    ],
)
def test_a_plan_that_may_not_run_is_planned_again(candidate: Candidate, reason: str) -> None:
    planner = ScriptedPlanner(candidate, says("I cannot."))
    ran = invoke(planner)
    first = ran.payloads("critic.verified")[0]
    assert first["verdict"] == "replan"
    assert first["reason"].startswith(reason)
    assert ran.runner.called() == []
    assert planner.views[1].notices[0]["type"] == "replan"


def test_without_replans_left_the_run_fails() -> None:
    ran = invoke(ScriptedPlanner(calls(("orders.delete", {}))))
    assert (ran.status, ran.code) == ("error", "agent.replans")
    assert ran.ending == ("failed", "unknown_capability:orders.delete")
    assert len(ran.payloads("critic.verified")) == 3


def test_without_turns_left_the_run_is_denied() -> None:
    ran = invoke(ScriptedPlanner(*[calls(("policy.eval", {"days": n})) for n in range(9)]))
    assert ran.ending == ("denied", "budget_exceeded:turns")
    assert (ran.status, ran.code) == ("vetoed", "budget.exceeded")
    assert len(ran.runner.called()) == 6
    assert ran.payloads("budget.exceeded")[0] == {"key": "turns", "used": 6, "limit": 6}


def test_the_same_call_with_the_same_result_trips_and_the_next_prompt_says_so() -> None:
    planner = ScriptedPlanner(lookup(), lookup(), lookup(), says("Enough."))
    ran = invoke(planner)
    trip = ran.payloads("loop.detected")[0]
    assert (trip["kind"], trip["count"]) == ("identical_results", 3)
    assert len(ran.runner.called()) == 2
    notice = next(each for each in planner.views[3].notices if each["type"] == "loop_detected")
    assert notice["calls"] == ["orders.lookup"]
    assert notice["unchanged"] == ["arguments", "result"]
    assert ran.ending == ("completed", "")


def test_a_second_trip_of_one_key_ends_the_run() -> None:
    ran = invoke(ScriptedPlanner(lookup()))
    assert ran.ending == ("denied", "loop_guard:identical_results")
    assert (ran.status, ran.code) == ("vetoed", "policy.denied")
    assert len(ran.runner.called()) == 2


def test_a_plan_with_more_calls_than_the_turn_has_is_rejected() -> None:
    ran = invoke(
        ScriptedPlanner(calls(*[("policy.eval", {"days": n}) for n in range(3)])),
        invocation(budget={"tool_calls.per_turn": 2}),
    )
    assert ran.ending == ("denied", "budget_exceeded:tool_calls.per_turn")
    assert ran.runner.called() == []


def test_every_call_has_a_decision_of_its_own_before_it_begins() -> None:
    ran = invoke(
        ScriptedPlanner(lookup(), calls(REFUND), says("Refunded.")), invocation(_without_gate())
    )
    assert ran.runner.called() == ["t1_c0", "t2_c0"]
    decided = set()
    for event in ran.sink.events:
        if event.event_type == "policy.decided" and event.payload["decision"] == "allow":
            decided.add(event.step_id)
        elif event.event_type == "step.started":
            assert event.step_id in decided


def test_a_call_that_a_rule_denies_comes_back_as_a_notice() -> None:
    planner = ScriptedPlanner(lookup(), calls(REFUND), says("Too late for a refund."))
    ran = invoke(
        planner,
        invocation(_without_gate()),
        scripts={"orders.lookup": gives(age_days=31, total=20.0)},
    )
    assert ran.runner.called() == ["t1_c0"]
    assert ran.payloads("critic.verified")[1]["reason"] == "unknown_capability:payments.refund"
    assert "payments.refund" not in str(planner.views[1].context.payload["compiled_prompt"])
    assert ran.ending == ("denied", "refund_window"), "the answer does not make up for it"


def test_a_gate_pauses_without_a_decision() -> None:
    ran = invoke(ScriptedPlanner(lookup(), calls(GATED)))
    assert (ran.status, ran.code) == ("pending", "policy.approval")
    assert ran.sink.types()[-1] == "run.paused"
    assert "decision.recorded" not in ran.sink.types()


@pytest.mark.parametrize(
    ("script", "status", "ending"),
    [
        (gives(age_days=31, total=20.0), "vetoed", ("denied", "refund_window")),
        (
            raises(lambda: RejectedError("call.rejected", "no")),
            "error",
            ("failed", "call.rejected"),
        ),
    ],
)
def test_the_template_planner_never_replans(
    script: Any, status: str, ending: tuple[str, str]
) -> None:
    ran = invoke(scripts={"orders.lookup": script})
    assert (ran.status, ran.ending) == (status, ending)
    assert len(ran.payloads("candidate.proposed")) == 1


def test_a_goal_that_is_not_met_is_partial() -> None:
    scripts = {"payments.refund": gives(receipt={"id": "r1", "status": "late"})}
    ran = invoke(given=invocation(_without_gate()), scripts=scripts)
    assert (ran.status, ran.ending) == ("partial", ("completed", "goal_unmet"))
    assert ran.decision["outcome"] == "not_refunded"


def test_required_evidence_with_two_values_escalates() -> None:
    edges = (edge("age_days", 12), edge("age_days", 40), edge("total", 20))
    ran = invoke(ScriptedPlanner(says("Done.")), invocation(fetched=StoredValues(edges)))
    assert (ran.status, ran.code) == ("pending", "policy.escalated")
    assert ran.payloads("critic.scored")[0]["reason"] == "conflict:order.age_days"
    assert ran.payloads("approval.requested")[0]["kind"] == "escalation"


def test_a_refusal_after_a_call_escalates() -> None:
    judged = capability(
        "orders.lookup", {"order_id": "string"}, {"age_days": "integer", "total": "number"},
        properties={"side_effects": False},
        safety={"trust_level": "sandbox", "mandatory_post_gates": [{"capability": "policy.eval", "on_fail": "block"}]},
    )  # fmt: skip
    known = [judged, CAPABILITIES["policy.eval"], CAPABILITIES["payments.refund"]]
    ran = invoke(
        ScriptedPlanner(lookup()),
        invocation(capabilities=known),
        scripts={"policy.eval": gives(allowed=False)},
    )
    assert ran.payloads("critic.scored")[0]["reason"] == "post_gate_failed"
    assert ran.code == "policy.escalated"


@pytest.mark.parametrize(
    ("text", "ending"),
    [("Your card is 4111111111111111.", ("refused", "must_refuse:card"))],
)
def test_a_response_that_a_guardrail_refuses_is_not_given(
    text: str, ending: tuple[str, str]
) -> None:
    ran = invoke(ScriptedPlanner(says(text)))
    assert (ran.status, ran.code, ran.ending) == ("vetoed", "policy.refused", ending)
    assert text not in str(ran.finished.outcome.outputs)


def test_a_response_that_a_guardrail_escalates_waits() -> None:
    ran = invoke(ScriptedPlanner(says("Ask your lawyer.")))
    assert (ran.status, ran.code) == ("pending", "policy.escalated")


def test_an_answer_on_open_evidence_is_partial() -> None:
    ran = invoke(ScriptedPlanner(says("I do not know.")))
    assert (ran.status, ran.ending) == ("partial", ("completed", "order.age_days"))


def test_a_read_only_run_acts_only_where_the_pack_says_so() -> None:
    skipped = invoke(ScriptedPlanner(lookup()), invocation(safety_mode="read_only"))
    assert skipped.ending == ("completed", "action_skipped:read_only")
    assert skipped.status == "partial"
    assert [each for each in skipped.payloads("layer.completed") if each.get("skipped")] == [
        {"turn": 1, "layer": "focus", "reads": ["events", "goals"], "writes": {}, "skipped": "off"},
        {
            "turn": 1, "layer": "action", "reads": ["verdict", "candidate"], "writes": {"effects": []},
            "skipped": "safety_mode",
        },
    ]  # fmt: skip
    raw = raw_pack()
    looks = support_pack(policy_layer={**raw["policy_layer"], "read_only_actions": True})
    ran = invoke(
        ScriptedPlanner(lookup(), says("12 days.")), invocation(looks, safety_mode="read_only")
    )
    assert ran.runner.called() == ["t1_c0"]
    assert ran.remembered == []


def test_what_a_turn_leaves_is_remembered() -> None:
    ran = invoke(given=invocation(_without_gate()))
    (left,) = ran.remembered
    assert [each["class"] for each in left["proposals"]] == [
        "evidence_link", "evidence_link", "decision_outcome"
    ]  # fmt: skip
    outcome = left["proposals"][-1]["candidate"]
    assert outcome == {
        "entity": "order:ord_881",
        "predicate": "support.refund",
        "value": "refunded",
    }
    assert left["calls"][0] == {"capability": "orders.lookup", "status": "done"}


def test_deep_focus_keeps_what_interrupts() -> None:
    given = invocation(focus="deep", attachments=({"name": "photo.jpg"},))
    ran = invoke(ScriptedPlanner(says("Thanks.")), given)
    state = next(each for each in ran.payloads("layer.completed") if each["layer"] == "focus")
    assert state["writes"]["focus_state"] == {"mode": "deep", "buffered": ["e1"]}


def test_policy_and_tools_that_find_no_room_fail_before_a_plan() -> None:
    ran = invoke(ScriptedPlanner(lookup()), invocation(budget={"tokens.context": 10}))
    assert (ran.status, ran.code, ran.ending) == (
        "error", "context.overpacked", ("failed", "context.overpacked")
    )  # fmt: skip
    assert ran.payloads("candidate.proposed") == []


def test_a_phase_that_takes_too_long_escalates() -> None:
    ran = invoke(ScriptedPlanner(lookup()), invocation(budget={"stage_latency_ms.plan": 0}))
    assert ran.payloads("critic.scored")[0]["reason"] == "budget_exceeded:latency:plan"


# -- lanes -------------------------------------------------------------------------------------------------------------


def _with_lanes(number: int) -> Any:
    raw = raw_pack()
    layer = raw["decision_layer"]
    lane = {
        "id": "age",
        "steps": [
            {
                "id": "look", "uses": "orders.lookup", "input": {"order_id": "inputs.order_id"},
                "output": {"age_days": "outputs.age"},
            }
        ],
    }  # fmt: skip
    fan = {
        "id": "refund_with_eligibility",
        "steps": [
            {
                "id": f"l{n}", "uses": "lane:age", "depends_on": [], "input": {"order_id": "inputs.order_id"},
                "output": {"age": f"outputs.age{n}"},
            }
            for n in range(number)
        ],
        "reply": "${outputs.age0}",
    }  # fmt: skip
    return support_pack(decision_layer={**layer, "task_templates": [lane, fan]})


def test_lanes_are_child_runs_whose_outputs_come_back() -> None:
    ran = invoke(given=invocation(_with_lanes(2)))
    assert ran.finished.outcome.outputs == {"age0": 12, "age1": 12, "response": "12"}
    children = [event for event in ran.sink.events if event.event_type == "run.started"][1:]
    assert [event.payload["skill"]["id"] for event in children] == ["agent.support-desk.age"] * 2
    assert sorted(ran.runner.called()) == ["t1_l0/look", "t1_l1/look"]


def test_lanes_share_the_budget_of_their_run() -> None:
    given = invocation(_with_lanes(4), budget={"tool_calls.per_workflow": 3})
    ran = invoke(given=given, keep_going=True)
    assert len(ran.runner.called()) == 3
    assert ran.ending[0] == "denied"


def test_at_most_four_lanes_run_at_once() -> None:
    ran = invoke(given=invocation(_with_lanes(7)), max_workers=32)
    assert len(ran.runner.called()) == 7
    assert ran.runner.most_at_once <= 4


def test_a_fact_that_contradicts_what_is_stored_is_a_correction() -> None:
    stored = StoredValues((edge("age_days", 40), edge("total", 20)))
    ran = invoke(ScriptedPlanner(lookup(), says("12 days.")), invocation(fetched=stored))
    classes = {
        each["candidate"]["predicate"]: each["class"] for each in ran.remembered[0]["proposals"]
    }
    assert classes == {"age_days": "correction", "total": "evidence_link"}


def test_a_turn_that_a_person_approved_is_as_good_as_any() -> None:
    given = invocation(_without_gate(), budget={"stage_latency_ms.plan": 0})
    asked = payload_of(invoke(given=given).sink.events, "approval.requested")
    request = RequestedAction(
        asked["approval_id"],
        "",
        "t1",
        asked["action_hash"],
        asked["evidence_hash"],
        asked["expires_at"],
    )
    yes = Approvals(
        (ApprovalAnswer(request, granted=True, by="ann", reason="", at="2023-11-14T00:00:00Z"),)
    )
    ran = invoke(
        given=invocation(_without_gate(), budget={"stage_latency_ms.plan": 0}), approvals=yes
    )
    assert (ran.status, ran.ending, ran.decision["outcome"]) == (
        "ok",
        ("completed", ""),
        "refunded",
    )
