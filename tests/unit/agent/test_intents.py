"""Which intent a request means, and what it is about (docs/reference/pack.md#compiler)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.agent.context.inputs import AgentRequest, RunContext, User
from cogcli.agent.context.intent import IntentResult, resolve_intent
from tests.fakes.support_desk import compile_input, pack, raw_pack

ORDER = {"order": {"type": "order", "param": "order_id", "pattern": "ord_[0-9]+"}}


def _resolved(intents: list[dict[str, Any]], message: str, **request: Any) -> IntentResult:
    layer = {
        **raw_pack()["decision_layer"],
        "intents": intents,
        "decisions": [],
        "task_templates": [],
    }
    of = pack(decision_layer=layer)
    return resolve_intent(compile_input(pack=of, request=AgentRequest(message, **request)))


def _refund(**members: Any) -> dict[str, Any]:
    return {"id": "refund", "phrases": ["refund"], "slots": ORDER, **members}


@pytest.mark.parametrize(
    ("message", "scores", "chosen"),
    [
        ("a", {"x": 1}, "x"),
        ("b", {"x": 3, "y": 1}, "x"),
        ("a b", {"x": 4, "y": 1}, "x"),
        ("b c", {"x": 3, "y": 2}, "x"),
        ("b c d", {"x": 3, "y": 3}, ""),
        ("c", {"y": 1}, "y"),
        ("e", {}, ""),
        ("A", {"x": 1}, "x"),
        ("B", {"y": 1}, "y"),
    ],
)
def test_three_for_a_pattern_and_one_for_a_phrase(
    message: str, scores: dict[str, int], chosen: str
) -> None:
    intents = [
        {"id": "x", "phrases": ["a"], "patterns": ["b"]},
        {"id": "y", "phrases": ["b", "c", "d"]},
    ]
    found = _resolved(intents, message)
    assert (found.intent, found.scores) == (chosen, scores)
    assert found.refused == ("" if chosen else "unknown_intent")


def test_what_is_not_known_keeps_its_parameters() -> None:
    given = {"order_id": "ord_1"}
    found = _resolved([_refund()], "refund", intent="other", params=given)
    assert found == IntentResult("", "unknown_intent", {}, {}, {"order_id": "ord_1"})
    assert found.params is not given
    assert IntentResult("x") == IntentResult("x", "", {}, {}, {})


def test_an_intent_that_is_named_is_not_scored() -> None:
    found = _resolved(
        [_refund(), {"id": "other", "phrases": ["refund"]}], "refund ord_1", intent="refund"
    )
    assert found == IntentResult("refund", "", {}, {"order": "order:ord_1"}, {"order_id": "ord_1"})


@pytest.mark.parametrize(
    ("message", "params", "slots", "filled"),
    [
        ("refund ord_1", {}, {"order": "order:ord_1"}, {"order_id": "ord_1"}),
        ("refund (ord_1), please.", {}, {"order": "order:ord_1"}, {"order_id": "ord_1"}),
        ('refund "ord_1"!', {}, {"order": "order:ord_1"}, {"order_id": "ord_1"}),
        ("refund ord_1 ord_1", {}, {"order": "order:ord_1"}, {"order_id": "ord_1"}),
        ("refund ord_1 ord_2", {}, {}, {}),
        ("refund ord_1x", {}, {}, {}),
        ("refund xord_1", {}, {}, {}),
        ("refund Xord_1", {}, {}, {}),
        ("refund !", {}, {}, {}),
        ("refund", {}, {}, {}),
        ("refund ord_1", {"order_id": "ord_9"}, {"order": "order:ord_9"}, {"order_id": "ord_9"}),
        ("refund ord_1", {"order_id": 9}, {}, {"order_id": 9}),
        ("refund ord_1", {"order_id": ""}, {}, {"order_id": ""}),
        ("refund ord_1", {"order_id": None}, {"order": "order:ord_1"}, {"order_id": "ord_1"}),
        ("refund ord_1", {"x": 1}, {"order": "order:ord_1"}, {"x": 1, "order_id": "ord_1"}),
    ],
)
def test_a_slot_takes_its_parameter_else_the_one_word_that_fits(
    message: str, params: dict[str, Any], slots: dict[str, str], filled: dict[str, Any]
) -> None:
    found = _resolved([_refund()], message, params=params)
    assert (found.slots, found.params) == (slots, filled)


@pytest.mark.parametrize(
    ("slot", "slots", "filled"),
    [
        ({"type": "order", "pattern": "ord_[0-9]+"}, {"order": "order:ord_1"}, {}),
        ({"type": "order", "param": "order_id"}, {}, {}),
        ({"type": "order"}, {}, {}),
        (
            {"type": "order", "param": "n", "pattern": "a|ord_1"},
            {"order": "order:ord_1"},
            {"n": "ord_1"},
        ),
    ],
)
def test_a_slot_without_a_parameter_or_a_pattern(
    slot: dict[str, str], slots: dict[str, str], filled: dict[str, Any]
) -> None:
    found = _resolved([_refund(slots={"order": slot})], "refund ord_1")
    assert (found.slots, found.params) == (slots, filled)


def test_what_is_no_word_or_has_no_name_fills_no_slot() -> None:
    optional = _refund(slots={"order": {"type": "order", "pattern": "(ord_1)?"}})
    assert _resolved([optional], "refund ! ord_1").slots == {"order": "order:ord_1"}
    assert _resolved([optional], "refund ord_1", params={"": "ord_9"}).slots == {
        "order": "order:ord_1"
    }


def test_users_and_requests_of_nobody_in_particular() -> None:
    nobody = ("local", "read_only", "", "", "", "", "", 1, "", "", "")
    assert RunContext("run_1", "trace_1")[2:] == nobody
    assert not User().is_named
    assert User("ann").is_named
    request = AgentRequest(
        "hello", "refund", {"a": 1}, User("ann", "staff", ("preference",)), attachments=({"x": 1},)
    )
    payload = request.to_payload()
    assert payload["user"] == {"user_id": "ann", "role": "staff", "consent": ["preference"]}
    assert (payload["attachments"], payload["message"], payload["params"]) == (
        [{"x": 1}],
        "hello",
        {"a": 1},
    )
    empty = AgentRequest("hello").to_payload()
    assert empty == {
        **dict.fromkeys(("intent", "channel", "locale", "request_id", "session_id"), ""),
        "message": "hello",
        "params": {},
        "user": {"user_id": "default", "role": "", "consent": []},
        "focus": "off",
        "attachments": [],
    }


def test_a_message_that_was_refused_leaves_no_word_in_slots_or_parameters() -> None:
    asked = {"refused_by": ("card",), "params": {"order_id": "ord_1"}}
    message = "refund ord_881"
    known = _resolved([_refund()], message, intent="refund", **asked)
    assert known == IntentResult("refund", "", {}, {}, {})
    for intent in ("", "other"):
        unknown = _resolved([_refund()], message, intent=intent, **asked)
        assert unknown == IntentResult("", "unknown_intent", {}, {}, {})
