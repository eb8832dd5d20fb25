"""An escalation to a person by a guardrail or the critic, without a call (docs/reference/agent-run.md#escalation)."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from cogcli.base.canonical import digest_of
from cogcli.base.errors import PolicyApprovalError, RuntimeErrorBase
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.declarations.pack_spec import Pack, PackGate
from cogcli.declarations.value_types import Json
from cogcli.policy.approvals import action_hash
from cogcli.run.engine.run import RootRun


class Escalation(NamedTuple):
    """A decision for a person: the turn as `t<turn>`, the gate, and the reason."""

    step_id: str
    gate: str
    reason: str
    plan: Json = NOTHING
    """The plan that the person decides about. Empty for a message, an answer or a result."""
    why: str = ""
    """The pack's reason for the guardrail that escalates."""
    say: str = ""
    """The text of the pack for the customer."""

    def require(self, root: RootRun, pack: Pack, policy: str) -> RuntimeErrorBase | None:
        """Return None after an approval, the error after a rejection. Without an answer, request one and raise
        PolicyApprovalError."""
        engine, run_id = root.engine, root.run.state.run_id
        values = {"reason": self.reason, **self.plan}
        action = action_hash(
            run_id=run_id, capability="", binding="", step_id=self.step_id, values=values
        )
        evidence = digest_of({"gate": self.gate, "reason": self.reason, "policy": policy})
        gate = pack.policy.gate(self.gate) or PackGate()
        asks = partial(
            engine.signatures.explain_answer,
            requires_signature=gate.signed,
            roles=gate.approver_roles,
        )
        used = engine.approvals.use(self.step_id, action, evidence, engine.clock.now(), asks)
        if used.approval is not None or used.rejection is not None:
            return used.rejection
        expires_at = datetime.fromisoformat(engine.clock.now()) + timedelta(seconds=gate.ttl_s)
        payload = ApprovalRequested(
            approval_id=f"ap_{engine.ids.ulid()}",
            capability="",
            binding="",
            gate=self.gate,
            step_id=self.step_id,
            input=values,
            action_hash=action,
            evidence_hash=evidence,
            expires_at=expires_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            reason=self.reason,
            kind="escalation",
            proposed_by=root.run.state.skill_id,
            approver_roles=list(gate.approver_roles),
            allow_self=gate.allow_self,
            signed=engine.signatures.are_needed(
                requires_signature=gate.signed, roles=gate.approver_roles
            )
            or None,
            say=self.say or None,
        )
        event = root.run.emit(draft_of(payload, run_id, step_id=self.step_id), durable=True)
        roles = gate.approver_roles
        text = f"{self.reason}: {self.why}" if self.why else self.reason
        refusal = PolicyApprovalError("policy.escalated", f"a person has to decide: {text}")
        refusal.hint = f"a person of the role {' or '.join(roles)} answers" if roles else ""
        refusal.say = ApprovalRequested.of(event.payload).say or ""
        raise refusal
