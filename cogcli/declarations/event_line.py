"""An event of which all members but a few are the same each time: they are built once, by the general path
(docs/adr/0028-plain-steps.md).
"""

from __future__ import annotations

from cogcli.declarations.envelope import Event, from_json, to_json
from cogcli.declarations.value_types import Json


class EventLine:
    """The object of a line in the log, without its checksum.

    The variable members are set in place before each append. No key is added or removed, so the order of the keys stays
    that of the original event.
    """

    __slots__ = ("event_type", "members", "metrics", "payload", "phase")

    def __init__(self, event: Event) -> None:
        self.members: Json = to_json(event)
        self.payload: Json = {**event.payload}
        self.metrics: Json = {**(event.metrics or {})}
        self.event_type = event.event_type
        self.phase = event.phase
        self.members["payload"] = self.payload
        if event.metrics is not None:
            self.members["metrics"] = self.metrics

    def to_event(self) -> Event:
        """Return a copy of the event, which later changes of this line do not change."""
        members = {**self.members, "payload": {**self.payload}}
        if self.metrics:
            members["metrics"] = {**self.metrics}
        return from_json(members)
