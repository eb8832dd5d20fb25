"""The step at which `rerun` continues after a run that failed or was stopped (docs/reference/command-line.md#next)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import MASK
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import StepStarted
from cogcli.declarations.run_start import start_of
from cogcli.run.effects import find_effects
from cogcli.run.engine.plan import ERRORS
from cogcli.run.log_index import LogIndex
from cogcli.state.reducer import ReusedResult


class RerunPoint(NamedTuple):
    """The first step of a rerun, and whether the rerun needs a choice by the user.

    `first` is empty if no result can be kept. `asks` is true if an effect happened that needs a choice before it
    is repeated. `items` is true if the failed step is a loop with completed items, so that only the other items
    run again.
    """

    first: str
    asks: bool
    items: bool = False

    @property
    def keeps(self) -> bool:
        """Whether any result of the earlier run is kept."""
        return bool(self.first) or self.items


def rerun_point(steps: Mapping[str, str], failed: str, log: LogIndex) -> RerunPoint | None:
    """Return the point at which a rerun continues, given the statuses of the root run's steps and the failed
    step.

    Return None if no step remains to be run, or if `rerun` would refuse: for the run of an agent, and for a log
    with masked inputs.
    """
    open_steps = [
        step
        for step, status in steps.items()
        if status != "done" or has_collected_errors(log.results.get(step))
    ]
    if not open_steps or not _allows_rerun(log):
        return None
    first = StepPath(failed).root_step
    items = first in open_steps and _has_done_items(log, first)
    asks = _repeats_effects(open_steps, first, log)
    if len(open_steps) == len(steps):
        return RerunPoint("", asks, items)
    return RerunPoint(first if first in open_steps else open_steps[0], asks, items)


def _repeats_effects(steps: Container[str], loop: str, log: LogIndex) -> bool:
    """Return whether a rerun of these steps repeats a call with effects. Results that the rerun reuses of the loop do
    not count.
    """
    return any(
        effect.kind == "effect" and not _is_kept(effect.step, loop, log)
        for effect in find_effects(log).values()
        if StepPath(effect.step).root_step in steps
    )


def _is_kept(path: str, loop: str, log: LogIndex) -> bool:
    """Return whether a rerun from this loop reuses the item or round with this step path."""
    return StepPath(path).root_step == loop and _find_item(path) in log.results


def has_collected_errors(result: ReusedResult | None) -> bool:
    """Return whether this is the result of a loop that collected errors of its items."""
    return result is not None and bool(result.output.get(ERRORS))


def _allows_rerun(log: LogIndex) -> bool:
    if log.started is None:
        return False
    start = start_of(log.started)
    return start.using != "agent" and MASK not in str(start.inputs)


def find_rerun_point_in_events(
    steps: Mapping[str, str], failed: str, events: Iterable[Event]
) -> RerunPoint | None:
    """Return the point at which a rerun continues, given the events of a log. See `rerun_point`."""
    return rerun_point(steps, failed, LogIndex(events))


def _has_done_items(log: LogIndex, step: str) -> bool:
    """Return whether a step of the root run is a loop over items with at least one completed item."""
    begun = log.intents.get((log.root, step))
    if begun is None or StepStarted.of(begun.payload).items is None:
        return False
    return any(_find_item(path) == path and StepPath(path).parent == step for path in log.results)


def _find_item(path: str) -> str:
    """Return the path of the root run's loop item that contains a step path. For any other path, remove its gates."""
    return StepPath(path).first().partition("@")[0]
