"""`gc --end-waiting`: waiting runs without an answer are ended, unless an effect is in doubt
(docs/reference/command-line.md#views)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from cogcli.app.episodes import list_episodes
from cogcli.app.resume import resume
from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow
from cogcli.episode.log_reader import iterate_events
from cogcli.episode.removal import read_pins
from cogcli.run.log_index import LogIndex
from cogcli.run.results import Control
from cogcli.run.resume import ResumeRequest

_WAITING = EpisodeFilter(outcomes=("pending",))


class WaitingRuns(NamedTuple):
    """The runs to end, and the number of other waiting runs by reason: `in_doubt`, `pinned`, `younger` or
    `unreadable`."""

    rows: list[EpisodeRow]
    kept: Counter[str]


def plan_ends(settings: Settings, before: str, warn: Callable[[CogcliError], None]) -> WaitingRuns:
    """Return the runs that wait since `before`. Raise UnusableEnvironment if the pins cannot be read."""
    pins = read_pins(Path(settings.runs_dir))
    rows: list[EpisodeRow] = []
    kept: Counter[str] = Counter()
    for row in list_episodes(settings, _WAITING, None):
        try:
            reason = "pinned" if row.id in pins else _find_protection(row, before)
        except CogcliError as error:
            warn(error)
            reason = "unreadable"
        if reason:
            kept[reason] += 1
        else:
            rows.append(row)
    return WaitingRuns(rows, kept)


def _find_protection(row: EpisodeRow, before: str) -> str:
    """Return why a waiting run is not ended; empty if it may be."""
    log = LogIndex(iterate_events(row.directory))
    if log.open_doubts:
        return "in_doubt"
    return "younger" if log.last is None or log.last.timestamp >= before else ""


def end_runs(
    settings: Settings, plan: WaitingRuns, by: str, warn: Callable[[CogcliError], None]
) -> WaitingRuns:
    """End the planned runs as `resume --abort` does, and return those that were ended.

    A run that cannot be ended, or waits for a decision about an effect, is left, with a warning for an error."""
    ended: list[EpisodeRow] = []
    kept_by_reason = plan.kept.copy()
    request = ResumeRequest(abort=True, by=by, reason="gc --end-waiting")
    for row in plan.rows:
        try:
            result = resume(
                settings, row.directory, request, listener=lambda event: None, control=Control()
            )
        except CogcliError as error:
            warn(error)
            kept_by_reason["unreadable"] += 1
            continue
        for warning in result.warnings:
            warn(warning)
        if result.status == "pending":
            kept_by_reason["in_doubt"] += 1
        else:
            ended.append(row)
    return WaitingRuns(ended, kept_by_reason)
