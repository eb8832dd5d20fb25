"""The state of a run that no process drives any more: open requests, calls in doubt, steps that were cut off.

1. A step that was running when its process ended never ended itself. It is `in doubt` where its call may have had an
   effect that nobody may repeat unasked, else `cut off`: whoever continues with the run begins it again.
2. Of a run that waits for a person, what asks `waits`, and so does every step around it.
3. An answer closes a request; of several requests of one step the latest counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from cogcli.base.terminal_text import visible
from cogcli.episode.history import Ask, History
from cogcli.episode.run_history import StepHistory
from cogcli.report.humanize import seconds_of
from cogcli.report.styled_text import CUT_OFF, IN_DOUBT, WAITS

ALIVE: Final = "running"


class UnfinishedState(NamedTuple):
    """What keeps a run from ending. Steps are those that call something."""

    asks: tuple[Ask, ...] = ()
    doubtful: tuple[StepHistory, ...] = ()
    cut_off: tuple[StepHistory, ...] = ()


def unfinished_state(fold: History, status: str) -> UnfinishedState:
    """What keeps a run of this status from ending; empty while it runs, and for another tool's log.

    Its steps that seem to run get the status that they have now: waits, in doubt or cut off.
    """
    if status == ALIVE or not fold.chained:
        return UnfinishedState()
    ended = fold.root is not None and fold.root.status not in ("pending", "running")
    asks = () if ended else tuple(fold.asks.open)
    asking = {ask.step_id for ask in asks}
    doubtful, cut_off = [], []
    for step in (step for run in fold.runs.values() for step in run.steps.values()):
        if step.id in asking and step.status == "pending":
            step.status, step.detail = WAITS, "needs your approval"
        elif step.status == ALIVE:
            step.status = _status_now(step, waiting=bool(asks) and status == "pending")
            if step.binding and step.status == IN_DOUBT:
                doubtful.append(step)
            elif step.binding and step.status == CUT_OFF:
                cut_off.append(step)
    for turn in fold.turns.turns:
        if turn.step.status == ALIVE:
            turn.step.status = WAITS if asks and status == "pending" else CUT_OFF
    return UnfinishedState(asks, tuple(doubtful), () if ended else tuple(cut_off))


def _status_now(step: StepHistory, *, waiting: bool) -> str:
    from cogcli.base.calls import HARMLESS  # the rest of that module is for runs

    if step.effect and step.effect not in HARMLESS and not step.answered:
        return IN_DOUBT
    return WAITS if waiting else CUT_OFF


def describe(
    unfinished: UnfinishedState, now: str, when: Callable[[str], str]
) -> list[tuple[str, str]]:
    """A status word and a sentence for each of them, with times as `when` shows them."""
    rows = [(WAITS, _request_text(ask, now, when)) for ask in unfinished.asks]
    for step in unfinished.doubtful:
        what = "may have happened before the run stopped: look at the other side"
        rows.append((IN_DOUBT, f"{step.id}: {step.uses or step.binding} {what}"))
    for step in unfinished.cut_off:
        again = f"{step.uses or step.binding} is called again when the run goes on"
        what = "it was answered, and the answer is kept" if step.answered else again
        rows.append((CUT_OFF, f"{step.id}: {what}"))
    return [(word, visible(text)) for word, text in rows]


def is_expired(ask: Ask, now: str) -> bool:
    """Whether it is too late for a yes: then the request is made anew when the run goes on."""
    until, current = seconds_of(ask.expires_at), seconds_of(now)
    return until is not None and current is not None and until <= current


def _request_text(ask: Ask, now: str, when: Callable[[str], str]) -> str:
    who = f"{ask.step_id}, gate {ask.gate}" if ask.gate else ask.step_id
    text = f"{who}: {ask.reason or f'{ask.capability} needs a yes from a person'}"
    if not ask.expires_at:
        return text
    word = "expired" if is_expired(ask, now) else "until"
    return f"{text}, {word} {when(ask.expires_at)}"
