"""Strict reading of the log of an episode: what is wrong with it is a warning or an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from cogcli.core.errors import CogcliError
from cogcli.episode.layout import EVENTS, is_renamed
from cogcli.episode.log_reader import EventLog
from cogcli.episode.refusals import no_beginning_error, renamed_folder_error, unreadable
from cogcli.events.envelope import Event

Warn = Callable[[CogcliError], None]
"""What takes the error of a damaged or renamed log that is read all the same."""


def read_events(directory: Path, warn: Warn | None = None) -> list[Event]:
    """The readable events of an episode, at least one. Raises EnvironmentRefusal `episode.unreadable`."""
    return list(iterate_events(directory, warn))


def iterate_events(directory: Path, warn: Warn | None = None) -> Iterator[Event]:
    """The same, one event at a time, for logs of any length. `warn` gets the error of a damaged or renamed log."""

    return read_strictly(EventLog(directory), directory, warn)


def read_strictly(
    log: EventLog, directory: Path, warn: Warn | None = None, *, whole: bool = False
) -> Iterator[Event]:
    """The events of a log up to its end or first damage. A damage, or a beginning other than `run.started`, is a
    warning; with `whole` it is an error, since what happened after a damage is unknown.

    Raises EnvironmentRefusal `episode.unreadable`, also for a log without events.
    """

    first: Event | None = None
    for _, event in log:
        if first is None:
            first = event
            if not event.phase:
                raise unreadable(directory, "no event of a run: it has no phase", file=EVENTS, line=1)
            if event.phase != "start":
                headless = no_beginning_error(directory, event)
                if whole:
                    raise headless
                if warn:
                    warn(headless)
            if warn and is_renamed(directory.name, event.episode_id):
                warn(renamed_folder_error(directory, event.episode_id))
        yield event
    if log.stopped is not None:
        broken = unreadable(directory, log.stopped.message, file=EVENTS, line=log.stopped.line)
        if first is None or whole:
            raise broken
        if warn:
            broken.message += "; only what stands before it is read"
            warn(broken)
    elif first is None:
        raise no_beginning_error(directory, None)
