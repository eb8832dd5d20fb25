"""The turns of an agent's run in the views: a cell per layer, groups in tree, timeline and table."""

from __future__ import annotations

from typing import Any

from fakes.agent_log import GATE, AgentLog
from fakes.risk_review import risk_review

from cogcli.episode.history import History, history_of
from cogcli.report import layer_cells, table
from cogcli.report.styled_text import UNICODE, plain_text
from cogcli.report.timeline import timeline
from cogcli.report.tree import tree
from cogcli.report.unfinished_runs import unfinished_state

REFUND = {
    "request": "Issue refund for order ord_881",
    "perception": {"events": ["user_message", "session_resumed"]},
    "attention": {"focus": ["order:ord_881", "user_message"], "salience_top": 0.91},
    "identity": {"agent_role": "support_agent", "voice": "neutral_concise"},
    "intent": {"name": "support.refund", "task_template": "refund_with_eligibility"},
    "judgment": {"candidate_plan_id": "plan_refund_01"},
    "policy_gate": {"verdict": "allow_with_gate", "approval_gate": GATE},
    "action": [{"tool": "orders.lookup", "result": "ok"}, {"tool": "policy.eval", "result": "ok"}],
}


def waiting() -> History:
    folded = history_of(AgentLog().until_gate().events)
    unfinished_state(folded, "pending")
    return folded


def shown(folded: History, status: str, width: int | None = 90) -> list[str]:
    return [plain_text(line) for line in tree(folded, UNICODE, status=status, width=width)]


def test_a_turn_is_the_documented_cells() -> None:
    (cells,) = layer_cells.cells_of(waiting())
    assert {key: cells[key] for key in REFUND} == REFUND
    assert (cells["run_id"], cells["trace_id"], cells["turn"]) == ("run_root", "7f3a91c2" * 4, 1)
    assert (cells["consolidation"], cells["reflection"]) == (None, None)


def test_after_the_answer_the_turn_has_its_last_cells() -> None:
    (cells,) = layer_cells.cells_of(history_of(AgentLog().until_gate().to_end().events))
    assert cells["action"][-1] == {"tool": "payments.refund", "result": "ok"}
    assert cells["consolidation"] == {"memory_proposals": ["order:ord_881 age_days"]}
    assert cells["reflection"] == {"goal_met": True, "budget_remaining": "83%"}
    assert cells["policy_gate"] == {"verdict": "allow_with_gate", "approval_gate": GATE}
    assert cells["skipped"] == {"focus": "off"}


def test_the_strictest_enforced_verdict_is_the_turns() -> None:
    log = AgentLog().plan()
    log.decided("t1_order", "allow_with_gate", gate="GATE_A")
    log.decided("t1_rule", "refuse", enforced=False)
    assert (
        layer_cells.cells_of(history_of(log.events))[0]["policy_gate"]["approval_gate"] == "GATE_A"
    )
    log.decided("t1_refund", "deny")
    assert layer_cells.cells_of(history_of(log.events))[0]["policy_gate"]["verdict"] == "deny"


def test_an_escalation_is_the_verdict_of_its_turn() -> None:
    log = AgentLog()
    log.layer("perception")
    asked = {"approval_id": "ap_1", "gate": "GATE_OPERATOR", "step_id": "t1", "kind": "escalation"}
    log.add("approval.requested", "governance", asked, step_id="t1")
    folded = history_of(log.events)
    (cells,) = layer_cells.cells_of(folded)
    assert cells["policy_gate"] == {"verdict": "escalate", "approval_gate": "GATE_OPERATOR"}
    assert folded.asks.open[0].answer_flags() == "--approve GATE_OPERATOR"


def test_each_turn_has_cells_of_its_own() -> None:
    log = AgentLog().plan()
    log.call("t1_order", "failed")
    log.close_turn(goal_met=False, next="continue")
    log.layer("perception", 2)
    first, second = layer_cells.cells_of(history_of(log.events))
    assert first["action"] == [{"tool": "orders.lookup", "result": "failed"}]
    assert (second["turn"], second["action"], second["judgment"]) == (2, [], None)


def test_for_people_a_turn_is_a_line_per_layer_it_reached() -> None:
    lines = [plain_text(line) for line in layer_cells.lines(waiting(), UNICODE, width=60)]
    assert lines == [
        "? turn 1",
        "  perception   user_message, session_resumed",
        "  focus        skipped: off",
        "  attention    order:ord_881, user_message (top 0.91)",
        "  identity     support_agent, neutral_concise",
        "  intent       support.refund, template refund_with_eligibi…",
        "  context      2 blocks, 126 tokens, kept from the model: p…",
        "  judgment     plan_refund_01",
        "  policy_gate  allow_with_gate GATE_FINANCE_APPROVAL",
        "  action       orders.lookup ok, policy.eval ok",
        "  critic       verify ok",
    ]
    assert layer_cells.rows(waiting())[0] == {
        "turn": 1, "layer": "perception", "cell": "user_message, session_resumed"
    }  # fmt: skip


def test_steps_stand_below_their_turn_with_what_policy_and_critic_said() -> None:
    assert shown(waiting(), "pending") == [
        "? agent.support-desk                4.00s  2 of 3 done",
        "└─ ? turn 1        support.refund   4.00s    waits",
        "      context: 8 stages, 2 blocks, kept from the model: payments.void",
        "      critic: verify ok",
        "      layers: 8 passed, focus skipped (off)",
        "   ├─ ✓ t1_order   orders.lookup      3ms",
        "   ├─ ✓ t1_rule    policy.eval        3ms",
        "   └─ ? t1_refund  payments.refund           needs your approval",
        "         policy: allow_with_gate GATE_FINANCE_APPROVAL by refund_limit",
        "   decision  pending_approval: GATE_FINANCE_APPROVAL",
    ]


def test_a_finished_turn_names_template_score_and_decision() -> None:
    lines = shown(history_of(AgentLog().until_gate().to_end().events), "ok")
    assert any("✓ turn 1" in line and line.endswith("refund_with_eligibility") for line in lines)
    assert "      critic: verify ok, score accept" in lines
    assert lines[-1] == "   decision  completed: refunded"


def test_a_turn_that_a_crash_cut_off_says_so() -> None:
    folded = history_of(AgentLog().plan().events)
    unfinished_state(folded, "interrupted")
    assert any("turn 1" in line and "cut off" in line for line in shown(folded, "interrupted"))


def test_the_timeline_has_a_bar_per_turn_and_the_table_a_column() -> None:
    lines = [plain_text(line) for line in timeline(waiting(), UNICODE, width=80)]
    assert [line.split()[1] for line in lines[1:]] == ["turn", "t1_order", "t1_rule"]
    assert table.columns(waiting())[-1] == "turn"
    assert [row["turn"] for row in table.rows(waiting())] == [1, 1, 1]


def test_a_run_without_an_agent_has_no_turns() -> None:
    folded = history_of(risk_review())
    assert (folded.turns.turns, layer_cells.cells_of(folded)) == ([], [])
    assert table.columns(folded) == table.COLUMNS
    assert all("turn" not in row for row in table.rows(folded))


def test_a_forged_log_has_cells_too() -> None:
    odd: Any
    for odd in (None, 7, "x", [], {}, [7], {"a": []}):
        log = AgentLog()
        for name in (
            "perception",
            "attention",
            "identity",
            "goals",
            "judgment",
            "policy_gate",
            "consolidation",
        ):
            payload = {"turn": 1, "layer": name, "writes": odd}
            log.add("layer.completed", "observe", payload)
        for type in (
            "context.compiled",
            "critic.verified",
            "plan.created",
            "policy.decided",
            "decision.recorded",
        ):
            names = ("context", "verdict", "step_records", "verdict", "status", "events", "reason")
            log.add(
                type, "governance", {"turn": 1, **dict.fromkeys(names, odd)}, step_id="t1_order"
            )
        log.close_turn(goal_met=odd, budget=odd, next=odd)
        folded = history_of(log.events)
        assert len(layer_cells.cells_of(folded)) == 1
        assert layer_cells.lines(folded, UNICODE, width=80)
        assert shown(folded, "ok")
