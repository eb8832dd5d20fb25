"""The values of a turn, and the events of its layers (docs/reference/agent-run.md#layers)."""

from __future__ import annotations

from datetime import datetime

from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.cognition.layers import LAYERS
from cogcli.declarations.agent_events import LayerCompleted
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.event_type import Payload
from cogcli.declarations.value_types import Json
from cogcli.run.engine.run import RootRun


class TurnRecord:
    """One turn: the values by name that its layers read and write."""

    def __init__(self, root: RootRun, turn: int, known: Json) -> None:
        self.turn = turn
        self.known = known
        self._root = root

    def run_layer(self, name: str, *, skipped: str = "") -> None:
        """Run a pure layer on the values in its row."""
        layer = LAYERS[name]
        view = {read: self.known[read] for read in layer.reads}
        self.complete(
            name, layer.function(view) if layer.function and not skipped else {}, skipped=skipped
        )

    def complete(self, name: str, writes: Json, *, skipped: str = "") -> None:
        """Take the writes of a layer, and append its event."""
        layer = LAYERS[name]
        layer.require_own(writes)
        self.known.update(writes)
        completed = LayerCompleted(
            turn=self.turn,
            layer=name,
            reads=list(layer.reads),
            writes=writes,
            skipped=skipped or None,
        )
        self.emit(completed, phase=layer.phase)

    def emit(self, payload: Payload, *, phase: str = "") -> str:
        """Append an event of this turn, and return its timestamp."""
        run = self._root.run
        return run.emit(draft_of(payload, run.state.run_id, phase=phase)).timestamp


def values_at_start(
    given: Invocation,
    ledger: Json,
    effects: list[Json],
    notices: list[Json],
) -> Json:
    """Return the values of a turn before its first layer. `effects` and `notices` come from the
    previous turn."""
    pack, fetched = given.pack, given.fetched
    recalls = [
        (f"{e.subject}:{e.predicate}", f"{e.subject} {e.predicate}", e.trust) for e in fetched.edges
    ]
    recalls += [
        (m.memory_id, f"{m.entity} {m.predicate} {m.value}", "verified") for m in fetched.memories
    ]
    agent_id = given.request.agent.get("agent_id")
    named = {"agent_id": agent_id} if agent_id else {}
    return {
        "ledger": ledger,
        "request": given.request.to_payload(),
        "effects": effects,
        "approvals": notices,
        "recalls": [{"id": id, "text": text, "trust": trust} for id, text, trust in recalls],
        "goals": [given.request.message],
        "agent": {"role": pack.tone.agent.role, "voice": pack.tone.agent.voice, **named},
        "tone": list(pack.tone.non_negotiables),
        "intents": {"intent": given.intent.intent},
        "objectives": [
            {"id": each.id, "intents": list(each.intents)} for each in pack.decisions.objectives
        ],
        "facts": {},
    }


def milliseconds(start: str, end: str) -> int:
    """Return the time between two timestamps, at least 0."""
    span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return max(0, round(span.total_seconds() * 1000))
