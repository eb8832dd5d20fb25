"""The obligation `mask:PATH`: the value is in no file of the episode (docs/reference/pack.md#obligations)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.agent_desk import events_of
from support.project import Project

pytestmark = pytest.mark.sampled(8)

PACK = "packs/support-desk/4.0.0.yaml"
SECRET = "rc_ord_440"
"""The id of the receipt, which only the tool makes."""
MASK = "[masked]"
RULE = """
    - rule_id: hide_receipt
      mode: enforce
      applies_to: {capabilities: [payments.refund]}
      if: true
      then: {verdict: allow, obligations: ["mask:PATH"]}
"""
RUN = ("run", "support.refund", "-p", "order_id=ord_440", "--pack", "support-desk@4.0.0")
ASKED = ("--intent", "support.refund", "--user", "cust_7", "--json")


def hide(desk: Project, path: str = "receipt.id", scope: str = "payments.refund") -> Project:
    """Let a rule mask this path, and the tool print what it is about to hide."""
    text = (desk.root / PACK).read_text()
    rule = RULE.replace("PATH", path).replace("payments.refund", scope)
    desk.write(PACK, text.replace("  rules:\n", f"  rules:{rule}").encode())
    code = (desk.root / "support_desk.py").read_text()
    says = '    print(f"rc_{order_id}")\n    return {"receipt"'
    assert code.count('    return {"receipt"') == 1
    desk.write("support_desk.py", code.replace('    return {"receipt"', says).encode())
    return desk


def approve(desk: Project) -> Any:
    answer = ("--approve", "GATE_OPERATOR", "--by", "ann", "--json")
    return desk.run("resume", "@last", *answer).assert_ok().json


def files_with(desk: Project, text: str) -> list[str]:
    """The files of the project's runs that hold a text."""
    files = [path for path in (desk.root / ".cogcli").rglob("*") if path.is_file()]
    return [path.name for path in files if text.encode() in path.read_bytes()]


def payloads(desk: Project, event_type: str) -> list[dict[str, Any]]:
    return [each.payload for each in events_of(desk.episode) if each.event_type == event_type]


def test_a_masked_value_is_in_no_file_of_an_agents_episode(desk: Project) -> None:
    hide(desk)
    asked = ("--message", "Refund order ord_440", "--pack", "support-desk@4.0.0")
    desk.run("agent", "invoke", *asked, "--user", "cust_7", "--json").assert_exit(5)
    result = approve(desk)
    assert result["outputs"]["receipt"]["id"] == MASK
    assert result["outputs"]["response"] == f"Refunded ord_440, receipt {MASK}."
    assert files_with(desk, SECRET) == []
    assert payloads(desk, "policy.decided")[-1]["obligations"][0] == "mask:receipt.id"
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()
    desk.run("policy", "explain", "@last").assert_ok()


def test_a_run_under_a_pack_masks_what_later_steps_get(desk: Project) -> None:
    hide(desk, "total", "orders.lookup")
    desk.run(*RUN, *ASKED)
    (looked,) = [each for each in payloads(desk, "step.completed") if "total" in each["output"]]
    assert looked["output"] == {"age_days": 3, "total": MASK}
    assert files_with(desk, "35.5") == []
    assert payloads(desk, "step.started")[-1]["uses"] != "payments.refund", "a text is no amount"


@pytest.mark.sampled(16)
def test_the_answer_that_does_not_fit_is_not_quoted(desk: Project) -> None:
    hide(desk)
    path = "capabilities/payments.refund.yaml"
    text = (desk.root / path).read_text()
    desk.write(path, text.replace("receipt: {type: object", "receipt: {type: string").encode())
    asked = ("--message", "Refund order ord_440", "--pack", "support-desk@4.0.0")
    desk.run("agent", "invoke", *asked, "--user", "cust_7", "--json").assert_exit(5)
    answer = ("--approve", "GATE_OPERATOR", "--by", "ann", "--json")
    error = desk.run("resume", "@last", *answer).json["error"]
    assert "not quoted" in json.dumps(error)
    assert files_with(desk, SECRET) == []
    desk.run("replay", "@last").assert_ok()


def test_pack_check_finds_a_mask_that_hides_nothing(desk: Project) -> None:
    hide(desk, "card")
    problems = desk.run("pack", "check", "support-desk@4.0.0", "--json").assert_exit(1).out
    assert "none of its capabilities has an output `card`" in problems


@pytest.mark.parametrize(
    ("facts", "user", "code", "reason"),
    [
        ("{order.age_days: output.age_days, order.total: output.total}", "cust_7", 5, ""),
        ("{order.total: output.total}", "cust_7", 4, "evidence_missing:order.age_days"),
        ("{order.age_days: output.age_days, order.total: output.total}", "default", 4, "named_user"),
    ],
)  # fmt: skip
def test_a_person_who_decides_lifts_neither_evidence_nor_the_named_user(
    desk: Project, facts: str, user: str, code: int, reason: str
) -> None:
    text = (desk.root / PACK).read_text()
    rule = RULE.replace('allow, obligations: ["mask:PATH"]', "escalate")
    known = "{order.age_days: output.age_days, order.total: output.total}"
    desk.write(PACK, text.replace("  rules:\n", f"  rules:{rule}").replace(known, facts).encode())
    flags = ("--intent", "support.refund", "--user", user, "--json")
    result = desk.run(*RUN, *flags).assert_exit(code)
    assert result.json["error"]["code"] == ("policy.denied" if reason else "policy.escalated")
    assert reason in result.json["error"]["message"]
    assert len(payloads(desk, "approval.requested")) == (0 if reason else 1)
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()
