"""Logs in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from cogcli.base.system import FakeClock, FakeIds
from cogcli.declarations.envelope import Draft, Event

EPISODE = "ep_00000000000000000000000000"
TRACE = "7f3a91c2"


@dataclass
class MemorySink:
    """Keeps every event as it would be read back: its payload is what JSON kept of it when it was appended."""

    clock: FakeClock = field(default_factory=lambda: FakeClock(1_700_000_000))
    ids: FakeIds = field(default_factory=lambda: FakeIds(1_000_000))
    events: list[Event] = field(default_factory=list)
    durable: list[str] = field(default_factory=list)
    """`type step` of what was asked to survive the machine."""
    fail_after: int | None = None

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        if self.fail_after is not None and len(self.events) >= self.fail_after:
            raise OSError("disk full")
        event = event_of(draft, len(self.events), self.ids.ulid(), self.clock.now())
        self.events.append(event._replace(payload=orjson.loads(orjson.dumps(draft.payload))))
        if durable:
            self.durable.append(f"{draft.event_type} {draft.step_id}")
        return event

    def history(self) -> list[Event]:
        return self.events

    def of(self, step_id: str | None) -> list[Event]:
        """The events of one step."""
        return [event for event in self.events if event.step_id == step_id]

    def types(self, step_id: str | None = None) -> list[str]:
        """Event types in order, of all events or of one step."""
        return [str(e.event_type) for e in (self.events if step_id is None else self.of(step_id))]


class DroppingSink:
    """Keeps nothing: for measuring."""

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        return event_of(draft, 0, "00000000000000000000000000", "2026-01-01T00:00:00.000000Z")

    def history(self) -> list[Event]:
        return []


def event_of(draft: Draft, seq: int, ulid: str, timestamp: str) -> Event:
    """A draft with its place in a log."""
    return Event(
        seq=seq,
        id=f"ev_{ulid}",
        timestamp=timestamp,
        episode_id=EPISODE,
        run_id=draft.run_id,
        trace_id=TRACE,
        phase=draft.phase,
        event_type=draft.event_type,
        payload=draft.payload,
        step_id=draft.step_id,
        agent_id=draft.agent_id,
        caused_by=draft.caused_by,
        evidence_ids=draft.evidence_ids,
        metrics=draft.metrics,
    )


def payload_of(events: list[Event], event_type: str, step_id: str | None = None) -> dict[str, Any]:
    """The payload of the one event of this type (and step)."""
    found = [e for e in events if e.event_type == event_type and step_id in (None, e.step_id)]
    assert len(found) == 1, f"{len(found)} {event_type} events of {step_id}"
    payload: dict[str, Any] = found[0].payload
    return payload
