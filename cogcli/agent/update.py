"""Changes of an agent's state: `(state, input, now) -> Updated`, pure (docs/reference/agent-state.md#updates).

`now` is the time of an event, ISO 8601 with a zone: ValueError for any other. Nothing else is raised: what a model, a
tool or a user gave is bounded, or dropped with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Final, Generic, NamedTuple, TypeVar

from cogcli.agent import state as agent_state
from cogcli.agent.bounds import (
    Note,
    bounded_notes,
    bounded_text,
    bounded_value,
    json_size,
    newest,
    note,
    plain,
    plain_object,
    with_newest,
    wrong_type,
)
from cogcli.agent.modes import judge_switch
from cogcli.agent.profile import UserProfile
from cogcli.agent.reply import MAX_CALL_BYTES, Reply
from cogcli.agent.state import AgentState, ReasoningContext
from cogcli.agent.stored import is_zoned
from cogcli.base.jsonvalue import text_of

MOST: Final = {
    "messages": 40, "pending_calls": 8, "completed_calls": 20, "notifications": 20, "insights": 10, "facts": 20,
    "thoughts": 5,
}  # fmt: skip
"""How many of each are kept."""
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
"""Of a text or value as JSON."""
MAX_STATE_BYTES: Final = 256 * 1024
ROLES: Final = ("user", "assistant")
_SHRINKING: Final = (
    ("execution", "completed_calls"), ("execution", "messages"), ("reasoning", "thoughts"),
    ("execution", "notifications"), ("reasoning", "insights"), ("reasoning", "facts"),
    ("user_profile", "failure_patterns"), ("user_profile", "success_patterns"), ("user_profile", "interests"),
    ("user_profile", "expertise_areas"), ("user_profile", "projects"), ("user_profile", "goals"),
    ("user_profile", "constraints"), ("user_profile", "preferences"),
)  # fmt: skip
"""What loses its oldest entries, in this order, where a whole state is too large."""
_KEPT_FIRST: Final = 3
State = TypeVar("State")
Input = TypeVar("Input")


class Updated(NamedTuple, Generic[State]):
    """The next state, and notes `{code, what, detail}` of what was dropped, cut or refused."""

    state: State
    notes: tuple[Note, ...] = ()


def _change(
    apply: Callable[[AgentState, Input, str, list[Note]], AgentState],
) -> Callable[[AgentState, Input, str], Updated[AgentState]]:
    """A change of the one shape: its time has a zone, the whole state is bounded after it, its notes are few."""

    @wraps(apply)
    def change(state: AgentState, given: Input, now: str) -> Updated[AgentState]:
        if not is_zoned(now):
            raise ValueError(f"`{now}` is not a time with a zone")
        notes: list[Note] = []
        return _bounded(apply(state, given, now, notes), notes)

    return change


def new_state(
    query: str,
    *,
    user_id: str = "default",
    profile: UserProfile | None = None,
    mode: str = "adapt",
    mode_locked: bool = False,
    max_iterations: int = 10,
    messages: Sequence[dict[str, Any]] = (),
    reasoning: ReasoningContext | None = None,
) -> Updated[AgentState]:
    """The state in which a run begins; messages and reasoning are those of the session. The goal is the query."""
    notes: list[Note] = []
    query = bounded_text(query, BYTES["query"], "query", notes, in_bytes=True)
    goal = bounded_text(query, CHARACTERS["goal"], "goal", notes)
    execution = agent_state.ExecutionState(
        query,
        user_id,
        max_iterations=max_iterations,
        mode=mode,
        mode_locked=mode_locked,
        messages=newest(tuple(messages), MOST["messages"], "messages", notes),
    )
    return _bounded(
        AgentState(execution, (reasoning or ReasoningContext())._replace(goal=goal), profile), notes
    )


def should_continue(state: AgentState) -> bool:
    """Whether another turn follows: nothing was answered, nothing stopped the run, and an iteration is left."""
    execution = state.execution
    ended = execution.response or execution.stop_reason
    return not ended and execution.iteration < execution.max_iterations


def advance_iteration(state: AgentState) -> AgentState:
    """The next turn begins."""
    execution = state.execution
    return state._replace(execution=execution._replace(iteration=execution.iteration + 1))


@_change
def add_message(
    state: AgentState, message: Mapping[str, Any], now: str, notes: list[Note]
) -> AgentState:
    """A message `{role, content}` of the user or the assistant joins the conversation."""
    role, content = message.get("role"), message.get("content")
    if role not in ROLES or not isinstance(content, str):
        notes.append(wrong_type("messages", "the text of a user or an assistant", content))
        return state
    content = bounded_text(content, BYTES["message"], "messages", notes, in_bytes=True)
    added = (*state.execution.messages, {"role": role, "content": content, "timestamp": now})
    kept = newest(added, MOST["messages"], "messages", notes)
    return state._replace(execution=state.execution._replace(messages=kept))


@_change
def add_notification(
    state: AgentState, notification: Mapping[str, Any], now: str, notes: list[Note]
) -> AgentState:
    """Something happened that the user or the model is to know."""
    value = plain_object(notification, "notifications", notes)
    value = bounded_value(value, BYTES["notification"], "notifications", notes)
    added = (*state.execution.notifications, {**value, "timestamp": now})
    kept = newest(added, MOST["notifications"], "notifications", notes)
    return state._replace(execution=state.execution._replace(notifications=kept))


@_change
def set_tool_calls(
    state: AgentState, calls: Iterable[Mapping[str, Any]], now: str, notes: list[Note]
) -> AgentState:
    """The calls are what is pending now, all of it."""
    kept: list[dict[str, Any]] = []
    for call in calls:
        found = plain_object(call, "pending_calls", notes)
        fits = len(kept) < MOST["pending_calls"] and json_size([*kept, found]) <= MAX_CALL_BYTES
        if found and fits:
            kept.append(found)
        else:
            notes.append(note("dropped", "pending_calls", text_of(found.get("name"))))
    return state._replace(execution=state.execution._replace(pending_calls=tuple(kept)))


@_change
def complete_tool_calls(
    state: AgentState, results: Iterable[Mapping[str, Any]], now: str, notes: list[Note]
) -> AgentState:
    """The results join what was completed; nothing is pending any more."""
    completed = (*state.execution.completed_calls, *(_result(each, notes) for each in results))
    kept = newest(completed, MOST["completed_calls"], "completed_calls", notes)
    return state._replace(
        execution=state.execution._replace(completed_calls=kept, pending_calls=())
    )


@_change
def end_run(state: AgentState, stop_reason: str, now: str, notes: list[Note]) -> AgentState:
    """The run ends: nothing is pending."""
    reason = bounded_text(stop_reason, CHARACTERS["name"], "stop_reason", notes)
    return state._replace(execution=state.execution._replace(stop_reason=reason, pending_calls=()))


@_change
def add_insight(state: AgentState, insight: str, now: str, notes: list[Note]) -> AgentState:
    """The insight is the newest; one that is equal but for case goes."""
    return _with_insights(state, (insight,), notes)


@_change
def update_facts(
    state: AgentState, facts: Mapping[str, Any], now: str, notes: list[Note]
) -> AgentState:
    """Each fact is the newest, also one that was there; null and empty texts change nothing."""
    kept = dict(state.reasoning.facts)
    for name, given in facts.items():
        key, value = name.strip(), plain(given, "facts", notes)
        if isinstance(value, str):
            value = bounded_text(value, BYTES["fact"], "facts", notes, in_bytes=True) or None
        if not key or len(key) > CHARACTERS["name"] or json_size(value) > BYTES["fact"]:
            notes.append(
                note("dropped", "facts", f"`{key}`: its name is empty or long, or its value large")
            )
        elif value is not None:
            kept.pop(key, None)
            kept[key] = value
    return _reasoning(state, facts=dict(newest(tuple(kept.items()), MOST["facts"], "facts", notes)))


@_change
def record_thinking(
    state: AgentState, thought: Mapping[str, Any], now: str, notes: list[Note]
) -> AgentState:
    """A thought `{thinking, tool_calls}` is recorded; of large calls the names."""
    calls = [plain_object(call, "thoughts", notes) for call in thought.get("tool_calls") or ()]
    if json_size(calls) > BYTES["thought"]:
        notes.append(note("cut", "thoughts", "the arguments of calls"))
        calls = [{"name": text_of(call.get("name"))[: CHARACTERS["name"]]} for call in calls]
    text = bounded_text(text_of(thought.get("thinking")), CHARACTERS["thinking"], "thoughts", notes)
    entry = {"thinking": text, "tool_calls": calls[: MOST["pending_calls"]], "timestamp": now}
    added = (*state.reasoning.thoughts, entry)
    return _reasoning(state, thoughts=newest(added, MOST["thoughts"], "thoughts", notes))


@_change
def update_from_reasoning(
    state: AgentState, reply: Reply, now: str, notes: list[Note]
) -> AgentState:
    """All that a reply changes. With calls its response is a draft, shown once their results are there."""
    notes += reply.notes

    def then(updated: Updated[AgentState]) -> AgentState:
        notes.extend(updated.notes)
        return updated.state

    if reply.thinking:
        thought = {"thinking": reply.thinking, "tool_calls": reply.calls}
        state = then(record_thinking(state, thought, now))
    for name, text in (("goal", reply.goal), ("strategy", reply.strategy)):
        if text:
            state = _reasoning(state, **{name: bounded_text(text, CHARACTERS[name], name, notes)})
    state = then(update_facts(state, reply.facts, now))
    state = then(set_tool_calls(_with_insights(state, reply.insights, notes), reply.calls, now))
    answer = (
        bounded_text(reply.response, BYTES["response"], "response", notes, in_bytes=True) or None
    )
    draft, response = (answer, None) if state.execution.pending_calls else (None, answer)
    execution = state.execution._replace(draft_response=draft, response=response)
    return state._replace(execution=_switched(execution, reply, notes))


def _reasoning(state: AgentState, **changes: Any) -> AgentState:
    return state._replace(reasoning=state.reasoning._replace(**changes))


def _with_insights(state: AgentState, insights: Iterable[str], notes: list[Note]) -> AgentState:
    kept = state.reasoning.insights
    for insight in insights:
        if text := bounded_text(insight, CHARACTERS["insight"], "insights", notes):
            kept = newest(with_newest(kept, text), MOST["insights"], "insights", notes)
    return _reasoning(state, insights=kept)


def _result(found: Mapping[str, Any], notes: list[Note]) -> dict[str, Any]:
    """A completed call: `{name, success, step, output | error, truncated}`, its output in its own shape."""
    given = plain_object(found, "completed_calls", notes)
    name, step = (text_of(given.get(key))[: CHARACTERS["name"]] for key in ("name", "step"))
    success = given.get("success") is True
    part = "output" if success else "error"
    before = len(notes)
    value = bounded_value(given.get(part), BYTES["output"], f"completed_calls/{part}", notes)
    members = {part: value} if part in given else {}
    cut = len(notes) > before or given.get("truncated") is True
    return {"name": name, "success": success, "step": step, **members, "truncated": cut}


def _switched(
    execution: agent_state.ExecutionState, reply: Reply, notes: list[Note]
) -> agent_state.ExecutionState:
    """The mode of the next prompt."""
    switch = judge_switch(execution, reply)
    if switch is None:
        return execution
    if switch.refused:
        notes.append(note("switch_refused", switch.target, switch.refused))
        return execution
    notes.append(note("mode_switched", switch.target, switch.why))
    return execution._replace(mode=switch.target, switches=execution.switches + 1)


def _bounded(state: AgentState, notes: list[Note]) -> Updated[AgentState]:
    """The state below its whole size: collections lose their oldest entries, first down to three each."""
    while json_size(state.to_payload()) > MAX_STATE_BYTES:
        shorter = _without_oldest(state, notes)
        if shorter is state:
            break
        state = shorter
    return Updated(state, bounded_notes(notes))


def _without_oldest(state: AgentState, notes: list[Note]) -> AgentState:
    for least in (_KEPT_FIRST, 0):
        for part, name in _SHRINKING:
            owner = getattr(state, part)
            items = getattr(owner, name, ())
            if len(items) > least:
                notes.append(note("dropped", name, "the whole state is too large"))
                shorter = dict(list(items.items())[1:]) if isinstance(items, dict) else items[1:]
                return state._replace(**{part: owner._replace(**{name: shorter})})
    return state
