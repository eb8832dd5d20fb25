"""The state and the model calls of an agent with a model, over the turns of a run
(docs/reference/agent-run.md#reasoning). Every change of the state is an event."""

from __future__ import annotations

from collections.abc import Iterable

from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.cognition.model_calls import ModelCalls, OnResponse, OpenModel
from cogcli.agent.cognition.planner import JudgedCandidate
from cogcli.agent.cognition.turn_record import TurnRecord
from cogcli.agent.models.port import ModelInfo
from cogcli.agent.modes import resolve_mode
from cogcli.agent.profile import UserProfile
from cogcli.agent.state import AgentState, ReasoningContext
from cogcli.agent.update import (
    add_message,
    add_notification,
    advance_iteration,
    complete_tool_calls,
    end_run,
    new_state,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.agent_events import AgentUpdated
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import RecordedSession
from cogcli.declarations.value_types import Json
from cogcli.policy.prices import Prices
from cogcli.run.engine.run import RootRun
from cogcli.run.prepare import LearnedSecrets


class ModelAccess(NamedTuple):
    """The model of a run. `open` is called for the first request without an outcome in the log, and is None on replay;
    `mode` is the requested one: fast, deep or adapt."""

    info: ModelInfo
    open: OpenModel | None = None
    on_response: OnResponse | None = None
    mode: str = "adapt"
    timeout_s: float = 60.0
    secrets: LearnedSecrets | None = None
    prices: Prices | None = None
    """The prices of the model's tokens; None if unknown."""


class Reasoning:
    """The state of an agent over the turns of one run. Only the steps of the loop change it."""

    def __init__(self, state: AgentState, access: ModelAccess, root: RootRun) -> None:
        self.state = state
        self.prices = access.prices
        self._known_facts: Json = dict(state.reasoning.facts)
        """The facts of the last call of `new_facts`."""
        self.calls = ModelCalls(root, access.open, access.on_response, timeout_s=access.timeout_s)

    def take(self, candidate: JudgedCandidate, record: TurnRecord) -> None:
        """Store the state of a judgment."""
        self.state = candidate.state
        self._write_notes(record, candidate.notes)

    def close_turn(
        self,
        results: Iterable[Json],
        response: str,
        ending: str,
        now: str,
        record: TurnRecord,
        notices: Iterable[Json] = (),
    ) -> None:
        """Store the results and the notices of a turn. `ending` is the reason why the run ends, or empty if it
        continues."""
        done = complete_tool_calls(self.state, results, now)
        state, notes = advance_iteration(done.state), done.notes
        for notice in notices:
            noted = add_notification(state, notice, now)
            state, notes = noted.state, (*notes, *noted.notes)
        if ending:
            if response:
                added = add_message(state, {"role": "assistant", "content": response}, now)
                state, notes = added.state, (*notes, *added.notes)
            execution = state.execution._replace(response=response or None)
            state = end_run(state._replace(execution=execution), ending, now).state
        self.state = state
        self._write_notes(record, notes)

    def new_facts(self) -> list[Json]:
        """Return the facts that changed since the last call, for memory events."""
        facts = self.state.reasoning.facts
        fresh = [
            {"key": key, "value": value}
            for key, value in facts.items()
            if self._known_facts.get(key) != value
        ]
        self._known_facts = dict(facts)
        return fresh

    def _write_notes(self, record: TurnRecord, notes: Iterable[dict[str, str]]) -> None:
        execution, reasoning = self.state.execution, self.state.reasoning
        record.emit(
            AgentUpdated(
                turn=record.turn,
                mode=execution.mode,
                notes=list(notes),
                execution=execution.to_payload(),
                reasoning=reasoning.to_payload(),
            )
        )


def initial_state(invocation: Invocation, requested_mode: str, now: str) -> AgentState:
    """Return the state of an agent at the start of a run, with the user's message."""
    decisions = invocation.pack.decisions
    session = read_record(RecordedSession, invocation.fetched.session)
    intent = decisions.intents.get(invocation.intent.intent)
    risk, steps = "", 0
    if intent is not None:
        risk = intent.risk
        if intent.templates:
            steps = len(decisions.task_templates[intent.templates[0]].steps)
    mode = resolve_mode(requested_mode, risk, steps, session.last_run_failed)
    profile = invocation.fetched.profile
    update = new_state(
        invocation.request.message,
        user_id=invocation.request.user.user_id,
        profile=UserProfile.from_payload(profile) if profile else None,
        mode=mode,
        mode_locked=requested_mode == mode,
        max_iterations=int(invocation.limits["turns"]),
        debug=invocation.debug,
        messages=[message.json for message in session.messages],
        reasoning=ReasoningContext.from_payload(session.reasoning),
    )
    return add_message(
        update.state, {"role": "user", "content": invocation.request.message}, now
    ).state
