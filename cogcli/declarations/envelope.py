"""The envelope of every event, and its payload as the log has it (docs/reference/episode.md#events)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import row_of
from cogcli.declarations.value_types import Json

if TYPE_CHECKING:
    from cogcli.base.redact import Redactor

PHASES: Final = (
    "start", "observe", "intuition", "interpret", "plan", "direction", "governance", "action_candidate",
    "act", "reflect", "learn", "runtime", "terminate", "insight", "memory", "reason", "error",
)  # fmt: skip


class Draft(NamedTuple):
    """An event before the log gives it its place: sequence, id, timestamp and chain are the journal's."""

    event_type: str
    phase: str
    run_id: str
    payload: Json
    step_id: str | None = None
    agent_id: str | None = None
    caused_by: str | None = None
    evidence_ids: tuple[str, ...] = ()
    metrics: Json | None = None


def draft_of(
    payload: Payload,
    run_id: str,
    *,
    step_id: str | None = None,
    speaker: str = "",
    caused_by: str | None = None,
    metrics: Json | None = None,
    phase: str = "",
) -> Draft:
    """An event with this payload. Speaker and phase are those of its type unless they are given."""
    kind = payload.event
    return Draft(
        kind.name,
        phase or kind.phase,
        run_id,
        payload.json,
        step_id,
        speaker or kind.speaker or None,
        caused_by,
        (),
        metrics,
    )


class Event(NamedTuple):
    """One event of a log. Foreign logs may lack `seq`, `run_id`, `event_type` and `prev`."""

    seq: int | None
    id: str
    timestamp: str
    episode_id: str
    run_id: str | None
    trace_id: str | None
    phase: str
    event_type: str | None
    payload: Any
    step_id: str | None = None
    agent_id: str | None = None
    caused_by: str | None = None
    evidence_ids: tuple[str, ...] | list[str] = ()
    metrics: Json | None = None
    prev: str | None = None
    clock: str | None = None


def to_json(event: Event) -> Json:
    """The event as the object of its line, keys in the order of the format; absent optional keys are left out."""
    line: Json = {
        "seq": event.seq,
        "id": event.id,
        "timestamp": event.timestamp,
        "episode_id": event.episode_id,
        "run_id": event.run_id,
        "trace_id": event.trace_id,
        "phase": event.phase,
        "event_type": event.event_type,
    }
    if event.step_id is not None:
        line["step_id"] = event.step_id
    if event.agent_id is not None:
        line["agent_id"] = event.agent_id
    if event.caused_by is not None:
        line["caused_by"] = event.caused_by
    line["payload"] = event.payload
    line["evidence_ids"] = list(event.evidence_ids)
    if event.metrics is not None:
        line["metrics"] = event.metrics
    if event.clock is not None:
        line["clock"] = event.clock
    line["prev"] = event.prev
    return line


TYPES: Final[dict[str, type]] = {
    "seq": int, "id": str, "timestamp": str, "prev": str, "episode_id": str, "run_id": str, "trace_id": str,
    "phase": str, "event_type": str, "payload": dict, "evidence_ids": list,
    "step_id": str, "agent_id": str, "caused_by": str, "metrics": dict, "clock": str, "sum": str,
}  # fmt: skip
"""The type of each key of a line."""
OPTIONAL: Final = ("step_id", "agent_id", "caused_by", "metrics", "clock", "sum")
"""The keys that a line of ours may lack."""
ABSENT: Final[Json] = {
    **dict.fromkeys(("id", "timestamp", "episode_id", "phase"), ""), "evidence_ids": ()
}  # fmt: skip
"""What an event has instead of a key that is not there, where that is not None."""
_ABSENT: Final = tuple(map(ABSENT.get, Event._fields))
_EVIDENCE: Final = Event._fields.index("evidence_ids")


def from_json(line: Json) -> Event:
    """The event of a line's object, nothing checked: a member of a wrong type stays as it is."""
    members = list(map(line.get, Event._fields, _ABSENT))
    members[_EVIDENCE] = members[_EVIDENCE] or ()
    return Event._make(members)


_KEYED_BY_SPEC_IDS: Final = ("pins", "selection")


def mask_payload(payload: Json, redactor: Redactor) -> Json:
    """The payload without secrets; the same object where there are none.

    Members whose keys are ids of specs lose known secret values alone: a skill `vault.secret` is pinned by a digest.
    """
    masked: Json = redactor.mask(payload)
    if masked is payload:
        return payload
    for name in _KEYED_BY_SPEC_IDS:
        if name in payload:
            masked[name] = redactor.mask_known(payload[name])
    options = payload.get("options")
    if isinstance(options, dict) and "binds" in options:
        masked["options"] = {**masked["options"], "binds": redactor.mask_known(options["binds"])}
    return masked


class ActiveTime:
    """A fold over the events of a log in order, those of nested runs included."""

    def __init__(self) -> None:
        self._begun = ""
        self._last = ""
        self._before = 0

    def apply(self, event: Event) -> None:
        """Count one event."""
        row = row_of(event.event_type)
        if row.outside_time:
            return
        if row.reopens and self._begun:
            self._before += _between(self._begun, self._last) or 0
            self._begun = event.timestamp
        self._begun = self._begun or event.timestamp
        self._last = event.timestamp

    @property
    def milliseconds(self) -> int | None:
        """The sum so far in milliseconds; None where the log has no valid timestamps."""
        last = _between(self._begun, self._last)
        return None if last is None else self._before + last


def _between(start: str, end: str) -> int | None:
    try:
        span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    except (TypeError, ValueError):
        return None
    return round(span.total_seconds() * 1000)
