"""Requests for approval of one exact call, and the use of their answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from cogcli.core.canonical import digest_of
from cogcli.core.errors import PolicyApprovalError, RuntimeErrorBase
from cogcli.engine.step_recorder import StepRecord
from cogcli.events import build
from cogcli.governance.approvals import action_hash
from cogcli.specs.capability import Capability

TIME_TO_LIVE: Final = timedelta(hours=24)


class ApprovalRequest(NamedTuple):
    """One exact call that needs a person's yes, and what speaks against it."""

    record: StepRecord
    capability: Capability
    values: dict[str, Any]
    evidence: dict[str, Any]

    def is_approved(self) -> bool:
        """Whether a person approved this call; the approval is used up. Raises the error of a rejection, or of an
        invalid approval after a new request: an old one could not be answered."""
        engine = self.record.run.engine
        answer = engine.approvals.use(self.record.path, *self._hashes(), engine.clock.now())
        if isinstance(answer, PolicyApprovalError):
            self.ask(answer)
        if isinstance(answer, RuntimeErrorBase):
            raise answer
        return answer is not None

    def ask(self, refusal: RuntimeErrorBase) -> None:
        """Append `approval.requested`: the exact call, and when the request expires."""
        record, engine = self.record, self.record.run.engine
        action, proof = self._hashes()
        expires_at = datetime.fromisoformat(engine.clock.now()) + TIME_TO_LIVE
        payload = {
            "capability": self.capability.id,
            "binding": self._binding_id,
            "gate": self.evidence.get("gate") or "",
            "step_id": record.path,
            "input": self.values,
            "action_hash": action,
            "evidence_hash": proof,
            "expires_at": expires_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reason": refusal.message,
        }
        approval_id = f"ap_{engine.ids.ulid()}"
        draft = build.approval_requested(record.run_id, record.path, approval_id=approval_id, payload=payload)
        record.run.emit(draft, durable=True)

    @property
    def _binding_id(self) -> str:
        return self.record.run.engine.runner.chain(self.capability.id).members[0].binding_id

    def _hashes(self) -> tuple[str, str]:
        """What the approval is bound to: the action, and the evidence."""
        action = action_hash(
            run_id=self.record.run_id,
            capability=self.capability.id,
            binding=self._binding_id,
            step_id=self.record.path,
            values=self.values,
        )
        return action, digest_of(self.evidence)
