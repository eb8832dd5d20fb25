"""Keeps resume and replay in the order of the log, though all recorded answers are available at once.

1. A call starts, and its recorded answer is delivered, after every answer and step end with a lower `seq`. A call
   that the log does not have waits for all of them.
2. Steps that write to one target write in the order of their recorded closing events.
3. Threads wait at most `_PATIENCE_SECONDS`: where the run takes another way than the log, what they wait for never
   comes. From the first such timeout on nobody waits any more.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from cogcli.runs.log_index import is_of_probe

if TYPE_CHECKING:
    from cogcli.core.calls import Attempt
    from cogcli.events.envelope import Event
    from cogcli.runs.log_index import LogIndex

_PATIENCE_SECONDS: Final = 5.0


class Turns:
    """The `EventOrder` of a run that is answered from a log. Thread-safe."""

    def __init__(self, log: LogIndex) -> None:
        self._log = log
        closings = [event for event in log.closings.values() if not is_of_probe(event)]
        cut_off = {event.seq or 0 for event in closings if event.payload.get("reason") == "cancelled"}
        closed = {event.seq or 0 for event in closings}
        self._positions = sorted({*log.answered_at.values(), *closed} - cut_off)
        """The `seq` of each answer and step end. A cancelled step has no answer, its end may come at any time."""
        self._delivered: set[int] = set()
        self._passed = 0
        """How many of the positions are delivered without a gap, from the first on."""
        self._gave_up = False
        self._changed = threading.Condition()

    def mark_delivered(self, event: Event) -> None:
        """Note that the engine has this recorded event again, and wake the threads whose turn it is now."""
        key = (event.run_id, event.step_id)
        with self._changed:
            self._delivered.add(event.seq or 0)
            if self._log.closings.get(key) is event:
                # A step may end before its recorded answer was used: nobody must wait for that answer then.
                self._delivered.add(self._log.answered_at[key])
            while self._passed < len(self._positions) and self._positions[self._passed] in self._delivered:
                self._passed += 1
            self._changed.notify_all()

    def wait(self, attempt: Attempt) -> None:
        """Block until the recorded answer of this attempt is due; no wait for an attempt without one."""
        at = self._log.answer_at(attempt.run_id, attempt.step_id, attempt.number)
        if at is not None:
            self._wait(self._count_before(at))

    def wait_before(self, event: Event) -> None:
        """Block until everything with a lower `seq` than this event is delivered."""
        self._wait(self._count_before(event.seq or 0))

    def wait_for_all(self) -> None:
        """Block until the whole log is delivered: the answer of a live call comes after it."""
        self._wait(len(self._positions))

    def wrote_at(self, run_id: str, path: str) -> int | None:
        """The `seq` of the event with the writes of a step; None where the log has none."""
        return self._log.wrote_at(run_id, path)

    def before(self, run_id: str, path: str) -> Callable[[], None] | None:
        """A function that blocks until a call of this step may start; None where it may start now."""
        log, key = self._log, (run_id, path)
        recorded = log.intents.get(key) or log.closings.get(key) or log.ended.over(run_id, path)
        count = len(self._positions) if recorded is None else self._count_before(recorded.seq or 0)
        return None if self._passed >= count or self._gave_up else lambda: self._wait(count)

    def repeated(self, run_id: str, path: str, number: int) -> bool:
        """Whether the log has a `call.retried` for the attempt of this number."""
        return any(event.payload["attempt"] == number for event in self._log.repeats.get((run_id, path), ()))

    def _count_before(self, seq: int) -> int:
        return bisect_left(self._positions, seq)

    def _wait(self, count: int) -> None:
        """Block until the first `count` positions are delivered."""
        with self._changed:
            due = self._changed.wait_for(lambda: self._gave_up or self._passed >= count, _PATIENCE_SECONDS)
            if not due:
                self._gave_up = True
                self._changed.notify_all()
