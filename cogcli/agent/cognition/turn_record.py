"""The values of a turn, and the events of its layers (docs/reference/agent-run.md#layers)."""

from __future__ import annotations

from datetime import datetime

from cogcli.agent.cognition.attention import list_recalls, list_recalls_of_first_edition
from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.cognition.layers import LAYERS
from cogcli.agent.state import AgentState
from cogcli.declarations.agent_events import LayerCompleted
from cogcli.declarations.envelope import Event, draft_of
from cogcli.declarations.event_type import Payload
from cogcli.declarations.run_start import LATEST_EDITION, ExpectedAgent
from cogcli.declarations.value_types import Json
from cogcli.run.engine.run import RootRun


class TurnRecord:
    """One turn: the values by name that its layers read and write."""

    def __init__(
        self, root: RootRun, turn: int, known: Json, edition: int = LATEST_EDITION
    ) -> None:
        self.turn = turn
        self.known = known
        self.logged: Json = {}
        """The writes of the turn's layers in their logged form, with masked values."""
        self._root, self._edition = root, edition

    def run_layer(self, name: str, *, skipped: str = "") -> None:
        """Run a pure layer with the values that its row lists as reads."""
        layer = LAYERS[name]
        view = {read: self.known[read] for read in layer.reads_in(self._edition)}
        self.complete(
            name, layer.function(view) if layer.function and not skipped else {}, skipped=skipped
        )

    def complete(self, name: str, writes: Json, *, skipped: str = "") -> None:
        """Apply the writes of a layer, and append its event."""
        layer = LAYERS[name]
        layer.require_declared_writes(writes)
        self.known.update(writes)
        completed = LayerCompleted(
            turn=self.turn,
            layer=name,
            reads=list(layer.reads_in(self._edition)),
            writes=writes,
            skipped=skipped or None,
        )
        self.logged |= self.append(completed, layer.phase).payload["writes"]

    def emit(self, payload: Payload) -> str:
        """Append an event of this turn, and return its timestamp."""
        return self.append(payload).timestamp

    def append(self, payload: Payload, phase: str = "") -> Event:
        """Append an event of this turn, and return it as recorded."""
        run = self._root.run
        return run.emit(draft_of(payload, run.state.run_id, phase=phase))


def values_at_start(
    invocation: Invocation,
    ledger: Json,
    effects: list[Json],
    notices: list[Json],
    *,
    waiting: list[Json],
    goals: list[str],
    now: str,
) -> Json:
    """Return the values of a turn before its first layer.

    `effects`, `notices` and the events that are `waiting` come from the previous turn. `goals` are its goals; in the
    first turn the message.
    """
    pack = invocation.pack
    agent_id = ExpectedAgent.of(invocation.request.agent).agent_id
    named = {"agent_id": agent_id} if agent_id else {}
    known = {
        "ledger": ledger,
        "request": invocation.request.to_payload(),
        "effects": effects,
        "approvals": notices,
        "goals": goals,
        "agent": {"role": pack.tone.agent.role, "voice": pack.tone.agent.voice, **named},
        "tone": list(pack.tone.non_negotiables),
        "intents": {"intent": invocation.intent.intent},
        "objectives": [
            {"id": each.id, "intents": list(each.intents)} for each in pack.decisions.objectives
        ],
        "facts": {},
    }
    edges, memories = invocation.fetched.edges, invocation.fetched.memories
    if invocation.policy.edition < LATEST_EDITION:
        return {**known, "recalls": list_recalls_of_first_edition(edges, memories)}
    intent = invocation.intent
    recalls = list_recalls(pack, intent.intent, intent.slots, edges, memories, now)
    unheld = {"mode": "off", "buffered": []}
    later = {"waiting": waiting, "focus_state": unheld, "session": invocation.session_signals}
    return {**known, "recalls": recalls, **later}


def list_goals(invocation: Invocation, turn: int, state: AgentState | None) -> list[str]:
    """Return the goals at the start of a turn: the message and its entities. The objectives and the model's goal of the
    previous turn follow.
    """
    goals = [invocation.request.message]
    if invocation.policy.edition < LATEST_EDITION:
        return goals
    goals += invocation.intent.slots.values()
    if turn > 1:
        intent = invocation.intent.intent
        objectives = invocation.pack.decisions.objectives
        goals += [each.text for each in objectives if not each.intents or intent in each.intents]
        goals += [state.reasoning.goal] if state else []
    return goals


def milliseconds(start: str, end: str) -> int:
    """Return the time between two timestamps, at least 0."""
    span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return max(0, round(span.total_seconds() * 1000))
