"""When the goal of an agent's run is met, through the installed command (docs/reference/agent-run.md#goal)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.agent_desk import LOOKUP, answer, document, payloads
from support.project import Project, Result

pytestmark = pytest.mark.sampled(4)

PACK = "packs/support-desk/4.0.0.yaml"
DECISION = "outcomes: [refunded, not_refunded]}"
RECEIPT = '{"==": [{var: outputs.receipt.status}, done]}'
UNGATED = ("    payments.refund: {approval_mode: destructive}\n", "    payments.refund: {}\n")


def change(desk: Project, path: str, *changes: tuple[str, str]) -> None:
    text = (desk.root / path).read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    desk.write(path, text.encode())


def with_goal(desk: Project, rule: str) -> None:
    change(desk, PACK, (DECISION, DECISION.replace("]}", f"], success: {rule}}}")))


def refund(amount: float, order: str = "ord_881") -> dict[str, Any]:
    return {"name": "payments.refund", "args": {"order_id": order, "amount": amount}}


def run(desk: Project, *turns: Any, order: str = "ord_881") -> Result:
    """Let a scripted model propose one call a turn, or answer."""
    replies = [
        {"json": {"response": each} if isinstance(each, str) else {"tool_calls": [each]}}
        for each in turns
    ]
    replies[-1]["times"] = 5
    desk.write("models/tries.yaml", json.dumps({"replies": replies}).encode())
    asked = ("--message", f"Refund order {order}", "--pack", "support-desk@4.0.0")
    model = ("--user", "cust_7", "--model", "scripted:models/tries.yaml", "--json")
    return desk.run("agent", "invoke", *asked, *model)


def lookup(order: str) -> dict[str, Any]:
    return {"name": "orders.lookup", "args": {"order_id": order}}


def assert_end(desk: Project, status: str, reason: str, *, goal_met: bool) -> None:
    decision = document(desk.episode, "decision")
    assert (decision["status"], decision["status_reason"]) == (status, reason)
    assert payloads(desk.episode, "reflection.recorded")[-1]["goal_met"] is goal_met
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


def test_a_denied_refund_with_a_cheerful_message_is_denied(desk: Project) -> None:
    turns = (lookup("ord_100"), refund(20, "ord_100"), "Done! Your refund is on its way.")
    result = run(desk, *turns, order="ord_100").assert_exit(4)
    assert result.json["status"] == "vetoed"
    assert "`payments.refund` was denied and not done: refund_window" in str(result.json["error"])
    assert "on its way" not in result.out
    assert_end(desk, "denied", "refund_window", goal_met=False)


def test_a_call_that_a_person_rejected_meets_no_goal_either(desk: Project) -> None:
    waiting = run(desk, LOOKUP, refund(240), "Done! Your refund is on its way.").assert_exit(5)
    answer(desk, waiting, "--reject").assert_exit(4)
    assert_end(desk, "denied", "safety.rejected", goal_met=False)


def test_an_allowed_retry_after_a_denial_completes(desk: Project) -> None:
    gate = "{verdict: allow_with_gate, gate: GATE_FINANCE_APPROVAL}"
    change(desk, PACK, UNGATED, (f"then: {gate}", "then: {verdict: deny}"))
    result = run(desk, LOOKUP, refund(240), refund(20), "Refunded 20.").assert_ok()
    assert result.json["outputs"]["response"] == "Refunded 20."
    assert_end(desk, "completed", "", goal_met=True)


def test_a_denied_look_up_is_no_goal(desk: Project) -> None:
    """What a call would not have changed needs no making up for."""
    allowed = "allow: [orders.lookup, policy.eval, payments.refund]"
    change(desk, PACK, (allowed, "allow: [orders.lookup, payments.refund]"))
    judged = {"name": "policy.eval", "args": {"days": 3}}
    run(desk, judged, LOOKUP, "It is 12 days old.").assert_ok()
    assert_end(desk, "completed", "", goal_met=True)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "rule", [RECEIPT, '{and: [{"<": [{var: order.age_days}, 30]}, {"==": [{var: outputs.receipt.amount}, 20]}]}'],
    ids=["outputs", "facts"],
)  # fmt: skip
def test_the_rule_of_the_decision_is_the_goal_of_a_models_plan(desk: Project, rule: str) -> None:
    change(desk, PACK, UNGATED)
    with_goal(desk, rule)
    run(desk, LOOKUP, refund(20), "Refunded 20.").assert_ok()
    assert_end(desk, "completed", "", goal_met=True)
    run(desk, LOOKUP, "Refunded 20.").assert_exit(1)
    assert_end(desk, "completed", "goal_unmet", goal_met=False)
    assert len(payloads(desk.episode, "candidate.proposed")) == 2, "a model may say no"


def test_a_goal_that_an_effect_missed_is_planned_again(desk: Project) -> None:
    change(desk, PACK, UNGATED)
    change(desk, "support_desk.py", ('"status": "done"', '"status": "late"'))
    with_goal(desk, RECEIPT)
    run(desk, LOOKUP, refund(20), "Refunded 20.").assert_exit(1)
    verdicts = [each["verdict"] for each in payloads(desk.episode, "critic.scored")]
    assert "replan" in verdicts
    prompt = payloads(desk.episode, "model.requested")[-1]["request"]["messages"][-1]
    assert "goal_unmet" in prompt["content"].partition("NOTICES:")[2]
    assert_end(desk, "completed", "goal_unmet", goal_met=False)


@pytest.mark.parametrize(("most", "code"), [(30, 0), (3, 1)])
def test_the_rule_of_the_decision_is_the_goal_of_a_template(
    desk: Project, most: int, code: int
) -> None:
    change(desk, PACK, UNGATED, ("amount}, 200]", "amount}, 2000]"))
    with_goal(desk, f'{{"<": [{{var: order.age_days}}, {most}]}}')
    desk.run("agent", "invoke", "requests/needs-finance.json").assert_exit(code)
    assert_end(desk, "completed", "goal_unmet" if code else "", goal_met=code == 0)
    decision = document(desk.episode, "decision")
    assert decision["outcome"] == ("not_refunded" if code else "refunded")


def test_a_goal_reads_only_what_is_there(desk: Project) -> None:
    with_goal(desk, '{"==": [{var: outputz.receipt}, 1]}')
    wrong = desk.run("pack", "check", PACK).assert_exit(1)
    assert "reads `outputz.receipt`, which is never there" in wrong.err + wrong.out
