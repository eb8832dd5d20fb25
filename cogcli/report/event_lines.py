"""The events of a run as log lines: `TIME event_type key=value ...`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cogcli.base.jsonvalue import object_of
from cogcli.base.terminal_text import visible
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import row_of

_ABORT = "ABORT"
"""The recorded `signal` after `resume --abort`. Lines do not show it."""


class EventLines:
    """Renders events as `TIME event_type key=value ...`, one line each."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str | None, str | None], str] = {}

    def line(self, event: Event) -> str:
        """Return the line of one event, without a newline."""
        payload = object_of(event.payload)
        place = (event.run_id, event.step_id)
        if isinstance(uses := payload.get("uses"), str):
            self._uses[place] = uses
        pairs = dict(_event_pairs(event, payload, self._uses.get(place)))
        text = " ".join(
            f"{name}={_quote(value)}"
            for name, value in pairs.items()
            if value not in (None, "", [])
        )
        stamp = f"{event.timestamp[:23]}Z" if len(event.timestamp) > 24 else event.timestamp
        return visible(f"{stamp} {event.event_type or event.phase} {text}".rstrip())


def _event_pairs(
    event: Event, payload: dict[str, Any], uses: str | None
) -> Iterator[tuple[str, Any]]:
    yield "step", event.step_id or payload.get("step_id")
    error = payload.get("error")
    error = error if isinstance(error, dict) else {"message": error}
    ms = payload.get("latency_ms")
    if ms is None:
        ms = (event.metrics or {}).get("duration_ms")
    if event.event_type:
        skill = object_of(payload.get("skill"))
        named = {"uses": uses, "ms": ms, "skill": skill.get("id"), "version": skill.get("version"),
                 "episode": event.episode_id, "run": event.run_id, "trace": event.trace_id}  # fmt: skip
        for word in row_of(event.event_type).words:
            value = named[word] if word in named else payload.get(word)
            if value != _ABORT:
                yield word, value
    else:  # an event of another tool
        status = next(
            (s for n in ("step_status", "status", "outcome") if (s := payload.get(n))), None
        )
        yield from (("status", status), ("tool", payload.get("tool")), ("ms", ms))
        yield "message", payload.get("message")
    yield "error", error.get("code")
    if error.get("message") is not None:
        yield "message", error["message"]


def _quote(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    return f'"{text}"' if not text or " " in text or '"' in text else text
