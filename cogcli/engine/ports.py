"""What the engine is handed: who performs calls, and where events go."""

from __future__ import annotations

from typing import Protocol

from cogcli.core.calls import Answer, Attempt, Chain
from cogcli.events.envelope import Draft, Event


class EventSink(Protocol):
    """The log. Only the coordinator appends."""

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """The event as written; once this returns it survives the process. `durable`: the machine, too."""
        ...


class CapabilityRunner(Protocol):
    """Who performs calls: live services, a recorded log, or nobody."""

    def chain(self, capability_id: str) -> Chain:
        """The pinned chain of a capability. Raises BindingResolutionError."""
        ...

    def attempt(self, attempt: Attempt) -> Answer:
        """Make one attempt, in a worker thread. Raises RuntimeErrorBase with `left` set."""
        ...

    def close(self, grace: float) -> None:
        """Leave no socket, thread or child behind; may be called twice."""
        ...
