"""An agent that calls skills (docs/reference/pack.md#skills)."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.agents import RanAgent, ScriptedPlanner, calls, invocation, invoke, says
from fakes.runner import gives
from fakes.specs import skill, step
from fakes.support_desk import CAPABILITIES, pack, raw_pack

from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.context.compiler import compile_context
from cogcli.declarations.checked import problem_of
from cogcli.declarations.pack_spec import Pack

LOOK = skill(
    step(
        "order", "orders.lookup", {"order_id": "inputs.order_id"}, output={"total": "outputs.total"}
    ),
    id="desk.look",
    inputs="order_id!:string",
    outputs="total:number",
)
PAY = skill(
    step(
        "pay",
        "payments.refund",
        {"order_id": "inputs.order_id", "amount": 20},
        output={"receipt": "outputs.r"},
    ),
    id="desk.pay",
    inputs="order_id!:string",
    outputs="r:object",
)
BOTH = skill(
    step(
        "look", "skill:desk.look", {"order_id": "inputs.order_id"}, output={"total": "vars.total"}
    ),
    step("pay", "skill:desk.pay", {"order_id": "inputs.order_id"}, output={"r": "outputs.r"}),
    id="desk.both",
    inputs="order_id!:string",
    outputs="r:object",
)
SKILLS = (LOOK, PAY, BOTH)
ORDER = {"order_id": "ord_881"}


def _pack(*names: str, rules: tuple[dict[str, Any], ...] = (), **tooling: dict[str, Any]) -> Pack:
    """The support desk, whose agent may call these alone. No evidence is required."""
    layer, decisions = raw_pack()["policy_layer"], raw_pack()["decision_layer"]
    first = {**decisions["intents"][0], "capabilities": [*names]}
    return pack(
        policy_layer={
            **layer,
            "permissions": [{"role": "support_agent", "allow": [*names]}],
            "rules": [*rules],
        },
        decision_layer={
            **decisions,
            "intents": [first, *decisions["intents"][1:]],
            "decisions": [{"key": "support.refund", "outcomes": ["refunded", "not_refunded"]}],
        },
        tooling_layer={"capabilities": tooling},
    )


def _rule(capability: str, condition: Any = True, **then: Any) -> dict[str, Any]:
    scope = {"capabilities": [capability]}
    then = {"verdict": "deny", **then}
    return {"rule_id": "it", "mode": "enforce", "if": condition, "then": then, "applies_to": scope}


def _given(of: Pack, **members: Any) -> Invocation:
    return invocation(of, skills=SKILLS, **members)


def _ran(of: Pack, *proposed: tuple[str, dict[str, Any]], **members: Any) -> RanAgent:
    planner = ScriptedPlanner(calls(*proposed), says("Done."))
    return invoke(planner, _given(of, **members), skills=SKILLS)


def _decided(ran: RanAgent) -> list[tuple[str, str, str]]:
    return [
        (each["step_id"], each["capability"], each["verdict"])
        for each in ran.payloads("policy.decided")
    ]


def test_a_skill_runs_as_a_call_of_the_plan() -> None:
    ran = _ran(_pack("skill:desk.look"), ("skill:desk.look", ORDER))
    assert ran.ending == ("completed", "")
    assert ran.runner.called() == ["t1_c0/order"]
    assert _decided(ran) == [
        ("t1_c0", "skill:desk.look", "allow"),
        ("t1_c0/order", "orders.lookup", "allow"),
    ]
    assert [each.get("inside") for each in ran.payloads("policy.decided")] == [
        None,
        ["skill:desk.look"],
    ]
    (action,) = [
        each["writes"]["effects"]
        for each in ran.payloads("layer.completed")
        if each["layer"] == "action"
    ][:1]
    assert (action[0]["capability"], action[0]["status"]) == ("skill:desk.look", "done")
    closing = next(
        each for each in ran.sink.events if each.step_id == "t1_c0" and "output" in each.payload
    )
    assert closing.payload["output"] == {"total": 20.0}
    for event in ran.sink.events:
        assert problem_of(event.event_type or "", event.payload) is None


def test_a_skill_is_shown_with_its_arguments() -> None:
    given = _given(_pack("skill:desk.look"))
    contract = given.capabilities["skill:desk.look"]
    assert (contract.inputs, contract.outputs) == (LOOK.inputs, LOOK.outputs)
    context = compile_context(given.compile_input(1, "run_0", "trace_0", "2026-05-04T09:30:00Z"))
    developer = context.payload["compiled_prompt"]["developer"]
    assert (
        'skill:desk.look: A skill of a test. Arguments: {"order_id":{"required":true,' in developer
    )
    assert "orders.lookup" not in developer


@pytest.mark.parametrize(
    ("proposed", "reason"),
    [
        (("orders.lookup", ORDER), "unknown_capability:orders.lookup"),
        (("skill:desk.pay", ORDER), "unknown_capability:skill:desk.pay"),
        (("skill:desk.none", {}), "unknown_capability:skill:desk.none"),
        (
            ("skill:agent.support-desk.order_status", {}),
            "unknown_capability:skill:agent.support-desk.order_status",
        ),
        (("skill:desk.look", {}), "args_invalid:`order_id`: required, not given"),
        (
            ("skill:desk.look", {"order_id": 1}),
            "args_invalid:`order_id`: expected string, found number 1",
        ),
        (("skill:desk.look", {**ORDER, "why": 1}), "args_invalid:no input why"),
    ],
)
def test_a_plan_names_only_what_is_on_the_surface(
    proposed: tuple[str, dict[str, Any]], reason: str
) -> None:
    ran = _ran(_pack("skill:desk.look"), proposed)
    first = ran.payloads("critic.verified")[0]
    assert (first["verdict"], first["reason"]) == ("replan", reason)
    assert ran.runner.called() == []


def _redactions(of: Pack, **members: Any) -> dict[str, str]:
    ran = invoke(ScriptedPlanner(says("No.")), _given(of, **members), skills=SKILLS)
    context = ran.payloads("context.compiled")[0]["context"]
    return {each["capability"]: each["reason"] for each in context["redactions"]}


def test_a_skill_that_cannot_run_or_does_more_than_the_ceiling_is_kept_from_the_model() -> None:
    of = _pack("skill:desk.look", "skill:desk.pay", "skill:desk.both", "skill:desk.none")
    low = {"skill:desk.pay": "above_safety_mode", "skill:desk.both": "above_safety_mode"}
    gone = {"skill:desk.none": "not_usable"}
    assert _redactions(of) == gone
    assert _redactions(of, safety_mode="read_only") == {**low, **gone}
    without = [each for id, each in CAPABILITIES.items() if id != "payments.refund"]
    lost = dict.fromkeys(low, "not_usable")
    assert _redactions(of, capabilities=without) == {**lost, **gone}


def test_the_mode_of_a_skill_is_the_highest_that_it_reaches_as_the_pack_says() -> None:
    of = _pack("skill:desk.look", **{"orders.lookup": {"approval_mode": "delegated"}})
    assert _redactions(of, safety_mode="network") == {"skill:desk.look": "above_safety_mode"}
    context = compile_context(_given(of).compile_input(1, "r", "t", "2026-05-04T09:30:00Z"))
    (tool,) = context.compilation.surface.tools
    assert (tool.capability, tool.approval_mode) == ("skill:desk.look", "delegated")


def test_a_call_inside_is_decided_about_as_any() -> None:
    of = _pack(
        "skill:desk.both", rules=(_rule("payments.refund", {">": [{"var": "args.amount"}, 10]}),)
    )
    ran = _ran(of, ("skill:desk.both", ORDER))
    assert _decided(ran)[-1] == ("t1_c0/pay/pay", "payments.refund", "deny")
    assert ran.runner.called() == ["t1_c0/look/order"]
    spent = _ran(
        _pack("skill:desk.both"), ("skill:desk.both", ORDER), budget={"tool_calls.per_turn": 1}
    )
    assert [each["key"] for each in spent.payloads("budget.exceeded")] == ["tool_calls.per_turn"]
    assert spent.runner.called() == ["t1_c0/look/order"]


def test_what_is_destructive_inside_asks_there_and_once() -> None:
    of = _pack("skill:desk.both", **{"payments.refund": {"approval_mode": "destructive"}})
    ran = _ran(of, ("skill:desk.both", ORDER))
    assert (ran.status, ran.code) == ("pending", "policy.approval")
    (asked,) = ran.payloads("approval.requested")
    assert (asked["capability"], asked["step_id"], asked["gate"]) == (
        "payments.refund",
        "t1_c0/pay/pay",
        "GATE_OPERATOR",
    )


def test_a_rule_on_a_skill_decides_before_anything_of_it_runs() -> None:
    limit = {"==": [{"var": "args.order_id"}, "ord_881"]}
    denied = _ran(
        _pack("skill:desk.look", rules=(_rule("skill:desk.look", limit),)),
        ("skill:desk.look", ORDER),
    )
    assert _decided(denied) == [("t1_c0", "skill:desk.look", "deny")]
    other = _ran(
        _pack("skill:desk.look", rules=(_rule("skill:desk.look", limit),)),
        ("skill:desk.look", {"order_id": "ord_1"}),
    )
    assert other.runner.called() == ["t1_c0/order"]
    gate = _rule("skill:desk.look", limit, verdict="allow_with_gate", gate="GATE_FINANCE_APPROVAL")
    asks = _ran(_pack("skill:desk.look", rules=(gate,)), ("skill:desk.look", ORDER))
    assert (asks.status, asks.code, asks.runner.called()) == ("pending", "policy.approval", [])
    (asked,) = asks.payloads("approval.requested")
    assert (asked["capability"], asked["binding"], asked["input"]) == ("skill:desk.look", "", ORDER)


def test_without_the_listing_a_nested_skill_widens_nothing() -> None:
    """A skill that the intent lists and the role may not call, and the reverse."""
    for allowed, listed in (
        ("orders.lookup", "skill:desk.look"),
        ("skill:desk.look", "orders.lookup"),
    ):
        of = _pack(allowed)
        (first, *rest) = of.decisions.intents.values()
        intents = {each.id: each for each in (first.replace(capabilities=(listed,)), *rest)}
        of = of.replace(decisions=of.decisions.replace(intents=intents))
        ran = _ran(of, ("skill:desk.look", ORDER))
        assert ran.payloads("critic.verified")[0]["reason"].startswith("unknown_capability")
        assert ran.runner.called() == []


def test_what_a_skill_gives_may_be_a_fact() -> None:
    of = _pack("skill:desk.look", **{"skill:desk.look": {"facts": {"order.total": "output.total"}}})
    planner = ScriptedPlanner(calls(("skill:desk.look", ORDER)), says("Done."))
    ran = invoke(planner, _given(of), skills=SKILLS)
    assert [each["key"] for each in ran.payloads("memory.proposed")[0]["facts"]] == ["order.total"]
    assert planner.views[1].context.compilation.evidence.facts["order"]["total"] == 20.0


def test_a_failing_skill_is_a_failing_call() -> None:
    planner = ScriptedPlanner(calls(("skill:desk.look", ORDER)), says("It is not there."))
    ran = invoke(
        planner,
        _given(_pack("skill:desk.look")),
        skills=SKILLS,
        scripts={"orders.lookup": gives(total="x")},
    )
    (effect,) = planner.views[1].effects
    assert (effect["capability"], effect["status"], effect["code"]) == (
        "skill:desk.look",
        "failed",
        "outputs.type",
    )
    assert ran.ending[0] == "completed"
