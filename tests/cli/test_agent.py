"""The five requests of the support desk, through the installed command (docs/reference/agent-run.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.project import Project, Result

from cogcli.declarations.checked import problem_of
from cogcli.episode.log_reader import EventLog

pytestmark = pytest.mark.sampled(8)

FILE = "packs/support-desk/4.0.0.yaml"
GATE = "GATE_FINANCE_APPROVAL"
REQUESTS = {
    "allowed": (0, "completed", ""),
    "needs-finance": (5, "pending_approval", GATE),
    "refused": (4, "refused", "must_refuse:card"),
    "escalates": (5, "escalated", "GATE_OPERATOR"),
    "over-budget": (4, "denied", "budget_exceeded:tool_calls.per_turn"),
}


def _invoke(desk: Project, name: str, *more: str) -> Result:
    return desk.run("agent", "invoke", f"requests/{name}.json", *more, "--json")


def _directory(desk: Project, result: Result) -> Path:
    return next(desk.root.rglob(result.json["episode_id"]))


def _record(desk: Project, result: Result, name: str = "decision") -> Any:
    return json.loads((_directory(desk, result) / f"{name}.json").read_text())


def _types(desk: Project, result: Result) -> list[str]:
    return [event.event_type or "" for _, event in EventLog(_directory(desk, result))]


@pytest.mark.parametrize(("name", "expected"), REQUESTS.items(), ids=list(REQUESTS))
def test_a_request_ends_as_the_pack_says(
    desk: Project, name: str, expected: tuple[int, str, str]
) -> None:
    code, status, reason = expected
    result = _invoke(desk, name).assert_exit(code)
    decision = _record(desk, result)
    assert (decision["status"], decision["status_reason"]) == (status, reason)
    assert len(_record(desk, result, "context")["turns"]) == 1
    desk.run("verify", result.json["episode_id"]).assert_ok()
    desk.run("replay", result.json["episode_id"]).assert_ok()
    state = _record(desk, result, "state")
    assert state["links"]["decision"] == "decision.json"
    assert state["x-decision"]["record_hash"] == decision["record_hash"]
    recorded = [
        e.payload
        for _, e in EventLog(_directory(desk, result))
        if e.event_type == "decision.recorded"
    ]
    assert [each["record_hash"] for each in recorded] == (
        [decision["record_hash"]] if code != 5 else []
    )
    for _, event in EventLog(_directory(desk, result)):
        assert problem_of(event.event_type or "", event.payload) is None


def test_a_refund_is_finished_by_another_process_of_the_right_role(desk: Project) -> None:
    paused = _invoke(desk, "needs-finance").assert_exit(5)
    asked = [
        e.payload
        for _, e in EventLog(_directory(desk, paused))
        if e.event_type == "approval.requested"
    ]
    assert [(each["kind"], each["proposed_by"]) for each in asked] == [
        ("gate", "agent.support-desk")
    ]
    for by in ("cust_7:finance", "bob:support", "bob"):
        desk.run("resume", "@last", "--approve", GATE, "--by", by).assert_exit(5)
    done = desk.run(
        "resume", "@last", "--approve", GATE, "--by", "ann:finance", "--json"
    ).assert_ok()
    assert done.json["outputs"]["response"] == "Refunded ord_881, receipt rc_ord_881."
    decision = _record(desk, paused)
    assert (decision["status"], decision["outcome"]) == ("completed", "refunded")
    assert [call["capability"] for call in decision["calls"]] == [
        "orders.lookup", "policy.eval", "payments.refund"
    ]  # fmt: skip
    assert (decision["approvals"][0]["by"], decision["approvals"][0]["role"]) == ("ann", "finance")
    assert {gate["status"] for gate in decision["evidence_gates"]} == {"satisfied"}
    recorded = [
        e for _, e in EventLog(_directory(desk, paused)) if e.event_type == "decision.recorded"
    ]
    assert [event.payload["record_hash"] for event in recorded] == [decision["record_hash"]]
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


def test_an_edited_amount_is_another_action(desk: Project) -> None:
    paused = _invoke(desk, "needs-finance").assert_exit(5)
    text = (desk.root / FILE).read_text()
    changed = text.replace("amount: vars.total}", "amount: {$literal: 250}}")
    assert changed != text
    (desk.root / FILE).write_text(changed)
    answer = ("resume", "@last", "--approve", GATE, "--by", "ann:finance")
    desk.run(*answer).assert_exit(3)
    result = desk.run(*answer, "--allow-changed-specs", "--json").assert_exit(5)
    assert result.json["error"]["code"] == "policy.approval"
    assert "payments.refund" not in [call["capability"] for call in _record(desk, paused)["calls"]]


def test_a_lawyer_needs_a_person_twice(desk: Project) -> None:
    result = _invoke(desk, "escalates").assert_exit(5)
    assert "candidate.proposed" not in _types(desk, result)
    desk.run("resume", "@last", "--approve", "GATE_OPERATOR", "--by", "cust_7").assert_exit(5)
    desk.run("resume", "@last", "--approve", "GATE_OPERATOR", "--by", "ann").assert_exit(5)
    assert _record(desk, result)["status"] == "pending_approval"
    desk.run("replay", "@last").assert_ok()
    desk.run("resume", "@last", "--approve", GATE, "--by", "ann:finance").assert_ok()
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


def test_a_rejected_escalation_denies(desk: Project) -> None:
    result = _invoke(desk, "escalates").assert_exit(5)
    desk.run("resume", "@last", "--reject", "GATE_OPERATOR", "--by", "ann").assert_exit(4)
    decision = _record(desk, result)
    assert (decision["status"], decision["status_reason"]) == ("denied", "safety.rejected")
    desk.run("replay", "@last").assert_ok()


def test_every_layer_leaves_an_event(desk: Project) -> None:
    from cogcli.agent.cognition.layers import ORDER

    result = _invoke(desk, "allowed").assert_ok()
    layers = [
        (event.payload["layer"], event.phase)
        for _, event in EventLog(_directory(desk, result))
        if event.event_type == "layer.completed"
    ]
    assert layers == [(layer.name, layer.phase) for layer in ORDER]


def test_a_read_only_run_looks_and_does_nothing(desk: Project) -> None:
    result = _invoke(desk, "needs-finance", "--safety-mode", "read_only").assert_exit(1)
    decision = _record(desk, result)
    assert (decision["status"], decision["status_reason"]) == (
        "completed",
        "action_skipped:read_only",
    )
    assert decision["calls"] == decision["memory_proposals"] == []


def test_a_decision_that_was_not_carried_out_is_said_with_its_reason(desk: Project) -> None:
    asked = desk.run(
        "agent", "invoke", "requests/needs-finance.json", "--safety-mode", "read_only", "-q"
    ).assert_exit(1)
    first, next_line = asked.err.splitlines()[-2:]
    assert first == "not done: action_skipped:read_only"
    assert next_line.startswith("next: cogcli trace ep_")
    desk.run(*next_line.split()[2:]).assert_ok()


def test_a_missing_parameter_becomes_a_question(desk: Project) -> None:
    asked = (
        "agent",
        "invoke",
        "--message",
        "Refund my order",
        "--user",
        "cust_7",
        "--pack",
        "support-desk@4.0.0",
    )
    result = desk.run(*asked, "--json").assert_exit(1)
    assert result.json["outputs"]["response"] == "Please give order_id."
    assert _record(desk, result)["status_reason"] == "input_missing"
    named = desk.run(*asked, "--param", "order_id=ord_440", "--json").assert_exit(5)
    assert _record(desk, named)["subjects"] == ["order:ord_440"]


def test_an_unknown_intent_is_refused_with_a_record(desk: Project) -> None:
    asked = (
        "agent",
        "invoke",
        "--message",
        "Sing a song",
        "--pack",
        "support-desk@4.0.0",
        "--json",
    )
    result = desk.run(*asked).assert_exit(4)
    assert _record(desk, result)["status_reason"] == "unknown_intent"
    desk.run("replay", "@last").assert_ok()


def test_the_answer_is_the_response_and_the_envelope_has_the_decision(desk: Project) -> None:
    result = desk.run("agent", "invoke", "requests/allowed.json")
    assert result.assert_ok().out == "ord_881 was ordered 12 days ago.\n"
    decision = _invoke(desk, "refused").assert_exit(4).json["decision"]
    assert (decision["status"], decision["status_reason"]) == ("refused", "must_refuse:card")


def test_what_is_remembered_waits_for_nobody_where_the_pack_says_so(desk: Project) -> None:
    _invoke(desk, "allowed", "--no-memory").assert_ok()
    scope = ("--tenant", "acme", "--user", "cust_7", "--json")
    assert desk.run("memory", "ls", *scope).json["memories"] == []
    result = _invoke(desk, "allowed").assert_ok()
    held = {
        each["candidate"]["predicate"]: each
        for each in desk.run("memory", "ls", *scope).json["memories"]
    }
    assert set(held) == {"age_days", "total"}
    proposed = {each["proposal_id"] for each in _record(desk, result)["memory_proposals"]}
    assert {each["proposal_id"] for each in held.values()} <= proposed


def test_a_dry_run_writes_nothing(desk: Project) -> None:
    result = _invoke(desk, "needs-finance", "--dry-run").assert_ok()
    assert [step["uses"] for step in result.json["plan"]["steps"]][-1] == "payments.refund"
    assert not list(desk.root.rglob("events.jsonl"))
    assert not list(desk.root.rglob("*.db"))


@pytest.mark.parametrize(
    ("more", "code"),
    [(("--budget", "turns=99"), 2), (("--pack", "no-pack@1.0.0"), 3), (("--budget", "turns=x"), 2),
     (("--safety-mode", "sometimes"), 2)],
)  # fmt: skip
def test_a_wrong_flag_starts_nothing(desk: Project, more: tuple[str, ...], code: int) -> None:
    _invoke(desk, "needs-finance", *more).assert_exit(code)
    assert not list(desk.root.rglob("events.jsonl"))


@pytest.mark.parametrize(
    "request_file",
    ['{"message": ""}', '{"message": 1}', '{"mesage": "a"}', '{"message": "a", "user": {"user_id": 1}}',
     '{"message": "a", "budget": {"turns": "x"}}', '{"message": "a", "pack_refs": [1]}', "[]", "{", "null"],
)  # fmt: skip
def test_a_request_that_is_none_is_refused(desk: Project, request_file: str) -> None:
    (desk.root / "requests/bad.json").write_text(request_file)
    _invoke(desk, "bad", "--pack", "support-desk@4.0.0").assert_exit(2)
    assert not list(desk.root.rglob("events.jsonl"))
