"""The active time of a run, over all processes that drove it (docs/reference/episode.md#summary).

1. A process counts from the start of the run, or its `run.resumed`, to its last event before the next `run.resumed`.
2. Time between two processes does not count: waiting for a person, a process that was gone.
"""

from __future__ import annotations

from datetime import datetime

from cogcli.events.envelope import Event
from cogcli.events.types import row_of


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
