"""The events of a run as log lines: `TIME event_type key=value ...`."""

from __future__ import annotations

from typing import Final

from cogcli.base.terminal_text import visible
from cogcli.declarations.envelope import Event, row_of
from cogcli.declarations.event_type import EventType
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json

_ABORT = "ABORT"
"""The recorded `signal` after `resume --abort`. Lines do not show it."""
_OF_EVENT: Final = {"episode": "episode_id", "run": "run_id", "trace": "trace_id"}
"""Words for members of the event itself."""
_COMPUTED: Final = frozenset(("uses", "ms", "skill", "version", *_OF_EVENT))
"""The words that are not members of the payload."""


class _LineSkill(Record):
    """The skill in the payload of an event."""

    id: object = None
    version: object = None


class _LineError(Record):
    """The error in the payload of an event."""

    code: object = None
    message: object = None


class _LinePayload(Record):
    """The members that the line of any event may display, unchecked."""

    uses: str | None = None
    step_id: object = None
    latency_ms: object = None
    step_status: object = None
    status: object = None
    outcome: object = None
    tool: object = None
    message: object = None
    skill: _LineSkill
    error: object = None


class _LineMetrics(Record):
    """The measured duration of an event, unchecked."""

    duration_ms: object = None


class EventLines:
    """Renders events as `TIME event_type key=value ...`, one line each."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str | None, str | None], str] = {}

    def line(self, event: Event) -> str:
        """Return the line of one event, without a newline."""
        payload = read_record(_LinePayload, event.payload)
        row = row_of(event.event_type)
        uses = self._find_uses(event, payload, row)
        stamp = f"{event.timestamp[:23]}Z" if len(event.timestamp) > 24 else event.timestamp
        words = [f"{stamp} {event.event_type or event.phase}"]
        for name, value in _find_pairs(event, payload, row, uses).items():
            if value or value not in (None, "", []):
                words.append(f"{name}={_quote_value(value)}")
        return visible(" ".join(words).rstrip())

    def _find_uses(self, event: Event, payload: _LinePayload, row: EventType) -> str | None:
        """Return the target that an event's step calls. The target is forgotten when the step closes, because a run may
        have a million steps.
        """
        place = (event.run_id, event.step_id)
        uses = payload.uses
        if uses is None:
            uses = self._uses.get(place)
        if row.closes:
            self._uses.pop(place, None)
        elif uses is not None:
            self._uses[place] = uses
        return uses


def _find_pairs(event: Event, payload: _LinePayload, row: EventType, uses: str | None) -> Json:
    """Return the names and values that an event's line displays, in order. Empty values are omitted."""
    pairs: Json = {"step": event.step_id or payload.step_id}
    ms = payload.latency_ms
    if ms is None:
        ms = read_record(_LineMetrics, event.metrics).duration_ms
    if event.event_type:
        for word in row.words:
            pairs[word] = _find_value(word, event, payload, uses, ms)
    else:
        status = payload.step_status or payload.status or payload.outcome
        pairs |= {
            "status": status or None,
            "tool": payload.tool,
            "ms": ms,
            "message": payload.message,
        }
    return pairs | _error_pairs(payload.error)


def _error_pairs(error: object) -> Json:
    """Return the pairs of an error: its code and message, or a text alone."""
    if type(error) is dict:
        named = read_record(_LineError, error)
        code = {"error": named.code}
        return code if named.message is None else {**code, "message": named.message}
    return {} if error is None else {"message": error}


def _find_value(
    word: str, event: Event, payload: _LinePayload, uses: str | None, ms: object
) -> object:
    """Return the value of a word of a declared event type."""
    if word not in _COMPUTED:
        value = payload.json.get(word)
        return None if value == _ABORT else value
    if word == "uses":
        return uses
    if word == "ms":
        return ms
    if word in _OF_EVENT:
        return getattr(event, _OF_EVENT[word])
    return payload.skill.id if word == "skill" else payload.skill.version


def _quote_value(value: object) -> str:
    text = str(value)
    return f'"{text}"' if not text or " " in text or '"' in text else text
