"""What an agent with a model keeps over the turns of a run: its state, and its model calls
(docs/reference/agent-run.md#reasoning). Every change of the state is an event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.cognition.model_calls import ModelCalls, OnResponse, OpenModel
from cogcli.agent.cognition.planner import Judged
from cogcli.agent.cognition.turn_record import TurnRecord
from cogcli.agent.models.port import ModelInfo
from cogcli.agent.modes import resolve_mode
from cogcli.agent.profile import UserProfile
from cogcli.agent.state import AgentState, ReasoningContext
from cogcli.agent.update import (
    add_message,
    advance_iteration,
    complete_tool_calls,
    end_run,
    new_state,
)
from cogcli.declarations.agent_events import AgentUpdated
from cogcli.run.engine.run import RootRun
from cogcli.run.prepare import LearnedSecrets


class ModelAccess(NamedTuple):
    """The model of a run. `open` is called at the first question that the log does not answer, and is None on replay;
    `mode` is the one that was asked for: fast, deep or adapt."""

    info: ModelInfo
    open: OpenModel | None = None
    on_response: OnResponse | None = None
    mode: str = "adapt"
    timeout_s: float = 60.0
    secrets: LearnedSecrets | None = None


class Reasoning:
    """The state of an agent over the turns of one run. Only the loop's own steps change it."""

    def __init__(self, state: AgentState, access: ModelAccess, root: RootRun) -> None:
        self.state = state
        self._known_facts: dict[str, Any] = dict(state.reasoning.facts)
        """The facts that are no news."""
        self.calls = ModelCalls(root, access.open, access.on_response, timeout_s=access.timeout_s)

    def take(self, judged: Judged, record: TurnRecord) -> None:
        """Go on with the state that a judgment gave."""
        self.state = judged.state
        self._write(record, judged.notes)

    def close_turn(
        self,
        results: Iterable[dict[str, Any]],
        response: str,
        ending: str,
        now: str,
        record: TurnRecord,
    ) -> None:
        """Take up what came of the calls of a turn; `ending` is why the run ends with it, empty where it goes on."""
        done = complete_tool_calls(self.state, results, now)
        state, notes = advance_iteration(done.state), done.notes
        if ending:
            said = (
                add_message(state, {"role": "assistant", "content": response}, now)
                if response
                else None
            )
            state, notes = (said.state, (*notes, *said.notes)) if said else (state, notes)
            execution = state.execution._replace(response=response or None)
            state = end_run(state._replace(execution=execution), ending, now).state
        self.state = state
        self._write(record, notes)

    def new_facts(self) -> list[dict[str, Any]]:
        """What was reasoned since this was asked last, as memory events hold it."""
        facts = self.state.reasoning.facts
        fresh = [
            {"key": key, "value": value}
            for key, value in facts.items()
            if self._known_facts.get(key) != value
        ]
        self._known_facts = dict(facts)
        return fresh

    def _write(self, record: TurnRecord, notes: Iterable[dict[str, str]]) -> None:
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


def begin_state(given: Invocation, asked: str, now: str) -> AgentState:
    """The state in which a run begins; `asked` is the mode that the user wants."""
    layer, session = given.pack.decisions, given.fetched.session
    intent = layer.intents.get(given.intent.intent)
    templates = [layer.task_templates[id] for id in (intent.templates if intent else ())[:1]]
    steps = max((len(template.steps) for template in templates), default=0)
    failed = bool(session and session.get("last_run_failed"))
    mode = resolve_mode(asked, intent.risk if intent else "", steps, failed)
    profile = given.fetched.profile
    begun = new_state(
        given.request.message,
        user_id=given.request.user.user_id,
        profile=UserProfile.from_payload(profile) if profile else None,
        mode=mode,
        mode_locked=asked == mode,
        max_iterations=int(given.limits["turns"]),
        messages=(session or {}).get("messages") or (),
        reasoning=ReasoningContext.from_payload((session or {}).get("reasoning") or {}),
    )
    return add_message(begun.state, {"role": "user", "content": given.request.message}, now).state
