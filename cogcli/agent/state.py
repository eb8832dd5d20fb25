"""The state of an agent: execution, reasoning and the profile of the user (docs/reference/agent-state.md#state).

Values are immutable: `update.py` makes the next ones. `ExecutionState` is imported as `state.ExecutionState`, since the
run in memory has a class of that name.
"""

from __future__ import annotations

from typing import Final

from cogcli.agent.profile import UserProfile
from cogcli.agent.stored import Migration, from_payload, migrate, to_payload, with_zone
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.layer_records import StoredAgentState
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json

VERSION: Final = 1


class TimedEntry(Record):
    """A message or a thought of version 0."""

    timestamp: str


class FirstExecution(Record):
    """The execution of version 0, as far as it is migrated."""

    query: str
    messages: list[TimedEntry]


class FirstReasoning(Record):
    """The reasoning of version 0, as far as it is migrated; its goal could be null."""

    goal: object = None
    thoughts: list[TimedEntry]


class FirstState(Record):
    """The state of version 0, whose times had no zone."""

    execution: FirstExecution
    reasoning: FirstReasoning


def _migrate_first(state: Json) -> Json:
    """Return the state of version 0 in version 1: times have a zone, and there is a goal."""
    first = read_record(FirstState, state)
    execution, reasoning = first.execution, first.reasoning
    return {
        **state,
        "execution": {**execution.json, "messages": _with_zones(execution.messages)},
        "reasoning": {
            **reasoning.json,
            "goal": reasoning.goal or execution.query,
            "thoughts": _with_zones(reasoning.thoughts),
        },
    }


def _with_zones(entries: list[TimedEntry]) -> list[Json]:
    return [
        {**each.json, "timestamp": each.timestamp and with_zone(each.timestamp)} for each in entries
    ]


_MIGRATIONS: Final[dict[int, Migration]] = {0: _migrate_first}


class ExecutionState(NamedTuple):
    """The progress of an agent's run. Messages are `{role, content, timestamp}`, pending calls `{name, args, id?,
    depends_on?}`, completed ones `{name, success, step, output | error, truncated}`."""

    query: str
    user_id: str = "default"
    iteration: int = 0
    max_iterations: int = 10
    mode: str = "adapt"
    stop_reason: str | None = None
    messages: tuple[Json, ...] = ()
    response: str | None = None
    pending_calls: tuple[Json, ...] = ()
    completed_calls: tuple[Json, ...] = ()
    debug: bool = False
    notifications: tuple[Json, ...] = ()
    draft_response: str | None = None
    """The text next to calls: the next prompt shows it with their results."""
    mode_locked: bool = False
    """Whether the user chose the mode."""
    switches: int = 0
    """The number of switches of the mode in this run."""

    def to_payload(self) -> Json:
        """Return the state as JSON."""
        return to_payload(self)

    @classmethod
    def from_payload(cls, payload: Json) -> ExecutionState:
        """Return the inverse of `to_payload`. Raise UnreadableState."""
        return from_payload(cls, payload, "execution", "an execution has a query")


class ReasoningContext(NamedTuple):
    """The earlier reasoning of an agent. Facts are (key, value), the newest last; thoughts are `{thinking, tool_calls,
    timestamp}`.
    """

    goal: str = ""
    facts: Json = NOTHING
    strategy: str = ""
    insights: tuple[str, ...] = ()
    thoughts: tuple[Json, ...] = ()

    def to_payload(self) -> Json:
        """Return the context as JSON."""
        return to_payload(self)

    @classmethod
    def from_payload(cls, payload: Json) -> ReasoningContext:
        """Return the inverse of `to_payload`. Raise UnreadableState."""
        return from_payload(cls, payload, "reasoning")


class AgentState(NamedTuple):
    """The whole state of an agent; the profile is None for an unknown user."""

    execution: ExecutionState
    reasoning: ReasoningContext = ReasoningContext()
    user_profile: UserProfile | None = None

    def to_payload(self) -> Json:
        """Return the state as JSON, with its `schema_version`."""
        return {
            "schema_version": VERSION,
            "execution": self.execution.to_payload(),
            "reasoning": self.reasoning.to_payload(),
            "user_profile": self.user_profile.to_payload() if self.user_profile else None,
        }

    @classmethod
    def from_payload(cls, payload: Json) -> AgentState:
        """Return the inverse of `to_payload`, also for older versions. Raise UnreadableState, NewerStateVersion."""
        found = migrate(payload, VERSION, _MIGRATIONS, "state")
        stored = StoredAgentState.of(found)
        profile = stored.user_profile
        return cls(
            ExecutionState.from_payload(stored.execution),
            ReasoningContext.from_payload(stored.reasoning),
            None if profile is None else UserProfile.from_payload(profile),
        )
