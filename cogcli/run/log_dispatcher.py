"""The order in which a resumed or replayed run follows its log: recorded answers come by `seq`, live ones after them.

1. A call starts, and its recorded answer is delivered, when no outstanding call has a lower `seq`. A call that the log
   does not have comes after all recorded ones.
2. Steps that write to one target write in the order of their recorded closing events.
3. These functions never block: the engine's coordinator reads positions and waits for its turn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from math import inf
from typing import NoReturn

from cogcli.base.calls import Answer, Attempt
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import (
    StepDegraded,
    StepFailed,
    StepFinished,
    StepSkipped,
    StepVetoed,
)
from cogcli.declarations.typed_payload import recorded_payload
from cogcli.run.engine.doubt import SkippedByPerson
from cogcli.run.engine.effects import Cancelled
from cogcli.run.engine.outcome import LEFT_OUT, CallSkipped
from cogcli.run.engine.ports import RecordedCall
from cogcli.run.log_index import LogIndex, error_of, is_of_probe


class LogDispatcher:
    """The `Dispatcher` of a run that follows a log."""

    def __init__(
        self, log: LogIndex, end_unanswered: Callable[[Attempt | None], NoReturn], *, live: bool
    ) -> None:
        """Read the order of completions from the log.

        `end_unanswered` ends a call without a recorded answer by raising: a call whose step has ended in the log
        or, if not `live`, every call that the log does not have. It receives None for work that is not a call of
        a step.
        """
        self.live = live
        self._log = log
        self._end_unanswered = end_unanswered
        closings = [event for event in log.closings.values() if not is_of_probe(event)]
        cut_off = {event.seq or 0 for event in closings if _is_cancelled(event)}
        closed = {event.seq or 0 for event in closings}
        self._positions = sorted({*log.answered_at.values(), *closed} - cut_off)
        """The `seq` of each answer and step end. Cancelled steps are left out: they have no answer, and their end may
        come at any time."""
        self._delivered: set[int] = set()
        self._passed = 0
        """The number of positions delivered without a gap, from the first on."""

    def mark_delivered(self, event: Event) -> None:
        """Mark this recorded event as delivered, since the engine has drafted it again."""
        key = (event.run_id, event.step_id)
        self._delivered.add(event.seq or 0)
        if self._log.closings.get(key) is event:
            # A step may end before its recorded answer is used: then the answer counts as delivered too.
            self._delivered.add(self._log.answered_at.get(key, 0))
        while (
            self._passed < len(self._positions) and self._positions[self._passed] in self._delivered
        ):
            self._passed += 1

    def recorded(self, attempt: Attempt) -> RecordedCall | None:
        position = self._find_position(attempt)
        if position is None and self.live:
            return None
        return RecordedCall(
            inf if position is None else position, lambda: self._recorded_answer(attempt)
        )

    def end_unanswered(self) -> NoReturn:
        self._end_unanswered(None)

    def starts_at(self, run_id: str, path: str) -> float | None:
        log, key = self._log, (run_id, path)
        recorded = log.intents.get(key) or log.closings.get(key) or log.ended.find_end(run_id, path)
        return self._find_awaited_position(inf if recorded is None else recorded.seq or 0)

    def judged_at(self, run_id: str, path: str) -> float:
        key = (run_id, path)
        if (closing := self._log.closings.get(key)) is not None:
            return closing.seq or 0
        requests = [
            event for event in self._log.requests.values() if (event.run_id, event.step_id) == key
        ]
        return max((event.seq or 0 for event in requests), default=inf)

    def redeemed_at(self, answer: str) -> float | None:
        return self._find_awaited_position(self._log.redeemed.get(answer, inf))

    def take_folded(self, run_id: str, path: str) -> Event | None:
        event = self._log.take_folded(run_id, path)
        if event is not None:
            self.mark_delivered(event)
        return event

    def wrote_at(self, run_id: str, path: str) -> int | None:
        return self._log.wrote_at(run_id, path)

    def is_repeated(self, run_id: str, path: str, number: int) -> bool:
        return any(
            event.payload["attempt"] == number
            for event in self._log.repeats.get((run_id, path), ())
        )

    def has_begun(self, run_id: str, path: str, number: int) -> bool:
        if number == 1:
            return (run_id, path) in self._log.intents
        return self.is_repeated(run_id, path, number)

    def next_recorded(
        self, event_type: str, run_id: str, path: str | None, cause: str | None
    ) -> Event | None:
        return self._log.next_recorded(event_type, run_id, path, cause)

    def ended_at(self, run_id: str, path: str) -> int | None:
        end = self._log.ended.find_end(run_id, path)
        return end.seq if end else None

    def is_cancelled(self, run_id: str, path: str) -> bool:
        closing = self._log.closings.get((run_id, path))
        return closing is not None and _is_cancelled(closing)

    def _find_awaited_position(self, position: float) -> float | None:
        """Return the position if earlier positions are still undelivered; otherwise None."""
        return None if self._passed >= bisect_left(self._positions, position) else position

    def _find_position(self, attempt: Attempt) -> int | None:
        """Return the `seq` at which the outcome of an attempt became known, or None if the log has no outcome."""
        log, key = self._log, (attempt.run_id, attempt.step_id)
        asked = log.inputs.get((*key, attempt.number))
        if asked is not None:
            return asked.seq
        for event in log.repeats.get(key, ()):
            if event.payload["attempt"] > attempt.number:
                return event.seq
        closing = log.closings.get(key) or log.ended.find_end(attempt.run_id, attempt.step_id)
        if closing is None and log.result(attempt.run_id, attempt.step_id, attempt.number) is None:
            return None
        return log.answered_at.get(key) or (closing.seq if closing else None)

    def _recorded_answer(self, attempt: Attempt) -> Answer:
        """Return the recorded answer, or raise the recorded error of the attempt. Without either, raise the error of
        `error_of_ending` for a closed step, or of `end_unanswered` for an open one.
        """
        log = self._log
        result = log.result(attempt.run_id, attempt.step_id, attempt.number)
        if result is not None:
            return result.answer()
        closing = log.closings.get((attempt.run_id, attempt.step_id))
        if closing is not None and (
            closing.event_type != "step.skipped" or _is_skipped_by_person(closing)
        ):
            raise error_of_ending(closing)
        return self._end_unanswered(attempt)


def error_of_ending(end: Event) -> Exception:
    """Return the exception that corresponds to the closing event of a step or run.

    This is SkippedByPerson, CallSkipped, the recorded error, or else Cancelled.
    """
    match payload := recorded_payload(end):
        case StepDegraded():
            return CallSkipped(payload.detail or "")
        case StepSkipped() if payload.reason == LEFT_OUT:
            return SkippedByPerson(payload.detail or "")
        case StepFailed() | StepVetoed() if payload.error:
            return error_of(payload.error.json)
    return Cancelled()


def _is_skipped_by_person(end: Event) -> bool:
    return end.event_type == "step.skipped" and StepFinished.of(end.payload).reason == LEFT_OUT


def _is_cancelled(end: Event) -> bool:
    return StepFinished.of(end.payload).reason == "cancelled"
