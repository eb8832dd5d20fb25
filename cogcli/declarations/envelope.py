"""The envelope of every event, and its payload in the form of the log
(docs/reference/episode.md#events).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.event_type import EventType, Payload
from cogcli.declarations.events import TYPES_OF_SKILL_RUNS, UNKNOWN
from cogcli.declarations.value_types import Json

if TYPE_CHECKING:
    from cogcli.base.redact import Redactor

PHASES: Final = (
    "start", "observe", "intuition", "interpret", "plan", "direction", "governance", "action_candidate",
    "act", "reflect", "learn", "runtime", "terminate", "insight", "memory", "reason", "error",
)  # fmt: skip


class Draft(NamedTuple):
    """An event before the journal adds sequence, id, timestamp and chain."""

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
    """Return the draft of an event with this payload. Speaker and phase default to those of the event type."""
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
    """One event of a log. Logs of other tools may lack `seq`, `run_id`, `event_type` and `prev`."""

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
    """Return the event as the object of its line, keys in the order of the format.

    Absent optional keys are omitted.
    """
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
DEFAULTS: Final[Json] = {
    **dict.fromkeys(("id", "timestamp", "episode_id", "phase"), ""), "evidence_ids": ()
}  # fmt: skip
"""The value for each key that an event may lack, unless that value is None."""
_FIELDS: Final = Event._fields
_DEFAULTS: Final = tuple(map(DEFAULTS.get, _FIELDS))
_new_event: Final = tuple.__new__
"""The constructor below that of a named tuple, which counts the members each time."""
_EVIDENCE: Final = Event._fields.index("evidence_ids")


def from_json(line: Json) -> Event:
    """Return the event of a line's object, without checking it. A member of a wrong type stays unchanged."""
    members = list(map(line.get, _FIELDS, _DEFAULTS))
    members[_EVIDENCE] = members[_EVIDENCE] or ()
    return _new_event(Event, members)


_KEYED_BY_SPEC_IDS: Final = ("pins", "selection")


def mask_payload(payload: Json, redactor: Redactor) -> Json:
    """Return the payload without secrets; the same object if it has none.

    In members whose keys are ids of specs, only known secret values are masked, because a skill
    `vault.secret` is pinned by a digest.
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


def row_of(event_type: object) -> EventType:
    """Return the properties of an event type; `UNKNOWN` if it is not in the table or is not text.

    The type of another tool's event may be any JSON value.
    """
    if type(event_type) is not str:
        return UNKNOWN
    row = TYPES_OF_SKILL_RUNS.get(event_type)
    return _find_in_table(event_type) if row is None else row


def _find_in_table(event_type: str) -> EventType:
    from cogcli.declarations.event_table import EVENT_TYPES  # the run of a skill writes no other

    return EVENT_TYPES.get(event_type, UNKNOWN)


class ActiveTime:
    """Computes the active time from the events of a log in order, including those of nested runs."""

    def __init__(self) -> None:
        self._begun = ""
        self._last = ""
        self._before = 0

    def apply(self, event: Event) -> None:
        """Add one event."""
        row = row_of(event.event_type)
        if row.outside_time:
            return
        if row.reopens and self._begun:
            self._before += _milliseconds_between(self._begun, self._last) or 0
            self._begun = event.timestamp
        self._begun = self._begun or event.timestamp
        self._last = event.timestamp

    def advance(self, timestamp: str) -> None:
        """Add the time of an event that is otherwise skipped."""
        self._last = timestamp

    @property
    def milliseconds(self) -> int | None:
        """Return the sum in milliseconds; None if the log has no valid timestamps."""
        last = _milliseconds_between(self._begun, self._last)
        return None if last is None else self._before + last


def _milliseconds_between(start: str, end: str) -> int | None:
    """Return the milliseconds between two timestamps; None if one is not valid."""
    try:
        span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    except (TypeError, ValueError):
        return None
    return round(span.total_seconds() * 1000)
