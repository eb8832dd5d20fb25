"""The events of a run as log lines: `TIME event_type key=value ...`."""

from __future__ import annotations

from typing import Any, Final

from cogcli.base.terminal_text import visible
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import row_of
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record

_ABORT = "ABORT"
"""The recorded `signal` after `resume --abort`. Lines do not show it."""
_OF_EVENT: Final = {"episode": "episode_id", "run": "run_id", "trace": "trace_id"}
"""Words for members of the event itself."""


class _ShownError(Record):
    """The error of an event."""

    code: Any = None
    message: Any = None


class _ShownSkill(Record):
    """The skill of a run."""

    id: Any = None
    version: Any = None


class _ShownPayload(Record):
    """The members of a payload that a line displays, of any type."""

    uses: str | None = None
    step_id: Any = None
    step_status: Any = None
    status: Any = None
    outcome: Any = None
    tool: Any = None
    message: Any = None
    latency_ms: Any = None
    error: _ShownError | Any = None
    skill: _ShownSkill


class EventLines:
    """Renders events as `TIME event_type key=value ...`, one line each."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str | None, str | None], str] = {}

    def line(self, event: Event) -> str:
        """Return the line of one event, without a newline."""
        payload = read_record(_ShownPayload, event.payload)
        place = (event.run_id, event.step_id)
        if payload.uses is not None:
            self._uses[place] = payload.uses
        stamp = f"{event.timestamp[:23]}Z" if len(event.timestamp) > 24 else event.timestamp
        words = [f"{stamp} {event.event_type or event.phase}"]
        for name, value in _find_pairs(event, payload, self._uses.get(place)).items():
            if value not in (None, "", []):
                words.append(f"{name}={_quote(value)}")
        return visible(" ".join(words).rstrip())


def _find_pairs(event: Event, payload: _ShownPayload, uses: str | None) -> dict[str, object]:
    """Return what the line of an event displays, in order. The line leaves out empty values."""
    pairs: dict[str, object] = {"step": event.step_id or payload.step_id}
    ms = payload.latency_ms
    if ms is None:
        ms = (event.metrics or {}).get("duration_ms")
    if event.event_type:
        for word in row_of(event.event_type).words:
            pairs[word] = _find_value(word, event, payload, uses, ms)
    else:
        status = payload.step_status or payload.status or payload.outcome or None
        pairs |= {"status": status, "tool": payload.tool, "ms": ms, "message": payload.message}
    error = payload.error
    if isinstance(error, _ShownError):
        pairs["error"] = error.code
        error = error.message
    if error is not None:
        pairs["message"] = error
    return pairs


def _find_value(
    word: str, event: Event, payload: _ShownPayload, uses: str | None, ms: object
) -> object:
    """Return the value of a word of a declared event type."""
    if word == "uses":
        return uses
    if word == "ms":
        return ms
    if word in _OF_EVENT:
        return getattr(event, _OF_EVENT[word])
    if word == "skill":
        return payload.skill.id
    if word == "version":
        return payload.skill.version
    value = payload.json.get(word)
    return None if value == _ABORT else value


def _quote(value: object) -> str:
    text = str(value)
    return f'"{text}"' if not text or " " in text or '"' in text else text
