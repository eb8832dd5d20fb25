"""What the calls of a run did outside, for whoever runs it again: effects that must not happen twice unasked.

1. A call counts from its intent on, unless every attempt of it surely did not leave.
2. It is `done` where the log holds its answer, `failed` where it was answered with an error, else `in doubt`: also
   where a person left it out or failed it for that.
3. What an earlier run did, of which this one took over results or was asked about, is in its first event: it
   happened there, and counts here. A call of this log stands above one of an earlier run with the same step path.
4. Of idempotent calls nothing but key and input is kept, so that the key holds where the call is made again.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cogcli.base.canonical import digest_of
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import RunStarted, StepFinished, StepStarted
from cogcli.declarations.governance_events import PolicyDecided
from cogcli.run.log_index import LogIndex

DONE: Final = "done"
FAILED: Final = "failed"
IN_DOUBT: Final = "in doubt"
_KEPT: Final = ("effect", "idempotent")


class Effect(NamedTuple):
    """One call of an earlier run that may have changed something outside."""

    step: str
    """Its step path, items and gates among them."""
    capability: str
    kind: str
    """The class of its effect: effect or idempotent."""
    state: str
    input_hash: str
    idempotency_key: str
    origin: dict[str, str]
    """The episode and the event of its intent."""
    output: dict[str, Any] | None = None
    """What it answered, where that is known and it was of class effect."""
    input: dict[str, Any] | None = None
    """What it was given, where it is in doubt: a service may be asked about it."""

    def to_payload(self) -> dict[str, Any]:
        """The effect as the first event of a later run holds it."""
        return self._asdict()


def effects_of(recording: LogIndex) -> dict[str, Effect]:
    """What this run did and knows to have been done before it, by step path in order."""
    started = recording.started
    earlier = RunStarted.of(started.payload).effects if started else {}
    found = {
        step: Effect(**{name: entry.get(name) for name in Effect._fields})
        for step, entry in earlier.items()
    }
    for intent in sorted(recording.intents.values(), key=lambda event: event.seq or 0):
        effect = _effect(recording, intent)
        if effect is not None:
            found.pop(effect.step, None)
            found[effect.step] = effect
    return found


def _effect(recording: LogIndex, intent: Event) -> Effect | None:
    call = StepStarted.of(intent.payload)
    if not call.capability or call.side_effects not in _KEPT:
        return None
    state, output = _outcome(recording, intent)
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


def _outcome(recording: LogIndex, intent: Event) -> tuple[str, dict[str, Any] | None]:
    """What became of a call, and its answer; no word where nothing of it left."""
    key = (intent.run_id, intent.step_id)
    early, decision = recording.answers.get(key), recording.decisions.get(key)
    end = recording.closings.get(key)
    closing = StepFinished.of(end.payload) if end else None
    output = early.output if early else None
    if output is None and closing is not None and closing.step_status == "done":
        output = closing.output
    if output is None and decision is not None:
        output = PolicyDecided.of(decision.payload).output
    if output is not None:
        return DONE, output
    if closing is None or decision is not None:
        return IN_DOUBT, None
    attempts = closing.attempts or []
    left = any(each.status != "skipped" and each.left is not False for each in attempts)
    return (FAILED if left else ""), None
