"""The values of an agent's state, and what is read back of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cogcli.agent import state as agent_state
from cogcli.agent.profile import UserProfile
from cogcli.agent.state import AgentState, ReasoningContext
from cogcli.agent.stored import NewerStateVersion, UnreadableState

STORED = Path(__file__).parent / "stored"
STATE = AgentState(
    agent_state.ExecutionState(
        "refund it", pending_calls=({"name": "a", "args": {}},), response=None
    ),
    ReasoningContext("refund it", {"total": 240}, insights=("recent",)),
    UserProfile("ann", {"tone": "short"}, goals=("ship",)),
)


def test_what_is_stored_is_read_back() -> None:
    stored = json.loads(json.dumps(STATE.to_payload()))
    assert AgentState.from_payload(stored) == STATE
    assert (
        AgentState.from_payload(STATE._replace(user_profile=None).to_payload()).user_profile is None
    )


def test_the_fields_stand_in_their_order() -> None:
    fields = "query user_id iteration max_iterations mode stop_reason messages response pending_calls completed_calls"
    assert agent_state.ExecutionState._fields[:12] == (*fields.split(), "debug", "notifications")
    assert ReasoningContext._fields == ("goal", "facts", "strategy", "insights", "thoughts")
    assert UserProfile("a").synthesis_version == 1


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("execution", "iteration", True),
        ("execution", "messages", "x"),
        ("execution", "messages", ["x"]),
        ("execution", "query", None),
        ("reasoning", "insights", [1]),
        ("reasoning", "facts", []),
        ("user_profile", "goals", "ship"),
        ("user_profile", "user_id", 7),
    ],
)
def test_a_value_of_another_type_is_refused(part: str, name: str, value: Any) -> None:
    stored = STATE.to_payload()
    stored[part] = {**stored[part], name: value}
    with pytest.raises(UnreadableState, match=name):
        AgentState.from_payload(stored)


@pytest.mark.parametrize("stored", [None, [], "x", {}, {"execution": 1}, {"schema_version": "1"}])
def test_what_is_no_state_is_refused(stored: Any) -> None:
    with pytest.raises(UnreadableState):
        AgentState.from_payload(stored)


@pytest.mark.parametrize("whole", [STATE, STATE.user_profile])
def test_a_newer_version_is_refused(whole: Any) -> None:
    stored = {**whole.to_payload(), "schema_version": 99}
    with pytest.raises(NewerStateVersion, match="99"):
        type(whole).from_payload(stored)


def test_a_state_of_the_version_before_is_migrated() -> None:
    """`state_v0.json` has naive times and a goal that is null; `state_v1.json` is the same today."""
    old, new = (json.loads((STORED / f"state_v{number}.json").read_bytes()) for number in (0, 1))
    assert AgentState.from_payload(old).to_payload() == new
    assert AgentState.from_payload(new).to_payload() == new
    assert UserProfile.from_payload(old["user_profile"]).to_payload() == new["user_profile"]


@pytest.mark.parametrize("time", ["yesterday", "2025-13-01T00:00:00"])
def test_a_time_that_is_none_is_refused(time: str) -> None:
    with pytest.raises(UnreadableState, match="is not a time"):
        UserProfile.from_payload({"user_id": "ann", "created_at": time})
