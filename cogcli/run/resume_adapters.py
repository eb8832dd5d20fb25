"""The calls and the event sink of a resumed run: recorded ones from the log first, then live calls and new events.

1. A call with a recorded answer is not made again, and a recorded event is not appended again. Live answers come after
   all recorded ones.
2. A step or run that has ended in the log stays ended: no call starts in it, and it ends with the recorded outcome.
3. `OpenDoubts` decides about a call with a write-ahead record and no result: the call is repeated, answered, skipped or
   failed, or it waits for a person.
4. `resume --abort` closes the run with the status `aborted`. The first new action (the start of a call, a repeat, a
   request for approval) ends the run instead, as a signal does (docs/reference/episode.md#doubts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NoReturn

from cogcli.base.calls import Answer, Attempt, BindingChain
from cogcli.base.canonical import compact
from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import MASK
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Draft, Event, row_of
from cogcli.declarations.governance_events import InputRequested
from cogcli.episode.journal import Journal
from cogcli.protocols.live.runner import LiveRunner
from cogcli.run.closed_scopes import ScopeKey
from cogcli.run.engine.effects import Cancelled
from cogcli.run.log_dispatcher import LogDispatcher, error_of_ending
from cogcli.run.log_index import LogIndex
from cogcli.run.results import Control

_VERDICT: Final = ("verdict", "rule", "gate")
ABORT: Final = "ABORT"
"""The `signal` of `run.aborting` after `resume --abort`, without an operating system signal."""


def send_unmasked(attempt: Attempt, send: Callable[[Attempt], Answer]) -> Answer:
    """Make a live attempt and return its answer. Raise UnusableEnvironment `resume.masked` if the input contains a
    mask instead of a secret.
    """
    sent = attempt.continuation
    if MASK.encode() in compact(
        [attempt.input, [sent.answers, sent.request_state] if sent else None]
    ):
        raise UnusableEnvironment(
            "resume.masked",
            f"step `{attempt.step_id}` needs a value that the log holds masked only",
            hint="run the skill again and give the secret again",
        )
    return send(attempt)


class RecordedBindingRunner(NamedTuple):
    """A capability runner with the recorded chains of bindings. A capability without one is selected anew."""

    live: LiveRunner
    recorded: Mapping[str, BindingChain]
    """Empty unless nothing new may start: then no binding has to be eligible now."""

    def chain(self, capability_id: str) -> BindingChain:
        return self.recorded.get(capability_id) or self.live.chain(capability_id)

    def attempt(self, attempt: Attempt) -> Answer:
        return self.live.attempt(attempt)

    def close(self, grace: float) -> None:
        self.live.close(grace)


class NewEventListener:
    """A listener that passes on the events after those that the log had."""

    def __init__(self, listener: Callable[[Event], None], last: int) -> None:
        """`last` is the `seq` of the last event in the log."""
        self._listener = listener
        self._last = last
        self.ignored: frozenset[str] = getattr(listener, "ignored", frozenset())
        """The types of events that the listener does nothing with, which plain steps need not decode."""

    def __call__(self, event: Event) -> None:
        if (event.seq or 0) > self._last:
            self._listener(event)


class ResumeSink:
    """Returns the recorded event of a draft, at most once each, or appends the draft.

    With `abort`, a draft that starts new work ends the run instead. With `refusals`, such a draft raises the first of
    them.
    """

    def __init__(
        self,
        journal: Journal,
        log: LogIndex,
        control: Control,
        *,
        abort: bool,
        refusals: Sequence[CogcliError] = (),
    ) -> None:
        self._journal = journal
        self._log = log
        self._control = control
        self._abort = abort
        self._refusals = refusals
        self.dispatcher = LogDispatcher(log, self._end_unanswered, live=not abort)
        self.leave_log: Callable[[], None] | None = None
        """Called once, when the run has passed the log. None if the run always follows the log."""
        self._open_calls = log.open_calls

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """Return the recorded or the new event.

        For a start in a closed scope, raise Cancelled or the recorded error.
        """
        recorded = self._log.take_recorded_event(draft) or (
            None if self._abort else self._open_request(draft) or self._open_input(draft)
        )
        if recorded is not None and _decides_otherwise(draft, recorded):
            recorded = None
        if recorded is not None:
            self.dispatcher.mark_delivered(recorded)
            return recorded
        if self._abort and row_of(draft.event_type).begins:
            self._cancel_run(ABORT)
            raise Cancelled
        if self._refusals and row_of(draft.event_type).begins:
            raise self._refusals[0]
        end = self._find_closing_event(draft)
        if end is not None:
            return self._event_after_end(draft, end)
        event = self._journal.append(draft, durable=durable)
        if self.leave_log is not None and row_of(draft.event_type).closes:
            self._leave_log_if_passed((draft.run_id, draft.step_id), self.leave_log)
        return event

    def _leave_log_if_passed(self, closed: ScopeKey, leave: Callable[[], None]) -> None:
        """Stop matching the log after the end of a step, unless a later event of the log still affects the run. Such an
        event has no draft yet, or begins a call that has no end in the log.
        """
        self._open_calls.discard(closed)
        if self._log.is_passed and not self._open_calls:
            self.leave_log = None
            leave()

    def history(self) -> Iterable[Event]:
        """Return the log so far, with the events of all sessions."""
        return self._journal.history()

    def _end_unanswered(self, attempt: Attempt | None) -> NoReturn:
        """End a call without a recorded answer, since its step has ended in the log or the run is being closed."""
        if self._abort or attempt is None:
            self._cancel_run(ABORT)
        else:
            self._repeat_signal(self._log.ended.find_end(attempt.run_id, attempt.step_id))
        raise Cancelled

    def _repeat_signal(self, end: Event | None) -> None:
        """Cancel the run if the recorded run was ended by a signal before `end`."""
        signal = self._log.ended.signal
        if signal is not None and end is not None and self._log.ended.follows_signal(end):
            self._cancel_run(signal)

    def _cancel_run(self, signal: str) -> None:
        """Cancel the run twice. That skips the grace period, since no call is running."""
        self._control.cancel(signal)
        self._control.cancel(signal)

    def _find_closing_event(self, draft: Draft) -> Event | None:
        """Return the event that closed the scope of a draft, or None if the scope is open. `gate.decided` follows the
        end of the gate, so its scope is the guarded step.
        """
        step_id = draft.step_id
        if draft.event_type == "gate.decided" and step_id:
            step_id = StepPath(step_id).owner
        return self._log.ended.find_end(draft.run_id, step_id)

    def _event_after_end(self, draft: Draft, end: Event) -> Event:
        """Return an event outside the log for a draft in a closed scope. If the draft starts new work, raise the
        same errors as `append`.
        """
        if row_of(draft.event_type).begins:
            self._repeat_signal(end)
            same = (end.run_id, end.step_id) == (draft.run_id, draft.step_id)
            raise error_of_ending(end) if same else Cancelled()
        return Event(
            None, "", end.timestamp, end.episode_id, draft.run_id, None, draft.phase, draft.event_type, draft.payload
        )  # fmt: skip

    def _open_request(self, draft: Draft) -> Event | None:
        """Return the unanswered recorded request for approval of the same action, so that no second one is made."""
        if draft.event_type != "approval.requested":
            return None
        for event in self._log.open_requests:
            if all(
                event.payload[name] == draft.payload[name]
                for name in ("step_id", "action_hash", "evidence_hash")
            ):
                return event
        return None

    def _open_input(self, draft: Draft) -> Event | None:
        """Return the recorded request for input of the same attempt, so that no second one is made."""
        if draft.event_type != InputRequested.event.name:
            return None
        asked = InputRequested.of(draft.payload)
        return self._log.inputs.get((draft.run_id, asked.step_id, asked.attempt))


def _decides_otherwise(draft: Draft, recorded: Event) -> bool:
    """Return whether a changed pack decides differently about a call than the recorded event."""
    if draft.event_type != "policy.decided":
        return False
    return any(draft.payload.get(name) != recorded.payload.get(name) for name in _VERDICT)
