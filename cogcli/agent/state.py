"""The state of an agent: execution, reasoning, and what is known of the user (docs/reference/agent-state.md#state).

Values do not change: `update.py` gives the next ones. `ExecutionState` is imported as `state.ExecutionState`, since the
run in memory has one of that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cogcli.agent.profile import UserProfile
from cogcli.agent.stored import (
    Kinds,
    Migration,
    UnreadableState,
    members_of,
    migrate,
    to_payload,
    zoned,
)
from cogcli.base.jsonvalue import NOTHING, list_of, object_of, text_of

VERSION: Final = 1
_EXECUTION: Final[Kinds] = {
    "query": "text",
    "user_id": "text",
    "iteration": "number",
    "max_iterations": "number",
    "mode": "text",
    "stop_reason": "text?",
    "messages": "objects",
    "response": "text?",
    "pending_calls": "objects",
    "completed_calls": "objects",
    "debug": "boolean",
    "notifications": "objects",
    "draft_response": "text?",
    "mode_locked": "boolean",
    "switches": "number",
}
_REASONING: Final[Kinds] = {
    "goal": "text",
    "facts": "object",
    "strategy": "text",
    "insights": "texts",
    "thoughts": "objects",
}


def _with_zones(state: dict[str, Any]) -> dict[str, Any]:
    """Version 0 had times without a zone, and a goal that could be null."""
    execution, reasoning = object_of(state.get("execution")), object_of(state.get("reasoning"))
    return {
        **state,
        "execution": {**execution, "messages": _stamped(execution.get("messages"))},
        "reasoning": {
            **reasoning,
            "goal": reasoning.get("goal") or text_of(execution.get("query")),
            "thoughts": _stamped(reasoning.get("thoughts")),
        },
    }


def _stamped(entries: Any) -> list[dict[str, Any]]:
    stamps = (
        (object_of(entry), text_of(object_of(entry).get("timestamp"))) for entry in list_of(entries)
    )
    return [{**entry, "timestamp": zoned(time) if time else time} for entry, time in stamps]


_MIGRATIONS: Final[dict[int, Migration]] = {0: _with_zones}


class ExecutionState(NamedTuple):
    """Where the run of an agent is. Messages are `{role, content, timestamp}`, pending calls `{name, args, id?,
    depends_on?}`, completed ones `{name, success, step, output | error, truncated}`."""

    query: str
    user_id: str = "default"
    iteration: int = 0
    max_iterations: int = 10
    mode: str = "adapt"
    stop_reason: str | None = None
    messages: tuple[dict[str, Any], ...] = ()
    response: str | None = None
    pending_calls: tuple[dict[str, Any], ...] = ()
    completed_calls: tuple[dict[str, Any], ...] = ()
    debug: bool = False
    notifications: tuple[dict[str, Any], ...] = ()
    draft_response: str | None = None
    """The text that came with calls: shown to the model once their results are there."""
    mode_locked: bool = False
    """Whether the user chose the mode."""
    switches: int = 0
    """How often the mode was switched in this run."""

    def to_payload(self) -> dict[str, Any]:
        """The state as JSON."""
        return to_payload(self)

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> ExecutionState:
        """What `to_payload` gave. Raises UnreadableState."""
        members = members_of(payload, _EXECUTION, "execution")
        if "query" not in members:
            raise UnreadableState("an execution has a query")
        return cls(**members)


class ReasoningContext(NamedTuple):
    """What the agent has thought so far. Facts are key and value, the newest last; thoughts are `{thinking, tool_calls,
    timestamp}`."""

    goal: str = ""
    facts: dict[str, Any] = NOTHING
    strategy: str = ""
    insights: tuple[str, ...] = ()
    thoughts: tuple[dict[str, Any], ...] = ()

    def to_payload(self) -> dict[str, Any]:
        """The context as JSON."""
        return to_payload(self)

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> ReasoningContext:
        """What `to_payload` gave. Raises UnreadableState."""
        return cls(**members_of(payload, _REASONING, "reasoning"))


class AgentState(NamedTuple):
    """The whole state of an agent; the profile is None where nothing is known of the user."""

    execution: ExecutionState
    reasoning: ReasoningContext = ReasoningContext()
    user_profile: UserProfile | None = None

    def to_payload(self) -> dict[str, Any]:
        """The state as JSON, with its `schema_version`."""
        return {
            "schema_version": VERSION,
            "execution": self.execution.to_payload(),
            "reasoning": self.reasoning.to_payload(),
            "user_profile": self.user_profile.to_payload() if self.user_profile else None,
        }

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> AgentState:
        """What `to_payload` gave, of this version or an older one. Raises UnreadableState, NewerState."""
        found = migrate(payload, VERSION, _MIGRATIONS, "state")
        profile = found.get("user_profile")
        return cls(
            ExecutionState.from_payload(found.get("execution", {})),
            ReasoningContext.from_payload(found.get("reasoning", {})),
            None if profile is None else UserProfile.from_payload(profile),
        )
