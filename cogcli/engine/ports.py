"""What the engine is given: what performs calls, the log, and the order of a log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cogcli.core.calls import Answer, Attempt, BindingChain
from cogcli.events.envelope import Draft, Event


class EventSink(Protocol):
    """The log. Only the coordinator appends."""

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """The event as written; once this returns it survives the process. `durable`: the machine, too."""
        ...


class CapabilityRunner(Protocol):
    """Performs calls: live services, or a recorded log."""

    def chain(self, capability_id: str) -> BindingChain:
        """The pinned chain of a capability. Raises BindingResolutionError."""
        ...

    def attempt(self, attempt: Attempt) -> Answer:
        """Make one attempt, in a worker thread. Raises RuntimeErrorBase with `left` set."""
        ...

    def close(self, grace: float) -> None:
        """Leave no socket, thread or child behind; may be called twice."""
        ...


class EventOrder(Protocol):
    """The order of events in the log of a run that is resumed or replayed; LiveOrder for a new run."""

    def wrote_at(self, run_id: str, path: str) -> int | None:
        """The log position of a step's writes; None where the log has none."""
        ...

    def before(self, run_id: str, path: str) -> Callable[[], None] | None:
        """A function that blocks until a call of this step may begin, for seconds at most; None where it may now."""
        ...

    def repeated(self, run_id: str, path: str, number: int) -> bool:
        """Whether the log has this attempt, from the second on: then its wait is over."""
        ...
