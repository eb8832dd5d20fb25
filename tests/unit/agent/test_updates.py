"""Limits of an agent's state at their edges: what goes first, what is cut, and what is said of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_strategies import NOW, begun
from hypothesis import given
from hypothesis import strategies as st

from cogcli.agent.bounds import json_size, shorten_json
from cogcli.agent.profile import UserProfile
from cogcli.agent.reply import MAX_CALL_BYTES, Reply
from cogcli.agent.state import AgentState, ReasoningContext
from cogcli.agent.stored import UnreadableState
from cogcli.agent.update import (
    MAX_STATE_BYTES,
    UpdateResult,
    add_insight,
    add_message,
    add_notification,
    complete_tool_calls,
    new_state,
    record_thinking,
    set_tool_calls,
    update_facts,
    update_from_reasoning,
)

LONG = "word " * 2500
FITTING = "word " * 1600
"""Of the size of a message."""


def codes(updated: UpdateResult[Any]) -> list[tuple[str, str]]:
    return [(note["code"], note["what"]) for note in updated.notes]


def full(texts: str, profile: UserProfile | None = None) -> AgentState:
    """A state with as much of everything as it takes, of such texts."""
    state = begun(texts, profile=profile)
    for number in range(40):
        state = add_message(state, {"role": "user", "content": f"{number} {texts}"}, NOW).state
        state = add_notification(state, {"text": f"{number} {texts[:120]}"}, NOW).state
        state = update_facts(state, {f"fact {number}": texts[:500]}, NOW).state
        result = {"name": "a", "success": True, "step": f"t{number}", "output": texts}
        state = complete_tool_calls(state, [result], NOW).state
        state = record_thinking(state, {"thinking": texts[:1900]}, NOW).state
    calls = ({"name": "a", "args": {"text": texts[: MAX_CALL_BYTES // 7]}},)
    reply = Reply(calls=calls, response=texts, goal=texts, strategy=texts, insights=(texts[:290],))
    return update_from_reasoning(state, reply, NOW).state


@pytest.mark.parametrize("texts", [FITTING, "\x01 " * 1100, "字 " * 2000, "😀 " * 1600])
def test_a_whole_state_stays_below_its_size(texts: str) -> None:
    """Whatever is stored: what cannot go fits together, and of the rest the oldest goes, results first."""
    entries = tuple(f"{number} {texts[:195]}" for number in range(30))
    named = {entry: entry for entry in entries}
    profile = UserProfile(
        "ann", named, entries[:10], entries[:15], "", {}, entries[:15], entries[:10], entries[:5]
    )
    state = full(texts, profile)
    assert json_size(state.to_payload()) <= MAX_STATE_BYTES
    execution = state.execution
    assert execution.pending_calls
    assert execution.draft_response
    assert len(execution.completed_calls) >= 3
    assert [each["step"] for each in execution.completed_calls][-1] == "t39"
    assert len(execution.messages) >= 3
    assert execution.messages[-1]["content"].startswith("39 ")


def test_results_go_first_and_three_of_each_stay_as_long_as_others_can_go() -> None:
    state = full(FITTING)
    assert len(state.execution.completed_calls) == 3
    assert len(state.execution.messages) < 40
    assert len(state.reasoning.facts) == 20
    assert json_size(state.to_payload()) <= MAX_STATE_BYTES
    dropped = add_message(state, {"role": "user", "content": LONG}, NOW)
    assert ("dropped", "messages") in codes(dropped)
    assert "256" not in dropped.notes[0]["detail"]


def test_what_cannot_go_is_left() -> None:
    """A stored state of ours is never that large; a damaged one does not hold the loop."""
    state = begun()
    state = state._replace(execution=state.execution._replace(query="x" * MAX_STATE_BYTES))
    updated = update_facts(state, {"a": 1}, NOW)
    assert updated.state.reasoning.facts == {}
    assert updated.state.execution.query == state.execution.query


def test_of_too_many_calls_the_first_are_pending() -> None:
    calls = [{"name": f"c{number}", "args": {}} for number in range(9)]
    updated = set_tool_calls(begun(), calls, NOW)
    assert [call["name"] for call in updated.state.execution.pending_calls] == [
        f"c{n}" for n in range(8)
    ]
    assert codes(updated) == [("dropped", "pending_calls")]
    large = {"name": "large", "args": {"text": "x" * MAX_CALL_BYTES}}
    updated = set_tool_calls(
        begun(), [large, {"name": "small", "args": {}}, {"name": "odd", "args": object()}], NOW
    )
    assert [call["name"] for call in updated.state.execution.pending_calls] == ["small"]
    assert codes(updated) == [
        ("dropped", "pending_calls"),
        ("wrong_type", "pending_calls"),
        ("dropped", "pending_calls"),
    ]


def test_what_is_no_object_is_dropped() -> None:
    """Callers give objects; what is none raises nothing all the same."""
    odd: Any = ["a", None]
    for change in (set_tool_calls, complete_tool_calls):
        updated = change(begun(), odd, NOW)
        assert updated.state.execution.pending_calls == ()
        assert codes(updated)[0][0] == "wrong_type"
    thought = record_thinking(begun(), {"thinking": "x", "tool_calls": odd}, NOW)
    assert thought.state.reasoning.thoughts[0]["tool_calls"] == [{}, {}]


def test_a_thought_keeps_large_calls_by_their_names() -> None:
    call = {"name": "mail.send", "args": {"text": LONG}}
    updated = record_thinking(begun(), {"thinking": LONG, "tool_calls": [call]}, NOW)
    [thought] = updated.state.reasoning.thoughts
    assert thought["tool_calls"] == [{"name": "mail.send"}]
    assert len(thought["thinking"]) <= 2000
    assert thought["thinking"].endswith(" tokens]")
    assert codes(updated) == [("cut", "thoughts"), ("cut", "thoughts")]


@pytest.mark.parametrize(
    ("facts", "kept", "noted"),
    [
        ({"a": [1] * 2000}, {}, [("dropped", "facts")]),
        ({" ": 1}, {}, [("dropped", "facts")]),
        ({"n" * 201: 1}, {}, [("dropped", "facts")]),
        ({"a": {1: 2}}, {}, [("wrong_type", "facts")]),
        ({"a": None, "b": " "}, {}, []),
        ({" a ": " x "}, {"a": "x"}, []),
        ({"a": 0, "b": False, "c": {}, "d": []}, {"a": 0, "b": False, "c": {}, "d": []}, []),
    ],
)
def test_facts_are_names_and_values(
    facts: dict[str, Any], kept: dict[str, Any], noted: list[tuple[str, str]]
) -> None:
    updated = update_facts(begun(), facts, NOW)
    assert updated.state.reasoning.facts == kept
    assert codes(updated) == noted


def test_an_empty_insight_is_none() -> None:
    assert add_insight(begun(), " \n", NOW) == UpdateResult(begun())


def test_a_long_fact_ends_at_a_word() -> None:
    updated = update_facts(begun(), {"a": LONG}, NOW)
    text = updated.state.reasoning.facts["a"]
    assert json_size(text) <= 2048
    assert text.startswith("word word")
    assert text.endswith(" tokens]")
    assert codes(updated) == [("cut", "facts")]


def test_a_result_keeps_the_shape_of_its_output() -> None:
    output = {
        "id": "ord_881",
        "lines": [{"n": n, "text": LONG[:900]} for n in range(50)],
        "total": 240,
    }
    updated = complete_tool_calls(
        begun(), [{"name": "a", "success": True, "step": "t1", "output": output}], NOW
    )
    [result] = updated.state.execution.completed_calls
    assert result["truncated"]
    assert result["output"]["id"] == "ord_881"
    assert result["output"]["lines"][0] == output["lines"][0]
    assert 5 < len(result["output"]["lines"]) < 50
    assert json_size(result["output"]) <= 8192
    assert codes(updated) == [("cut", "completed_calls/output")]


@pytest.mark.parametrize(
    ("given_result", "kept"),
    [
        ({"name": "a", "success": True, "output": 1, "error": {}, "x": 1}, {"output": 1}),
        (
            {"name": "a", "success": False, "output": 1, "error": {"code": "c"}},
            {"error": {"code": "c"}},
        ),
        ({"name": "a", "success": 1, "error": None}, {"error": None}),
        ({"name": "a"}, {}),
        ({"name": 7, "step": None, "truncated": True}, {"name": "", "truncated": True}),
    ],
)
def test_a_result_has_its_members_only(given_result: dict[str, Any], kept: dict[str, Any]) -> None:
    updated = complete_tool_calls(begun(), [given_result], NOW)
    [result] = updated.state.execution.completed_calls
    success = given_result.get("success") is True
    assert result == {"name": "a", "success": success, "step": "", "truncated": False, **kept}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=40) | st.just(LONG[:500]),
        lambda inner: (
            st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=9), inner, max_size=9)
        ),
        max_leaves=20,
    ).filter(
        lambda value: abs(value) < 2**53 if isinstance(value, int) else "\\d" not in repr(value)
    ),
    st.integers(0, 600),
)
def test_a_shortened_value_fits_and_keeps_its_kind(value: Any, room: int) -> None:
    try:
        whole = json_size(value)
    except TypeError:
        return  # an integer beyond what JSON holds
    short, cut = shorten_json(value, room)
    assert json_size(short) <= max(room, 4)
    assert cut == (whole > room)
    assert type(short) is type(value) or short is None
    json.dumps(short)


@pytest.mark.parametrize(
    ("value", "room", "short"),
    [
        (1234567890, 4, None),
        ({"a": 1, "b": LONG}, 20, {"a": 1, "b": ""}),
        ({"a": 1, "b": LONG}, 9, {}),
        ([1, 2, LONG], 20, [1, 2, ""]),
        ([1, 2, LONG], 9, []),
        ("abc", 2, ""),
    ],
)
def test_what_has_no_room_is_left_out(value: Any, room: int, short: Any) -> None:
    assert shorten_json(value, room) == (short, True)


def test_a_session_goes_on_with_a_new_goal() -> None:
    before = full("some words")
    again = new_state(
        "Where is it?", messages=before.execution.messages, reasoning=before.reasoning, mode="deep"
    ).state
    assert again.reasoning == before.reasoning._replace(goal="Where is it?")
    assert again.execution.messages == before.execution.messages
    assert (
        again.execution.pending_calls,
        again.execution.completed_calls,
        again.execution.mode,
    ) == (
        (),
        (),
        "deep",
    )


def test_texts_that_utf_8_cannot_hold_are_mended() -> None:
    state = new_state("a\ud800b").state
    state = add_message(state, {"role": "user", "content": "\udfff"}, NOW).state
    state = add_notification(state, {"text": "\udfff"}, NOW).state
    assert (state.execution.query, state.execution.messages[0]["content"]) == ("a?b", "?")
    json.dumps(state.to_payload()).encode()


def test_a_notification_is_bounded() -> None:
    updated = add_notification(begun(), {"kind": "loop_detected", "text": LONG}, NOW)
    [kept] = updated.state.execution.notifications
    assert kept["kind"] == "loop_detected"
    assert json_size(kept) < 1200
    assert codes(updated) == [("cut", "notifications")]


def test_a_stored_member_that_is_no_object_is_refused() -> None:
    with pytest.raises(UnreadableState, match="reasoning"):
        ReasoningContext.from_payload([])  # type: ignore[arg-type]
    with pytest.raises(UnreadableState, match="names its user"):
        UserProfile.from_payload({"goals": []})
