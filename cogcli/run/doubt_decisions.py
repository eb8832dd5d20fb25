"""Decisions about the calls in doubt of a resumed run: calls with a write-ahead record but no result in the log
(docs/reference/episode.md#doubts).

Only this module decides during a resume; `run/engine/doubt.py` defines a resolution and applies it (ADR 11).
1. A call of class none or idempotent is repeated without a decision. An earlier decision in the log stays valid.
2. Otherwise the engine calls the capability's probe. The probe's answer takes precedence over a person's. If a later
   rerun already repeats the call, the probe's promise of no effect does not allow another repeat.
3. Otherwise the answer that a person gives with this command applies. Without an answer the run waits.
4. Each decision is an event on disk before it has any effect.
5. An answer without a step applies to the only open call. If several calls are open, each needs its own answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from shlex import quote

from cogcli.base.calls import HARMLESS, Answer, Attempt
from cogcli.base.errors import EffectInDoubtError, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Draft, Event, draft_of
from cogcli.declarations.events import CallRetried, StepStarted
from cogcli.declarations.governance_events import IN_DOUBT, PolicyDecided
from cogcli.declarations.value_types import Json
from cogcli.episode.journal import Journal
from cogcli.run.engine.context import Run
from cogcli.run.engine.doubt import CHOICES, DoubtResolution, find_replacement_answer
from cogcli.run.engine.effects import Effects
from cogcli.run.engine.probe import ask_probe, is_promise
from cogcli.run.log_index import LogIndex, may_have_effect
from cogcli.specs.fields import fit_values


class DoubtAnswer(NamedTuple):
    """A person's decision about one call in doubt. `choice` is one of CHOICES. A `step` of None means the only
    open call.
    """

    step: str | None
    choice: str
    output: Json | None = None
    """With `done`: the output of the call. None means an empty output."""


class OpenDoubts:
    """Decides about the calls in doubt of one log. Implements the engine's `Doubts`."""

    def __init__(
        self,
        log: LogIndex,
        journal: Journal,
        answers: Mapping[str | None, DoubtResolution],
        find_repeats: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Prepare decisions for the calls in doubt of a log. `answers` are a person's resolutions by step path.

        `find_repeats` returns the calls that later reruns repeat, as `rerun_effects.find_repeats` does. It is
        called at most once, and only if the result matters.
        """
        self._log = log
        self._journal = journal
        self._answers = answers
        self._find_repeats = cache(find_repeats)
        self._repeated_in: dict[str, str] = {}
        """By id of a write-ahead record: the later episode that repeats its call, if that overrides the probe's
        promise."""

    def settle(self, run: Run, path: str, key: str, capability: Capability, number: int) -> Effects:
        """Decide about this attempt if it is in doubt, and return the idempotency key of the call.

        This is a generator of engine effects. When it returns, the decision and any repeat are on disk. An
        undecided call is handled by `answer`.
        """
        key = self._log.keys.get((run.state.run_id, path), key)
        intent = self._find_intent_in_doubt(run.state.run_id, path, number)
        if intent is None:
            return key
        is_closed = False
        if not _is_harmless(intent, capability.effect):
            resolution, is_closed = yield from self._resolve_doubt(run, intent, capability, key)
            if resolution is None or resolution.choice != "rerun":
                return key
        if is_closed:
            key += "+"  # the service rejects calls under a closed key
        self._record_repeat(intent, key=key if is_closed else None)
        return key

    def _resolve_doubt(self, run: Run, intent: Event, capability: Capability, key: str) -> Effects:
        """Return the resolution of a call in doubt, or None if it is undecided. Also return whether the service has
        promised to reject the call's key.
        """
        recorded = self._recorded_resolution(intent)
        if recorded is not None:
            return recorded, is_promise(recorded)
        known = yield from self._ask_probe(run, intent, capability, key)
        is_closed = known is not None and is_promise(known)
        later = self._find_repeats().get(intent.id) if is_closed else None
        if later:  # the later run made the call, or may have made it
            self._repeated_in[intent.id] = later
            known = None
        answer = self._answers.get(intent.step_id) or self._answers.get(None)
        return self._record_resolution(intent, known or answer), is_closed

    def _ask_probe(self, run: Run, intent: Event, capability: Capability, key: str) -> Effects:
        """Return the resolution from the capability's probe, or None if it has no probe or the probe's reply
        decides nothing.
        """
        if not capability.probe:
            return None
        path = intent.step_id or ""
        number = self._log.probes[intent.run_id, path]
        return (yield from ask_probe(run, path, capability, intent.payload["input"], key, number))

    def answer(self, attempt: Attempt) -> Answer | None:
        """Return the output that replaces a call in doubt, or None if the call may be made.

        Raise EffectInDoubtError if there is no decision yet, otherwise the same errors as
        `find_replacement_answer`.
        """
        intent = self._find_intent_in_doubt(attempt.run_id, attempt.step_id, attempt.number)
        if intent is None or _is_harmless(intent, attempt.effect):
            return None
        decided = self._recorded_resolution(intent)
        if decided is None and intent.id in self._repeated_in:
            later = self._repeated_in[intent.id]
            raise EffectInDoubtError(
                "effect.in-doubt",
                f"`{attempt.capability_id}` may have happened since: {later} was told to make it again",
                hint=f"look at {later} with cogcli trace, then resume with --in-doubt: done, rerun, skip or fail",
                left=True,
            )
        return find_replacement_answer(decided, attempt.capability_id)

    def is_open(self, run_id: str, step: str) -> bool:
        """Return whether a call of this step is in doubt and undecided."""
        log, key = self._log, (run_id, step)
        if key in log.decisions or not log.attempt_in_doubt(run_id, step):
            return False
        return may_have_effect(StepStarted.of(log.intents[key].payload))

    def first_open(self) -> EffectInDoubtError | None:
        """Return the error of the first undecided call in doubt, which keeps the run waiting, or None."""
        doubts = self._log.open_doubts
        if not doubts:
            return None
        name = StepStarted.of(doubts[0].payload).capability
        error = EffectInDoubtError(
            "effect.in-doubt", f"`{name}` may have happened before the run stopped", left=True
        )
        error.step_id, error.capability_id = doubts[0].step_id, name
        return error

    def _find_intent_in_doubt(self, run_id: str, step_id: str, number: int) -> Event | None:
        """Return the write-ahead record of this attempt if the attempt is in doubt, otherwise None."""
        if self._log.attempt_in_doubt(run_id, step_id) != number:
            return None
        return self._log.intents[run_id, step_id]

    def _recorded_resolution(self, intent: Event) -> DoubtResolution | None:
        """Return the decision that this command or an earlier one recorded in the log, or None."""
        decision = self._log.decisions.get((intent.run_id, intent.step_id))
        if decision is None:
            return None
        decided = PolicyDecided.of(decision.payload)
        return DoubtResolution(
            decided.verdict or "", decision.agent_id or "", decided.reason or "", decided.output
        )

    def _record_resolution(
        self, intent: Event, resolution: DoubtResolution | None
    ) -> DoubtResolution | None:
        """Append a resolution as a durable `policy.decided` event, and return it. If it is None, append nothing."""
        if resolution is None:
            return None
        draft = draft_decision(intent, resolution)
        event = self._journal.append(draft, durable=True)
        self._log.decisions[intent.run_id, intent.step_id] = event
        return resolution

    def _record_repeat(self, intent: Event, *, key: str | None) -> None:
        """Append `call.retried` with the reason `resumed`. `key` is the new idempotency key if the service closed
        the old one.
        """
        run_id, step_id = intent.run_id or "", intent.step_id or ""
        begun = StepStarted.of(intent.payload)
        repeats = self._log.repeats.get((run_id, step_id), ())
        payload = CallRetried(
            step_id=step_id,
            attempt=2 + len(repeats) + self._log.resumptions.get((run_id, step_id), 0),
            binding=begun.binding,
            service=begun.service,
            reason="resumed",
            wait_ms=0,
            idempotency_key=key or None,
        )
        speaker = intent.agent_id or "system"
        draft = draft_of(payload, run_id, step_id=step_id, speaker=speaker)
        self._journal.append(draft, durable=begun.side_effects in ("effect", "idempotent"))


def draft_decision(intent: Event, resolution: DoubtResolution) -> Draft:
    """Return the draft of the event that records a resolution. `intent` is the write-ahead record of the call."""
    payload = PolicyDecided(
        decision="allow" if resolution.choice in ("rerun", "done") else "veto",
        verdict=resolution.choice,
        reason=resolution.reason,
        rule=IN_DOUBT,
        enforced=True,
        capability=intent.payload["capability"],
        step_id=intent.step_id or "",
        output=resolution.output,
    )
    return draft_of(
        payload,
        intent.run_id or "",
        step_id=intent.step_id or "",
        speaker=resolution.by,
        caused_by=intent.id,
    )


def _is_harmless(intent: Event, effect: str) -> bool:
    """Return whether both the recorded and the present effect class allow a repeat without a decision."""
    return StepStarted.of(intent.payload).side_effects in HARMLESS and effect in HARMLESS


# -- a person's answers ------------------------------------------------------------------------------------------------


def resolutions_from(
    log: LogIndex,
    answers: Iterable[DoubtAnswer],
    find_capability: Callable[[str], Capability | None],
    *,
    by: str,
    reason: str,
    episode: str,
) -> dict[str | None, DoubtResolution]:
    """Return a person's answers as resolutions by step path. All answers are checked before any takes effect.

    The key is None for an answer without a step if no call is open. Raise UsageError `usage.flag` for two answers to
    one call. Raise UsageError `usage.value` for an answer without a step while several calls are open, or for an output
    that breaks the capability's contract. Raise UsageError `step.unknown` for a step without a call in doubt.
    """
    found: dict[str | None, DoubtResolution] = {}
    doubts = {event.step_id or "": event for event in log.doubts}
    still_open = [event.step_id or "" for event in log.open_doubts]
    for answer in answers:
        step = _find_step(answer, still_open, episode)
        if step in found:
            raise UsageError(
                "usage.flag", f"`--in-doubt` is given twice for `{step}`", hint="keep one answer"
            )
        intent = doubts.get(step or "")
        if intent is None:
            _require_no_call(answer.choice, step, still_open)
        output = answer.output
        if answer.choice == "done" and intent is not None:
            output = _check_output(intent, output or {}, find_capability)
        found[step] = DoubtResolution(answer.choice, f"human:{by}", reason, output)
    return found


def _find_step(answer: DoubtAnswer, still_open: list[str], episode: str) -> str | None:
    """Return the step that an answer names, or else the only step with an open call."""
    if answer.step is not None:
        return answer.step
    if len(still_open) > 1:
        raise _ambiguous_answer_error(answer.choice, still_open, episode)
    return still_open[0] if still_open else None


def _require_no_call(choice: str, step: str | None, still_open: list[str]) -> None:
    """Raise UsageError for an answer that matches no call, unless it has no step and its choice needs no call."""
    if step is None and choice != "done":
        return
    what = "no call is in doubt" if step is None else f"no call of step `{step}` is in doubt"
    expected = f"one of: {', '.join(still_open[:20]) or 'nothing'}"
    raise UsageError("step.unknown", what, expected=expected)


def _check_output(
    intent: Event, output: Json, find_capability: Callable[[str], Capability | None]
) -> Json:
    """Return the output with the types of the capability's contract, or unchanged if the capability no longer
    exists.
    """
    name = intent.payload["capability"]
    capability = find_capability(name)
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


def _ambiguous_answer_error(choice: str, steps: list[str], episode: str) -> UsageError:
    return UsageError(
        "usage.value",
        f"`--in-doubt {choice}`: {len(steps)} calls are in doubt, and one word is not for all",
        expected="STEP=WORD for each",
        found=", ".join(steps[:20]),
        next=tuple(resume_commands(episode, steps)),
    )


def resume_commands(episode: str, steps: Iterable[str]) -> list[str]:
    """Return the `cogcli resume` commands that decide about all these calls, one per choice. `done` is omitted,
    since it needs an output.
    """
    steps = list(steps)
    found = []
    for choice in CHOICES[:3]:
        words = [choice] if len(steps) <= 1 else [f"{step}={choice}" for step in steps]
        flags = " ".join(f"--in-doubt {quote(word)}" for word in words)
        found.append(f"cogcli resume {episode} {flags}")
    return found
