"""What a run came to hold true: the beliefs and the memory of `state.json`.

1. Beliefs come from `payload.beliefs` of interpret, reason and memory events, then from the entries of
   `working.hypotheses` and `working.uncertainties`, each with a statement and a confidence, which is clamped to 0..1.
2. Facts are one per target written in `vars` and `working.artifacts` whose value is at most 1 KiB of JSON, by key; then
   those of memory events. A target that a later write of something around it replaced is gone.
3. The scratchpad joins the notes that memory events carry and the `working.messages` with role `note`.
4. The provenance of what a step wrote is that step, whatever the value says of itself.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from cogcli.core.refs import MISSING, parse_target
from cogcli.events.envelope import Event
from cogcli.mapping.namespaces import walk_dicts
from cogcli.state.execution import ExecutionState

FACT_BYTES: Final = 1024
_BELIEVING: Final = ("interpret", "reason", "memory")
_SLOTS: Final = ("hypotheses", "uncertainties")
_SLOT_OF: Final = {f"working.{slot}": slot for slot in _SLOTS}


class _BeliefSource(NamedTuple):
    step: str
    timestamp: str
    order: int
    replaces: bool


class Beliefs:
    """Beliefs and memory after the events fed so far."""

    def __init__(self) -> None:
        self._told: list[dict[str, Any]] = []
        self._facts: dict[str, dict[str, Any]] = {}
        self._notes: list[str] = []
        self._writers: dict[str, _BeliefSource] = {}
        self._entries: dict[str, list[_BeliefSource]] = {slot: [] for slot in _SLOTS}
        self._order = 0

    def hear(self, event: Event) -> None:
        """Take what an event of the root run says itself."""
        payload = event.payload
        if type(payload) is not dict or event.phase not in _BELIEVING:
            return
        beliefs = payload.get("beliefs")
        for entry in beliefs if type(beliefs) is list else ():
            belief = _belief(entry, _speaker(entry, event), event.timestamp)
            if belief is not None:
                self._told.append(belief)
        if event.phase == "memory":
            if type(payload.get("scratchpad")) is str:
                self._notes.append(payload["scratchpad"])
            facts = payload.get("facts")
            for entry in facts if type(facts) is list else (payload,):
                self._remember(entry, event)

    def _remember(self, entry: Any, event: Event) -> None:
        if type(entry) is dict and type(entry.get("key")) is str and "value" in entry:
            self._facts[entry["key"]] = {
                "key": entry["key"],
                "value": entry["value"],
                "timestamp": event.timestamp,
                "provenance": _speaker(entry, event),
            }

    def note_writes(self, event: Event, writes: list[dict[str, Any]]) -> None:
        """Remember who wrote what, once the writes were applied."""
        source = _BeliefSource(event.step_id or event.payload["step_id"], event.timestamp, self._order, False)
        for write in writes:
            target, strategy = write["target"], write["strategy"]
            if target.startswith(("vars.", "working.artifacts")):
                self._order += 1
                replaces = strategy in ("overwrite", "replace")
                self._writers[target] = source._replace(order=self._order, replaces=replaces)
            elif target in _SLOT_OF and type(write["value"]) is list:
                added = [source] * len(write["value"])
                slot = _SLOT_OF[target]
                self._entries[slot] = [*self._entries[slot], *added] if strategy == "append" else added

    def beliefs(self, state: ExecutionState) -> list[dict[str, Any]]:
        """Beliefs in order of being told, then those of working memory."""
        found = list(self._told)
        for slot in _SLOTS:
            entries = getattr(state.working, slot)
            if type(entries) is not list:
                continue
            for entry, source in zip(entries, self._entries[slot], strict=False):
                belief = _belief(entry, source.step, source.timestamp)
                if belief is not None:
                    found.append(belief)
        return found

    def memory(self, state: ExecutionState) -> dict[str, Any]:
        """Facts, and the notes of working memory where there are any."""
        memory: dict[str, Any] = {"facts": self._written_facts(state) + list(self._facts.values())}
        messages = state.working.messages
        notes = list(self._notes)
        if type(messages) is list:
            notes += [text for entry in messages if (text := _note(entry))]
        if notes:
            memory["scratchpad"] = "\n".join(notes)
        return memory

    def _written_facts(self, state: ExecutionState) -> list[dict[str, Any]]:
        facts = []
        for target, source in sorted(self._writers.items()):
            if self._was_replaced(target, source):
                continue
            value = _value_at(state, target)
            if value is not MISSING and len(orjson.dumps(value)) <= FACT_BYTES:
                facts.append(
                    {
                        "key": target,
                        "value": value,
                        "timestamp": source.timestamp,
                        "provenance": source.step,
                    }
                )
        return facts

    def _was_replaced(self, target: str, source: _BeliefSource) -> bool:
        """Whether a later write put something else around this target."""
        if target.startswith("vars."):
            return False
        around = target
        while "." in (around := around.rpartition(".")[0]):
            other = self._writers.get(around)
            if other is not None and other.replaces and other.order > source.order:
                return True
        return False


def _value_at(state: ExecutionState, text: str) -> Any:
    target = parse_target(text)
    if target is None:
        return MISSING
    if target.namespace == "vars":
        return state.vars.get(target.path[0], MISSING)
    return walk_dicts(state.working.artifacts, target.path[1:])


def _belief(entry: Any, provenance: str, timestamp: str) -> dict[str, Any] | None:
    if type(entry) is not dict:
        return None
    statement, confidence = entry.get("statement"), entry.get("confidence")
    if type(statement) is not str or isinstance(confidence, bool):
        return None
    if not isinstance(confidence, int | float):
        return None
    return {
        "statement": statement,
        "confidence": min(max(confidence, 0), 1),
        "provenance": provenance,
        "timestamp": timestamp,
    }


def _speaker(entry: Any, event: Event) -> str:
    """Who says so: the entry itself where the log's writer put it there, else the step, else the agent."""
    given = entry.get("provenance") if type(entry) is dict else None
    return given if type(given) is str and given else event.step_id or event.agent_id or "system"


def _note(entry: Any) -> str | None:
    if type(entry) is not dict or entry.get("role") != "note":
        return None
    text = entry.get("content", entry.get("text"))
    return text if type(text) is str else None
