"""Deciding about the calls of a log that may have happened, when its run goes on (ADR 11).

This is the one place where a doubt is resolved on resume; `engine/doubt.py` holds what a resolution is and applies it.

1. What is harmless is made again. What was decided in an earlier sitting stands.
2. Else the capability's probe is asked. What it knows counts before what anybody believes.
   A service's promise that the call takes no effect is no leave to make it again where a later run was told to.
3. Else a person's word for this call counts, given now.
4. Whatever is decided is on disk before anything follows from it.
5. A word without a step is for the one call that is open. Where several are, each needs its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cogcli.core.calls import HARMLESS
from cogcli.core.errors import EffectInDoubtError, UsageError
from cogcli.engine.doubt import CHOICES, DoubtResolution, answer_of
from cogcli.engine.probe import ask_probe, is_promise
from cogcli.events import build
from cogcli.specs.fields import fit_values

if TYPE_CHECKING:
    from cogcli.core.calls import Answer, Attempt
    from cogcli.engine.context import Run
    from cogcli.engine.step_recorder import StepRecord
    from cogcli.engine.tasks import Effects
    from cogcli.episode.journal import Journal
    from cogcli.episode.log_index import LogIndex
    from cogcli.events.envelope import Event
    from cogcli.specs.capability import Capability


class DoubtAnswer(NamedTuple):
    """What a person says about a call in doubt: one of CHOICES, for one step path or, with None, the only open one."""

    step: str | None
    choice: str
    output: dict[str, Any] | None = None
    """With `done`: what the call answered. Left out, it answered nothing."""


class OpenDoubts:
    """The calls in doubt of a log that is gone on with."""

    def __init__(
        self,
        recording: LogIndex,
        journal: Journal,
        said: Mapping[str | None, DoubtResolution],
        since: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`said` is what a person says now, by step path; `since` gives the calls that later runs were told to make
        again, as `again_since` does."""
        self._recording = recording
        self._journal = journal
        self._said = said
        self._since = cache(since)
        self._made_since: dict[str, str] = {}
        """By the id of an intent: the later run that was told to make its call again, where that is why it is asked
        about."""

    def settle(
        self, run: Run, record: StepRecord, capability: Capability, values: dict[str, Any], number: int
    ) -> Effects:
        """Decide about this attempt, if it is in doubt. What is decided, and a repeat, is on disk then."""
        record.idempotency_key = self._recording.keys.get(
            (run.state.run_id, record.path), record.idempotency_key
        )
        intent = self._in_doubt(run.state.run_id, record.path, number)
        if intent is None:
            return
        closed = False
        if not _harmless(intent, capability.effect):
            resolution = self._decided(intent)
            closed = resolution is not None and is_promise(resolution)
            if resolution is None:
                known = yield from self._probed(run, record, intent, capability)
                closed = known is not None and is_promise(known)
                if closed and self._is_made_since(intent):
                    known = None
                said = self._said.get(intent.step_id) or self._said.get(None)
                resolution = self._put_down(intent, known or said)
            if resolution is None or resolution.choice != "rerun":
                return
        if closed:
            record.idempotency_key += "+"  # the service takes nothing under the key that it has closed
        self._tell_repeat(intent, key=record.idempotency_key if closed else None)

    def _probed(self, run: Run, record: StepRecord, intent: Event, capability: Capability) -> Effects:
        """What the capability's probe says about the call of an intent; None where there is none, or no answer."""
        if not capability.probe:
            return None
        told = intent.payload
        path = intent.step_id or ""
        return (
            yield from ask_probe(
                run, path, capability, told["input"], record.idempotency_key,
                self._recording.probes[intent.run_id, path],
            )
        )  # fmt: skip

    def _is_made_since(self, intent: Event) -> bool:
        """Whether a later run was told to make this call again: it happened there, or may have."""
        episode = self._since().get(intent.id)
        if episode:
            self._made_since[intent.id] = episode
        return bool(episode)

    def answer(self, attempt: Attempt) -> Answer | None:
        """What stands in for a call in doubt; None for one that is to be made. Raises what ends it instead."""
        intent = self._in_doubt(attempt.run_id, attempt.step_id, attempt.number)
        if intent is None or _harmless(intent, attempt.effect):
            return None
        decided = self._decided(intent)
        if decided is None and intent.id in self._made_since:
            later = self._made_since[intent.id]
            raise EffectInDoubtError(
                "effect.in-doubt",
                f"`{attempt.capability_id}` may have happened since: {later} was told to make it again",
                hint=f"look at {later} with cogcli trace, then resume with --in-doubt: done, rerun, skip or fail",
                left=True,
            )
        return answer_of(decided, attempt.capability_id)

    def open(self, run_id: str, step: str) -> bool:
        """Whether a call of this step is in doubt, and nobody has decided about it."""
        recording, key = self._recording, (run_id, step)
        if key in recording.decisions or not recording.attempt_in_doubt(run_id, step):
            return False
        intent = recording.intents[key].payload
        return bool(intent.get("capability")) and intent.get("side_effects") not in HARMLESS

    def first_open(self) -> EffectInDoubtError | None:
        """The first call in doubt that nobody has decided about, as what the run waits for."""
        for intent in self._recording.open_doubts[:1]:
            name = intent.payload["capability"]
            error = EffectInDoubtError(
                "effect.in-doubt", f"`{name}` may have happened before the run stopped", left=True
            )
            error.step_id, error.capability_id = intent.step_id, name
            return error
        return None

    def _in_doubt(self, run_id: str, step_id: str, number: int) -> Event | None:
        """The intent of a call whose attempt of this number nobody knows the answer to."""
        if self._recording.attempt_in_doubt(run_id, step_id) != number:
            return None
        return self._recording.intents[run_id, step_id]

    def _decided(self, intent: Event) -> DoubtResolution | None:
        """What was decided, in an earlier sitting or in this one."""
        decision = self._recording.decisions.get((intent.run_id, intent.step_id))
        if decision is None:
            return None
        told = decision.payload
        return DoubtResolution(
            told["verdict"], decision.agent_id or "", told.get("reason") or "", told.get("output")
        )

    def _put_down(self, intent: Event, resolution: DoubtResolution | None) -> DoubtResolution | None:
        """Put on disk what is decided about it now, if anything is."""
        if resolution is None:
            return None
        draft = build.doubt_decided(
            intent.run_id or "",
            intent.step_id or "",
            choice=resolution.choice,
            speaker=resolution.by,
            capability=intent.payload["capability"],
            reason=resolution.reason,
            caused_by=intent.id,
            output=resolution.output,
        )
        event = self._journal.append(draft, durable=True)
        self._recording.decisions[intent.run_id, intent.step_id] = event
        return resolution

    def _tell_repeat(self, intent: Event, *, key: str | None) -> None:
        run_id, step_id = intent.run_id or "", intent.step_id or ""
        repeats = self._recording.repeats.get((run_id, step_id), ())
        payload = {
            "attempt": 2 + len(repeats) + self._recording.resumptions.get((run_id, step_id), 0),
            "binding": intent.payload.get("binding"),
            "service": intent.payload.get("service"),
            "reason": "resumed",
            "wait_ms": 0,
            **({"idempotency_key": key} if key else {}),
        }
        speaker = intent.agent_id or "system"
        draft = build.call_retried(run_id, step_id, payload=payload, speaker=speaker)
        self._journal.append(draft, durable=intent.payload.get("side_effects") in ("effect", "idempotent"))


def _harmless(intent: Event, effect: str) -> bool:
    """Whether a call may be repeated unasked: by the effect that was declared then, and by the one that is now."""
    return intent.payload.get("side_effects") in HARMLESS and effect in HARMLESS


# -- what a person says ------------------------------------------------------------------------------------------------


def resolutions(
    recording: LogIndex,
    answers: Iterable[DoubtAnswer],
    capabilities: Mapping[str, Capability],
    *,
    by: str,
    reason: str,
    episode: str,
) -> dict[str | None, DoubtResolution]:
    """What is said about calls in doubt, by step path, checked. Raises UsageError before anything is decided by it:
    for a word that does not say which of several calls it is for, for a step that is not in doubt, and for an answer
    that the call's capability could not have given."""
    said: dict[str | None, DoubtResolution] = {}
    doubts = {event.step_id or "": event for event in recording.doubts}
    still_open = [event.step_id or "" for event in recording.open_doubts]
    for answer in answers:
        step = answer.step
        if step is None:
            if len(still_open) > 1:
                raise _which_one(answer.choice, still_open, episode)
            step = still_open[0] if still_open else None
        if step in said:
            raise UsageError(
                "usage.flag", f"`--in-doubt` is given twice for `{step}`", hint="keep one answer"
            )
        intent = doubts.get(step or "")
        if intent is None and (step is not None or answer.choice == "done"):
            raise _not_in_doubt(step, still_open)
        output = answer.output
        if answer.choice == "done" and intent is not None:
            output = _answered(intent, output or {}, capabilities)
        said[step] = DoubtResolution(answer.choice, f"human:{by}", reason, output)
    return said


def _answered(
    intent: Event, output: dict[str, Any], capabilities: Mapping[str, Capability]
) -> dict[str, Any]:
    """The answer as the contract of the capability has it."""
    name = intent.payload["capability"]
    capability = capabilities.get(name)
    if capability is None:
        return output
    kept, violations = fit_values(capability.outputs, output)
    if violations:
        raise UsageError(
            "usage.value",
            f"`--output` is nothing that `{name}` answers: {'; '.join(v.message for v in violations)}",
            expected=", ".join(f"{id}: {field.type}" for id, field in capability.outputs.items()),
            hint=f"give what it answered for step `{intent.step_id}`, as a JSON object",
        )
    return kept


def _which_one(choice: str, steps: list[str], episode: str) -> UsageError:
    return UsageError(
        "usage.value",
        f"`--in-doubt {choice}`: {len(steps)} calls are in doubt, and one word is not for all",
        expected="STEP=WORD for each",
        found=", ".join(steps[:20]),
        next=tuple(ways(episode, steps)),
    )


def _not_in_doubt(step: str | None, still_open: list[str]) -> UsageError:
    what = "no call is in doubt" if step is None else f"no call of step `{step}` is in doubt"
    return UsageError("step.unknown", what, expected=f"one of: {', '.join(still_open[:20]) or 'nothing'}")


def ways(episode: str, steps: Iterable[str]) -> list[str]:
    """The commands that decide about calls in doubt without saying what they answered: for each word, all of them."""
    from shlex import quote

    steps = list(steps)
    found = []
    for choice in CHOICES[:3]:
        words = [choice] if len(steps) <= 1 else [f"{step}={choice}" for step in steps]
        flags = " ".join(f"--in-doubt {quote(word)}" for word in words)
        found.append(f"cogcli resume {episode} {flags}")
    return found
