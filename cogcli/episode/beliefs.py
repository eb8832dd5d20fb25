"""The beliefs and the memory of `state.json` (docs/reference/episode.md#projection).

1. A confidence is clamped to 0..1.
2. A later write that replaces the parent of a target removes the fact about that target.
3. The scratchpad joins the notes of memory events and the `working.messages` with role `note`.
4. The provenance of a value that a step wrote is that step, whatever the value itself declares.
"""

from __future__ import annotations

from typing import Final

import orjson

from cogcli.base.jsonvalue import list_of
from cogcli.base.merge import replaces_present
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.refs import MISSING, parse_target
from cogcli.declarations.envelope import Event
from cogcli.declarations.reading import read_record
from cogcli.declarations.shared_events import (
    SharedMemory,
    StatedBelief,
    StatedFact,
    WorkingMessage,
)
from cogcli.declarations.value_types import Json
from cogcli.state.execution import ExecutionState
from cogcli.state.namespaces import walk_dicts

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
    """The beliefs and the memory after the events read so far."""

    def __init__(self) -> None:
        self._stated: list[Json] = []
        self._facts: dict[str, Json] = {}
        self._notes: list[str] = []
        self._writers: dict[str, _BeliefSource] = {}
        self._entries: dict[str, list[_BeliefSource]] = {slot: [] for slot in _SLOTS}
        self._order = 0

    def apply(self, event: Event) -> None:
        """Add the beliefs, facts and notes of an event of the root run."""
        if event.phase not in _BELIEVING:
            return
        stated = read_record(SharedMemory, event.payload)
        for entry in stated.beliefs:
            belief = _build_belief(entry, _provenance_of(entry, event), event.timestamp)
            if belief is not None:
                self._stated.append(belief)
        if event.phase == "memory":
            self._add_memory(event, stated)

    def _add_memory(self, event: Event, stated: SharedMemory) -> None:
        """Add the notes and facts of a memory event. The event itself may also be a fact."""
        if stated.scratchpad is not None:
            self._notes.append(stated.scratchpad)
        facts = stated.facts
        for fact in [read_record(StatedFact, event.payload)] if facts is None else facts:
            if fact.key is not None and "value" in fact.json:
                speaker = _provenance_of(fact, event)
                self._facts[fact.key] = _build_fact(fact.key, fact.value, event.timestamp, speaker)

    def record_writes(self, event: Event, writes: list[Json]) -> None:
        """Record which step made each write of a closing event. The writes must be applied already."""
        step = event.step_id or event.payload["step_id"]
        for write in writes:
            target, strategy = write["target"], write["strategy"]
            if target.startswith(("vars.", "working.artifacts")):
                self._order += 1
                self._writers[target] = _BeliefSource(
                    step, event.timestamp, self._order, replaces_present(strategy)
                )
            elif target in _SLOT_OF and type(write["value"]) is list:
                source = _BeliefSource(step, event.timestamp, self._order, False)
                added = [source] * len(write["value"])
                slot = _SLOT_OF[target]
                self._entries[slot] = (
                    [*self._entries[slot], *added] if strategy == "append" else added
                )

    def beliefs(self, state: ExecutionState) -> list[Json]:
        """Return the beliefs from events in order, then the beliefs from working memory."""
        found = list(self._stated)
        for slot in _SLOTS:
            entries = list_of(getattr(state.working, slot))
            for entry, source in zip(entries, self._entries[slot], strict=False):
                belief = _build_belief(
                    read_record(StatedBelief, entry), source.step, source.timestamp
                )
                if belief is not None:
                    found.append(belief)
        return found

    def memory(self, state: ExecutionState) -> Json:
        """Return facts, and the notes of working memory if there are any."""
        facts = []
        for target, source in sorted(self._writers.items()):
            if self._was_replaced(target, source):
                continue
            value = _value_at(state, target)
            if value is not MISSING and len(orjson.dumps(value)) <= FACT_BYTES:
                facts.append(_build_fact(target, value, source.timestamp, source.step))
        memory: Json = {"facts": [*facts, *self._facts.values()]}
        messages = [read_record(WorkingMessage, each) for each in list_of(state.working.messages)]
        notes = [*self._notes, *filter(None, map(_note_text, messages))]
        if notes:
            memory["scratchpad"] = "\n".join(notes)
        return memory

    def _was_replaced(self, target: str, source: _BeliefSource) -> bool:
        """Return whether a later write replaced a parent of this target."""
        if target.startswith("vars."):
            return False
        parent = target
        while "." in (parent := parent.rpartition(".")[0]):
            other = self._writers.get(parent)
            if other is not None and other.replaces and other.order > source.order:
                return True
        return False


def _value_at(state: ExecutionState, text: str) -> object:
    target = parse_target(text)
    if target is None:
        return MISSING
    if target.namespace == "vars":
        return state.vars.get(target.path[0], MISSING)
    return walk_dicts(state.working.artifacts, target.path[1:])


def _build_fact(key: str, value: object, timestamp: str, provenance: str) -> Json:
    return {"key": key, "value": value, "timestamp": timestamp, "provenance": provenance}


def _build_belief(entry: StatedBelief, provenance: str, timestamp: str) -> Json | None:
    """Return a belief of the document; None if the entry has no statement or no confidence."""
    if entry.statement is None or entry.confidence is None:
        return None
    return {
        "statement": entry.statement,
        "confidence": min(max(entry.confidence, 0), 1),
        "provenance": provenance,
        "timestamp": timestamp,
    }


def _provenance_of(entry: StatedBelief | StatedFact, event: Event) -> str:
    """Return the recorded provenance of an entry. Without one, return the step, or else the agent."""
    return entry.provenance or event.step_id or event.agent_id or "system"


def _note_text(message: WorkingMessage) -> str:
    """Return the text of a note; empty for a message with another role."""
    if message.role != "note":
        return ""
    return message.text if message.content is None else message.content
