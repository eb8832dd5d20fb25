"""An event of another tool in the words of the shared format, where that tool has others for the same.

1. `outcome` of an act is its `result_status`, `outcome` of the end its `status`.
2. `message` of what went wrong is its `error`, and so is an `error` that is a text.
3. A duration follows from `metrics` that hold beginning and end, or from one in the payload.

Where the shared format's own words are there, they count; an event of ours is left as it is.
"""

from __future__ import annotations

from typing import Any, Final

from cogcli.declarations.envelope import Event
from cogcli.episode.document_bytes import milliseconds_between

_WRONG: Final = ("failed", "vetoed", "error")


def is_foreign(event: Event) -> bool:
    """Whether an event is another tool's: it has no place in a chain."""
    return event.seq is None and event.prev is None


def translate_event(event: Event) -> Event:
    """The event with the shared format's words in payload and metrics; the same event where it has them already."""
    if (
        not is_foreign(event)
        or type(event.payload) is not dict
        or event.phase not in ("act", "terminate")
    ):
        return event
    payload = event.payload
    word = "result_status" if event.phase == "act" else "status"
    more: dict[str, Any] = {}
    if type(payload.get(word)) is not str and type(payload.get("outcome")) is str:
        more[word] = payload["outcome"]
    error = _error(event.phase, {**payload, **more})
    if error is not None:
        more["error"] = error
    metrics = event.metrics
    if (duration := _duration(metrics or {}, payload)) is not None:
        metrics = {**(metrics or {}), "duration_ms": duration}
    if not more and metrics == event.metrics:
        return event
    return event._replace(payload={**payload, **more}, metrics=metrics)


def _error(phase: str, payload: dict[str, Any]) -> dict[str, Any] | None:
    """The error as an object; None where there is none, or it is one already."""
    error, message = payload.get("error"), payload.get("message")
    if type(error) is str:
        return {"message": error}
    if error is not None or type(message) is not str:
        return None
    if phase == "terminate":
        return None if payload.get("status") == "ok" else {"message": message}
    wrong = payload.get("step_status") in _WRONG or payload.get("result_status") in _WRONG
    return {"message": message} if wrong else None


def _duration(metrics: dict[str, Any], payload: dict[str, Any]) -> int | float | None:
    """The duration in milliseconds from the payload or from beginning and end; None where `metrics` hold it already."""
    if _is_number(metrics.get("duration_ms")):
        return None
    measured = next(
        filter(_is_number, (payload.get("latency_ms"), payload.get("duration_ms"))), None
    )
    begun, ended = metrics.get("started_at"), metrics.get("completed_at")
    if measured is None and type(begun) is str and type(ended) is str:
        return milliseconds_between(begun, ended)
    return measured


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)
