"""How long a run was under way, whoever drove it: the sum of its sittings (docs/reference/episode.md#summary).

1. A sitting begins with the run, or where it was taken up again, and lasts to its last event.
2. What lies between two sittings counts for nothing: waiting for a person, a process that was gone.
"""

from __future__ import annotations

from datetime import datetime

from cogcli.events.envelope import Event
from cogcli.events.types import row_of


class Sittings:
    """The sittings of a run, told by its events in order."""

    def __init__(self) -> None:
        self._begun = ""
        self._last = ""
        self._before = 0

    def take(self, event: Event) -> None:
        """Take one event of the log, a nested run's, too."""
        if row_of(event.event_type).outside_time:
            return
        if event.event_type == "run.resumed" and self._begun:
            self._before += _between(self._begun, self._last) or 0
            self._begun = event.timestamp
        self._begun = self._begun or event.timestamp
        self._last = event.timestamp

    @property
    def milliseconds(self) -> int | None:
        """The sum so far; None where the log tells no time."""
        last = _between(self._begun, self._last)
        return None if last is None else self._before + last


def _between(start: str, end: str) -> int | None:
    try:
        span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    except (TypeError, ValueError):
        return None
    return round(span.total_seconds() * 1000)
