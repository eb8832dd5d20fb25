"""Whose turn it is: answers out of a log come at once, and have to come in the order in which they came then."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cogcli.core.calls import Attempt
    from cogcli.episode.recording import Recording
    from cogcli.events.envelope import Event

_PATIENCE_SECONDS: Final = 1.0


class Turns:
    """Lets the answers of calls that were in flight together come in the order in which they came then."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._answers = sorted(recording.answered_at.values())
        self._told: set[int] = set()
        self._changed = threading.Condition()

    def told(self, event: Event) -> None:
        """An event of the log was told again."""
        with self._changed:
            self._told.add(event.seq or 0)
            self._changed.notify_all()

    def wait(self, attempt: Attempt) -> None:
        """Until what was answered between this call's intent and its answer is told; not for long, should the run
        have taken another way."""
        key = (attempt.run_id, attempt.step_id)
        intent, answer = self._recording.intents.get(key), self._recording.answered_at.get(key)
        if intent is not None and answer is not None:
            self._wait(bisect_right(self._answers, intent.seq or 0), bisect_left(self._answers, answer))

    def wait_for_all(self) -> None:
        """Until everything that the log answers is told: what is answered now comes after that."""
        self._wait(0, len(self._answers))

    def _wait(self, first: int, last: int) -> None:
        before = self._answers[first:last]
        with self._changed:
            self._changed.wait_for(lambda: self._told.issuperset(before), timeout=_PATIENCE_SECONDS)
