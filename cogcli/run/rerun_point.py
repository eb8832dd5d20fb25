"""Where `rerun` goes on after a run that failed or was stopped (docs/reference/command-line.md#next)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cogcli.base.redact import MASK
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event
from cogcli.run.effects import effects_of
from cogcli.run.log_index import LogIndex


class RerunPoint(NamedTuple):
    """`first`: the step to begin with, empty where no step is done that could be kept. `asks`: whether an effect has
    happened that must not happen again unasked. `items`: whether the failed step is a loop of which items are done,
    so that the others alone are run again."""

    first: str
    asks: bool
    items: bool = False

    @property
    def keeps(self) -> bool:
        """Whether anything of the earlier run is kept."""
        return bool(self.first) or self.items


def rerun_point(steps: Mapping[str, str], failed: str, log: LogIndex) -> RerunPoint | None:
    """Where a rerun goes on, by the statuses of the root run's steps and the step that failed. None if nothing is left
    to do, and if `rerun` would refuse: for the run of an agent, and for one whose log holds inputs masked only."""
    left = [step for step, status in steps.items() if status != "done"]
    started = log.started.payload if log.started else {}
    if (
        not left
        or not started
        or started.get("using") == "agent"
        or MASK in str(started.get("inputs"))
    ):
        return None
    first = StepPath(failed).root_step
    items = first in left and _has_done_items(log, first)
    again = [
        effect.step
        for effect in effects_of(log).values()
        if effect.kind == "effect" and StepPath(effect.step).root_step in left
    ]
    asks = any(not (items and _item_of(step) in log.results) for step in again)
    if len(left) == len(steps):
        return RerunPoint("", asks, items)
    return RerunPoint(first if first in left else left[0], asks, items)


def rerun_point_of(
    steps: Mapping[str, str], failed: str, events: Iterable[Event]
) -> RerunPoint | None:
    """As `rerun_point`, by the events of a log."""
    return rerun_point(steps, failed, LogIndex(events))


def _has_done_items(log: LogIndex, step: str) -> bool:
    """Whether a step of the root run is a loop over items, of which some are done."""
    begun = log.intents.get((log.root, step))
    if begun is None or "items" not in begun.payload:
        return False
    return any(_item_of(path) == path and StepPath(path).parent == step for path in log.results)


def _item_of(path: str) -> str:
    """The item of a root run's loop that a step path is, or is inside of; another path without its gates."""
    return StepPath(path).first().partition("@")[0]
