"""One pass over a log for everything that is derived from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cogcli.episode.counters import Counters
from cogcli.episode.findings import FindingSink, unheard
from cogcli.episode.project import Projection
from cogcli.episode.vocabulary import PROJECTION
from cogcli.events.envelope import Event


class LogFold:
    """The projection and the counts of a log, fed together."""

    def __init__(self, told: FindingSink = unheard) -> None:
        self.projection = Projection(told)
        self.tally = Counters()
        self.evidence: Event | None = None
        """The last event, where it is projection evidence."""

    def feed(self, event: Event) -> None:
        """Take one event into account, in order of the log."""
        self.evidence = event if event.event_type == PROJECTION else None
        self.projection.feed(event)
        self.tally.feed(event, is_root=self.projection.is_root(event))

    @property
    def pins(self) -> dict[str, Any]:
        """What the run was pinned to."""
        pins = self.projection.asked.get("pins")
        return pins if type(pins) is dict else {}


def fold_log(events: Iterable[tuple[int, Event]]) -> LogFold:
    """The account of the events that a log reader gives."""
    account = LogFold()
    for _, event in events:
        account.feed(event)
    return account
