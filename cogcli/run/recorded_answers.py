"""A person's answer to a request for an approval, as the events of both record it."""

from __future__ import annotations

from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import (
    Approval,
    ApprovalRequested,
)
from cogcli.policy.approvals import AnswerStatement, ApprovalAnswer, RequestedAction, SignedAnswer


def answer_from_events(request: Event, answer: Event, *, used: bool = False) -> ApprovalAnswer:
    """Return a person's answer together with its request."""
    approval = Approval.of(answer.payload)
    asked, granted = action_from_request(request), answer.event_type == "approval.granted"
    return ApprovalAnswer(
        asked,
        granted,
        approval.by or "",
        approval.reason or "",
        answer.timestamp,
        used,
        answer.id,
        signed=_find_signed_answer(asked, approval, granted=granted),
    )


def _find_signed_answer(
    asked: RequestedAction, answer: Approval, *, granted: bool
) -> SignedAnswer | None:
    """Return the statement that the signature of an answer must cover, and the signature. None for an unsigned
    answer.
    """
    if answer.signature is None:
        return None
    by, role = answer.by or "", answer.role or ""
    statement = AnswerStatement(
        asked.approval_id, granted, by, role, asked.action_hash, asked.evidence_hash
    )
    return SignedAnswer(statement, answer.signature.value)


def action_from_request(request: Event) -> RequestedAction:
    """Return the action that a person is asked to approve."""
    asked = ApprovalRequested.of(request.payload)
    return RequestedAction(
        asked.approval_id,
        asked.capability or "",
        asked.step_id or "",
        asked.action_hash or "",
        asked.evidence_hash or "",
        asked.expires_at or "",
        asked.gate or "",
        request.timestamp,
    )
