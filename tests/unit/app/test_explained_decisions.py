"""Decisions are explained in their order, each with what followed it, and few of them are in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cogcli.app import spooled_values
from cogcli.app.policy_explanation import ExplainedDecisions
from cogcli.app.spooled_values import SpooledValues
from cogcli.declarations.envelope import Event
from cogcli.declarations.value_types import Json

ALLOWED: Json = {"verdict": "allow", "stage": "situation", "reason": "no_rule"}
ASKED: Json = {"verdict": "allow_with_gate", "stage": "situation", "reason": "limit"}
DONE: Json = {"step_status": "done"}
Logged = tuple[str, str | None, Json]


def explained(*log: Logged) -> Iterator[tuple[int, Json]]:
    """Yield each explanation with the number of events that had been read."""
    decisions = ExplainedDecisions()
    for seq, (kind, step, payload) in enumerate(log):
        event = Event(
            seq, f"ev_{seq}", "t", "ep", "run_1", "trace", "act", kind, payload, step_id=step
        )
        decisions.take(event)
        if kind == "policy.decided":
            decisions.add(event, {"seq": seq}, {})
        for each in decisions.ready():
            yield seq, each
    for each in decisions.take_waiting():
        yield len(log), each


def outcomes(explanation: Json) -> list[str]:
    return [stage["outcome"] for stage in explanation["stages"]]


def call(step: str) -> list[Logged]:
    return [
        ("policy.decided", step, ALLOWED),
        ("step.started", step, {}),
        ("step.completed", step, DONE),
    ]


PASSED = ["passed"] * 5 + ["written", "done"]


def test_a_call_that_ended_is_explained_at_once() -> None:
    found = list(explained(*call("a"), *call("b")))
    assert [(seq, each["seq"]) for seq, each in found] == [(2, 0), (5, 3)]
    assert [outcomes(each) for _, each in found] == [PASSED, PASSED]


def test_decisions_keep_their_order() -> None:
    first, second = call("a"), call("b")
    found = list(explained(first[0], *second, *first[1:]))
    assert [(seq, each["seq"]) for seq, each in found] == [(5, 0), (5, 1)]
    assert [outcomes(each) for _, each in found] == [PASSED, PASSED]


def test_a_call_is_decided_again_after_an_answer() -> None:
    found = list(
        explained(
            ("policy.decided", "a", ASKED),
            ("approval.requested", "a", {}),
            ("approval.granted", "a", {"by": "ann", "role": "finance"}),
            *call("a"),
        )
    )
    assert [(seq, each["seq"]) for seq, each in found] == [(3, 0), (5, 3)]
    approval = found[0][1]["stages"][-1]
    assert approval == {"stage": "approval", "outcome": "granted", "reason": "ann (finance)"}
    assert outcomes(found[1][1]) == PASSED


def test_gates_of_a_step_count_for_it() -> None:
    decision = ("policy.decided", "a", ALLOWED)
    found = list(explained(decision, ("step.started", "a@pre0", {}), *call("b")))
    assert [each["seq"] for _, each in found] == [0, 2]
    assert outcomes(found[0][1]) == ["passed"] * 5 + ["written", "no result"]


@pytest.mark.parametrize("step", [None, "a"])
def test_a_decision_without_later_events_is_explained_at_the_end(step: str | None) -> None:
    found = list(explained(("policy.decided", step, ALLOWED)))
    assert [outcomes(each) for _, each in found] == [["passed"] * 3 + ["not reached"]]


@pytest.mark.parametrize("kept", [1, 1 << 20], ids=["file", "memory"])
def test_spooled_values_are_read_in_order(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooled_values, "_IN_MEMORY", kept)
    values: list[Json] = [{"n": number, "text": "a\nü"} for number in range(10)]
    spooled = SpooledValues()
    assert not spooled
    for value in values:
        spooled.append(value)
    assert len(spooled) == 10
    assert [list(spooled), list(spooled)] == [values, values]
