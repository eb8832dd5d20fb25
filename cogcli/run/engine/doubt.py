"""The decision about a call that may have happened, and how the engine applies it.

1. A doubt is decided once, by a person or a probe. The log records the decision before it takes effect, and every later
   resume follows it.
2. `rerun` makes the call again, `done` uses an answer instead of it, `skip` skips it, and `fail` fails it. Without a
   decision the run waits for a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cogcli.base.calls import Answer
from cogcli.base.canonical import digest_of
from cogcli.base.errors import EffectInDoubtError, RejectedError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import Redactor
from cogcli.base.step_path import StepPath
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.run.engine.outcome import CallSkipped

_BY_NAME: Final = Redactor()
CHOICES: Final = ("rerun", "skip", "fail", "done")


class DoubtResolution(NamedTuple):
    """The decision about one call that may have happened. `choice` is one of CHOICES, and `by` is the `speaker` who
    decided.
    """

    choice: str
    by: str
    reason: str = ""
    output: dict[str, Any] | None = None
    """With `done`: the output of the call, checked against the capability's contract."""


class EarlierCall(NamedTuple):
    """A call of the source run of a rerun, with the decision about it."""

    capability: str
    input_hash: str
    idempotency_key: str
    idempotent: bool
    origin: dict[str, str]
    """Its `episode`, and the `event` id of its start."""
    resolution: DoubtResolution | None

    def has_input(self, values: dict[str, Any]) -> bool:
        """Return whether the call had this input, compared by hash. The hash of the masked input also matches, since
        the log may contain only masked values.
        """
        return self.input_hash in (digest_of(values), digest_of(_BY_NAME.mask(values)))


class EarlierCalls:
    """The calls of the source run that the first event of a rerun lists, by step path.

    1. An item or round at another index is recognized by its input. So an inserted item does not repeat a call. 2. Each
    earlier call matches at most one item or round, even if several have the same input. 3. If the input of an item or
    round changed, it matches the call at the same index. The caller checks with `has_input` that the old answer does
    not apply.
    """

    def __init__(
        self, entries: Mapping[str, Json], result_sources: Mapping[str, str] | None = None
    ) -> None:
        """Index the entries of the first event.

        `result_sources` maps a step path to the source of its result in this run's log. The source is the event of the
        reused earlier call, or the idempotency key of the call. With it, each item or round matches the same earlier
        call again.
        """
        self._calls = {step: _EarlierEntry.of(entry).to_call() for step, entry in entries.items()}
        self._result_sources = result_sources or {}
        self._alike: dict[tuple[str, str, str], list[str]] = {}
        self._owners: dict[str, str] = {}
        """By step path of an earlier call: the step path that it now belongs to."""
        self._named = {each.origin["event"]: step for step, each in self._calls.items()}
        self._named |= {each.idempotency_key: step for step, each in self._calls.items()}
        for step, name in self._result_sources.items():
            if name in self._named:
                self._owners[self._named[name]] = step
        for step, call in self._calls.items():
            if StepPath(step).in_loop:
                alike = (StepPath(step).loop, call.capability, call.input_hash)
                self._alike.setdefault(alike, []).append(step)

    def find(self, step: str, capability_id: str, values: dict[str, Any]) -> EarlierCall | None:
        """Return the earlier call that matches the next call of a step, or None."""
        in_loop = StepPath(step).in_loop
        if step not in self._calls and not in_loop:
            return None
        hash_now = digest_of(values)
        here = self._match_part(step, capability_id, hash_now) if in_loop else self._calls[step]
        if here is None or here.capability != capability_id:
            return None
        return None if here.idempotent and here.input_hash != hash_now else here

    def _match_part(self, step: str, capability_id: str, hash_now: str) -> EarlierCall | None:
        """Return an unassigned call with the same input, preferably the one at the same index.

        If the input at this index changed, return the call that was made there.
        """
        if name := self._named.get(self._result_sources.get(step, "")):
            return self._calls[name]
        if step not in self._result_sources:
            alike = self._alike.get((StepPath(step).loop, capability_id, hash_now), [])
            for name in sorted(alike, key=lambda name: name != step):
                if self._owners.setdefault(name, step) == step:
                    return self._calls[name]
        here = self._calls.get(step)
        return here if here is not None and here.input_hash != hash_now else None


class _EarlierDecision(Record):
    """The decision about an effect of the earlier run."""

    choice: str
    by: str


class _EarlierEntry(Record):
    """An effect of the earlier run, as the first event records it."""

    capability: str
    input_hash: str
    idempotency_key: str
    kind: str
    origin: dict[str, str]
    resolution: _EarlierDecision | None = None
    output: Json | None = None

    def to_call(self) -> EarlierCall:
        """Return the call with its decision."""
        made, decision = self.resolution, None
        if made is not None:
            decision = DoubtResolution(made.choice, made.by, "", self.output)
        return EarlierCall(
            self.capability,
            self.input_hash,
            self.idempotency_key,
            self.kind == "idempotent",
            self.origin,
            decision,
        )


class SkippedByPerson(CallSkipped):
    """Raised for a call that a person skipped. In a foreach this skips only the item, otherwise the step."""


def find_replacement_answer(
    resolution: DoubtResolution | None, capability_id: str
) -> Answer | None:
    """Return the answer that replaces a call in doubt, or None if the call may be repeated. Raise SkippedByPerson or
    RejectedError if a person decided so. Raise EffectInDoubtError without a decision.
    """
    if resolution is None:
        raise EffectInDoubtError(
            "effect.in-doubt",
            f"`{capability_id}` may have happened before the run stopped",
            hint="check the remote service, then resume with --in-doubt: it did happen: done, with --output JSON for"
            " its answer; it did not: rerun; to continue without it: skip or fail",
            left=True,
        )
    who = resolution.by.removeprefix("human:")
    if resolution.choice == "done":
        return Answer(resolution.output or {}, None, {"stated_by": resolution.by})
    if resolution.choice == "skip":
        raise SkippedByPerson(f"left out by {who}: it may have happened before")
    if resolution.choice == "fail":
        raise RejectedError(
            "call.rejected", f"left undone by {who}: it may have happened before", left=True
        )
    return None
