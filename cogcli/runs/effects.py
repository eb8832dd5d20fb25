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

from cogcli.core.canonical import digest_of
from cogcli.events.envelope import Event
from cogcli.runs.log_index import LogIndex

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
    told = (started.payload.get("effects") if started else None) or {}
    found = {
        step: Effect(**{name: entry.get(name) for name in Effect._fields}) for step, entry in told.items()
    }
    for intent in sorted(recording.intents.values(), key=lambda event: event.seq or 0):
        effect = _effect(recording, intent)
        if effect is not None:
            found.pop(effect.step, None)
            found[effect.step] = effect
    return found


def _effect(recording: LogIndex, intent: Event) -> Effect | None:
    told, step = intent.payload, intent.step_id or ""
    if not told.get("capability") or told.get("side_effects") not in _KEPT:
        return None
    state, output = _outcome(recording, intent)
    if not state:
        return None
    return Effect(
        step,
        told["capability"],
        told["side_effects"],
        state,
        digest_of(told.get("input") or {}),
        told.get("idempotency_key") or "",
        {"episode": intent.episode_id, "event": intent.id},
        output if told["side_effects"] == "effect" else None,
        told.get("input") if state == IN_DOUBT and told["side_effects"] == "effect" else None,
    )


def _outcome(recording: LogIndex, intent: Event) -> tuple[str, dict[str, Any] | None]:
    """What became of a call, and its answer; no word where nothing of it left."""
    key = (intent.run_id, intent.step_id)
    closing, early = recording.closings.get(key), recording.answers.get(key)
    decision = recording.decisions.get(key)
    output = early["output"] if early else None
    if output is None and closing is not None and closing.event_type == "step.completed":
        output = closing.payload.get("output")
    if output is None and decision is not None:
        output = decision.payload.get("output")
    if output is not None:
        return DONE, output
    if closing is None or decision is not None:
        return IN_DOUBT, None
    attempts = closing.payload.get("attempts") or []
    left = any(each.get("status") != "skipped" and each.get("left") is not False for each in attempts)
    return (FAILED if left else ""), None
