"""An event of another tool, translated to the words of the shared format.

1. `outcome` of an act is its `result_status`, `outcome` of the end its `status`.
2. `message` of what went wrong is its `error`, and so is an `error` that is a text.
3. A duration follows from `metrics` that hold beginning and end, or from one in the payload.

Words of the shared format take precedence; an event of ours is unchanged.
"""

from __future__ import annotations

from typing import Final

from cogcli.declarations.envelope import Event
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json, Number
from cogcli.episode.document_bytes import measured_ms, milliseconds_between

_WRONG: Final = ("failed", "vetoed", "error")


class _ForeignMembers(Record):
    """The members of a payload that other tools name differently."""

    outcome: str | None = None
    status: str | None = None
    result_status: str | None = None
    step_status: str | None = None
    error: object = None
    message: str | None = None
    latency_ms: Number | None = None
    duration_ms: Number | None = None


class _ForeignTimes(Record):
    """The metrics of an event of another tool."""

    started_at: str | None = None
    completed_at: str | None = None


def is_foreign(event: Event) -> bool:
    """Return whether an event was written by another tool, that is, it is not part of a chain."""
    return event.seq is None and event.prev is None


def translate_event(event: Event) -> Event:
    """Return the event with the shared format's words in payload and metrics, or the same event if it has them
    already.
    """
    if (
        not is_foreign(event)
        or type(event.payload) is not dict
        or event.phase not in ("act", "terminate")
    ):
        return event
    words = read_record(_ForeignMembers, event.payload)
    more = _outcome_member(event.phase, words)
    error = _error_object(event.phase, words, words.outcome if more else None)
    if error is not None:
        more["error"] = error
    metrics = event.metrics
    if (duration := _duration_ms(event, words)) is not None:
        metrics = {**(metrics or {}), "duration_ms": duration}
    if not more and metrics == event.metrics:
        return event
    return event._replace(payload={**event.payload, **more}, metrics=metrics)


def _outcome_member(phase: str, words: _ForeignMembers) -> Json:
    """Return the outcome under the shared format's name. Empty if the payload already has that name."""
    name, known = ("result_status", words.result_status)
    if phase == "terminate":
        name, known = ("status", words.status)
    return {} if known is not None or words.outcome is None else {name: words.outcome}


def _error_object(phase: str, words: _ForeignMembers, outcome: str | None) -> Json | None:
    """Return the error as an object; None without an error, or if it is already an object."""
    if isinstance(words.error, str):
        return {"message": words.error}
    if words.error is not None or words.message is None:
        return None
    if phase == "terminate":
        is_wrong = (outcome or words.status) != "ok"
    else:
        is_wrong = words.step_status in _WRONG or (outcome or words.result_status) in _WRONG
    return {"message": words.message} if is_wrong else None


def _duration_ms(event: Event, words: _ForeignMembers) -> int | float | None:
    """Return the duration in milliseconds, from the payload or from start and end. None if `metrics` already have
    it.
    """
    if measured_ms(event) is not None:
        return None
    times = read_record(_ForeignTimes, event.metrics)
    measured = words.duration_ms if words.latency_ms is None else words.latency_ms
    if measured is None and times.started_at is not None and times.completed_at is not None:
        return milliseconds_between(times.started_at, times.completed_at)
    return measured
