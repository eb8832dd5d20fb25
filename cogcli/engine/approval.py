"""Requests for approval of one exact call, and the use of their answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from cogcli.core.canonical import digest_of
from cogcli.core.errors import PolicyApprovalError, RuntimeErrorBase
from cogcli.engine.context import Run
from cogcli.engine.step_recorder import StepRecord
from cogcli.events import build
from cogcli.governance.approvals import action_hash
from cogcli.specs.capability import Capability

TIME_TO_LIVE: Final = timedelta(hours=24)


def require_approval(
    run: Run, record: StepRecord, capability: Capability, values: dict[str, Any], evidence: dict[str, Any]
) -> bool:
    """Whether a person approved this call; the approval is used up.

    Raises the error of a rejection, or of an invalid approval after a new request: an old one could not be answered.
    """
    engine = run.engine
    action, proof = _hashes(run, record, capability, values, evidence)
    answer = engine.approvals.use(record.path, action, proof, engine.clock.now())
    if isinstance(answer, PolicyApprovalError):
        ask(run, record, capability, values, evidence, answer)
    if isinstance(answer, RuntimeErrorBase):
        raise answer
    return answer is not None


def ask(
    run: Run,
    record: StepRecord,
    capability: Capability,
    values: dict[str, Any],
    evidence: dict[str, Any],
    refusal: RuntimeErrorBase,
) -> None:
    """Append `approval.requested`: the exact call, and when the request expires."""
    engine = run.engine
    action, proof = _hashes(run, record, capability, values, evidence)
    payload = {
        "capability": capability.id,
        "binding": engine.runner.chain(capability.id).members[0].binding_id,
        "gate": evidence.get("gate") or "",
        "step_id": record.path,
        "input": values,
        "action_hash": action,
        "evidence_hash": proof,
        "expires_at": _expiry(engine.clock.now()),
        "reason": refusal.message,
    }
    draft = build.approval_requested(
        run.state.run_id, record.path, approval_id=f"ap_{engine.ids.ulid()}", payload=payload
    )
    run.emit(draft, durable=True)


def _hashes(
    run: Run, record: StepRecord, capability: Capability, values: dict[str, Any], evidence: dict[str, Any]
) -> tuple[str, str]:
    chain = run.engine.runner.chain(capability.id)
    action = action_hash(
        run_id=run.state.run_id,
        capability=capability.id,
        binding=chain.members[0].binding_id,
        step_id=record.path,
        values=values,
    )
    return action, digest_of(evidence)


def _expiry(now: str) -> str:
    later = datetime.fromisoformat(now.replace("Z", "+00:00")) + TIME_TO_LIVE
    return later.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
