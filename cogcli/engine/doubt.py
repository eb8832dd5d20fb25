"""What becomes of a call that may have happened: one value, and one way in which it is applied.

1. A doubt is decided once: by a person, or by whatever else can know. Who said so stands in the log, before anything
   follows from it, and it holds for whoever goes on later.
2. `rerun` makes the call again; `done` takes an answer in place of it; `skip` leaves it out; `fail` fails it.
   Without a decision the run waits for a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from cogcli.core.calls import Answer
from cogcli.core.errors import EffectInDoubtError, RejectedError
from cogcli.engine.ending import Degraded

if TYPE_CHECKING:
    from cogcli.engine.context import Run
    from cogcli.engine.record import StepRecord
    from cogcli.engine.tasks import Steps
    from cogcli.specs.capability import Capability

CHOICES: Final = ("rerun", "skip", "fail", "done")


class DoubtResolution(NamedTuple):
    """How one call that may have happened is decided: a word of CHOICES, and who says so, as the log names speakers."""

    choice: str
    by: str
    reason: str = ""
    output: dict[str, Any] | None = None
    """With `done`: what the call answered, checked by the capability's contract."""


class Doubts(Protocol):
    """Who knows of the calls of a run that may have happened before."""

    def settle(
        self, run: Run, record: StepRecord, capability: Capability, values: dict[str, Any], number: int
    ) -> Steps:
        """Decide about this attempt, if it is in doubt, and put that on disk. What it calls is governed, too."""
        ...


class LeftOut(Degraded):
    """Somebody left this call out: of a foreach the item alone, else the step."""


def answer_of(resolution: DoubtResolution | None, capability_id: str) -> Answer | None:
    """The answer that stands in for the call; None where it may be made.

    Raises LeftOut, RejectedError, or EffectInDoubtError where nobody has decided yet.
    """
    if resolution is None:
        raise EffectInDoubtError(
            "effect.in-doubt",
            f"`{capability_id}` may have happened before the run stopped",
            hint="look at the other side, then resume with --in-doubt: it did happen: done, with --output JSON for"
            " its answer; it did not: rerun; to go on without it: skip or fail",
            left=True,
        )
    who = resolution.by.removeprefix("human:")
    if resolution.choice == "done":
        return Answer(resolution.output or {}, None, {"stated_by": resolution.by})
    if resolution.choice == "skip":
        raise LeftOut(f"left out by {who}: it may have happened before")
    if resolution.choice == "fail":
        raise RejectedError("call.rejected", f"left undone by {who}: it may have happened before", left=True)
    return None
