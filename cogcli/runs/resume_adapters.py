"""The capability runner and event sink of a resumed run: the log first, then live calls and appended events.

1. A call with a recorded answer is not made again, a recorded event is not appended again. Live answers come after
   all recorded ones.
2. A step or run that has ended in the log stays ended: no call starts in it, and it ends with the recorded outcome.
3. A call with a write-ahead record and no result is decided by `OpenDoubts`: repeated, answered, skipped, failed, or
   left for a person to decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.core.calls import Answer, Attempt, BindingChain
from cogcli.core.errors import EnvironmentRefusal
from cogcli.core.step_path import StepPath
from cogcli.engine.tasks import Cancelled
from cogcli.events.envelope import Draft, Event
from cogcli.events.types import row_of
from cogcli.runs.recorded_calls import error_of_ending, recorded_answer
from cogcli.runs.turns import Turns

if TYPE_CHECKING:
    from cogcli.engine.ports import CapabilityRunner
    from cogcli.episode.journal import Journal
    from cogcli.runs.doubt_decisions import OpenDoubts
    from cogcli.runs.log_index import LogIndex
    from cogcli.runs.results import Control


class ResumeRunner:
    """Gives recorded answers; a call that the log does not have is made live."""

    def __init__(
        self, live: CapabilityRunner, log: LogIndex, turns: Turns, control: Control, doubts: OpenDoubts
    ) -> None:
        self._live = live
        self._doubts = doubts
        self._log = log
        self._turns = turns
        self._control = control

    def chain(self, capability_id: str) -> BindingChain:
        return self._live.chain(capability_id)

    def attempt(self, attempt: Attempt) -> Answer:
        log = self._log
        self._turns.wait(attempt)
        answer = recorded_answer(log, attempt)
        if answer is not None:
            return answer
        end = log.ended.over(attempt.run_id, attempt.step_id)
        if end is not None:
            self._turns.wait_before(end)
            _repeat_signal(log, self._control, end)
            raise Cancelled
        self._turns.wait_for_all()
        decided = self._doubts.answer(attempt)
        if decided is not None:
            return decided
        require_unmasked(attempt)
        return self._live.attempt(attempt)

    def close(self, grace: float) -> None:
        self._live.close(grace)


def _repeat_signal(log: LogIndex, control: Control, end: Event) -> None:
    """Cancel the run, without grace, if a signal had ended the recorded one before `end`; else do nothing."""
    signal = log.ended.signal
    if signal is not None and log.ended.by_signal(end):
        control.cancel(signal)
        control.cancel(signal)


def require_unmasked(attempt: Attempt) -> None:
    """Raise EnvironmentRefusal `resume.masked` if the input of a call holds a mask in place of a secret."""
    from cogcli.core.canonical import compact
    from cogcli.core.redact import MASK

    if MASK.encode() in compact(attempt.input):
        raise EnvironmentRefusal(
            "resume.masked",
            f"step `{attempt.step_id}` needs a value that the log holds masked only",
            hint="run the skill again and give the secret again",
        )


class ResumeSink:
    """Gives the recorded event of a draft, each once; a draft that the log does not have is appended."""

    def __init__(self, journal: Journal, log: LogIndex, turns: Turns, control: Control) -> None:
        self._journal = journal
        self._log = log
        self._turns = turns
        self._control = control

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """The recorded or the new event. Raises Cancelled, or the recorded error, for a start in a closed scope."""
        recorded = self._log.told(draft) or self._open_request(draft)
        if recorded is None:
            end = self._closed_by(draft)
            return (
                self._journal.append(draft, durable=durable) if end is None else self._after_end(draft, end)
            )
        self._turns.mark_delivered(recorded)
        return recorded

    def _closed_by(self, draft: Draft) -> Event | None:
        """The event that closed the scope of a draft; None where it is open.

        `gate.decided` comes after the end of the gate itself, so the step that the gate guards counts.
        """
        step_id = draft.step_id
        if draft.event_type == "gate.decided" and step_id:
            step_id = StepPath(step_id).owner
        return self._log.ended.over(draft.run_id, step_id)

    def _after_end(self, draft: Draft, end: Event) -> Event:
        """An event outside the log, for a draft in a closed scope. Raises as `append` for one that starts something."""
        if row_of(draft.event_type).begins:
            _repeat_signal(self._log, self._control, end)
            same = (end.run_id, end.step_id) == (draft.run_id, draft.step_id)
            raise error_of_ending(end) if same else Cancelled()
        return Event(
            None, "", end.timestamp, end.episode_id, draft.run_id, None, draft.phase, draft.event_type, draft.payload
        )  # fmt: skip

    def _open_request(self, draft: Draft) -> Event | None:
        """The recorded request for approval of the same action, if it is unanswered: nobody is asked twice."""
        if draft.event_type != "approval.requested":
            return None
        for event in self._log.open_requests:
            if all(
                event.payload[name] == draft.payload[name]
                for name in ("step_id", "action_hash", "evidence_hash")
            ):
                return event
        return None
