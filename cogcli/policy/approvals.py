"""Approvals: a person's permission for one exact action (docs/reference/execution.md#approvals). Pure.

1. An approval names the action by hash: capability, binding, step, input and evidence. It covers no other action.
2. It is used once. A repeat of the same call makes a new request.
3. It expires, and is invalid before the time it was given: setting the clock back does not renew it.
4. A rejection vetoes the step.
"""

from __future__ import annotations

from cogcli.base.canonical import digest_of
from cogcli.base.errors import PolicyApprovalError, RuntimeErrorBase, SafetyGateFailedError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json


class RequestedAction(NamedTuple):
    """One request for approval, as `approval.requested` records it."""

    approval_id: str
    capability: str
    step_id: str
    action_hash: str
    evidence_hash: str
    expires_at: str
    gate: str = ""
    asked_at: str = ""
    """The time of the request."""


class ApprovalAnswer(NamedTuple):
    """A person's answer to a request: whether it is granted, by whom, why and when."""

    asked: RequestedAction
    granted: bool
    by: str
    reason: str
    at: str
    used: bool = False
    """Whether the log has the start of the approved call, or the decision that followed. A used approval was valid and
    no longer expires."""
    event: str = ""
    """The id of the event that records the answer."""
    continued_at: str = ""
    """When the run continued, if the answer was recorded without continuing it."""

    @property
    def judged_at(self) -> str:
        """The time as of which the approved call is judged again."""
        return self.continued_at or self.at


def action_hash(*, run_id: str, capability: str, binding: str, step_id: str, values: Json) -> str:
    """Return the digest of one action. Equal JSON gives an equal digest; `1` and `true` differ."""
    return digest_of(
        {
            "run": run_id,
            "capability": capability,
            "binding": binding,
            "step": step_id,
            "input": values,
        }
    )


class Approvals:
    """The approval answers of a run, by step. Each answer can be used once."""

    def __init__(self, answers: tuple[ApprovalAnswer, ...] = ()) -> None:
        self._answers: dict[str, list[ApprovalAnswer]] = {}
        for answer in answers:
            self.add(answer)
        self.used: list[ApprovalAnswer] = []
        """The answers that the run has followed so far, in order."""

    def add(self, answer: ApprovalAnswer) -> None:
        """Add an answer that a person gave while the run goes on."""
        self._answers.setdefault(answer.asked.step_id, []).append(answer)

    def use(
        self, step_id: str, action: str, evidence: str, now: str
    ) -> ApprovalAnswer | RuntimeErrorBase | None:
        """Consume and return the approval of this action.

        Return an error if the step has a rejection, or if all its approvals are invalid. Return None if the step has no
        answer. An invalid approval is dropped, and the next one is tried.
        """
        waiting = self._answers.get(step_id, [])
        error: RuntimeErrorBase | None = None
        while waiting:
            answer = waiting.pop(0)
            if not answer.granted:
                self.used.append(answer)
                why = f": {answer.reason}" if answer.reason else ""
                return SafetyGateFailedError("safety.rejected", f"rejected by {answer.by}{why}")
            error = self._explain_invalidity(answer, action, evidence, now)
            if error is None:
                self.used.append(answer)
                return answer
        return error

    def take_over(self, answer: ApprovalAnswer) -> None:
        """Note an approval of an earlier run that this run uses now."""
        self.used.append(answer)

    def _explain_invalidity(
        self, answer: ApprovalAnswer, action: str, evidence: str, now: str
    ) -> PolicyApprovalError | None:
        """Return an error that explains why an approval is invalid for this action now, or None if it is valid."""
        hint = "look at what is asked now, and approve that"
        if answer.asked.action_hash != action or answer.asked.evidence_hash != evidence:
            text = "what is about to be done is not what was approved"
            return PolicyApprovalError("policy.approval", text, hint=hint)
        if not answer.used and (now >= answer.asked.expires_at or now < answer.at):
            text = f"the approval expired at {answer.asked.expires_at}"
            return PolicyApprovalError("policy.approval", text, hint=hint)
        return None


class ReplayedApprovals(Approvals):
    """The approval answers of a recorded run, used when the run is replayed.

    An answer that the run used stays valid even if the hash differs: the log may hold a masked input, which has another
    hash.
    """

    def _explain_invalidity(
        self, answer: ApprovalAnswer, action: str, evidence: str, now: str
    ) -> PolicyApprovalError | None:
        return None if answer.used else super()._explain_invalidity(answer, action, evidence, now)
