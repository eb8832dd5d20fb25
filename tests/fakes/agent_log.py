"""The log of an agent's run: a refund, which waits for finance."""

from __future__ import annotations

from typing import Any

from fakes.logged import event

from cogcli.agent.cognition.layers import LAYERS
from cogcli.declarations.envelope import Event

GATE = "GATE_FINANCE_APPROVAL"
STAGES = ("intent", "policy", "tools", "evidence", "memory", "budget", "assembly", "manifests")
_GATES = [{"name": "order.age_days", "status": "satisfied", "refs": ["ord_881/age"]}]
_CONTEXT = {
    "compiled_prompt": {"context_blocks": [{"block_id": "returns"}, {"block_id": "voice"}]},
    "redactions": [{"capability": "payments.void", "check": "permission"}],
    "budget_report": {"used": {"policy": 20, "tool": 106}, "omissions": []},
    "manifests": {"evidence_manifest": [{"ref": "ord_881/age"}]},
    "context_ledger": {
        "context_hash": "sha256:1",
        "stage_hashes": {stage: f"sha256:{n:064x}" for n, stage in enumerate(STAGES)},
    },
    "runtime_controls": {"must_refuse": [], "must_escalate": [], "evidence_gates": _GATES},
}
_WRITES: dict[str, dict[str, Any]] = {
    "budget_gate": {"gate_decision": {"proceed": True}},
    "perception": {
        "events": [{"id": "e0", "type": "user_message"}, {"id": "e1", "type": "session_resumed"}]
    },
    "focus": {},
    "attention": {
        "focus": ["order:ord_881", "e0"],
        "salience_scores": {"order:ord_881": 0.91, "e0": 0.4},
    },
    "identity": {"agent_self": {"role": "support_agent", "voice": "neutral_concise"}},
    "goals": {"intent": "support.refund", "active_goals": []},
    "judgment": {"candidate": {"candidate_plan_id": "plan_refund_01"}},
    "policy_gate": {"verdict": "allow", "obligations": []},
    "action": {"effects": []},
    "consolidation": {
        "proposals": [{"candidate": {"entity": "order:ord_881", "predicate": "age_days"}}]
    },
    "reflection": {
        "reflection": {"goal_met": True, "budget": {"turns": 5, "tool_calls.per_turn": 0}}
    },
}
_STEPS = {"t1_order": "orders.lookup", "t1_rule": "policy.eval", "t1_refund": "payments.refund"}


class AgentLog:
    """Events of one agent's run, each at a second of its own as far as there are."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.add(
            "run.started",
            "start",
            {
                "using": "agent",
                "task": "Issue refund for order ord_881",
                "skill": {"id": "agent.support-desk", "version": "4.0.0"},
                "inputs": {},
                "policy": {
                    "pack": "support-desk@4.0.0",
                    "intent": "support.refund",
                    "user": "cust_7",
                },
                "agent": {"limits": {"turns": 6, "tool_calls.per_turn": 8}, "request": {}},
            },
        )

    def add(self, type: str, phase: str, payload: dict[str, Any], **more: Any) -> Event:
        number = len(self.events)
        self.events.append(
            event(min(9, number // 5), type, phase, payload, seq=number, id=f"ev_{number}", **more)
        )
        return self.events[-1]

    def layer(self, name: str, turn: int = 1, **writes: Any) -> Event:
        skipped = {"skipped": "off"} if name == "focus" else {}
        payload = {
            "turn": turn,
            "layer": name,
            "reads": [],
            "writes": {**_WRITES[name], **writes},
            **skipped,
        }
        return self.add("layer.completed", LAYERS[name].phase, payload)

    def plan(self, turn: int = 1) -> AgentLog:
        """From the beginning of a turn to its plan."""
        for name in ("budget_gate", "perception", "focus", "attention", "identity", "goals"):
            self.layer(name, turn)
        self.add(
            "context.compiled",
            "interpret",
            {"turn": turn, "context_hash": "h", "context": _CONTEXT},
        )
        candidate = {"turn": turn, "planner": "template", "template": "refund_with_eligibility"}
        self.add("candidate.proposed", "action_candidate", candidate)
        self.layer("judgment", turn)
        self.add(
            "critic.verified",
            "governance",
            {"turn": turn, "verdict": "ok", "reason": "", "fails": []},
        )
        self.layer("policy_gate", turn)
        records = [{"id": id, "uses": uses, "capability": uses} for id, uses in _STEPS.items()]
        self.add("plan.created", "plan", {"turn": turn, "step_records": records})
        return self

    def decided(self, step: str, verdict: str = "allow", **more: Any) -> None:
        payload = {
            "decision": "allow",
            "verdict": verdict,
            "enforced": True,
            "reason": "no_rule",
            **more,
        }
        self.add("policy.decided", "governance", payload, step_id=step)

    def call(self, step: str, status: str = "done") -> None:
        uses = _STEPS[step]
        begun = {"step_id": step, "step_status": "running", "uses": uses, "binding": "b"}
        self.add("step.started", "act", begun, step_id=step)
        ended = {
            "step_id": step,
            "step_status": status,
            "uses": uses,
            "capability": uses,
            "latency_ms": 3,
        }
        self.add("step.completed", "act", ended, step_id=step)

    def until_gate(self) -> AgentLog:
        """Two calls are done, the third waits."""
        self.plan()
        for step in ("t1_order", "t1_rule"):
            self.decided(step)
            self.call(step)
        self.decided("t1_refund", "allow_with_gate", gate=GATE, rule="refund_limit")
        asked = {"approval_id": "ap_1", "capability": "payments.refund", "gate": GATE, "step_id": "t1_refund",
                 "reason": "refund_limit", "kind": "gate", "approver_roles": ["finance"]}  # fmt: skip
        self.add("approval.requested", "governance", asked, step_id="t1_refund")
        self.add("run.paused", "runtime", {"reason": "policy.approval"})
        return self

    def to_end(self) -> AgentLog:
        """The rest of the turn, after somebody of finance said yes."""
        self.add("run.resumed", "runtime", {"reason": "resume"})
        self.add(
            "approval.granted",
            "governance",
            {"approval_id": "ap_1", "by": "ann", "role": "finance"},
        )
        self.call("t1_refund")
        self.close_turn()
        decided = {"decision_id": "dc_1", "decision_key": "support.refund", "status": "completed",
                   "status_reason": "", "outcome": "refunded", "outputs": {}}  # fmt: skip
        self.add("decision.recorded", "insight", decided)
        self.add("run.terminated", "terminate", {"status": "ok"}, metrics={"duration_ms": 2270})
        return self

    def close_turn(self, turn: int = 1, **reflection: Any) -> None:
        """The layers after the plan."""
        self.layer("action", turn)
        self.add(
            "critic.scored",
            "governance",
            {
                "turn": turn,
                "verdict": "accept",
                "reason": "",
                "goal_met": True,
                "evidence_gates": _GATES,
            },
        )
        self.layer("consolidation", turn)
        found = {**_WRITES["reflection"]["reflection"], **reflection}
        self.layer("reflection", turn, reflection=found)
