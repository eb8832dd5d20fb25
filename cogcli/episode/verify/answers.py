"""The signed answers of people in a log (docs/reference/execution.md#signed)."""

from __future__ import annotations

from collections.abc import Iterator

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import (
    Approval,
    ApprovalGranted,
    ApprovalRejected,
    ApprovalRequested,
)
from cogcli.declarations.reading import read_record
from cogcli.episode.layout import EVENTS, Finding
from cogcli.episode.verify.trusted import JudgeAnswer
from cogcli.policy.approvals import AnswerStatement, SignedAnswer


class _LoggedAnswer(NamedTuple):
    line: int
    at: str
    granted: bool
    answer: Approval


class SignedAnswers:
    """The requests and the signed answers among the events of a log."""

    def __init__(self) -> None:
        self._requests: dict[str, Approval] = {}
        self._answers: list[_LoggedAnswer] = []

    def apply(self, line: int, event: Event) -> None:
        """Record a request for approval, or a signed answer to one. Other events are ignored."""
        kind = event.event_type
        if kind == ApprovalRequested.event.name:
            request = read_record(Approval, event.payload)
            self._requests[request.approval_id] = request
        elif kind in (ApprovalGranted.event.name, ApprovalRejected.event.name):
            answer = read_record(Approval, event.payload)
            if answer.signature is not None:
                granted = kind == ApprovalGranted.event.name
                self._answers.append(_LoggedAnswer(line, event.timestamp, granted, answer))

    def findings(self, judge: JudgeAnswer) -> Iterator[Finding]:
        """Yield a finding for each signed answer."""
        for line, at, granted, answer in self._answers:
            asked = self._requests.get(answer.approval_id, answer)
            statement = AnswerStatement(
                approval_id=answer.approval_id,
                granted=granted,
                by=answer.by or "",
                role=answer.role or "",
                action_hash=asked.action_hash or "",
                evidence_hash=asked.evidence_hash or "",
            )
            signature = answer.signature
            value = signature.value if signature else ""
            found = judge(SignedAnswer(statement, value), at)
            yield Finding(found.code, found.severity, EVENTS, line, found.message)
