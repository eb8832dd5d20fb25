"""The pressure on a turn, and what follows from it, through the installed command
(docs/reference/pack.md#functional-state)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.agent_desk import LOOKUP, answer, ask, document, episode_of, payloads
from support.project import Project, Result

PACK = "packs/support-desk/4.0.0.yaml"
START = 1_800_000_000
HOUR = 3600


def at(seconds: int) -> dict[str, str]:
    """An environment in which it is so late."""
    return {"COGCLI_FAKE_CLOCK": str(START + seconds)}


def change(desk: Project, path: str, *changes: tuple[str, str]) -> None:
    text = (desk.root / path).read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    desk.write(path, text.encode())


def state_of(desk: Project, turn: int = -1) -> dict[str, Any]:
    found: dict[str, Any] = payloads(desk.episode, "functional_state.captured")[turn]
    return found


def assert_same_again(desk: Project) -> None:
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("hours", "pressure"), [(1, 0.0), (18, 0.5)])
def test_a_gate_presses_by_the_share_of_its_time_that_its_answer_took(
    desk: Project, hours: int, pressure: float
) -> None:
    invoke = ("agent", "invoke", "requests/needs-finance.json")
    desk.run(*invoke, env=at(0)).assert_exit(5)
    approve = ("resume", "@last", "--approve", "GATE_FINANCE_APPROVAL", "--by", "ann:finance")
    desk.run(*approve, env=at(hours * HOUR)).assert_ok()
    found = state_of(desk)["gate_pressure"]
    assert found == pytest.approx(pressure, abs=0.01)
    lineage = document(desk.episode, "decision")["lineage"]["functional_state"]
    assert lineage[-1]["gate_pressure"] == found
    assert_same_again(desk)


@pytest.fixture
def torn(desk: Project) -> Project:
    """The desk whose graph has two ages of the order."""
    common = {
        "tenant_id": "acme",
        "subject": "order:ord_881",
        "predicate": "age_days",
        "trust": "verified",
        "observed_at": "2027-01-15T07:00:00Z",
    }
    facts = [{**common, "value": value, "evidence_ref": f"crm/{value}"} for value in (12, 40)]
    desk.write("facts.jsonl", "".join(json.dumps(fact) + "\n" for fact in facts).encode())
    desk.run("knowledge", "import", "facts.jsonl", env=at(0)).assert_ok()
    return desk


def test_a_call_of_the_run_settles_a_contradiction(torn: Project) -> None:
    request = ("agent", "invoke", "--message", "Refund order ord_440", "--user", "cust_7")
    torn.run(*request, "--pack", "support-desk@4.0.0", env=at(0)).assert_exit(5)
    torn.run("agent", "invoke", "requests/needs-finance.json", env=at(0)).assert_exit(5)
    torn.run(
        "resume", "@last", "--approve", "GATE_FINANCE_APPROVAL", "--by", "a:finance", env=at(9)
    )
    assert state_of(torn)["conflict_pressure"] == 0.0
    assert_same_again(torn)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("word", ["--approve", "--reject"])
@pytest.mark.parametrize("planner", ["template", "model"])
def test_a_conflict_on_required_evidence_escalates_and_is_named(
    torn: Project, planner: str, word: str
) -> None:
    facts = "{order.age_days: output.age_days, order.total: output.total}"
    change(torn, PACK, (facts, "{order.total: output.total}"))
    refund = {"name": "payments.refund", "args": {"order_id": "ord_881", "amount": 20}}
    replies = [{"json": {"tool_calls": [LOOKUP, refund]}}, {"json": {"response": "I cannot."}}]
    torn.write("models/pays.yaml", json.dumps({"replies": replies}).encode())
    model = ("--model", "scripted:models/pays.yaml") if planner == "model" else ()
    invoke = ("agent", "invoke", "requests/needs-finance.json", *model)
    result = torn.run(*invoke, "--json", env=at(0)).assert_exit(5)
    assert result.json["error"]["code"] == "policy.escalated"
    assert "conflict:order.age_days" in result.json["error"]["message"]
    assert payloads(torn.episode, "step.started") == []
    decide = ("resume", "@last", word, "GATE_OPERATOR", "--by", "ann", "--json")
    after = torn.run(*decide, env=at(60))
    assert state_of(torn)["conflict_pressure"] == 1.0
    assert "payments.refund" not in str(payloads(torn.episode, "step.started"))
    if word == "--reject":
        assert after.assert_exit(4).json["decision"]["status"] == "denied"
    elif planner == "template":
        assert after.assert_exit(4).json["decision"]["status_reason"] == "conflict:order.age_days"
    else:
        error = after.assert_exit(5).json["error"]
        assert error["message"].endswith("conflict:order.age_days"), "the response meets it, too"
        prompt = payloads(torn.episode, "model.requested")[-1]["request"]["messages"][-1]
        assert "conflict:order.age_days" in prompt["content"].partition("NOTICES:")[2]
    assert_same_again(torn)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("soft", "waits"), [("0", True), ("0.9", False)])
def test_on_a_tie_a_person_is_asked_from_one_half_on(desk: Project, soft: str, waits: bool) -> None:
    change(desk, "support_desk.py", ("    return ORDERS[order_id]", '    raise ValueError("gone")'))
    change(desk, PACK, ("budget: {turns: 6,", f"budget: {{soft: {soft}, turns: 4,"))
    replies = [{"json": {"tool_calls": [LOOKUP]}, "times": 2}, {"json": {"response": "Sorry."}}]
    desk.write("models/tries.yaml", json.dumps({"replies": replies}).encode())
    result: Result = ask(desk, "needs-finance", "--model", "scripted:models/tries.yaml")
    first, second, *_ = payloads(desk.episode, "critic.scored")
    assert first["verdict"] == "replan"
    assert (state_of(desk, 1)["escalation_propensity"] >= 0.5) is waits
    assert second["verdict"] == ("escalate" if waits else "replan")
    if waits:
        assert second["reason"].startswith("tie:")
        result.assert_exit(5)
        answer(desk, result, "--approve")
        assert episode_of(desk, result) == desk.episode
    assert_same_again(desk)
