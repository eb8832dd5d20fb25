"""Approvals: a person's permission for one exact action (docs/reference/execution.md#approvals). Pure.

1. An approval names the action by hash: capability, binding, step, input and evidence. It covers no other action.
2. It is used once. A repeat of the same call makes a new request.
3. It expires, and is invalid before the time it was given: setting the clock back does not renew it.
4. A rejection vetoes the step.
5. A signature covers the exact action, the request, the answer, the name and the role. The hash of the action contains
   the run, so a signature is valid for no other run. It is checked when the answer is given, again at each use, and by
   `verify`. Where one is needed, an approval without one does not count; a rejection in the log always counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from cogcli.base.canonical import canonical, digest_of
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


NAMESPACE: Final = "cogcli-approval"
"""The namespace of the signatures: none that was made for another purpose counts."""
SCHEMA: Final = "approval/1"


class AnswerStatement(NamedTuple):
    """The statement that a person signs to answer a request."""

    approval_id: str
    granted: bool
    by: str
    role: str
    action_hash: str
    evidence_hash: str

    def to_bytes(self) -> bytes:
        """Return the bytes that are signed: canonical JSON."""
        return canonical(
            {
                "schema_version": SCHEMA,
                "approval_id": self.approval_id,
                "answer": "granted" if self.granted else "rejected",
                "by": self.by,
                "role": self.role,
                "action_hash": self.action_hash,
                "evidence_hash": self.evidence_hash,
            }
        )


class SignedAnswer(NamedTuple):
    """A statement and its armored signature."""

    statement: AnswerStatement
    signature: str


def _explain_nothing(answer: SignedAnswer, at: str) -> str:
    return "it cannot be checked here"


class AnswerSignatures(NamedTuple):
    """Verifies the signatures of answers."""

    explain: Callable[[SignedAnswer, str], str] = _explain_nothing
    """Returns why a signature does not count at a time; empty if it does. Raises UnusableEnvironment `signing.ssh`
    if nothing can be checked."""
    with_role: bool = False
    """Whether a gate with roles counts only signed answers."""
    is_test: bool = False
    """Whether answers are those of a test, which no person signs."""

    def are_needed(self, *, requires_signature: bool, roles: Collection[str]) -> bool:
        """Return whether an answer needs a signature: its gate or its roles require one."""
        return not self.is_test and (requires_signature or (self.with_role and bool(roles)))

    def explain_answer(
        self,
        answer: SignedAnswer | None,
        at: str,
        *,
        requires_signature: bool,
        roles: Collection[str],
    ) -> str:
        """Return why the signature makes an answer invalid, or an empty text."""
        if answer is None:
            is_needed = self.are_needed(requires_signature=requires_signature, roles=roles)
            return "it is not signed, and here only a signed answer counts" if is_needed else ""
        if roles and answer.statement.role not in roles:
            return f"it is signed for the role `{answer.statement.role}`, which may not answer"
        return self.explain(answer, at)


UNCHECKED: Final = AnswerSignatures()
"""Without keys of people: no signature counts, and only a gate that asks for one needs one."""
OF_A_TEST: Final = AnswerSignatures(is_test=True)


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
    signed: SignedAnswer | None = None
    """The statement and its signature; None without one."""
    continued_at: str = ""
    """The time when the run continued, if the answer was recorded without continuing it."""

    @property
    def judged_at(self) -> str:
        """The time for which the approved call is evaluated again."""
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


ExplainSignature = Callable[[SignedAnswer | None, str], str]
"""Returns why an approval does not count at a time because of its signature, or for lack of one. Empty if it does."""


def accept_any_signature(signed: SignedAnswer | None, at: str) -> str:
    return ""


class UsedAnswer(NamedTuple):
    """The approval of a call, or why there is none. All are None for a step without an answer."""

    approval: ApprovalAnswer | None = None
    rejection: RuntimeErrorBase | None = None
    """The error of a step that a person rejected."""
    invalid: PolicyApprovalError | None = None
    """Why the last approval does not count, if none does."""


class Approvals:
    """The approval answers of a run, by step. Each answer can be used once."""

    def __init__(self, answers: tuple[ApprovalAnswer, ...] = ()) -> None:
        self._answers: dict[str, list[ApprovalAnswer]] = {}
        for answer in answers:
            self.add(answer)
        self.used: list[ApprovalAnswer] = []
        """The answers that the run has followed so far, in order."""

    def add(self, answer: ApprovalAnswer) -> None:
        """Add an answer that a person gave during the run."""
        self._answers.setdefault(answer.asked.step_id, []).append(answer)

    def use(
        self,
        step_id: str,
        action: str,
        evidence: str,
        now: str,
        explain_signature: ExplainSignature = accept_any_signature,
    ) -> UsedAnswer:
        """Consume and return the approval of this action, or why there is none.

        An invalid approval is dropped, and the next one is tried.
        """
        waiting = self._answers.get(step_id, [])
        invalid: PolicyApprovalError | None = None
        while waiting:
            answer = waiting.pop(0)
            if not answer.granted:
                self.used.append(answer)
                why = f": {answer.reason}" if answer.reason else ""
                text = f"rejected by {answer.by}{why}"
                return UsedAnswer(rejection=SafetyGateFailedError("safety.rejected", text))
            invalid = self._explain_invalidity(answer, action, evidence, now, explain_signature)
            if invalid is None:
                self.used.append(answer)
                return UsedAnswer(approval=answer)
        return UsedAnswer(invalid=invalid)

    def take_over(self, answer: ApprovalAnswer) -> None:
        """Add an approval of an earlier run that this run uses now."""
        self.used.append(answer)

    def _explain_invalidity(
        self,
        answer: ApprovalAnswer,
        action: str,
        evidence: str,
        now: str,
        explain_signature: ExplainSignature,
    ) -> PolicyApprovalError | None:
        """Return an error that explains why an approval is invalid for this action now, or None if it is valid."""
        hint = "look at what is asked now, and approve that"
        if answer.asked.action_hash != action or answer.asked.evidence_hash != evidence:
            text = "what is about to be done is not what was approved"
            return PolicyApprovalError("policy.approval", text, hint=hint)
        if not answer.used and (now >= answer.asked.expires_at or now < answer.at):
            text = f"the approval expired at {answer.asked.expires_at}"
            return PolicyApprovalError("policy.approval", text, hint=hint)
        refusal = explain_signature(answer.signed, answer.at if answer.used else now)
        if refusal:
            text = f"the approval by {answer.by} does not count: {refusal}"
            return PolicyApprovalError("policy.approval", text, hint=hint)
        return None


class ReplayedApprovals(Approvals):
    """The approval answers of a recorded run, used when the run is replayed.

    An answer that the run used stays valid even if the hash differs: the log may contain a masked input, which has
    another hash.
    """

    def _explain_invalidity(
        self,
        answer: ApprovalAnswer,
        action: str,
        evidence: str,
        now: str,
        explain_signature: ExplainSignature,
    ) -> PolicyApprovalError | None:
        if answer.used:
            return None
        return super()._explain_invalidity(answer, action, evidence, now, accept_any_signature)
