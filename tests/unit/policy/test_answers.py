"""A person's answers and what they allow (docs/reference/execution.md#approvals)."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from cogcli.base.errors import PolicyApprovalError, RuntimeErrorBase, SafetyGateFailedError
from cogcli.policy.approvals import (
    OF_A_TEST,
    UNCHECKED,
    AnswerSignatures,
    AnswerStatement,
    ApprovalAnswer,
    Approvals,
    ReplayedApprovals,
    RequestedAction,
    SignedAnswer,
    UsedAnswer,
    action_hash,
)

ASKED = RequestedAction(
    "ap_1", "payments.refund", "refund", "sha256:action", "sha256:proof", "2026-05-05T09:30:00Z"
)
YES = ApprovalAnswer(ASKED, True, "ann", "", "2026-05-04T09:30:00Z")
NO = YES._replace(granted=False, reason="too much")
LATER = "2026-05-04T10:00:00Z"
STATEMENT = AnswerStatement("ap_1", True, "ann", "finance", "sha256:action", "sha256:proof")
SIGNED = SignedAnswer(STATEMENT, "a signature")
UNSIGNED = "it is not signed, and here only a signed answer counts"


def _use(
    *answers: ApprovalAnswer, of: type[Approvals] = Approvals, **call: str
) -> ApprovalAnswer | RuntimeErrorBase | None:
    return _use_of(of(answers), **call)


def _use_of(approvals: Approvals, **call: str) -> ApprovalAnswer | RuntimeErrorBase | None:
    given = {
        "step_id": "refund",
        "action": "sha256:action",
        "evidence": "sha256:proof",
        "now": LATER,
    }
    found = approvals.use(**(given | call))
    return found.approval or found.rejection or found.invalid


def test_an_action_has_one_name() -> None:
    action: dict[str, Any] = {
        "run_id": "run_1",
        "capability": "a.b",
        "binding": "b1",
        "step_id": "s",
        "values": {"x": 1, "y": 2},
    }
    name = action_hash(**action)
    assert name == action_hash(**{**action, "values": {"y": 2, "x": 1}})
    changed = [{"run_id": "run_2"}, {"capability": "a.c"}, {"binding": "b2"}, {"step_id": "t"}]
    changed += [{"values": {"x": 1}}, {"values": {"x": True, "y": 2}}]
    assert len({name, *(action_hash(**{**action, **change}) for change in changed)}) == 7
    members = b'{"binding":"b1","capability":"a.b","input":{"x":1,"y":2},"run":"run_1","step":"s"}'
    assert name == f"sha256:{sha256(members).hexdigest()}"


def test_an_approval_is_used_once() -> None:
    approvals = Approvals((YES,))
    assert _use_of(approvals) == YES
    assert _use_of(approvals) is None
    assert _use_of(Approvals((YES, YES._replace(by="bob")))) == YES
    assert _use(YES, step_id="other") is None
    assert Approvals().use("refund", "", "", "") == UsedAnswer()
    assert (ASKED.gate, YES.used, YES.event) == ("", False, "")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"action": "sha256:other"}, "what is about to be done is not what was approved"),
        ({"evidence": "sha256:other"}, "what is about to be done is not what was approved"),
        ({"now": "2026-05-05T09:30:00Z"}, "the approval expired at 2026-05-05T09:30:00Z"),
        ({"now": "2026-05-06T09:30:00Z"}, "the approval expired at 2026-05-05T09:30:00Z"),
        ({"now": "2026-05-04T09:29:59Z"}, "the approval expired at 2026-05-05T09:30:00Z"),
    ],
)
def test_an_approval_cannot_be_stretched(call: dict[str, str], said: str) -> None:
    error = _use(YES, **call)
    assert isinstance(error, PolicyApprovalError)
    assert (error.code, error.message) == ("policy.approval", said)
    assert error.hint == "look at what is asked now, and approve that"


@pytest.mark.parametrize("now", ["2026-05-04T09:30:00Z", "2026-05-05T09:29:59Z"])
def test_an_approval_holds_from_its_time_until_it_expires(now: str) -> None:
    assert _use(YES, now=now) == YES


def test_one_that_was_used_no_longer_expires_but_names_its_action_still() -> None:
    used = YES._replace(used=True)
    assert _use(used, now="2027-01-01T00:00:00Z") == used
    assert isinstance(_use(used, action="sha256:other"), PolicyApprovalError)


def test_an_invalid_approval_gives_way_to_a_later_one() -> None:
    old = YES._replace(asked=ASKED._replace(action_hash="sha256:old"))
    assert _use(old, YES) == YES
    assert isinstance(_use(old), PolicyApprovalError)
    assert isinstance(_use(old, NO), SafetyGateFailedError)


@pytest.mark.parametrize(
    ("reason", "said"), [("too much", "rejected by ann: too much"), ("", "rejected by ann")]
)
def test_a_rejection_ends_the_step(reason: str, said: str) -> None:
    error = _use(NO._replace(reason=reason), YES, action="sha256:other")
    assert isinstance(error, SafetyGateFailedError)
    assert (error.code, error.message) == ("safety.rejected", said)


def test_a_replay_takes_what_was_used_whatever_the_log_masks() -> None:
    used = YES._replace(used=True)
    assert _use(used, of=ReplayedApprovals, action="sha256:masked") == used
    assert isinstance(_use(YES, of=ReplayedApprovals, action="sha256:masked"), PolicyApprovalError)
    assert _use(YES, of=ReplayedApprovals) == YES


def test_what_is_signed_has_one_form() -> None:
    members = (
        b'{"action_hash":"sha256:action","answer":"granted","approval_id":"ap_1","by":"ann",'
        b'"evidence_hash":"sha256:proof","role":"finance","schema_version":"approval/1"}'
    )
    assert STATEMENT.to_bytes() == members
    rejected = STATEMENT._replace(granted=False).to_bytes()
    assert rejected == members.replace(b'"granted"', b'"rejected"')


@pytest.mark.parametrize(
    ("signatures", "requires_signature", "roles", "are_needed"),
    [
        (UNCHECKED, False, (), False),
        (UNCHECKED, False, ("finance",), False),
        (UNCHECKED, True, (), True),
        (AnswerSignatures(with_role=True), False, (), False),
        (AnswerSignatures(with_role=True), False, ("finance",), True),
        (AnswerSignatures(with_role=True), True, (), True),
        (OF_A_TEST, True, ("finance",), False),
        (OF_A_TEST._replace(with_role=True), False, ("finance",), False),
    ],
)
def test_a_signature_is_needed_where_a_gate_or_its_roles_say_so(
    signatures: AnswerSignatures, requires_signature: bool, roles: tuple[str, ...], are_needed: bool
) -> None:
    asked: dict[str, Any] = {"requires_signature": requires_signature, "roles": roles}
    assert signatures.are_needed(**asked) is are_needed
    assert signatures.explain_answer(None, LATER, **asked) == (UNSIGNED if are_needed else "")


def test_a_signature_counts_for_its_role_and_if_it_can_be_checked() -> None:
    checked = AnswerSignatures(lambda answer, at: f"{answer.signature} at {at}")
    asked: dict[str, Any] = {"requires_signature": True}
    said = f"a signature at {LATER}"
    assert checked.explain_answer(SIGNED, LATER, roles=("finance",), **asked) == said
    assert checked.explain_answer(SIGNED, LATER, roles=(), **asked) == said
    other = "it is signed for the role `finance`, which may not answer"
    assert checked.explain_answer(SIGNED, LATER, roles=("board",), **asked) == other
    assert UNCHECKED.explain_answer(SIGNED, LATER, roles=(), **asked) == "it cannot be checked here"


@pytest.mark.parametrize(("used", "at"), [(False, LATER), (True, YES.at)])
def test_a_signature_is_judged_now_or_when_the_approval_was_used(used: bool, at: str) -> None:
    answer = YES._replace(used=used, signed=SIGNED)
    judged: list[tuple[SignedAnswer | None, str]] = []

    def explain(signed: SignedAnswer | None, when: str) -> str:
        judged.append((signed, when))
        return "its key was revoked"

    used = Approvals((answer,)).use("refund", "sha256:action", "sha256:proof", LATER, explain)
    error = used.invalid
    assert error is not None
    assert error.message == "the approval by ann does not count: its key was revoked"
    assert error.hint == "look at what is asked now, and approve that"
    assert judged == [(SIGNED, at)]


def test_a_run_knows_which_answers_it_followed_and_as_of_when() -> None:
    approvals = Approvals((NO,))
    approvals.take_over(YES)
    _use_of(approvals)
    assert approvals.used == [YES, NO]
    assert YES.judged_at == YES.at
    assert YES._replace(continued_at=LATER).judged_at == LATER
