"""What stands between the engine and the world while a run is gone on with.

1. What the log answers is not called again. An event that it holds is not appended again. What is answered now comes
   after all that was answered then.
2. What has ended in the log has ended: nothing begins there any more, no call leaves, and it ends as it did then.
3. A call whose intent has no result becomes what `Doubts` says: made again, answered, left out, failed, asked about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.app.recorded_calls import error_of_ending, recorded_answer
from cogcli.app.turns import Turns
from cogcli.core.calls import Answer, Attempt, BindingChain
from cogcli.core.errors import EnvironmentRefusal
from cogcli.engine.tasks import Cancelled
from cogcli.events.envelope import Draft, Event
from cogcli.events.types import row_of

if TYPE_CHECKING:
    from cogcli.app.doubt_decisions import OpenDoubts
    from cogcli.app.run_skill import Control
    from cogcli.engine.ports import CapabilityRunner
    from cogcli.episode.journal import Journal
    from cogcli.episode.log_index import LogIndex


class ResumeRunner:
    """A runner that answers from the log as far as it goes, and calls services after that."""

    def __init__(
        self, live: CapabilityRunner, recording: LogIndex, turns: Turns, control: Control, doubts: OpenDoubts
    ) -> None:
        self._live = live
        self._doubts = doubts
        self._recording = recording
        self._turns = turns
        self._control = control

    def chain(self, capability_id: str) -> BindingChain:
        return self._live.chain(capability_id)

    def attempt(self, attempt: Attempt) -> Answer:
        recording = self._recording
        self._turns.wait(attempt)
        answer = recorded_answer(recording, attempt)
        if answer is not None:
            return answer
        end = recording.ended.over(attempt.run_id, attempt.step_id)
        if end is not None:
            self._turns.wait_before(end)
            _cut_off(recording, self._control, end)
            raise Cancelled
        self._turns.wait_for_all()
        settled = self._doubts.answer(attempt)
        if settled is not None:
            return settled
        require_whole(attempt)
        return self._live.attempt(attempt)

    def close(self, grace: float) -> None:
        self._live.close(grace)


def _cut_off(recording: LogIndex, control: Control, end: Event) -> None:
    """Where a signal ended this, it ends the run now, without grace: there is no call to wait for."""
    signal = recording.ended.signal
    if signal is not None and recording.ended.by_signal(end):
        control.cancel(signal)
        control.cancel(signal)


def require_whole(attempt: Attempt) -> None:
    """Raise EnvironmentRefusal `resume.masked` where a call would be made with a masked value."""
    from cogcli.core.canonical import compact
    from cogcli.core.redact import MASK

    if MASK.encode() in compact(attempt.input):
        raise EnvironmentRefusal(
            "resume.masked",
            f"step `{attempt.step_id}` needs a value that the log holds masked only",
            hint="run the skill again and give the secret again",
        )


class ResumeSink:
    """A sink that answers with the recorded event where the log has it, and appends after that."""

    def __init__(self, journal: Journal, recording: LogIndex, turns: Turns, control: Control) -> None:
        self._journal = journal
        self._recording = recording
        self._turns = turns
        self._control = control

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        recorded = self._recording.told(draft) or self._asked_before(draft)
        if recorded is None:
            end = self._ended(draft)
            return self._journal.append(draft, durable=durable) if end is None else self._too_late(draft, end)
        self._turns.told(recorded)
        return recorded

    def _ended(self, draft: Draft) -> Event | None:
        """What leaves no room for this draft in the log. A gate is judged once it has ended: its step counts."""
        step_id = draft.step_id
        if draft.event_type == "gate.decided" and step_id:
            step_id = step_id.rpartition("@")[0]
        return self._recording.ended.over(draft.run_id, step_id)

    def _too_late(self, draft: Draft, end: Event) -> Event:
        """What the log has no room for after this end. Raises what ended it where something would begin."""
        if row_of(draft.event_type).begins:
            _cut_off(self._recording, self._control, end)
            same = (end.run_id, end.step_id) == (draft.run_id, draft.step_id)
            raise error_of_ending(end) if same else Cancelled()
        return Event(
            None, "", end.timestamp, end.episode_id, draft.run_id, None, draft.phase, draft.event_type, draft.payload
        )  # fmt: skip

    def _asked_before(self, draft: Draft) -> Event | None:
        """The open request for the same action, so that nobody is asked twice."""
        if draft.event_type != "approval.requested":
            return None
        for event in self._recording.open_requests:
            if all(
                event.payload[name] == draft.payload[name]
                for name in ("step_id", "action_hash", "evidence_hash")
            ):
                return event
        return None
