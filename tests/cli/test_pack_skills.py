"""A pack whose agent calls a skill, through the command (docs/reference/pack.md#skills)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(12)

FILE = "packs/support-desk/4.0.0.yaml"
PACK = "support-desk@4.0.0"
GATE = "GATE_FINANCE_APPROVAL"
TOOL = "skill:support.refund"


@pytest.fixture
def desk(desk: Project) -> Project:
    """The support desk with its skill instead of the capabilities."""
    text = (desk.root / FILE).read_text()
    for old, new in (
        (
            "allow: [orders.lookup, policy.eval, payments.refund]",
            f'allow: ["{TOOL}", "skill:text.brief"]',
        ),
        (
            "capabilities: [orders.lookup, policy.eval, payments.refund]",
            f'capabilities: ["{TOOL}", "skill:text.brief"]',
        ),
        ("required_evidence: [order.age_days, order.total]", "required_evidence: []"),
    ):
        assert old in text
        text = text.replace(old, new)
    steps, rest = text.index("      steps:"), text.index("      success:")
    step = f'{{id: all, uses: "{TOOL}", input: {{order_id: inputs.order_id}}, output: {{receipt: outputs.receipt}}}}'
    (desk.root / FILE).write_text(f"{text[:steps]}      steps:\n        - {step}\n{text[rest:]}")
    return desk


def _decisions(desk: Project) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        desk.run("policy", "explain", "@last", "--json").assert_ok().json["calls"]
    )
    return found


def test_an_agent_refunds_by_a_skill(desk: Project) -> None:
    desk.run("pack", "check", PACK).assert_ok()
    checked = desk.run("policy", "check", PACK).assert_ok()
    assert "policy.unreachable" not in checked.out + checked.err
    desk.run("agent", "invoke", "requests/needs-finance.json").assert_exit(5)
    calls = _decisions(desk)
    assert [(each["step_id"], each["capability"], each["verdict"]) for each in calls] == [
        ("t1_all", TOOL, "allow"),
        ("t1_all/order", "orders.lookup", "allow"),
        ("t1_all/rule", "policy.eval", "allow"),
        ("t1_all/refund", "payments.refund", "allow_with_gate"),
    ]
    assert [each.get("inside") for each in calls] == [None, [TOOL], [TOOL], [TOOL]]
    assert all(not each.get("why") for each in calls)
    assert f"inside      {TOOL}" in desk.run("policy", "explain", "@last").assert_ok().out
    shown = desk.run("context", "explain", "@last", "--why", TOOL, "--json").assert_ok().json
    (placed,) = shown["context"]["placements"]
    assert (placed["name"], placed["reason"], placed["approval_mode"]) == (
        TOOL,
        "gated",
        "destructive",
    )
    desk.run("resume", "@last", "--approve", GATE, "--by", "ann:finance").assert_ok()
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


def test_a_plain_run_of_the_skill_is_governed_the_same_way(desk: Project) -> None:
    run = ("run", "support.refund", "-p", "order_id=ord_881", "--pack", PACK, "--user", "cust_7")
    assert GATE in desk.run(*run, "--intent", "support.refund").assert_exit(5).err
    assert [each["verdict"] for each in _decisions(desk)] == ["allow", "allow", "allow_with_gate"]
    assert all(not each.get("why") for each in _decisions(desk))
    desk.run("resume", "@last", "--approve", GATE, "--by", "ann:finance").assert_ok()
    desk.run("replay", "@last").assert_ok()
    assert (
        "permission_denied" in desk.run(*run, "--intent", "support.order_status").assert_exit(4).err
    )


def test_a_gate_on_a_skill_is_asked_before_it_begins(desk: Project) -> None:
    text = (desk.root / FILE).read_text()
    (desk.root / FILE).write_text(
        text.replace("capabilities: [payments.refund]}", f'capabilities: ["{TOOL}"]}}').replace(
            'if: {">": [{var: args.amount}, 200]}', 'if: {"==": [{var: args.order_id}, ord_881]}'
        )
    )
    paused = (
        desk.run("agent", "invoke", "requests/needs-finance.json", "--json").assert_exit(5).json
    )
    assert [each["step_id"] for each in _decisions(desk)] == ["t1_all"]
    log = next(desk.root.rglob(paused["episode_id"])) / "events.jsonl"
    asked = [
        e
        for e in map(json.loads, log.read_text().splitlines())
        if e["event_type"] == "approval.requested"
    ]
    assert [each["payload"]["capability"] for each in asked] == [TOOL]
    again = desk.run("resume", "@last", "--approve", TOOL, "--by", "ann:finance").assert_exit(5)
    assert "GATE_OPERATOR" in again.err, "what is destructive in it asks by itself"
    desk.run("resume", "@last", "--approve", "payments.refund", "--by", "ann").assert_ok()
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


def test_a_skill_that_is_not_there_is_told_at_its_line(desk: Project) -> None:
    text = (desk.root / FILE).read_text()
    (desk.root / FILE).write_text(text.replace("skill:text.brief", "skill:text.brif"))
    checked = desk.run("pack", "check", PACK).assert_exit(1)
    told = checked.out + checked.err
    assert "no skill for `support_agent` `skill:text.brif`" in told
    assert "did you mean `skill:text.brief`" in told
    assert f"{FILE}:24:" in told


def test_a_skill_without_a_binding_is_kept_from_the_agent_and_stops_nothing(desk: Project) -> None:
    text = (desk.root / FILE).read_text()
    (desk.root / FILE).write_text(text.replace("skill:text.brief", "skill:support.void"))
    desk.write(
        "capabilities/orders.void.yaml",
        'id: orders.void\nversion: "1.0.0"\ndescription: Void.\ninputs: {}\noutputs: {}\n',
    )
    desk.write(
        "skills/local/support/void/skill.yaml",
        'id: support.void\nversion: "1.0.0"\nname: Void\ndescription: Void.\ninputs: {}\noutputs: {}\n'
        "steps: [{id: a, uses: orders.void, input: {}, output: {}}]\n",
    )
    desk.run("agent", "invoke", "requests/needs-finance.json").assert_exit(5)
    shown = (
        desk.run("context", "explain", "@last", "--why", "skill:support.void", "--json")
        .assert_ok()
        .json
    )
    assert shown["context"]["placements"][0]["reason"] == "not_usable"
    desk.run("resume", "@last", "--approve", GATE, "--by", "ann:finance").assert_ok()
    desk.run("replay", "@last").assert_ok()


def test_policy_eval_knows_a_skill(desk: Project) -> None:
    desk.write(
        "data.json", json.dumps({"request": {"intent": "support.refund"}, "user": {"id": "cust_7"}})
    )
    found = desk.run("policy", "eval", PACK, "--capability", TOOL, "--data", "data.json", "--json")
    assert found.assert_exit(5).json["verdict"]["approval_mode"] == "destructive"
    lost = desk.run(
        "policy", "eval", PACK, "--capability", "skill:support.refnd", "--data", "data.json"
    )
    assert f"did you mean `{TOOL}`" in lost.assert_exit(2).err
