"""The state of a run whose process has ended before the run: open requests, calls in doubt, and
interrupted steps.

1. A step that was running when its process ended has no closing event. Its status is `in doubt` if
   its call may have had an effect that must not be repeated without a decision. Otherwise it is
   `cut off`, and a resume starts the step again.
2. If a run waits for a person, the step with the request has the status `waits`. So does every step
   that contains it.
3. An answer closes a request. If a step has several requests, the latest one is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import visible
from cogcli.declarations.governance_events import InputRequested
from cogcli.episode.history import DecisionRequest, History
from cogcli.episode.run_history import StepHistory
from cogcli.episode.turn_history import TurnHistory
from cogcli.report.humanize import seconds_of
from cogcli.report.styled_text import CUT_OFF, IN_DOUBT, WAITS

ALIVE: Final = "running"


class UnfinishedState(NamedTuple):
    """The requests and steps that keep a run from ending. Each step makes a call."""

    asks: tuple[DecisionRequest, ...] = ()
    doubtful: tuple[StepHistory, ...] = ()
    cut_off: tuple[StepHistory, ...] = ()
    inputs: tuple[InputRequested, ...] = ()
    """The input requests of services in unfinished calls."""


def unfinished_state(fold: History, status: str) -> UnfinishedState:
    """Return the requests and steps that keep a run of this status from ending.

    It is empty while the run is active, and for the log of another tool. This function also changes
    the status of running steps to waits, in doubt or cut off."""
    if status == ALIVE or not fold.chained:
        return UnfinishedState()
    ended = fold.root is not None and fold.root.status not in ("pending", "running")
    asks, inputs = ((), ()) if ended else (tuple(fold.asks.open), tuple(fold.inputs.values()))
    waiting = bool(asks or inputs) and status == "pending"
    _mark_turns(fold.turns.turns, waiting=waiting)
    steps = [step for run in fold.runs.values() for step in run.steps.values()]
    _mark_requested(steps, asks)
    _mark_unfinished(steps, inputs)
    stopped = _mark_stopped(steps, waiting=waiting)
    cut_off = () if ended else _calls_with_status(stopped, CUT_OFF)
    return UnfinishedState(asks, _calls_with_status(stopped, IN_DOUBT), cut_off, inputs)


def _calls_with_status(steps: list[StepHistory], status: str) -> tuple[StepHistory, ...]:
    return tuple(step for step in steps if step.binding and step.status == status)


def _mark_turns(turns: list[TurnHistory], *, waiting: bool) -> None:
    for turn in turns:
        if turn.step.status == ALIVE:
            turn.step.status = WAITS if waiting else CUT_OFF


def _mark_requested(steps: list[StepHistory], asks: tuple[DecisionRequest, ...]) -> None:
    """Set the status of the steps that have not started because of an open request."""
    requested = {ask.step_id for ask in asks}
    for step in steps:
        if step.id in requested and step.status == "pending":
            step.status, step.detail = WAITS, "needs your approval"


def _mark_unfinished(steps: list[StepHistory], inputs: tuple[InputRequested, ...]) -> None:
    """Set the status of the steps whose call waits for input: it is not in doubt."""
    asking = {asked.step_id for asked in inputs}
    for step in steps:
        if step.id in asking and step.status == ALIVE:
            step.status, step.detail = WAITS, "needs your input"


def _mark_stopped(steps: list[StepHistory], *, waiting: bool) -> list[StepHistory]:
    """Set the status of the steps that were running when the process ended, and return them."""
    from cogcli.base.calls import HARMLESS  # the rest of that module is for runs

    stopped = [step for step in steps if step.status == ALIVE]
    for step in stopped:
        if step.effect and step.effect not in HARMLESS and not step.answered:
            step.status = IN_DOUBT
        else:
            step.status = WAITS if waiting else CUT_OFF
    return stopped


def describe(
    unfinished: UnfinishedState, now: str, format_time: Callable[[str], str]
) -> list[tuple[str, str]]:
    """Return a status word and a sentence for each request and step. `format_time` formats times."""
    rows = [(WAITS, _describe_request(ask, now, format_time)) for ask in unfinished.asks]
    rows += [(WAITS, f"{each.step_id}: {each.reason}") for each in unfinished.inputs]
    for step in unfinished.doubtful:
        what = "may have happened before the run stopped: check the remote service"
        rows.append((IN_DOUBT, f"{step.id}: {step.uses or step.binding} {what}"))
    for step in unfinished.cut_off:
        again = f"{step.uses or step.binding} is called again when the run goes on"
        what = "it was answered, and the answer is kept" if step.answered else again
        rows.append((CUT_OFF, f"{step.id}: {what}"))
    return [(word, visible(text)) for word, text in rows]


def is_expired(ask: DecisionRequest, now: str) -> bool:
    """Return whether an approval would be too late, so that a resume makes the request again."""
    until, current = seconds_of(ask.expires_at), seconds_of(now)
    return until is not None and current is not None and until <= current


def _describe_request(ask: DecisionRequest, now: str, format_time: Callable[[str], str]) -> str:
    subject = f"{ask.step_id}, gate {ask.gate}" if ask.gate else ask.step_id
    text = f"{subject}: {ask.reason or f'{ask.capability} needs a yes from a person'}"
    if not ask.expires_at:
        return text
    word = "expired" if is_expired(ask, now) else "until"
    return f"{text}, {word} {format_time(ask.expires_at)}"
