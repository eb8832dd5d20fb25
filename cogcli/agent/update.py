"""Changes of an agent's state: `(state, input, now) -> UpdateResult`, pure (docs/reference/agent-state.md#updates).

`now` is the time of an event, ISO 8601 with a zone; another text raises ValueError, the only error here. Values of a
model, a tool or a user are bounded, or dropped with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, Final, Generic, TypeVar

from cogcli.agent import state as agent_state
from cogcli.agent.bounds import (
    Note,
    append_newest,
    copy_object,
    json_size,
    limit_notes,
    newest,
    note,
    plain_json,
    truncate_text,
    truncate_value,
    wrong_type,
)
from cogcli.agent.modes import judge_switch
from cogcli.agent.profile import UserProfile
from cogcli.agent.records import CompletedCall, ConversationMessage, PendingCall, ReplyThinking
from cogcli.agent.reply import MAX_CALL_BYTES, Reply
from cogcli.agent.state import AgentState, ReasoningContext
from cogcli.agent.stored import is_zoned
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json

MAX_ITEMS: Final = {
    "messages": 40, "pending_calls": 8, "completed_calls": 20, "notifications": 20, "insights": 10, "facts": 20,
    "thoughts": 5,
}  # fmt: skip
"""The maximal numbers of entries."""
CHARACTERS: Final = {
    "goal": 500,
    "strategy": 500,
    "insight": 300,
    "thinking": 2000,
    "fact": 200,
    "name": 200,
}
BYTES: Final = {
    "query": 16384, "message": 8192, "response": 24576, "fact": 2048, "output": 8192, "thought": 2048,
    "notification": 1024,
}  # fmt: skip
"""The maximal bytes of a text or value as JSON."""
MAX_STATE_BYTES: Final = 256 * 1024
ROLES: Final = ("user", "assistant")
_SHRINKING: Final = (
    ("execution", "completed_calls"), ("execution", "messages"), ("reasoning", "thoughts"),
    ("execution", "notifications"), ("reasoning", "insights"), ("reasoning", "facts"),
    ("user_profile", "failure_patterns"), ("user_profile", "success_patterns"), ("user_profile", "interests"),
    ("user_profile", "expertise_areas"), ("user_profile", "projects"), ("user_profile", "goals"),
    ("user_profile", "constraints"), ("user_profile", "preferences"),
)  # fmt: skip
"""The members that lose their oldest entries, in this order, if a whole state is too large."""
_KEPT_FIRST: Final = 3
State = TypeVar("State")
Input = TypeVar("Input")


class UpdateResult(NamedTuple, Generic[State]):
    """The next state, and notes `{code, what, detail}` about dropped, cut or refused values."""

    state: State
    notes: tuple[Note, ...] = ()


def _bounded_change(
    apply: Callable[[AgentState, Input, str, list[Note]], AgentState],
) -> Callable[[AgentState, Input, str], UpdateResult[AgentState]]:
    """Return a decorated change that checks its time, and bounds the whole state and the notes."""

    @wraps(apply)
    def change(state: AgentState, given: Input, now: str) -> UpdateResult[AgentState]:
        if not is_zoned(now):
            raise ValueError(f"`{now}` is not a time with a zone")
        notes: list[Note] = []
        return _limit_size(apply(state, given, now, notes), notes)

    return change


def new_state(
    query: str,
    *,
    user_id: str = "default",
    profile: UserProfile | None = None,
    mode: str = "adapt",
    mode_locked: bool = False,
    max_iterations: int = 10,
    debug: bool = False,
    messages: Sequence[Json] = (),
    reasoning: ReasoningContext | None = None,
) -> UpdateResult[AgentState]:
    """Return the first state of a run, with the messages and the reasoning of the session. The goal
    is the query."""
    notes: list[Note] = []
    query = truncate_text(query, BYTES["query"], "query", notes, in_bytes=True)
    goal = truncate_text(query, CHARACTERS["goal"], "goal", notes)
    execution = agent_state.ExecutionState(
        query,
        user_id,
        max_iterations=max_iterations,
        mode=mode,
        mode_locked=mode_locked,
        debug=debug,
        messages=newest(tuple(messages), MAX_ITEMS["messages"], "messages", notes),
    )
    return _limit_size(
        AgentState(execution, (reasoning or ReasoningContext())._replace(goal=goal), profile), notes
    )


def should_continue(state: AgentState) -> bool:
    """Return whether another turn follows: no response, no stop reason, and at least one iteration left."""
    execution = state.execution
    ended = execution.response or execution.stop_reason
    return not ended and execution.iteration < execution.max_iterations


def advance_iteration(state: AgentState) -> AgentState:
    """Begin the next turn."""
    execution = state.execution
    return state._replace(execution=execution._replace(iteration=execution.iteration + 1))


@_bounded_change
def add_message(state: AgentState, message: Json, now: str, notes: list[Note]) -> AgentState:
    """Add a message `{role, content}` of the user or the assistant to the conversation."""
    found, given = read_record(ConversationMessage, message), message.get("content")
    if found.role not in ROLES or found.content != given:
        notes.append(wrong_type("messages", "the text of a user or an assistant", given))
        return state
    content = truncate_text(found.content, BYTES["message"], "messages", notes, in_bytes=True)
    added = (*state.execution.messages, {"role": found.role, "content": content, "timestamp": now})
    kept = newest(added, MAX_ITEMS["messages"], "messages", notes)
    return _with_execution(state, messages=kept)


@_bounded_change
def add_notification(
    state: AgentState, notification: Json, now: str, notes: list[Note]
) -> AgentState:
    """Add a notification for the user or the model."""
    value = copy_object(notification, "notifications", notes)
    value = truncate_value(value, BYTES["notification"], "notifications", notes)
    added = (*state.execution.notifications, {**value, "timestamp": now})
    kept = newest(added, MAX_ITEMS["notifications"], "notifications", notes)
    return _with_execution(state, notifications=kept)


@_bounded_change
def set_tool_calls(
    state: AgentState, calls: Iterable[Json], now: str, notes: list[Note]
) -> AgentState:
    """Replace the pending calls."""
    kept: list[Json] = []
    for call in calls:
        found = copy_object(call, "pending_calls", notes)
        fits = (
            len(kept) < MAX_ITEMS["pending_calls"] and json_size([*kept, found]) <= MAX_CALL_BYTES
        )
        if found and fits:
            kept.append(found)
        else:
            notes.append(note("dropped", "pending_calls", read_record(PendingCall, found).name))
    return _with_execution(state, pending_calls=tuple(kept))


@_bounded_change
def complete_tool_calls(
    state: AgentState, results: Iterable[Json], now: str, notes: list[Note]
) -> AgentState:
    """Add the results to the completed calls, and clear the pending ones."""
    completed = (
        *state.execution.completed_calls,
        *(_completed_call(each, notes) for each in results),
    )
    kept = newest(completed, MAX_ITEMS["completed_calls"], "completed_calls", notes)
    return _with_execution(state, completed_calls=kept, pending_calls=())


@_bounded_change
def end_run(state: AgentState, stop_reason: str, now: str, notes: list[Note]) -> AgentState:
    """End the run, and clear the pending calls."""
    reason = truncate_text(stop_reason, CHARACTERS["name"], "stop_reason", notes)
    return _with_execution(state, stop_reason=reason, pending_calls=())


@_bounded_change
def add_insight(state: AgentState, insight: str, now: str, notes: list[Note]) -> AgentState:
    """Add an insight as the newest. It replaces an equal one, also in other case."""
    return _with_insights(state, (insight,), notes)


@_bounded_change
def update_facts(state: AgentState, facts: Json, now: str, notes: list[Note]) -> AgentState:
    """Add or replace facts, each as the newest. Null and empty texts change nothing."""
    kept = dict(state.reasoning.facts)
    for name, given in facts.items():
        key, value = name.strip(), plain_json(given, "facts", notes)
        if isinstance(value, str):
            value = truncate_text(value, BYTES["fact"], "facts", notes, in_bytes=True) or None
        if not key or len(key) > CHARACTERS["name"] or json_size(value) > BYTES["fact"]:
            notes.append(
                note("dropped", "facts", f"`{key}`: its name is empty or long, or its value large")
            )
        elif value is not None:
            kept.pop(key, None)
            kept[key] = value
    return _with_reasoning(
        state, facts=dict(newest(tuple(kept.items()), MAX_ITEMS["facts"], "facts", notes))
    )


@_bounded_change
def record_thinking(state: AgentState, thought: Json, now: str, notes: list[Note]) -> AgentState:
    """Record a thought `{thinking, tool_calls}`; of large calls only the names."""
    found = read_record(ReplyThinking, thought)
    calls = [copy_object(call, "thoughts", notes) for call in found.tool_calls or ()]
    if json_size(calls) > BYTES["thought"]:
        notes.append(note("cut", "thoughts", "the arguments of calls"))
        names = [read_record(PendingCall, call).name for call in calls]
        calls = [{"name": name[: CHARACTERS["name"]]} for name in names]
    text = truncate_text(found.thinking, CHARACTERS["thinking"], "thoughts", notes)
    entry = {"thinking": text, "tool_calls": calls[: MAX_ITEMS["pending_calls"]], "timestamp": now}
    added = (*state.reasoning.thoughts, entry)
    return _with_reasoning(state, thoughts=newest(added, MAX_ITEMS["thoughts"], "thoughts", notes))


@_bounded_change
def update_from_reasoning(
    state: AgentState, reply: Reply, now: str, notes: list[Note]
) -> AgentState:
    """Apply a reply. With calls its response is a draft, which the next prompt shows with their results."""
    notes += reply.notes

    def then(updated: UpdateResult[AgentState]) -> AgentState:
        notes.extend(updated.notes)
        return updated.state

    if reply.thinking:
        thought = {"thinking": reply.thinking, "tool_calls": reply.calls}
        state = then(record_thinking(state, thought, now))
    for name, text in (("goal", reply.goal), ("strategy", reply.strategy)):
        if text:
            state = _with_reasoning(
                state, **{name: truncate_text(text, CHARACTERS[name], name, notes)}
            )
    state = then(update_facts(state, reply.facts, now))
    state = then(set_tool_calls(_with_insights(state, reply.insights, notes), reply.calls, now))
    answer = (
        truncate_text(reply.response, BYTES["response"], "response", notes, in_bytes=True) or None
    )
    draft, response = (answer, None) if state.execution.pending_calls else (None, answer)
    execution = state.execution._replace(draft_response=draft, response=response)
    return state._replace(execution=_switch_mode(execution, reply, notes))


def _with_execution(state: AgentState, **changes: Any) -> AgentState:
    return state._replace(execution=state.execution._replace(**changes))


def _with_reasoning(state: AgentState, **changes: Any) -> AgentState:
    return state._replace(reasoning=state.reasoning._replace(**changes))


def _with_insights(state: AgentState, insights: Iterable[str], notes: list[Note]) -> AgentState:
    kept = state.reasoning.insights
    for insight in insights:
        if text := truncate_text(insight, CHARACTERS["insight"], "insights", notes):
            kept = newest(append_newest(kept, text), MAX_ITEMS["insights"], "insights", notes)
    return _with_reasoning(state, insights=kept)


def _completed_call(found: Json, notes: list[Note]) -> Json:
    """Return a completed call: `{name, success, step, output | error, truncated}`, its output in its own shape."""
    given = copy_object(found, "completed_calls", notes)
    call = read_record(CompletedCall, given)
    name, step = (text[: CHARACTERS["name"]] for text in (call.name, call.step))
    part = "output" if call.success else "error"
    before = len(notes)
    value = truncate_value(given.get(part), BYTES["output"], f"completed_calls/{part}", notes)
    members = {part: value} if part in given else {}
    cut = len(notes) > before or call.truncated
    return {"name": name, "success": call.success, "step": step, **members, "truncated": cut}


def _switch_mode(
    execution: agent_state.ExecutionState, reply: Reply, notes: list[Note]
) -> agent_state.ExecutionState:
    """Switch the mode of the next prompt if the reply requests it and may."""
    switch = judge_switch(execution, reply)
    if switch is None:
        return execution
    if switch.refused:
        notes.append(note("switch_refused", switch.target, switch.refused))
        return execution
    notes.append(note("mode_switched", switch.target, switch.why))
    return execution._replace(mode=switch.target, switches=execution.switches + 1)


def _limit_size(state: AgentState, notes: list[Note]) -> UpdateResult[AgentState]:
    """Return the state, reduced to its maximum size. Collections drop their oldest entries: first
    down to three each, then all."""
    while json_size(state.to_payload()) > MAX_STATE_BYTES:
        shorter = _drop_oldest_entries(state, notes)
        if shorter is state:
            break
        state = shorter
    return UpdateResult(state, limit_notes(notes))


def _drop_oldest_entries(state: AgentState, notes: list[Note]) -> AgentState:
    for minimum in (_KEPT_FIRST, 0):
        for part, name in _SHRINKING:
            owner = getattr(state, part)
            items = getattr(owner, name, ())
            if len(items) > minimum:
                notes.append(note("dropped", name, "the whole state is too large"))
                shorter = dict(list(items.items())[1:]) if isinstance(items, dict) else items[1:]
                return state._replace(**{part: owner._replace(**{name: shorter})})
    return state
