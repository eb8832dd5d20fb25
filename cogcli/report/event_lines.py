"""The events of a run as log lines: `TIME event_type key=value ...`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cogcli.base.terminal_text import visible
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import row_of
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record

_ABORT = "ABORT"
"""The recorded `signal` after `resume --abort`. Lines do not show it."""


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
        pairs = dict(_event_pairs(event, payload, self._uses.get(place)))
        text = " ".join(
            f"{name}={_quote(value)}"
            for name, value in pairs.items()
            if value not in (None, "", [])
        )
        stamp = f"{event.timestamp[:23]}Z" if len(event.timestamp) > 24 else event.timestamp
        return visible(f"{stamp} {event.event_type or event.phase} {text}".rstrip())


def _event_pairs(
    event: Event, payload: _ShownPayload, uses: str | None
) -> Iterator[tuple[str, object]]:
    yield "step", event.step_id or payload.step_id
    ms = payload.latency_ms
    if ms is None:
        ms = (event.metrics or {}).get("duration_ms")
    if event.event_type:
        yield from _declared_pairs(event, payload, uses, ms)
    else:
        yield from _foreign_pairs(payload, ms)
    error = payload.error
    yield "error", error.code if isinstance(error, _ShownError) else None
    message = error.message if isinstance(error, _ShownError) else error
    if message is not None:
        yield "message", message


def _declared_pairs(
    event: Event, payload: _ShownPayload, uses: str | None, ms: object
) -> Iterator[tuple[str, object]]:
    """Yield the pairs of a declared event type."""
    skill = payload.skill
    named = {"uses": uses, "ms": ms, "skill": skill.id, "version": skill.version,
             "episode": event.episode_id, "run": event.run_id, "trace": event.trace_id}  # fmt: skip
    for word in row_of(event.event_type).words:
        value = named[word] if word in named else payload.json.get(word)
        if value != _ABORT:
            yield word, value


def _foreign_pairs(payload: _ShownPayload, ms: object) -> Iterator[tuple[str, object]]:
    """Yield the pairs of an event of another tool."""
    yield "status", payload.step_status or payload.status or payload.outcome or None
    yield "tool", payload.tool
    yield "ms", ms
    yield "message", payload.message


def _quote(value: object) -> str:
    text = str(value)
    return f'"{text}"' if not text or " " in text or '"' in text else text
