"""A log for views that must fit memory: of a long run the rounds that are done are left out, and counted.

1. Nothing is left out of a log of at most `MOST` events.
2. After that, of each loop the first `FIRST` items or rounds are kept, and each that is not simply done: one that
   failed, waits, or in which a gate, a rule or a person decided, also within a nested loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event, row_of

MOST: Final = 20_000
FIRST: Final = 20


class ReducedLog(NamedTuple):
    """The events that views show."""

    events: list[Event]
    events_left_out: int
    parts_left_out: int
    """The items and rounds that are left out. Those inside one that is left out count, too."""

    @property
    def note(self) -> str:
        """A sentence about the omitted events; empty if the log is complete."""
        if not self.events_left_out:
            return ""
        whole = len(self.events) + self.events_left_out
        return (
            f"of {whole:,} events {self.events_left_out:,} are left out:"
            f" {self.parts_left_out:,} items and rounds that are done"
        )


class _OpenPart:
    __slots__ = ("done", "events", "unusual")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.unusual = False
        self.done: dict[str, int] = {}
        """By loop inside it: the number of items or rounds that are done and kept."""


class _Thinning:
    def __init__(self) -> None:
        self.whole = _OpenPart()
        self._open: dict[str, _OpenPart] = {}
        self.kept = 0
        self.events_left_out = 0
        self.parts_left_out = 0

    def apply(self, event: Event) -> None:
        name = StepPath(event.step_id or "").innermost_item
        part = self._open_part(name)
        part.events.append(event)
        self.kept += 1
        part.unusual = part.unusual or not row_of(event.event_type).usual
        if name and event.step_id == name and event.event_type == "step.completed":
            self._close_part(name, self._open.pop(name))

    def _close_part(self, name: str, part: _OpenPart) -> None:
        loop = StepPath(name).parent
        owner = self._open_part(StepPath(loop).innermost_item)
        done = owner.done.get(loop, 0)
        if self.kept > MOST and done >= FIRST and not part.unusual:
            self.kept -= len(part.events)
            self.events_left_out += len(part.events)
            self.parts_left_out += 1 + sum(part.done.values())
            return
        owner.done[loop] = done + 1
        owner.events += part.events
        owner.unusual = owner.unusual or (part.unusual and owner is not self.whole)

    def _open_part(self, name: str) -> _OpenPart:
        if not name:
            return self.whole
        part = self._open.get(name)
        if part is None:
            part = self._open[name] = _OpenPart()
        return part

    def result(self) -> ReducedLog:
        events = list(self.whole.events)
        for part in self._open.values():
            events += part.events
        if self.events_left_out or self._open:
            events.sort(key=lambda event: event.seq or 0)
        return ReducedLog(events, self.events_left_out, self.parts_left_out)


def thin_log(events: Iterable[Event]) -> ReducedLog:
    """Return the events of a log that fit memory. A log of another tool is not thinned."""
    thinning = _Thinning()
    iterator = iter(events)
    for event in iterator:
        if event.seq is None:
            return ReducedLog([*thinning.result().events, event, *iterator], 0, 0)
        thinning.apply(event)
    return thinning.result()


def left_out_warning(log: ReducedLog) -> UnusableEnvironment:
    """Return the warning about the events that a view omits."""
    return UnusableEnvironment(
        "trace.left-out", log.note, hint="`trace --view events` lists all of them"
    )
