"""Whose turn it is: what a log tells of is told again in its order, though everything of it is there at once.

1. A call begins, and an answer comes, after all that was answered or closed before it in the log. What the log does
   not tell of comes after all of it.
2. Among the steps that write to one target, those that wrote then write in the order of then.
3. Should the run take another way, the order is lost: nobody waits for long.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from cogcli.episode.log_index import is_of_probe

if TYPE_CHECKING:
    from cogcli.core.calls import Attempt
    from cogcli.episode.log_index import LogIndex
    from cogcli.events.envelope import Event

_PATIENCE_SECONDS: Final = 5.0


class Turns:
    """The order of a log, for a run that is told again from it. An Order."""

    def __init__(self, recording: LogIndex) -> None:
        self._recording = recording
        closings = [event for event in recording.closings.values() if not is_of_probe(event)]
        cut_off = {event.seq or 0 for event in closings if event.payload.get("reason") == "cancelled"}
        closed = {event.seq or 0 for event in closings}
        self._places = sorted({*recording.answered_at.values(), *closed} - cut_off)
        """Where the log tells of an answer or an end. What was cut off gave none, and may be told at any time."""
        self._told: set[int] = set()
        self._passed = 0
        """How many of the places are told again, from the first one on."""
        self._lost = False
        self._changed = threading.Condition()

    def told(self, event: Event) -> None:
        """An event of the log was told again."""
        key = (event.run_id, event.step_id)
        with self._changed:
            self._told.add(event.seq or 0)
            if self._recording.closings.get(key) is event:
                self._told.add(self._recording.answered_at[key])  # a step need not wait this time
            while self._passed < len(self._places) and self._places[self._passed] in self._told:
                self._passed += 1
            self._changed.notify_all()

    def wait(self, attempt: Attempt) -> None:
        """Until it is the turn of this call's answer."""
        at = self._recording.answer_at(attempt.run_id, attempt.step_id, attempt.number)
        if at is not None:
            self._wait(self._count(at))

    def wait_before(self, event: Event) -> None:
        """Until all is told that came before this event."""
        self._wait(self._count(event.seq or 0))

    def wait_for_all(self) -> None:
        """Until everything that the log tells of is told: what is answered now comes after that."""
        self._wait(len(self._places))

    def wrote_at(self, run_id: str, path: str) -> int | None:
        """The position of what a step wrote; None where the log does not tell that it did."""
        return self._recording.wrote_at(run_id, path)

    def before(self, run_id: str, path: str) -> Callable[[], None] | None:
        """What waits until a call of this step may begin; None where it may now."""
        recording, key = self._recording, (run_id, path)
        told = recording.intents.get(key) or recording.closings.get(key) or recording.ended.over(run_id, path)
        count = len(self._places) if told is None else self._count(told.seq or 0)
        return None if self._passed >= count or self._lost else lambda: self._wait(count)

    def repeated(self, run_id: str, path: str, number: int) -> bool:
        """Whether the log tells of this attempt, after the first."""
        return any(
            event.payload["attempt"] == number for event in self._recording.repeats.get((run_id, path), ())
        )

    def _count(self, place: int) -> int:
        return bisect_left(self._places, place)

    def _wait(self, count: int) -> None:
        with self._changed:
            due = self._changed.wait_for(lambda: self._lost or self._passed >= count, _PATIENCE_SECONDS)
            if not due:
                self._lost = True
                self._changed.notify_all()
