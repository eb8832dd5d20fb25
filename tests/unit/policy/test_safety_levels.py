from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from cogcli.base.errors import (
    SafetyConfirmationRequiredError,
    SafetyGateFailedError,
    SafetyTrustLevelError,
)
from cogcli.declarations.capability_spec import Gate, Safety
from cogcli.policy.approvals import RequestedAction
from cogcli.policy.safety import (
    GateVerdict,
    judge_gate,
    refusal_before,
    refusal_of,
    refusal_of_earlier_request,
    stricter,
)

RANKS = ["sandbox", "standard", "elevated", "privileged"]
ORDER = ["pass", "warn", "degrade", "require_human", "block", "error"]


@pytest.mark.parametrize("needed", RANKS)
@pytest.mark.parametrize("given", RANKS)
def test_trust_passes_up_to_the_rank_of_the_run(needed: str, given: str) -> None:
    refusal = refusal_before(
        "c.a", Safety(trust_level=needed), trust_level=given, confirmed=frozenset()
    )
    if RANKS.index(needed) <= RANKS.index(given):
        assert refusal is None
    else:
        assert isinstance(refusal, SafetyTrustLevelError)
        assert f"needs {needed}, run has {given}" in refusal.message


def test_confirmation_needs_the_exact_id() -> None:
    safety = Safety(requires_confirmation=True)
    for confirmed in ((), ("c",), ("c.*",), ("c.a.b",), ("C.A",)):
        refusal = refusal_before(
            "c.a", safety, trust_level="standard", confirmed=frozenset(confirmed)
        )
        assert isinstance(refusal, SafetyConfirmationRequiredError)
    assert (
        refusal_before("c.a", safety, trust_level="standard", confirmed=frozenset({"c.a"})) is None
    )


def test_trust_is_told_before_confirmation() -> None:
    safety = Safety(trust_level="privileged", requires_confirmation=True)
    refusal = refusal_before("c.a", safety, trust_level="sandbox", confirmed=frozenset())
    assert isinstance(refusal, SafetyTrustLevelError)


@pytest.mark.parametrize("on_fail", ["block", "warn", "degrade", "require_human"])
@pytest.mark.parametrize(
    "reply", [{}, {"allowed": None}, {"allowed": 1}, {"allowed": "true"}, {"allowed": [True]}]
)
def test_what_is_no_boolean_is_an_error_whatever_on_fail_says(
    on_fail: str, reply: dict[str, Any]
) -> None:
    verdict = judge_gate(Gate(capability="g", on_fail=on_fail), reply)
    assert verdict.outcome == "error"
    refusal = refusal_of("g", verdict)
    assert isinstance(refusal, SafetyGateFailedError)
    assert refusal.code == "safety.gate-error"


@pytest.mark.parametrize("on_fail", ["block", "warn", "degrade", "require_human"])
def test_true_passes_and_false_leads_to_on_fail(on_fail: str) -> None:
    assert judge_gate(
        Gate(capability="g", on_fail=on_fail), {"allowed": True, "reason": "r"}
    ) == GateVerdict("pass", "")
    assert judge_gate(
        Gate(capability="g", on_fail=on_fail), {"allowed": False, "reason": "r"}
    ) == GateVerdict(on_fail, "r")
    assert (
        judge_gate(Gate(capability="g", on_fail=on_fail), {"allowed": False, "reason": 3}).reason
        == "not allowed"
    )


def test_stricter_verdict_wins_and_the_first_on_a_tie() -> None:
    for a, b in permutations(ORDER, 2):
        wins = max(a, b, key=ORDER.index)
        assert stricter(GateVerdict(a, ""), GateVerdict(b, "")).outcome == wins
    first, second = GateVerdict("warn", "1"), GateVerdict("warn", "2")
    assert stricter(first, second) is first


def test_refusals_of_verdicts() -> None:
    assert [refusal_of("g", GateVerdict(word, "")) for word in ("pass", "warn", "degrade")] == [
        None
    ] * 3
    block = refusal_of("g", GateVerdict("block", "too hot"))
    assert block is not None
    assert (block.code, block.exit_code) == ("safety.gate", 4)
    assert "too hot" in block.message
    human = refusal_of("g", GateVerdict("require_human", ""))
    assert human is not None
    assert (human.code, human.exit_code) == ("safety.confirmation", 5)


def test_what_is_said_of_a_refusal() -> None:
    trust = refusal_before(
        "c.a", Safety(trust_level="elevated"), trust_level="standard", confirmed=frozenset()
    )
    assert trust is not None
    assert (trust.code, trust.message, trust.hint) == (
        "safety.trust",
        "`c.a` needs elevated, run has standard",
        "run again with --trust-level elevated if you mean to allow it",
    )
    confirm = refusal_before(
        "c.a", Safety(requires_confirmation=True), trust_level="standard", confirmed=frozenset()
    )
    assert confirm is not None
    assert (confirm.code, confirm.message, confirm.hint) == (
        "safety.confirmation",
        "`c.a` needs confirmation by a person",
        "run again with --confirm c.a if you mean to allow it",
    )
    said = {
        word: getattr(refusal_of("g", GateVerdict(word, "why")), "message", None)
        for word in ("block", "error", "require_human")
    }
    assert said == {
        "block": "gate `g` refused: why",
        "error": "gate `g` gave no answer: why",
        "require_human": "gate `g` asks for a person: why",
    }


@pytest.mark.parametrize("reason", ["", None, 3, []])
def test_a_gate_without_a_reason(reason: Any) -> None:
    assert (
        judge_gate(
            Gate(capability="g", on_fail="block"), {"allowed": False, "reason": reason}
        ).reason
        == "not allowed"
    )
    assert (
        judge_gate(Gate(capability="g", on_fail="block"), {}).reason
        == "answered without a boolean `allowed`"
    )


@pytest.mark.parametrize(
    ("asked", "again"),
    [
        (None, False),
        (RequestedAction("ap", "c.a", "s", "", "", "", gate="g"), False),
        (RequestedAction("ap", "c.a", "s", "", "", ""), True),
        (RequestedAction("ap", "c.b", "s", "", "", "", gate="g"), True),
        (RequestedAction("ap", "c.b", "s", "", "", ""), True),
    ],
)
def test_a_step_that_a_person_was_asked_about_asks_again_once_its_specs_changed(
    asked: RequestedAction | None, again: bool
) -> None:
    refusal = refusal_of_earlier_request("c.a", asked)
    assert (refusal is not None) is again
    if refusal is not None:
        assert isinstance(refusal, SafetyConfirmationRequiredError)
        assert refusal.code == "safety.confirmation"
        assert refusal.message == "`c.a` needs confirmation by a person, who was asked before"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"reasons": ["credential: pem", "3 bytes"]}, "credential: pem; 3 bytes"),
        ({"reason": "r", "reasons": ["s"]}, "r"),
        ({"reason": "", "reasons": []}, "not allowed"),
        ({"reasons": [3, None]}, "not allowed"),
        ({"reasons": "text"}, "not allowed"),
    ],
)
def test_a_gate_may_give_several_reasons(reply: dict[str, object], reason: str) -> None:
    assert (
        judge_gate(Gate(capability="g", on_fail="block"), {"allowed": False, **reply}).reason
        == reason
    )
