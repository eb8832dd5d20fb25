"""The capability runner and event sink of a replay: recorded answers in, each new event compared with the log.

1. A call gets its recorded answer. One without an answer ends as in the log: cut off by a signal, cancelled because
   of a failure or a time limit, or in doubt.
2. Each draft is compared with the recorded event of the same type, run and step. The first difference, or the first
   draft that the log does not have, ends the replay.
3. A log may stop before the end of its run (crash, full disk, waiting for a person). Then the replay ends as soon as
   every event of the log has been drafted again.
"""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.core.calls import Answer, Attempt, BindingChain, recorded_chain
from cogcli.core.errors import BindingResolutionError, CogcliError, EffectInDoubtError, EnvironmentRefusal
from cogcli.engine.tasks import Cancelled
from cogcli.episode.rules import FIRST, rules_of
from cogcli.events.envelope import Draft, Event
from cogcli.events.masking import mask_payload
from cogcli.events.types import row_of
from cogcli.runs.abort import ABORT
from cogcli.runs.closed_scopes import find_full_disk
from cogcli.runs.recorded_calls import recorded_answer
from cogcli.runs.turns import Turns

if TYPE_CHECKING:
    from cogcli.core.redact import Redactor
    from cogcli.engine.tasks import Loop
    from cogcli.runs.log_index import LogIndex

_TIMELESS: Final = frozenset(("latency_ms", "action_id", "rules"))
"""Payload members that depend on the clock, the source of ids or the journal: not compared."""
_NEW_MEMBERS: Final = frozenset(("input_hash",))
"""Payload members that older logs do not have: compared only where the log has them."""


class ReplayDifference(NamedTuple):
    """The first difference between a replay and its log. `seq` is None for an event that only the replay has; `what`
    is a sentence; `recorded` and `replayed` are the two values, None where a side has no such event."""

    seq: int | None
    step_id: str | None
    what: str
    recorded: Any
    replayed: Any

    def to_payload(self) -> dict[str, Any]:
        """The object of the envelope (`--json`)."""
        return self._asdict()


class Diverged(CogcliError):
    """Ends a replay at its first difference."""

    def __init__(self, difference: ReplayDifference) -> None:
        super().__init__("replay.differs", difference.what)
        self.difference = difference


class EndOfLog(CogcliError):
    """Ends the replay of a log that stops before the end of its run."""

    def __init__(self) -> None:
        super().__init__("episode.unreadable", "the log ends here")


class CutOff:
    """Cancels the replay where a signal cancelled the recorded run; does nothing for a log without a signal."""

    def __init__(self, signal: str | None) -> None:
        self.signal = signal
        self.loop: Loop | None = None

    def __call__(self) -> None:
        """Cancel without grace, as for a call whose recorded answer never came."""
        if self.signal is not None and self.loop is not None:
            self.loop.interrupt(self.signal)
            self.loop.interrupt(self.signal)

    @property
    def is_over(self) -> bool:
        """Whether the replay has been cancelled: no call and no step starts any more."""
        return self.loop is not None and self.loop.signal is not None

    def is_late(self, draft: Draft) -> bool:
        """Whether this starts a step that the recorded run, cut off by its signal, never started.

        After `resume --abort` a retry and a request for approval count, too.
        """
        if self.signal == ABORT:
            return row_of(draft.event_type).begins
        return self.signal is not None and draft.event_type == "step.started"

    def cancel_with_grace(self) -> None:
        """Cancel with grace: nothing new starts, answers recorded within the grace of the signal are still
        delivered."""
        if self.signal is not None and self.loop is not None and self.loop.signal is None:
            self.loop.interrupt(self.signal)


class ReplayRunner:
    """Gives recorded answers, never makes a call."""

    def __init__(self, log: LogIndex, cut_off: CutOff, turns: Turns) -> None:
        self._log = log
        self._cut_off = cut_off
        self._turns = turns
        self._ended = threading.Event()

    def chain(self, capability_id: str) -> BindingChain:
        """The chain that was pinned when the run began. Raises BindingResolutionError `binding.none`."""
        started = self._log.started
        pinned = (started.payload.get("selection") or {}).get(capability_id) if started else None
        if pinned is None:
            raise BindingResolutionError("binding.none", f"capability `{capability_id}`: none was pinned")
        return recorded_chain(pinned)

    def attempt(self, attempt: Attempt) -> Answer:
        """The recorded answer. Raises the recorded error, or what ends a call without an answer (rule 1)."""
        self._turns.wait(attempt)
        answer = recorded_answer(self._log, attempt)
        return self._unanswered(attempt) if answer is None else answer

    def _unanswered(self, attempt: Attempt) -> Answer:
        """End a call without a recorded answer as it ended in the log. Always raises."""
        log = self._log
        end = log.ended.over(attempt.run_id, attempt.step_id)
        if log.stops and (end is None or end is log.full):
            self._turns.wait_for_all()
            raise EndOfLog
        if end is None or log.ended.by_signal(end):
            if end is not None:
                self._turns.wait_before(end)  # what ended within the grace comes first
            self._cut_off()
        elif (attempt.run_id, attempt.step_id) not in log.closings and not _is_timeout(end):
            self._turns.wait_before(end)
            raise EffectInDoubtError("effect.in-doubt", "nobody ever knew whether it happened", left=True)
        # It was cancelled then, by a failed step, a signal or a time limit; the engine does the same again.
        closed = (attempt.run_id, attempt.step_id) in log.closings
        with attempt.cancel.staying("cancelled before it left") if closed else nullcontext():
            self._ended.wait(max(0.0, attempt.deadline - time.monotonic()))
        raise EnvironmentRefusal("episode.unreadable", f"the log has no answer for `{attempt.step_id}`")

    def close(self, grace: float) -> None:
        self._ended.set()


class ReplaySink:
    """Compares each draft with its recorded event; nothing is written."""

    def __init__(self, log: LogIndex, redactor: Redactor, cut_off: CutOff, turns: Turns) -> None:
        self._log = log
        self._cut_off = cut_off
        self._turns = turns
        self._redactor = redactor
        started = log.started
        self._first_rules = started is None or rules_of(started.payload) == FIRST
        remaining = log.untold if log.signal is not None and not log.stops else []
        self._outstanding = sum(not row_of(event.event_type).by_timing for event in remaining)
        """Of a run that a signal ended: how many of its events are still to be drafted, the last one included."""

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """The recorded event of this draft. Raises Diverged for a difference, EndOfLog at the end of a log that stops
        early, Cancelled for a start after the recorded signal."""
        recorded = self._log.told(draft)
        if recorded is None:
            if self._cut_off.is_late(draft):
                self._cut_off.cancel_with_grace()
                raise Cancelled(outside=True)
            if (
                row_of(draft.event_type).by_timing
                or self._is_skip_after_signal(draft)
                or self._is_end_of_waiting_run(draft)
            ):
                return _event_outside_log(draft)
            if self._log.stops:
                return self._after_log_end(draft)
            what = f"`{draft.event_type}` of `{draft.step_id or 'the run'}` is not in the log"
            raise Diverged(ReplayDifference(None, draft.step_id, what, None, draft.payload))
        if recorded is self._log.full:
            raise EndOfLog
        mine = _timeless(mask_payload(draft.payload, self._redactor))
        if draft.event_type == "plan.created" and self._first_rules:
            mine["step_records"] = [_first_record(record) for record in mine["step_records"]]
        theirs = _timeless(recorded.payload)
        mine = {name: value for name, value in mine.items() if name in theirs or name not in _NEW_MEMBERS}
        if mine != theirs:
            raise Diverged(_difference(recorded, theirs, mine))
        self._turns.mark_delivered(recorded)
        if not row_of(draft.event_type).by_timing:
            self._outstanding -= 1
        if self._outstanding == 1:
            self._cut_off.cancel_with_grace()  # every call ended within the grace: only the end of the run is missing
        return recorded

    def _is_skip_after_signal(self, draft: Draft) -> bool:
        """Whether this is the skip of a step that the signal kept from being scheduled: the log has no event of it."""
        cancelled = draft.event_type == "step.skipped" and draft.payload.get("reason") == "cancelled"
        return cancelled and self._cut_off.is_over

    def _is_end_of_waiting_run(self, draft: Draft) -> bool:
        """Whether this ends a nested run that waited when its root failed: older logs have no end of it."""
        aborted = draft.event_type == "run.terminated" and draft.payload["status"] == "aborted"
        return aborted and draft.step_id is not None and not self._log.stops

    def _after_log_end(self, draft: Draft) -> Event:
        """An event outside the log, as long as recorded ones are missing; then EndOfLog is raised."""
        if not self._missing:
            raise EndOfLog
        return _event_outside_log(draft)

    @property
    def _missing(self) -> list[Event]:
        """Recorded events without a draft so far. The end of a run on a full disk is written without the engine."""
        full = self._log.full
        return [
            event
            for event in self._log.untold
            if not row_of(event.event_type).by_timing and event is not full
        ]

    def find_missing(self) -> ReplayDifference | None:
        """The difference for the first recorded event that the whole replay did not draft; None where there is none."""
        missing, full = self._missing, self._log.full
        if not missing and full is not None:
            mine, theirs = find_full_disk(full.run_id or "").payload, full.payload
            return None if mine == theirs else _difference(full, theirs, mine)
        if not missing:
            return None
        event = missing[0]
        what = f"`{event.event_type}` of `{event.step_id or 'the run'}` is in the log only"
        return ReplayDifference(event.seq, event.step_id, what, event.payload, None)


def _first_record(record: dict[str, Any]) -> dict[str, Any]:
    """A step record of `plan.created` as logs under rules 1 have it: without its capability."""
    return {name: value for name, value in record.items() if name != "capability"}


def _is_timeout(end: Event) -> bool:
    return end.payload.get("status_reason") in ("step.timeout", "run.timeout")


def _event_outside_log(draft: Draft) -> Event:
    return Event(None, "", "", "", draft.run_id, None, draft.phase, draft.event_type, draft.payload)


def _timeless(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name not in _TIMELESS}


def _difference(recorded: Event, theirs: dict[str, Any], mine: dict[str, Any]) -> ReplayDifference:
    for name in [*theirs, *mine]:
        if theirs.get(name) != mine.get(name):
            what = f"`{recorded.event_type}` of `{recorded.step_id or 'the run'}`: `{name}` differs"
            return ReplayDifference(recorded.seq, recorded.step_id, what, theirs.get(name), mine.get(name))
    raise AssertionError("equal payloads do not differ")
