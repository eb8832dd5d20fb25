"""What the engine is handed: who performs calls, and where events go."""

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
    """Who performs calls: live services, a recorded log, or nobody."""

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
    """When things happened, as far as a log tells that the run is told again from."""

    def wrote_at(self, run_id: str, path: str) -> int | None:
        """The position of what a step wrote; None where the log does not tell that it did."""
        ...

    def before(self, run_id: str, path: str) -> Callable[[], None] | None:
        """What waits until a call of this step may begin; None where it may now. It blocks, though not for long."""
        ...

    def repeated(self, run_id: str, path: str, number: int) -> bool:
        """Whether the log tells of this attempt, after the first: then nobody has to wait for it once more."""
        ...
