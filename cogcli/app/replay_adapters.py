"""What stands between the engine and a log that it has to tell the same story as.

1. A call is answered from the log; one that it has no answer to ends as it did then: cut off by a signal, cancelled by
   what happened beside it, or in doubt.
2. An event told again is held against the recorded one. The first that differs, or is not there, ends the replay.
3. Where a crash or a full disk ended the run, or it waits, the log ends in the middle of the story: all that it tells
   of is told again, then the replay ends there, too.
"""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.app.abort import ABORT
from cogcli.app.recorded_calls import recorded_answer
from cogcli.app.turns import Turns
from cogcli.core.calls import Answer, Attempt, BindingChain, recorded_chain
from cogcli.core.errors import BindingResolutionError, CogcliError, EffectInDoubtError, EnvironmentRefusal
from cogcli.engine.tasks import Cancelled
from cogcli.episode.closed_scopes import find_full_disk
from cogcli.episode.rules import FIRST, rules_of
from cogcli.events.envelope import Draft, Event
from cogcli.events.masking import mask_payload
from cogcli.events.types import row_of

if TYPE_CHECKING:
    from cogcli.core.redact import Redactor
    from cogcli.engine.tasks import Loop
    from cogcli.episode.log_index import LogIndex

_TIMELESS: Final = frozenset(("latency_ms", "action_id", "rules"))
"""Payload members that a clock, a source of ids or the journal decides."""
_SINCE: Final = frozenset(("input_hash",))
"""Payload members that older logs do not have yet."""


class ReplayDifference(NamedTuple):
    """The first thing that a replay told otherwise than the log: where, and both sides."""

    seq: int | None
    step_id: str | None
    what: str
    recorded: Any
    replayed: Any

    def as_dict(self) -> dict[str, Any]:
        """The difference as it stands in the envelope."""
        return self._asdict()


class Diverged(CogcliError):
    """Ends a replay at its first difference."""

    def __init__(self, difference: ReplayDifference) -> None:
        super().__init__("replay.differs", difference.what)
        self.difference = difference


class EndOfLog(CogcliError):
    """Ends a replay where the log ends."""

    def __init__(self) -> None:
        super().__init__("episode.unreadable", "the log ends here")


class CutOff:
    """Ends the engine's run where a signal ended the recorded one."""

    def __init__(self, signal: str | None) -> None:
        self.signal = signal
        self.loop: Loop | None = None

    def __call__(self) -> None:
        """The log goes no further here: it was cut off by the signal, if one came; now as then, without grace."""
        if self.signal is not None and self.loop is not None:
            self.loop.interrupt(self.signal)
            self.loop.interrupt(self.signal)

    @property
    def is_over(self) -> bool:
        """Whether the signal has been taken into account: nothing begins any more."""
        return self.loop is not None and self.loop.signal is not None

    def is_late(self, draft: Draft) -> bool:
        """Whether this would have begun only after the signal. A closed run began no retry and no request, either."""
        if self.signal == ABORT:
            return row_of(draft.event_type).begins
        return self.signal is not None and draft.event_type == "step.started"

    def begin_nothing(self) -> None:
        """Nothing begins from here on; what was answered within the grace is still to be told, now as then."""
        if self.signal is not None and self.loop is not None and self.loop.signal is None:
            self.loop.interrupt(self.signal)


class ReplayRunner:
    """A runner that answers from a log."""

    def __init__(self, recording: LogIndex, cut_off: CutOff, turns: Turns) -> None:
        self._recording = recording
        self._cut_off = cut_off
        self._turns = turns
        self._ended = threading.Event()

    def chain(self, capability_id: str) -> BindingChain:
        started = self._recording.started
        pinned = (started.payload.get("selection") or {}).get(capability_id) if started else None
        if pinned is None:
            raise BindingResolutionError("binding.none", f"capability `{capability_id}`: none was pinned")
        return recorded_chain(pinned)

    def attempt(self, attempt: Attempt) -> Answer:
        self._turns.wait(attempt)
        answer = recorded_answer(self._recording, attempt)
        return self._unanswered(attempt) if answer is None else answer

    def _unanswered(self, attempt: Attempt) -> Answer:
        """End a call that got no answer then, in the way it ended then."""
        recording = self._recording
        end = recording.ended.over(attempt.run_id, attempt.step_id)
        if recording.stops and (end is None or end is recording.full):
            self._turns.wait_for_all()
            raise EndOfLog
        if end is None or recording.ended.by_signal(end):
            if end is not None:
                self._turns.wait_before(end)  # what ended within the grace is told first
            self._cut_off()
        elif (attempt.run_id, attempt.step_id) not in recording.closings and not _ran_late(end):
            self._turns.wait_before(end)
            raise EffectInDoubtError("effect.in-doubt", "nobody ever knew whether it happened", left=True)
        # It was cancelled then, by a failure beside it, by a signal or by a limit of time; so it is now.
        closed = (attempt.run_id, attempt.step_id) in recording.closings
        with attempt.cancel.staying("cancelled before it left") if closed else nullcontext():
            self._ended.wait(max(0.0, attempt.deadline - time.monotonic()))
        raise EnvironmentRefusal("episode.unreadable", f"the log has no answer for `{attempt.step_id}`")

    def close(self, grace: float) -> None:
        self._ended.set()


class ReplaySink:
    """A sink that holds each event told again against the recorded one."""

    def __init__(self, recording: LogIndex, redactor: Redactor, cut_off: CutOff, turns: Turns) -> None:
        self._recording = recording
        self._cut_off = cut_off
        self._turns = turns
        self._redactor = redactor
        started = recording.started
        self._first_rules = started is None or rules_of(started.payload) == FIRST
        untold = recording.untold if recording.signal is not None and not recording.stops else []
        self._to_tell = sum(not row_of(event.event_type).by_timing for event in untold)
        """Of a run that a signal ended: how much is still to be told, its end among it."""

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """The recorded event that this one is told again as. Raises Diverged or EndOfLog."""
        recorded = self._recording.told(draft)
        if recorded is None:
            if self._cut_off.is_late(draft):
                self._cut_off.begin_nothing()
                raise Cancelled(outside=True)
            if row_of(draft.event_type).by_timing or self._never_began(draft):
                return _unrecorded(draft)
            if self._recording.stops:
                return self._beyond(draft)
            what = f"`{draft.event_type}` of `{draft.step_id or 'the run'}` is not in the log"
            raise Diverged(ReplayDifference(None, draft.step_id, what, None, draft.payload))
        if recorded is self._recording.full:
            raise EndOfLog
        mine = _timeless(mask_payload(draft.payload, self._redactor))
        if draft.event_type == "plan.created" and self._first_rules:
            mine["step_records"] = [_first_record(record) for record in mine["step_records"]]
        theirs = _timeless(recorded.payload)
        mine = {name: value for name, value in mine.items() if name in theirs or name not in _SINCE}
        if mine != theirs:
            raise Diverged(_difference(recorded, theirs, mine))
        self._turns.told(recorded)
        if not row_of(draft.event_type).by_timing:
            self._to_tell -= 1
        if self._to_tell == 1:
            self._cut_off.begin_nothing()  # all that ran ended within the grace: only the end itself is left
        return recorded

    def _never_began(self, draft: Draft) -> bool:
        """Whether a step is left out that the signal kept from being looked at at all: the log has no word of it."""
        cancelled = draft.event_type == "step.skipped" and draft.payload.get("reason") == "cancelled"
        return cancelled and self._cut_off.is_over

    def _beyond(self, draft: Draft) -> Event:
        """What came too late for the log; it ends the replay as soon as all is told that came before."""
        if not self._left:
            raise EndOfLog
        return _unrecorded(draft)

    @property
    def _left(self) -> list[Event]:
        """What only the log tells of. Its end is none of it: no run tells that its disk is full."""
        full = self._recording.full
        return [
            event
            for event in self._recording.untold
            if not row_of(event.event_type).by_timing and event is not full
        ]

    def untold(self) -> ReplayDifference | None:
        """What is left of the log at the end of the replay."""
        left, full = self._left, self._recording.full
        if not left and full is not None:
            mine, theirs = find_full_disk(full.run_id or "").payload, full.payload
            return None if mine == theirs else _difference(full, theirs, mine)
        if not left:
            return None
        event = left[0]
        what = f"`{event.event_type}` of `{event.step_id or 'the run'}` is in the log only"
        return ReplayDifference(event.seq, event.step_id, what, event.payload, None)


def _first_record(record: dict[str, Any]) -> dict[str, Any]:
    """A step of a plan as rules 1 tell of it: without its capability."""
    return {name: value for name, value in record.items() if name != "capability"}


def _ran_late(end: Event) -> bool:
    return end.payload.get("status_reason") in ("step.timeout", "run.timeout")


def _unrecorded(draft: Draft) -> Event:
    return Event(None, "", "", "", draft.run_id, None, draft.phase, draft.event_type, draft.payload)


def _timeless(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name not in _TIMELESS}


def _difference(recorded: Event, theirs: dict[str, Any], mine: dict[str, Any]) -> ReplayDifference:
    for name in [*theirs, *mine]:
        if theirs.get(name) != mine.get(name):
            what = f"`{recorded.event_type}` of `{recorded.step_id or 'the run'}`: `{name}` differs"
            return ReplayDifference(recorded.seq, recorded.step_id, what, theirs.get(name), mine.get(name))
    raise AssertionError("equal payloads do not differ")
