"""How long each lifecycle phase of a turn takes (docs/reference/pack.md#latency).

It is measured between recorded events, so that resume and replay get the same times, and without the time in which no
process drove the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from math import ceil

from cogcli.declarations.envelope import Event, row_of
from cogcli.declarations.pack_spec import PHASES


class PhaseTimes:
    """Milliseconds spent in each phase of the current turn, without idle time. `earlier` contains the events of the log
    before this turn.
    """

    def __init__(self, earlier: Iterable[Event] = ()) -> None:
        self.milliseconds: dict[str, int] = {}
        self._since = ""
        self._idle: list[tuple[str, str]] = []
        last = ""
        for event in earlier:
            row = row_of(event.event_type)
            if row.outside_time:
                continue
            if row.reopens and last:
                self._idle.append((last, event.timestamp))
            last = event.timestamp

    def begin(self, now: str) -> None:
        """Begin a turn."""
        self.milliseconds, self._since = {}, now

    def end_phase(self, phase: str, now: str) -> None:
        """End a phase. The next one begins."""
        self.milliseconds[phase] = self.measure(self._since, now)
        self._since = now

    def measure(self, start: str, end: str) -> int:
        """Return the active time between two timestamps in milliseconds, rounded up."""
        idle = ((max(start, begin), min(end, stop)) for begin, stop in self._idle)
        waited = sum(_milliseconds_between(begin, stop) for begin, stop in idle if begin < stop)
        return max(0, ceil(_milliseconds_between(start, end) - waited))

    def find_late_phase(self, limits: Mapping[str, float], among: Iterable[str] = PHASES) -> str:
        """Return the first phase that exceeded its limit; empty if all are within their limits."""
        for phase in among:
            limit = limits.get(f"stage_latency_ms.{phase}")
            if limit is not None and self.milliseconds.get(phase, 0) > limit:
                return phase
        return ""


def _milliseconds_between(start: str, end: str) -> float:
    span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return span.total_seconds() * 1000
