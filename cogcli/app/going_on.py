"""What stands between the engine and the world while a run is gone on with.

1. What the log answers is not called again. An event that it holds is not appended again. What is answered now comes
   after all that was answered then.
2. What has ended in the log has ended: nothing begins there any more, no call leaves, and it ends as it did then.
3. A call whose intent has no result is made again only where that does no harm, or where a person says so. What a
   person says is on disk before anything follows from it, and stands: whoever goes on later is not asked again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogcli.app.closing import BEGINNINGS
from cogcli.app.recorded import as_ended, recorded
from cogcli.app.turns import Turns
from cogcli.core.calls import Answer, Attempt, Chain
from cogcli.core.errors import EffectInDoubtError, EnvironmentRefusal, RejectedError
from cogcli.engine.call import Degraded
from cogcli.engine.tasks import Cancelled
from cogcli.events import build
from cogcli.events.envelope import Draft, Event

if TYPE_CHECKING:
    from cogcli.app.run_skill import Control
    from cogcli.engine.ports import CapabilityRunner
    from cogcli.episode.journal import Journal
    from cogcli.episode.recording import Recording

_HARMLESS = ("none", "idempotent")


class InDoubt(NamedTuple):
    """What a person says now about calls that may have happened: rerun, skip or fail, and who says so, why."""

    choice: str | None
    by: str = ""
    reason: str = ""


class Resuming:
    """A runner that answers from the log as far as it goes, and calls services after that."""

    def __init__(self, live: CapabilityRunner, recording: Recording, turns: Turns, control: Control) -> None:
        self._live = live
        self._recording = recording
        self._turns = turns
        self._control = control

    def chain(self, capability_id: str) -> Chain:
        return self._live.chain(capability_id)

    def attempt(self, attempt: Attempt) -> Answer:
        recording = self._recording
        self._turns.wait(attempt)
        answer = recorded(recording, attempt)
        if answer is not None:
            return answer
        end = recording.ended.over(attempt.run_id, attempt.step_id)
        if end is not None:
            self._turns.wait_before(end)
            _cut_off(recording, self._control, end)
            raise Cancelled
        self._turns.wait_for_all()
        if recording.in_doubt(attempt.run_id, attempt.step_id):
            _require_repeatable(attempt, recording.decisions.get((attempt.run_id, attempt.step_id)))
        require_whole(attempt)
        return self._live.attempt(attempt)

    def close(self, grace: float) -> None:
        self._live.close(grace)


def _cut_off(recording: Recording, control: Control, end: Event) -> None:
    """Where a signal ended this, it ends the run now, without grace: there is no call to wait for."""
    signal = recording.ended.signal
    if signal is not None and recording.ended.by_signal(end):
        control.cancel(signal)
        control.cancel(signal)


def _require_repeatable(attempt: Attempt, decision: Event | None) -> None:
    """Raise unless a call that may have happened may be made again."""
    choice = decision.payload["verdict"] if decision else None
    if attempt.effect in _HARMLESS or choice == "rerun":
        return
    by = (decision.agent_id or "").removeprefix("human:") if decision else ""
    if choice == "skip":
        raise Degraded(f"left out by {by}: it may have happened before")
    if choice == "fail":
        raise RejectedError("call.rejected", f"left undone by {by}: it may have happened before", left=True)
    raise EffectInDoubtError(
        "effect.in-doubt",
        f"`{attempt.capability_id}` may have happened before the run stopped",
        hint="look at the other side, then resume with --in-doubt rerun, skip or fail",
        left=True,
    )


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


class GoingOn:
    """A sink that answers with the recorded event where the log has it, and appends after that."""

    def __init__(
        self, journal: Journal, recording: Recording, turns: Turns, control: Control, doubt: InDoubt
    ) -> None:
        self._journal = journal
        self._recording = recording
        self._turns = turns
        self._control = control
        self._doubt = doubt

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        recorded = self._recording.told(draft) or self._asked_before(draft)
        if recorded is None:
            end = self._ended(draft)
            return self._journal.append(draft, durable=durable) if end is None else self._too_late(draft, end)
        self._turns.told(recorded)
        if draft.event_type == "step.started" and draft.payload.get("capability"):
            self._settle(recorded, durable=durable)
        return recorded

    def _ended(self, draft: Draft) -> Event | None:
        """What leaves no room for this draft in the log. A gate is judged once it has ended: its step counts."""
        step_id = draft.step_id
        if draft.event_type == "gate.decided" and step_id:
            step_id = step_id.rpartition("@")[0]
        return self._recording.ended.over(draft.run_id, step_id)

    def _too_late(self, draft: Draft, end: Event) -> Event:
        """What the log has no room for after this end. Raises what ended it where something would begin."""
        if draft.event_type in BEGINNINGS:
            _cut_off(self._recording, self._control, end)
            same = (end.run_id, end.step_id) == (draft.run_id, draft.step_id)
            raise as_ended(end) if same else Cancelled()
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

    def _settle(self, intent: Event, *, durable: bool) -> None:
        """Where nobody knows the answer to this intent: what a person decides now, and the intent of a repeat."""
        key = (intent.run_id or "", intent.step_id or "")
        if not self._recording.in_doubt(*key):
            return
        if intent.payload.get("side_effects") not in _HARMLESS and self._decided(intent) != "rerun":
            return
        repeats = self._recording.repeats.get(key, ())
        payload = {
            "attempt": 2 + len(repeats) + self._recording.resumptions.get(key, 0),
            "binding": intent.payload.get("binding"),
            "service": intent.payload.get("service"),
            "reason": "resumed",
            "wait_ms": 0,
        }
        speaker = intent.agent_id or "system"
        self._journal.append(build.call_retried(*key, payload=payload, speaker=speaker), durable=durable)

    def _decided(self, intent: Event) -> str | None:
        """What a person decides about an effect in doubt: in an earlier sitting, else now, which is put on disk."""
        run_id, step_id = key = (intent.run_id or "", intent.step_id or "")
        decision = self._recording.decisions.get(key)
        if decision is None:
            choice, by, reason = self._doubt
            if choice is None:
                return None
            draft = build.doubt_decided(
                run_id,
                step_id,
                choice=choice,
                by=by,
                capability=intent.payload["capability"],
                reason=reason,
                caused_by=intent.id,
            )
            decision = self._journal.append(draft, durable=True)
            self._recording.decisions[key] = decision
        verdict: str = decision.payload["verdict"]
        return verdict
