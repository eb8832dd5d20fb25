"""From a log back to the runs in memory, with the reducer that the live run used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cogcli.episode.vocabulary import PROJECTION
from cogcli.events.envelope import Event
from cogcli.mapping.apply import apply, initial_state
from cogcli.state.execution import ExecutionState


class Rebuilt(NamedTuple):
    """The states of an episode's runs: the root's, and its children's by run id."""

    root: ExecutionState
    children: dict[str, ExecutionState]


def rebuild(events: Iterable[Event]) -> ExecutionState:
    """The state of the root run as it was after these events."""
    return rebuild_all(events).root


def rebuild_all(events: Iterable[Event]) -> Rebuilt:
    """The states of all runs as they were after these events. Raises ValueError where none begins."""
    states: dict[str | None, ExecutionState] = {}
    for event in events:
        state = states.get(event.run_id)
        if event.event_type == "run.started" and state is None:
            states[event.run_id] = initial_state(event)
        elif event.event_type != PROJECTION and state is not None:
            apply(state, event)
    if not states:
        raise ValueError("no run begins in this log")
    root = next(iter(states.values()))
    return Rebuilt(root, {state.run_id: state for state in states.values() if state is not root})
