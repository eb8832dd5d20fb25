"""Reads a log as an index. Events without a proof of origin are checked before, so that the index may trust them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cogcli.declarations.envelope import Event
from cogcli.declarations.event_table import EVENT_TYPES
from cogcli.declarations.events import RunPaused, RunResumed, StateProjected
from cogcli.declarations.governance_events import (
    ApprovalGranted,
    ApprovalRejected,
)
from cogcli.episode.layout import EVENTS
from cogcli.episode.log_reader import Warn, iterate_events
from cogcli.episode.refusals import another_tools, unreadable
from cogcli.run.log_index import LogIndex

if TYPE_CHECKING:
    from cogcli.episode.waypoint_reading import LogFromWaypoint


def read_log_index(directory: Path, warn: Warn | None = None) -> tuple[list[Event], LogIndex]:
    """Return the events of a whole cogcli log, and their index.

    Raise UnusableEnvironment `episode.unreadable` for a damaged log or a log of another tool.
    """
    events = list(iterate_events(directory, warn, whole=True))
    if events[0].seq is None:
        raise another_tools(directory, events[0])
    return events, index_events(directory, events, events)


def index_events(
    directory: Path,
    events: Sequence[Event],
    foreign: Iterable[Event],
    waypoint: LogFromWaypoint | None = None,
) -> LogIndex:
    """Return the index of the events of a log. With `waypoint`, the events of skipped rounds are missing.

    Events in `foreign` have no proof of origin, so their payloads are checked first. Raise UnusableEnvironment
    `episode.unreadable` for an event that no cogcli log contains.
    """
    ids, steps, is_only_answered = set(), set(), True
    for event in foreign:
        require_known_payload(directory, event)
        ids.add(event.id)
        steps.add(event.step_id)
        is_only_answered = is_only_answered and _is_of_answer(event)
    try:
        log = LogIndex(events, waypoint)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        why = f"an event is none of ours ({type(error).__name__}: {error!s:.60})"
        raise unreadable(directory, why, file=EVENTS) from error
    log.unvouched_events, log.unvouched_steps = ids, steps
    log.is_only_answered = is_only_answered
    return log


_OF_ANSWERS: Final = frozenset(
    (
        ApprovalGranted.event.name,
        ApprovalRejected.event.name,
        RunPaused.event.name,
        StateProjected.event.name,
    )
)


def _is_of_answer(event: Event) -> bool:
    """Return whether an event records an answer of a person, or begins or ends the session that records it."""
    if event.event_type in _OF_ANSWERS:
        return True
    if event.event_type != RunResumed.event.name:
        return False
    resumed = RunResumed.of(event.payload)
    return resumed == RunResumed(reason="answered", checkpoint=resumed.checkpoint)


def require_known_payload(directory: Path, event: Event) -> None:
    """Raise UnusableEnvironment `episode.unreadable` for an event whose payload does not fit its type."""
    from cogcli.run.recorded_start import find_recorded_problem

    kind = event.event_type or ""
    row = EVENT_TYPES.get(kind)
    if row is None:
        return
    problem = find_recorded_problem(kind, event.payload)
    if row.phase and row.phase != event.phase:
        problem = f"its phase is `{event.phase:.40}`"
    if problem:
        line = (event.seq or 0) + 1
        raise unreadable(
            directory, f"{kind} is not an event of ours: {problem}", file=EVENTS, line=line
        )
