"""How a call that may have happened is resolved: one value, and one function that applies it.

1. A doubt is decided once: by a person, or by whatever else can know. Who said so is in the log before anything
   follows from it, and every later resume keeps to it.
2. `rerun` makes the call again; `done` takes an answer instead of it; `skip` leaves it out; `fail` fails it.
   Without a decision the run waits for a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cogcli.base.calls import Answer
from cogcli.base.canonical import digest_of
from cogcli.base.errors import EffectInDoubtError, RejectedError
from cogcli.base.redact import Redactor
from cogcli.base.step_path import StepPath
from cogcli.run.engine.outcome import Degraded

_BY_NAME: Final = Redactor()
CHOICES: Final = ("rerun", "skip", "fail", "done")


class DoubtResolution(NamedTuple):
    """The decision about one call that may have happened: a word of CHOICES, and the `speaker` who decided."""

    choice: str
    by: str
    reason: str = ""
    output: dict[str, Any] | None = None
    """With `done`: what the call answered, checked by the capability's contract."""


class Earlier(NamedTuple):
    """A call of the source run of a rerun: what it was, and what was decided about it."""

    capability: str
    input_hash: str
    idempotency_key: str
    idempotent: bool
    origin: dict[str, str]
    """Its `episode`, and the `event` id of its start."""
    resolution: DoubtResolution | None

    def was_given(self, values: dict[str, Any]) -> bool:
        """Whether it had this input, by hash; the masked input counts, too: the log has only that."""
        return self.input_hash in (digest_of(values), digest_of(_BY_NAME.mask(values)))


class EarlierCalls:
    """The calls that the first event of a rerun names, by step path.

    1. An item or a round that moved is known by its input: it must not happen twice because another one came before it.
    2. One call stands for one item or round. Where several have the same input each needs a call of its own.
    3. What is at the place of a call with another input is given that call, too: whoever asks sees by `was_given` that
       its answer is none for this input.
    """

    def __init__(self, told: Mapping[str, Any], behind: Mapping[str, str] | None = None) -> None:
        """`behind`: by step path what the log that is told again has there: the event of the call whose answer was
        taken, or the idempotency key of a call that was made. So that each part is given the same call as then."""
        self._calls = {step: _earlier(entry) for step, entry in told.items()}
        self._behind = behind or {}
        self._alike: dict[tuple[str, str, str], list[str]] = {}
        self._owners: dict[str, str] = {}
        """By the step path of an earlier call: the one that it stands for now."""
        self._named = {each.origin["event"]: step for step, each in self._calls.items()}
        self._named |= {each.idempotency_key: step for step, each in self._calls.items()}
        for step, name in self._behind.items():
            if name in self._named:
                self._owners[self._named[name]] = step
        for step, call in self._calls.items():
            if StepPath(step).in_loop:
                alike = (StepPath(step).loop, call.capability, call.input_hash)
                self._alike.setdefault(alike, []).append(step)

    def of(self, step: str, capability_id: str, values: dict[str, Any]) -> Earlier | None:
        """The earlier call for the one that is about to be made; None where there is none."""
        in_loop = StepPath(step).in_loop
        if step not in self._calls and not in_loop:
            return None
        hash_now = digest_of(values)
        here = self._of_part(step, capability_id, hash_now) if in_loop else self._calls[step]
        if here is None or here.capability != capability_id:
            return None
        return None if here.idempotent and here.input_hash != hash_now else here

    def _of_part(self, step: str, capability_id: str, hash_now: str) -> Earlier | None:
        """The call with the same input that stands for no other part, the one at the same place before others.
        Else, where the input of this place changed, the call that was made there."""
        if name := self._named.get(self._behind.get(step, "")):
            return self._calls[name]
        if step not in self._behind:
            alike = self._alike.get((StepPath(step).loop, capability_id, hash_now), [])
            for name in sorted(alike, key=lambda name: name != step):
                if self._owners.setdefault(name, step) == step:
                    return self._calls[name]
        here = self._calls.get(step)
        return here if here is not None and here.input_hash != hash_now else None


def _earlier(told: Mapping[str, Any]) -> Earlier:
    said = told.get("resolution")
    return Earlier(
        told["capability"],
        told["input_hash"],
        told["idempotency_key"],
        told["kind"] == "idempotent",
        told["origin"],
        DoubtResolution(said["choice"], said["by"], "", told.get("output")) if said else None,
    )


class LeftOut(Degraded):
    """A person left this call out: in a foreach the item only, else the step."""


def answer_of(resolution: DoubtResolution | None, capability_id: str) -> Answer | None:
    """The answer that stands in for the call; None where it may be made. Raises LeftOut, RejectedError, or
    EffectInDoubtError where nobody has decided yet."""
    if resolution is None:
        raise EffectInDoubtError(
            "effect.in-doubt",
            f"`{capability_id}` may have happened before the run stopped",
            hint="look at the other side, then resume with --in-doubt: it did happen: done, with --output JSON for"
            " its answer; it did not: rerun; to continue without it: skip or fail",
            left=True,
        )
    who = resolution.by.removeprefix("human:")
    if resolution.choice == "done":
        return Answer(resolution.output or {}, None, {"stated_by": resolution.by})
    if resolution.choice == "skip":
        raise LeftOut(f"left out by {who}: it may have happened before")
    if resolution.choice == "fail":
        raise RejectedError(
            "call.rejected", f"left undone by {who}: it may have happened before", left=True
        )
    return None
