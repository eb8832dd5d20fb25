"""The capability runner and event sink of a replay. They return recorded answers and compare new events with the log.

1. A call gets its recorded answer. A call without one ends as in the log: cancelled by a signal, a failure or a time
   limit, or in doubt.
2. Each draft is compared with the recorded event of the same type, run and step. The first difference, or the first
   draft that the log does not have, ends the replay.
3. A log may stop before the end of its run (crash, full disk, waiting for a person). In that case the replay ends as
   soon as every event of the log has been drafted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

from cogcli.base.calls import HARMLESS, Answer, Attempt, BindingChain, chain_from_payload
from cogcli.base.errors import BindingResolutionError, CogcliError, EffectInDoubtError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import Redactor
from cogcli.declarations.envelope import Draft, Event, mask_payload, row_of
from cogcli.declarations.events import PlanCreated, RunTerminated, StepFinished, StepStarted
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import start_of
from cogcli.declarations.typed_payload import recorded_payload
from cogcli.declarations.value_types import Json
from cogcli.episode.log_lines import FIRST, rules_of
from cogcli.run.closed_scopes import draft_full_disk_end
from cogcli.run.engine.effects import CallNeverAnswered, Cancelled
from cogcli.run.log_dispatcher import LogDispatcher
from cogcli.run.log_index import LogIndex
from cogcli.run.results import Control
from cogcli.run.resume_adapters import ABORT

_TIMELESS: Final = frozenset(("latency_ms", "action_id", "rules"))
"""Payload members that depend on the clock, the source of ids or the journal. They are not compared."""
_NEW_MEMBERS: Final = frozenset(
    ("input_hash", "input", "facts", "intuition_mode", "asked_ms", "tool", "warning", "stage_ms")
)
"""Payload members that older logs do not have. They are compared only if the log has them."""


class ReplayDifference(NamedTuple):
    """The first difference between a replay and its log. `what` is a sentence.

    `recorded` and `replayed` are the two values, or None on a side without such an event. `seq` is None for an event
    that exists only in the replay.
    """

    seq: int | None
    step_id: str | None
    what: str
    recorded: Any
    replayed: Any

    def to_payload(self) -> Json:
        """Return the object for the envelope (`--json`)."""
        return self._asdict()


class ReplayDiverged(CogcliError):
    """Raised to end a replay at its first difference."""

    def __init__(self, difference: ReplayDifference) -> None:
        super().__init__("replay.differs", difference.what)
        self.difference = difference


class EndOfLog(CogcliError):
    """Raised to end the replay of a log that stops before the end of its run."""

    def __init__(self) -> None:
        super().__init__("episode.unreadable", "the log ends here")


class ReplaySink:
    """The event sink and capability runner of a replay. It compares each draft with its recorded event, writes
    nothing, and makes no call.
    """

    def __init__(
        self, log: LogIndex, redactor: Redactor, control: Control, events: Sequence[Event] = ()
    ) -> None:
        """Prepare the replay of a log. `events` are the log's events, for a program that folds them."""
        self._log = log
        self._events = events
        self._control = control
        self._redactor = redactor
        self.dispatcher = LogDispatcher(log, self._end_unanswered, live=False)
        started = log.started
        aborting = log.ended.aborting if log.ended.has_cancelled or not log.stops_early else None
        self._first_rules = started is None or rules_of(started.payload) == FIRST
        self._signal = log.ended.signal if aborting else None
        """The signal that cancelled the recorded run. It cancels the replay at the same place. None if the log stops
        before the signal cut off any step."""
        self._signal_at = aborting.seq or 0 if aborting else 0
        before = [event for event in log.unmatched if self._is_before_signal(event)]
        self._due_before_signal = len(before)
        """The number of events still to be drafted before the signal."""

    def chain(self, capability_id: str) -> BindingChain:
        """Return the chain that was pinned when the run started. Raise BindingResolutionError `binding.none`
        without one.
        """
        started = self._log.started
        pinned = start_of(started).selection.get(capability_id) if started else None
        if pinned is None:
            raise BindingResolutionError(
                "binding.none", f"capability `{capability_id}`: none was pinned"
            )
        return chain_from_payload(pinned.json)

    def attempt(self, attempt: Attempt) -> Answer:
        raise AssertionError("a replay takes every answer from its dispatcher")

    def close(self, grace: float) -> None:
        """Do nothing: a replay opens no resources."""

    def history(self) -> Iterable[Event]:
        """Return the whole log, since a replay ends before any new event."""
        return self._events

    def _end_unanswered(self, attempt: Attempt | None) -> NoReturn:
        """End a call without a recorded answer in the way it ended in the log (rule 1)."""
        if attempt is None:
            raise CallNeverAnswered
        log, key = self._log, (attempt.run_id, attempt.step_id)
        end = log.ended.find_end(*key)
        if log.stops_early and (end is None or end is log.full_disk_end):
            raise EndOfLog
        if end is None or log.ended.follows_signal(end):
            # Cancelled twice, without a grace period: the answer never came.
            self._repeat_recorded_cancel()
            self._repeat_recorded_cancel()
        elif key not in log.closings and not _is_end_by_timeout(end):
            raise EffectInDoubtError(
                "effect.in-doubt", "whether it happened was never known", left=True
            )
        # The recorded call was cancelled by a failed step, a signal or a time limit. The engine does the same again.
        if key in log.closings:
            attempt.cancel.hold_back("cancelled before it left")
        raise CallNeverAnswered

    def _repeat_recorded_cancel(self) -> None:
        if self._signal is not None:
            self._control.cancel(self._signal)

    def _is_before_signal(self, event: Event) -> bool:
        return (event.seq or 0) < self._signal_at and not row_of(event.event_type).by_timing

    def _starts_after_signal(self, draft: Draft) -> bool:
        """Return whether this draft starts a step that the recorded run never started because of its signal.

        After `resume --abort` this includes a retry and a request for approval.
        """
        if self._signal == ABORT:
            return row_of(draft.event_type).begins
        return self._signal is not None and draft.event_type == "step.started"

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """Return the recorded event of this draft.

        Raise ReplayDiverged for a difference, EndOfLog at the end of a log that stops early, Cancelled for a start
        after the recorded signal.
        """
        recorded = self._log.take_recorded_event(draft)
        if recorded is None:
            return self._accept_unrecorded(draft)
        if recorded is self._log.full_disk_end:
            raise EndOfLog
        self._require_equal(draft, recorded)
        self.dispatcher.mark_delivered(recorded)
        if self._is_before_signal(recorded):
            self._due_before_signal -= 1
            if not self._due_before_signal and not self._control.signals:
                self._repeat_recorded_cancel()
        return recorded

    def _accept_unrecorded(self, draft: Draft) -> Event:
        """Return an event for a draft that is not in the log, if a complete log may omit it. Raise
        the same errors as `append`."""
        if self._starts_after_signal(draft):
            if not self._control.signals:
                self._repeat_recorded_cancel()
            raise Cancelled(external=True)
        if self._may_be_missing(draft):
            return _event_outside_log(draft)
        if not self._log.stops_early:
            what = f"`{draft.event_type}` of `{draft.step_id or 'the run'}` is not in the log"
            raise ReplayDiverged(ReplayDifference(None, draft.step_id, what, None, draft.payload))
        if not self._missing_events:
            raise EndOfLog
        return _event_outside_log(draft)

    def _require_equal(self, draft: Draft, recorded: Event) -> None:
        """Raise ReplayDiverged if the payloads differ in a compared member."""
        mine = _drop_time_members(mask_payload(draft.payload, self._redactor))
        theirs = _drop_time_members(recorded.payload)
        if draft.event_type == "plan.created":
            mine["step_records"] = self._drop_newer_members(mine["step_records"], theirs)
        mine = {
            name: value
            for name, value in mine.items()
            if name in theirs or name not in _NEW_MEMBERS
        }
        if mine != theirs:
            raise ReplayDiverged(_find_difference(recorded, theirs, mine))

    def _drop_newer_members(self, mine: list[Json], theirs: Json) -> list[Json]:
        """Return the step records of a plan without the members that did not exist when `theirs` was recorded.

        They are `capability` under the first rules, and `rationale` before it was introduced.
        """
        known = {
            name for entry in read_record(PlanCreated, theirs).step_records for name in entry.json
        }
        older = {"capability"} if self._first_rules else set[str]()
        older |= {"rationale"} - known
        return [
            {name: value for name, value in record.items() if name not in older} for record in mine
        ]

    def _may_be_missing(self, draft: Draft) -> bool:
        """Return whether the log may lack this event although the recorded run reached it."""
        match draft.event_type:
            case "step.skipped":
                return self._is_unrecorded_skip(draft)
            case "run.terminated":
                return self._is_end_of_waiting_run(draft)
        return row_of(draft.event_type).by_timing

    def _is_unrecorded_skip(self, draft: Draft) -> bool:
        """Return whether the draft skips a step that never started because of the signal, or cancels a call that
        stayed in doubt. The log has no event for either.
        """
        if StepFinished.of(draft.payload).reason != "cancelled":
            return False
        if self._control.signals:
            return True
        key = (draft.run_id, draft.step_id)
        intent = self._log.intents.get(key)
        return (
            intent is not None
            and StepStarted.of(intent.payload).side_effects not in HARMLESS
            and key not in self._log.closings
            and key not in self._log.answers
        )

    def _is_end_of_waiting_run(self, draft: Draft) -> bool:
        """Return whether the draft ends a nested run that was waiting when its root failed. Older logs have no
        such event.
        """
        is_aborted = RunTerminated.of(draft.payload).status == "aborted"
        return is_aborted and draft.step_id is not None and not self._log.stops_early

    @property
    def _missing_events(self) -> list[Event]:
        """Return the recorded events that have no draft. The recorded end by a full disk is excluded, since the engine
        does not write it.
        """
        full = self._log.full_disk_end
        return [
            event
            for event in self._log.unmatched
            if not row_of(event.event_type).by_timing and event is not full
        ]

    def find_missing(self) -> ReplayDifference | None:
        """Return the difference for the first recorded event without a draft in the replay, or None."""
        missing = self._missing_events
        if not missing:
            return self._compare_full_disk_end()
        event = missing[0]
        what = f"`{event.event_type}` of `{event.step_id or 'the run'}` is in the log only"
        return ReplayDifference(event.seq, event.step_id, what, event.payload, None)

    def _compare_full_disk_end(self) -> ReplayDifference | None:
        """Return the difference of the recorded end by a full disk, or None if there is none."""
        recorded = self._log.full_disk_end
        if recorded is None:
            return None
        expected = draft_full_disk_end(recorded.run_id or "").payload
        if expected == recorded.payload:
            return None
        return _find_difference(recorded, recorded.payload, expected)


def _is_end_by_timeout(end: Event) -> bool:
    """Return whether the event ends a run because of a time limit. False for the end of a step."""
    ending = recorded_payload(end)
    return isinstance(ending, RunTerminated) and ending.status_reason in (
        "step.timeout",
        "run.timeout",
    )


def _event_outside_log(draft: Draft) -> Event:
    return Event(None, "", "", "", draft.run_id, None, draft.phase, draft.event_type, draft.payload)


def _drop_time_members(payload: Json) -> Json:
    return {name: value for name, value in payload.items() if name not in _TIMELESS}


def _find_difference(recorded: Event, theirs: Json, mine: Json) -> ReplayDifference:
    for name in [*theirs, *mine]:
        if theirs.get(name) != mine.get(name):
            what = f"`{recorded.event_type}` of `{recorded.step_id or 'the run'}`: `{name}` differs"
            return ReplayDifference(
                recorded.seq, recorded.step_id, what, theirs.get(name), mine.get(name)
            )
    raise AssertionError("equal payloads do not differ")
