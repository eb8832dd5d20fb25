"""The second decision about a call that a person approved, and every cut of its log
(docs/reference/execution.md#approvals)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import vouch
from support.project import Project

pytestmark = pytest.mark.sampled(12)

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
UNDER = ("--pack", "support-desk@4.0.0", "--intent", "support.refund", "--user", "cust_7", "--json")
ANSWER = ("--approve", "GATE_FINANCE_APPROVAL", "--by", "ann:finance", "--json")
ORDER = [
    ("policy.decided", "allow_with_gate"),
    ("approval.requested", None),
    ("approval.granted", None),
    ("policy.decided", "allow"),
    ("step.started", None),
    ("step.completed", None),
]


@pytest.fixture
def desk(project: Project) -> Project:
    shutil.copytree(
        DESK,
        project.root,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__", ".cogcli"),
    )
    return project


def _log(desk: Project) -> Path:
    return next(desk.root.rglob("events.jsonl"))


def _events(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def _of_refund(log: Path) -> list[dict[str, Any]]:
    return [event for event in _events(log) if event.get("step_id") == "refund"]


def _words(log: Path) -> list[tuple[str, str | None]]:
    return [
        (
            e["event_type"],
            e["payload"].get("verdict") if e["event_type"] == "policy.decided" else None,
        )
        for e in _of_refund(log)
    ]


def _cut(log: Path, lines: list[bytes]) -> None:
    """Leave only these lines of an episode, as a kill would have."""
    for file in log.parent.iterdir():
        if file.name in ("summary.json", "manifest.json", "state.json", "learn.jsonl"):
            file.unlink()
    log.write_bytes(b"".join(lines))
    vouch(log.parent, log.parents[4] / "home")


def _paused(desk: Project) -> Path:
    desk.run("run", "support.refund", "-p", "order_id=ord_881", *UNDER).assert_exit(5)
    return _log(desk)


def test_a_redeemed_call_is_judged_again_because_of_the_answer(desk: Project) -> None:
    log = _paused(desk)
    desk.run("resume", "@last", *ANSWER).assert_ok()
    assert _words(log) == ORDER
    first, _, answer, second, started, _ = _of_refund(log)
    assert (second["caused_by"], first.get("caused_by")) == (answer["id"], None)
    assert (second["payload"]["gate"], second["payload"]["reason"]) == (
        "GATE_FINANCE_APPROVAL",
        "approved",
    )
    decision = started["payload"]["decision"]
    assert (decision["verdict"], decision["event"]) == ("allow", second["id"])
    desk.run("replay", "@last").assert_ok()
    desk.run("verify", "@last").assert_ok()


def test_a_log_cut_anywhere_after_its_answer_ends_the_same(desk: Project) -> None:
    log = _paused(desk)
    paused = log.read_bytes().count(b"\n")
    desk.run("resume", "@last", *ANSWER).assert_ok()
    lines = log.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["event_type"] for line in lines]
    ends = kinds.index("step.started", paused)
    refunds = desk.root / "refunds.jsonl"
    for cut in range(kinds.index("approval.granted") + 1, ends + 1):
        _cut(log, lines[:cut])
        refunds.unlink(missing_ok=True)
        desk.run("resume", "@last", "--json").assert_ok()
        assert _words(log) == ORDER, f"cut after {kinds[cut - 1]}"
        desk.run("replay", "@last").assert_ok()
        desk.run("verify", "@last").assert_ok()


RUSH = """
id: support.rush
version: "1.0.0"
name: Rush
description: Pays back while the order is looked up.
inputs: {order_id: {type: string, required: true}}
outputs: {}
steps:
  - {id: refund, uses: payments.refund, input: {order_id: inputs.order_id, amount: 240}}
  - {id: order, uses: orders.lookup, depends_on: [], input: {order_id: inputs.order_id}}
"""
LATER = """    - rule_id: too_old
      mode: enforce
      applies_to: {capabilities: [payments.refund]}
      if: {and: [{"!": [{missing: [order.age_days]}]}, {">": [{var: order.age_days}, 30]}]}
      then: {verdict: deny}
      tests: [{data: {order: {age_days: 31}}, expect: match}, {data: {order: {}}, expect: no_match}]
"""


def test_what_became_known_while_a_person_thought_counts(desk: Project) -> None:
    """The call waits beside one that goes on, and what that one gives denies it, on every way through the log."""
    desk.write("skills/local/support/rush/skill.yaml", RUSH)
    file = desk.root / "packs/support-desk/4.0.0.yaml"
    text = file.read_text()
    first, last = (
        text.index("    - rule_id: refund_window"),
        text.index("    - rule_id: refund_limit"),
    )
    text = text[:first] + LATER + text[last:]
    text = text.replace("required_evidence: [order.age_days, order.total]", "required_evidence: []")
    file.write_text(text)
    desk.run("run", "support.rush", "-p", "order_id=ord_100", *UNDER).assert_exit(5)
    log = _log(desk)
    desk.run("resume", "@last", *ANSWER).assert_exit(4)
    expected = [*ORDER[:3], ("policy.decided", "deny"), ("step.vetoed", None)]
    assert _words(log) == expected
    desk.run("replay", "@last").assert_ok()
    name = "packs/support-desk/4.0.0.yaml"
    desk.run("policy", "diff", name, name, "--over", "@last").assert_ok()
    lines = log.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["event_type"] for line in lines]
    for cut in range(kinds.index("approval.granted") + 1, kinds.index("step.vetoed") + 1):
        _cut(log, lines[:cut])
        desk.run("resume", "@last").assert_exit(4)
        assert _words(log) == expected, f"cut after {kinds[cut - 1]}"
        desk.run("replay", "@last").assert_ok()
