"""How a run stands that nothing drives any more: what it asks a person, what may have happened, what was cut off.

1. A step that was running when its process ended never ended itself. It is `in doubt` where its call may have had an
   effect that nobody may repeat unasked, else `cut off`: whoever goes on with the run begins it again.
2. Of a run that waits for a person, what asks `waits`, and so does every step around it.
3. An answer closes a request; of several requests of one step the latest counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.core.calls import HARMLESS
from cogcli.core.terminal_text import visible
from cogcli.events.types import row_of
from cogcli.report.humanize import seconds_of

if TYPE_CHECKING:
    from cogcli.events.envelope import Event
    from cogcli.report.run_fold import RunFold, StepView

CUT_OFF: Final = "cut off"
IN_DOUBT: Final = "in doubt"
WAITS: Final = "waits"
ALIVE: Final = "running"


class Ask(NamedTuple):
    """One open request for a person's yes or no."""

    approval_id: str
    step_id: str
    capability: str
    gate: str
    reason: str
    expires_at: str


class Asks:
    """The requests of a log that nobody answered yet."""

    def __init__(self) -> None:
        self._open: dict[str, Ask] = {}

    def add(self, event: Event, payload: dict[str, Any]) -> None:
        """Take one event of approvals."""
        id = _word(payload.get("approval_id"))
        if row_of(event.event_type).resolves:
            self._open.pop(id, None)
        elif event.event_type == "approval.requested" and id:
            names = ("step_id", "capability", "gate", "reason", "expires_at")
            asked = Ask(id, *(_word(payload.get(name)) for name in names))
            before = [one.approval_id for one in self._open.values() if one.step_id == asked.step_id]
            for other in before:
                del self._open[other]
            self._open[id] = asked

    @property
    def open(self) -> list[Ask]:
        """They, in order of being asked."""
        return list(self._open.values())


class UnfinishedState(NamedTuple):
    """What stands in the way of the end of a run. Steps are those that call something."""

    asks: tuple[Ask, ...] = ()
    doubtful: tuple[StepView, ...] = ()
    cut_off: tuple[StepView, ...] = ()


def unfinished_state(fold: RunFold, status: str) -> UnfinishedState:
    """How a run of this status stands. Its steps that seem to run get the word of what became of them.

    Of another tool's nothing is known but what it says itself.
    """
    if status == ALIVE or not fold.chained:
        return UnfinishedState()
    ended = fold.root is not None and fold.root.status not in ("pending", "running")
    asks = () if ended else tuple(fold.asks.open)
    asking = {ask.step_id for ask in asks}
    doubtful, cut_off = [], []
    for step in _steps(fold):
        if step.id in asking and step.status == "pending":
            step.status, step.detail = WAITS, "needs your approval"
        elif step.status == ALIVE:
            step.status = _became(step, waiting=bool(asks) and status == "pending")
            if step.binding and step.status == IN_DOUBT:
                doubtful.append(step)
            elif step.binding and step.status == CUT_OFF:
                cut_off.append(step)
    return UnfinishedState(asks, tuple(doubtful), () if ended else tuple(cut_off))


def _steps(fold: RunFold) -> Iterator[StepView]:
    for run in fold.runs.values():
        yield from run.steps.values()


def _became(step: StepView, *, waiting: bool) -> str:
    if step.effect and step.effect not in HARMLESS and not step.answered:
        return IN_DOUBT
    return WAITS if waiting else CUT_OFF


def describe(standing: UnfinishedState, now: str, when: Callable[[str], str]) -> list[tuple[str, str]]:
    """What a person should know about it: a word, and a sentence with times as `when` shows them."""
    rows = [(WAITS, _asked(ask, now, when)) for ask in standing.asks]
    rows += [
        (
            IN_DOUBT,
            f"{step.id}: {step.uses or step.binding} may have happened before the run stopped: look at the other side",
        )
        for step in standing.doubtful
    ]
    rows += [(CUT_OFF, f"{step.id}: {_again(step)}") for step in standing.cut_off]
    return [(word, visible(text)) for word, text in rows]


def _again(step: StepView) -> str:
    if step.answered:
        return "it was answered, and the answer is kept"
    return f"{step.uses or step.binding} is called again when the run goes on"


def is_expired(ask: Ask, now: str) -> bool:
    """Whether it is too late for a yes: then the request is made anew when the run goes on."""
    until, current = seconds_of(ask.expires_at), seconds_of(now)
    return until is not None and current is not None and until <= current


def _asked(ask: Ask, now: str, when: Callable[[str], str]) -> str:
    who = f"{ask.step_id}, gate {ask.gate}" if ask.gate else ask.step_id
    text = f"{who}: {ask.reason or f'{ask.capability} needs a yes from a person'}"
    if not ask.expires_at:
        return text
    word = "expired" if is_expired(ask, now) else "until"
    return f"{text}, {word} {when(ask.expires_at)}"


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
