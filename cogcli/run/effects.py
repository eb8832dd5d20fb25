"""The calls of a run that may have changed something outside. A rerun must not repeat them without a person's choice.

1. A call is listed from its write-ahead record on, unless no attempt can have left the process.
2. Its state is `done` if the log holds its answer, `failed` if the answer was an error, otherwise `in doubt`. A call
   that a person skipped or failed because of the doubt stays `in doubt`. A call that its service left unfinished is
   `waiting for input` until it is sent again with the answer.
3. The first event of a rerun lists the effects of the earlier run, and they are listed here too. A call in this log
   replaces a listed one with the same step path.
4. Of an idempotent call only the key and the input hash are kept, so that a repeat uses the same key.
"""

from __future__ import annotations

from typing import Final

from cogcli.base.canonical import digest_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.call_records import AttemptMade
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import RunStarted, StepAnswered, StepFinished, StepStarted
from cogcli.declarations.governance_events import PolicyDecided
from cogcli.declarations.value_types import Json
from cogcli.run.log_index import LogIndex

DONE: Final = "done"
FAILED: Final = "failed"
IN_DOUBT: Final = "in doubt"
UNFINISHED: Final = "waiting for input"
_KEPT: Final = ("effect", "idempotent")


class Effect(NamedTuple):
    """One call of an earlier run that may have changed external state."""

    step: str
    """Its step path. Items and gates count as steps."""
    capability: str
    kind: str
    """Its effect class: `effect` or `idempotent`."""
    state: str
    input_hash: str
    idempotency_key: str
    origin: dict[str, str]
    """The episode and the event id of its write-ahead record."""
    output: Json | None = None
    """The call's output, if it is known and the class is `effect`."""
    input: Json | None = None
    """The call's input, if the call is in doubt: a probe needs it."""

    def to_payload(self) -> Json:
        """Return the effect as an entry for the `run.started` event of a later run."""
        return self._asdict()


def find_effects(recording: LogIndex) -> dict[str, Effect]:
    """Return the effects of this run and of the earlier run whose effects it lists, by step path in order."""
    started = recording.started
    earlier = RunStarted.of(started.payload).effects if started else {}
    found = {
        step: Effect(**{name: entry.get(name) for name in Effect._fields})
        for step, entry in earlier.items()
    }
    for intent in sorted(recording.intents.values(), key=lambda event: event.seq or 0):
        effect = _effect_from_intent(recording, intent)
        if effect is not None:
            found.pop(effect.step, None)
            found[effect.step] = effect
    return found


def _effect_from_intent(recording: LogIndex, intent: Event) -> Effect | None:
    call = StepStarted.of(intent.payload)
    if not call.capability or call.side_effects not in _KEPT:
        return None
    state, output = _find_outcome(recording, intent)
    if not state:
        return None
    is_effect = call.side_effects == "effect"
    return Effect(
        step=intent.step_id or "",
        capability=call.capability,
        kind=str(call.side_effects),
        state=state,
        input_hash=digest_of(call.input or {}),
        idempotency_key=call.idempotency_key or "",
        origin={"episode": intent.episode_id, "event": intent.id},
        output=output if is_effect else None,
        input=call.input if is_effect and state == IN_DOUBT else None,
    )


def may_have_left(recording: LogIndex, intent: Event) -> bool:
    """Return whether an attempt at a call may have left the process. A skill that has begun counts as a call."""
    is_call = bool(StepStarted.of(intent.payload).capability)
    return not is_call or bool(_find_outcome(recording, intent)[0])


def _find_outcome(recording: LogIndex, intent: Event) -> tuple[str, Json | None]:
    """Return the state of a call and its output. The state is empty if no attempt can have left the process."""
    key = (intent.run_id or "", intent.step_id or "")
    end, decision = recording.closings.get(key), recording.decisions.get(key)
    closing = StepFinished.of(end.payload) if end else None
    output = _find_output(recording.answers.get(key), closing, decision)
    if output is not None:
        return DONE, output
    if closing is None and decision is None and recording.is_unfinished(*key):
        return UNFINISHED, None
    if closing is None or decision is not None:
        return IN_DOUBT, None
    return (FAILED if any(map(_may_have_left, closing.attempts or ())) else ""), None


def _find_output(
    answer: StepAnswered | None, closing: StepFinished | None, decision: Event | None
) -> Json | None:
    """Return the output of a call: from its early answer, from the end of its step, or from a decision about it."""
    if answer is not None and answer.output is not None:
        return answer.output
    if closing is not None and closing.step_status == "done" and closing.output is not None:
        output: Json = closing.output
        return output
    return PolicyDecided.of(decision.payload).output if decision is not None else None


def _may_have_left(attempt: AttemptMade) -> bool:
    return attempt.status != "skipped" and attempt.left is not False
