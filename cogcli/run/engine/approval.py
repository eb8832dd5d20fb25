"""Requests for a person's approval of one exact call, and the use of the answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cogcli.base.calls import AskedCall
from cogcli.base.canonical import digest_of
from cogcli.base.errors import PolicyApprovalError, RuntimeErrorBase
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.governance_events import ApprovalGranted, ApprovalRequested, CallEvidence
from cogcli.declarations.value_types import Json
from cogcli.policy.approvals import ApprovalAnswer, RequestedAction, SignedAnswer, action_hash
from cogcli.run.engine.effects import AwaitWake, Effects
from cogcli.run.engine.step_recorder import StepRecord

if TYPE_CHECKING:
    from cogcli.declarations.pack_spec import PackGate


class ApprovalRequest(NamedTuple):
    """One exact call that needs a person's approval, and the evidence against it."""

    record: StepRecord
    capability: Capability
    values: dict[str, Any]
    evidence: CallEvidence
    gate: PackGate | None = None
    """The pack's gate that requires the approval. None if a safety level requires it."""

    def is_approved(self) -> bool:
        """Return whether a person approved this call. Raises the same errors as `use_answer`."""
        return self.use_answer() is not None

    def use_answer(self) -> ApprovalAnswer | None:
        """Use up and return a person's approval of this call, or return None without an answer. A rerun then uses an
        unused approval of the earlier run.

        Raise the recorded error if the person rejected the call. If the approval is invalid, append a new request and
        raise PolicyApprovalError, since the old request is closed.
        """
        engine = self.record.run.engine
        now = engine.clock.now()
        used = engine.approvals.use(
            self.record.path, *self._action_and_evidence_hash(), now, self._explain_signature
        )
        if used.invalid is not None:
            self.ask(used.invalid)
            raise used.invalid
        if used.rejection is not None:
            raise used.rejection
        if used.approval is None and not self._is_signed_only:
            return self._transfer_earlier(now)
        return used.approval

    @property
    def _approver_roles(self) -> tuple[str, ...]:
        return self.gate.approver_roles if self.gate else ()

    @property
    def _is_signed_only(self) -> bool:
        """Whether only a signed answer counts."""
        signatures = self.record.run.engine.signatures
        return signatures.are_needed(
            requires_signature=bool(self.gate and self.gate.signed), roles=self._approver_roles
        )

    def _explain_signature(self, signed: SignedAnswer | None, at: str) -> str:
        """Return why an approval does not count because of its signature. Empty if that is no reason."""
        signatures, needed = self.record.run.engine.signatures, bool(self.gate and self.gate.signed)
        return signatures.explain_answer(
            signed, at, requires_signature=needed, roles=self._approver_roles
        )

    def _transfer_earlier(self, now: str) -> ApprovalAnswer | None:
        """Transfer and record an unused approval of the earlier run. Return None if that run has none for this call."""
        record, engine = self.record, self.record.run.engine
        action, proof = self._action_and_evidence_hash()
        asked = AskedCall(
            record.path,
            self.capability.id,
            self._chain_bindings,
            self.evidence.gate,
            self.values,
            proof,
        )
        earlier = engine.earlier_approvals and engine.earlier_approvals.redeem(asked, now)
        if not earlier:
            return None
        payload = ApprovalGranted(
            approval_id=earlier.approval_id,
            capability=self.capability.id,
            binding=self._binding_id,
            gate=asked.gate,
            step_id=record.path,
            input=self.values,
            action_hash=action,
            evidence_hash=proof,
            expires_at=earlier.expires_at,
            reason=earlier.reason,
            role=earlier.role,
            os_uid=earlier.os_uid,
            os_user=earlier.os_user,
            by=earlier.by,
            taken_from=earlier.origin,
            **self._gate_members(),
        )
        event = record.run.emit(
            draft_of(payload, record.run_id, step_id=record.path, speaker="system"), durable=True
        )
        requested = RequestedAction(
            payload.approval_id,
            self.capability.id,
            record.path,
            action,
            proof,
            earlier.expires_at,
            asked.gate,
            event.timestamp,
        )
        answer = ApprovalAnswer(
            requested, True, earlier.by, earlier.reason, event.timestamp, event=event.id
        )
        engine.approvals.take_over(answer)
        return answer

    def ask_and_wait(self, refusal: RuntimeErrorBase) -> Effects:
        """Append a request, and return the person's answer if it arrives during the run. Raise `refusal` if the whole
        run must wait for the answer. Raise the same errors as `use_answer`.
        """
        self.ask(refusal)
        while self.record.run.engine.parks_for_answers:
            yield AwaitWake()
            try:
                answer = self.use_answer()
            except PolicyApprovalError:
                continue  # the approval was invalid, and `use_answer` has asked again
            if answer is not None:
                return answer
        raise refusal

    def ask(self, refusal: RuntimeErrorBase) -> None:
        """Append `approval.requested` with the exact call and the time when the request expires."""
        record, engine = self.record, self.record.run.engine
        action, proof = self._action_and_evidence_hash()
        seconds = self.gate.ttl_s if self.gate else engine.options.approval_ttl
        expires_at = datetime.fromisoformat(engine.clock.now()) + timedelta(seconds=seconds)
        payload = ApprovalRequested(
            approval_id=f"ap_{engine.ids.ulid()}",
            capability=self.capability.id,
            binding=self._binding_id,
            gate=self.evidence.gate,
            step_id=record.path,
            input=self.values,
            action_hash=action,
            evidence_hash=proof,
            expires_at=expires_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            reason=self._explain_request(refusal),
            say=refusal.say or None,
            **self._gate_members(),
        )
        draft = draft_of(payload, record.run_id, step_id=record.path)
        event = record.run.emit(draft, durable=True)
        refusal.say = ApprovalRequested.of(event.payload).say or ""  # as recorded, without secrets

    def _explain_request(self, refusal: RuntimeErrorBase) -> str:
        """Return the reason for a request, including why an approval of the earlier run was not used."""
        earlier = self.record.run.engine.earlier_approvals
        note = earlier.explain_refusal(self.record.path) if earlier else ""
        return f"{refusal.message}; {note}" if note else refusal.message

    def _gate_members(self) -> dict[str, Any]:
        """Return the members of the request that describe a pack's gate, such as the roles that may answer."""
        if self.gate is None:
            return {}
        roles = list(self.gate.approver_roles)
        kind = "escalation" if self.evidence.verdict == "escalate" else "gate"
        return {
            "kind": kind,
            "proposed_by": self.record.run.state.skill_id,
            "approver_roles": roles,
            "allow_self": self.gate.allow_self,
            "signed": True if self._is_signed_only else None,
            "rule": self.evidence.rule or None,
            "decides_on": _read_arguments(self.evidence.reads),
        }

    @property
    def _chain_bindings(self) -> tuple[str, ...]:
        """The chain of the call, empty for a skill."""
        if self.capability.reaches:
            return ()
        chain = self.record.run.engine.runner.chain(self.capability.id)
        return tuple([member.binding_id for member in chain.members])

    @property
    def _binding_id(self) -> str:
        return self._chain_bindings[0] if self._chain_bindings else ""

    def _action_and_evidence_hash(self) -> tuple[str, str]:
        """Return the hash of the action and the hash of the evidence, which bind the approval to this call."""
        action = action_hash(
            run_id=self.record.run_id,
            capability=self.capability.id,
            binding=self._binding_id,
            step_id=self.record.path,
            values=self.values,
        )
        return action, digest_of(self.evidence.json)


def _read_arguments(reads: Json) -> list[str]:
    """Return the members of the input among the values that a rule read."""
    return sorted(name.removeprefix(_ARGUMENT) for name in reads if name.startswith(_ARGUMENT))


_ARGUMENT: Final = "args."
