"""Answers of people to the open requests of a log (docs/reference/execution.md#approvals): the requests that they name,
who may give them, and their events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cogcli.base.errors import PolicyApprovalError, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.system import current_user
from cogcli.declarations.envelope import Draft, Event, draft_of
from cogcli.declarations.governance_events import (
    AnswerSignature,
    ApprovalGranted,
    ApprovalRejected,
    ApprovalRequested,
)
from cogcli.declarations.run_start import ExpectedAgent, start_of
from cogcli.episode.journal import Journal
from cogcli.policy.approvals import AnswerSignatures, AnswerStatement, SignedAnswer
from cogcli.run.approver import is_of_gate, parse_approver, require_approver
from cogcli.run.log_index import LogIndex


class RequestAnswer(NamedTuple):
    """A person's answer to one open request."""

    asked: Event
    granted: bool


class Approver(NamedTuple):
    """The person who answers, and the reason. `by` is `NAME` or `NAME:ROLE`, as the person states it."""

    by: str
    reason: str = ""
    signatures: Mapping[str, AnswerSignature] = {}
    """Their signatures, by the ids of the requests."""


def match_answers(
    log: LogIndex, approve: Sequence[str], reject: Sequence[str]
) -> list[RequestAnswer]:
    """Return the answers to the open requests that `approve` and `reject` name.

    Raise UsageError `episode.unknown-approval` for a name without a request, or `usage.flag` for two answers to
    one request.
    """
    answers: list[RequestAnswer] = []
    for names, granted in ((approve, True), (reject, False)):
        for name in names:
            found = [
                RequestAnswer(event, granted) for event in _find_requests(log.open_requests, name)
            ]
            answers += [each for each in found if each not in answers]
    if len({each.asked.id for each in answers}) < len(answers):
        raise UsageError(
            "usage.flag", "one request is both approved and rejected", hint="keep one answer"
        )
    return answers


def _find_requests(requests: list[Event], name: str) -> list[Event]:
    """Return the requests with this name. Raise UsageError `episode.unknown-approval` if no request matches."""
    named = [event for event in requests if name in request_names(event)]
    if not named:
        waiting = sorted(set().union(*map(request_names, requests)))
        raise UsageError(
            "episode.unknown-approval",
            f"no pending approval is called `{name}`",
            expected=f"one of: {', '.join(waiting) or 'nothing'}",
        )
    return named


def request_names(asked: Event) -> set[str]:
    """Return the names of a request: its id, its capability and its gate."""
    request = ApprovalRequested.of(asked.payload)
    return {name for name in (request.approval_id, request.capability, request.gate) if name}


def require_approvers(
    started: Event,
    answers: Iterable[RequestAnswer],
    approver: Approver,
    signatures: AnswerSignatures,
    now: str,
) -> None:
    """Raise the error of the first answer that the user may not give, or whose signature is missing or invalid. See
    `run/approver.py`.
    """
    by, start = approver.by, start_of(started)
    agent_id = ExpectedAgent.of(start.agent.request.agent).agent_id if start.agent else ""
    for answer in answers:
        request = ApprovalRequested.of(answer.asked.payload)
        require_approver(
            request, granted=answer.granted, by=by, policy=start.policy, agent_id=agent_id
        )
        refusal = signatures.explain_answer(
            _signed_answer(request, approver, granted=answer.granted),
            now,
            requires_signature=bool(request.signed),
            roles=request.approver_roles or (),
        )
        if refusal:
            named = request.gate or request.capability
            raise PolicyApprovalError(
                "policy.approval",
                f"the answer of `{by}` to `{named}` does not count: {refusal}",
                hint="" if approver.signatures else "sign it with your SSH key: --sign FILE",
            )


def state_answer(request: ApprovalRequested, by: str, *, granted: bool) -> AnswerStatement:
    """Return the statement that a person signs to answer a request. `by` is `NAME` or `NAME:ROLE`."""
    name, role = parse_approver(request, by)
    return AnswerStatement(
        approval_id=request.approval_id,
        granted=granted,
        by=name,
        role=role,
        action_hash=request.action_hash or "",
        evidence_hash=request.evidence_hash or "",
    )


def _signed_answer(
    request: ApprovalRequested, approver: Approver, *, granted: bool
) -> SignedAnswer | None:
    """Return the signed answer of a person to a request; None if they did not sign it."""
    signature = approver.signatures.get(request.approval_id)
    if signature is None:
        return None
    return SignedAnswer(state_answer(request, approver.by, granted=granted), signature.value)


def append_answer(
    journal: Journal, answer: RequestAnswer, approver: Approver, *, deferred: bool = False
) -> Event:
    """Append an answer, synced, and return its event. `deferred`: the run does not continue now."""
    return journal.append(draft_answer(answer, approver, deferred=deferred), durable=True)


def draft_answer(answer: RequestAnswer, approver: Approver, *, deferred: bool = False) -> Draft:
    """Return the draft of the event that records an answer."""
    asked = answer.asked
    request = ApprovalRequested.of(asked.payload)
    by, role = parse_approver(request, approver.by)
    user, signature = current_user(), approver.signatures.get(request.approval_id)
    kind = ApprovalGranted if answer.granted else ApprovalRejected
    payload = kind(
        approval_id=request.approval_id,
        capability=request.capability,
        step_id=request.step_id,
        action_hash=request.action_hash,
        reason=approver.reason,
        evidence_hash=request.evidence_hash if signature else None,
        role=role if is_of_gate(request) else None,
        os_uid=user.uid,
        os_user=user.name or None,
        by=by,
        signature=signature,
        deferred=True if deferred else None,
    )
    return draft_of(payload, asked.run_id or "", step_id=asked.step_id or "", speaker=f"human:{by}")
