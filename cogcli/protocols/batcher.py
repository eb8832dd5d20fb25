"""Calls of one foreach that go out as one (docs/reference/protocols.md#batch).

1. The first call opens a group. It waits at most 1 s for calls that the coordinator announced, and 10 ms for calls
   that follow from answers just given, never past its own deadline. A later call opens the next group.
2. The first call makes the exchange for all. The exchange is cancelled once no call of the group waits for it.
3. Each call keeps its own deadline, cancellation and outcome.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from cogcli.core.calls import BatchSlot, Cancellation, Siblings
from cogcli.core.connections import GIVEN_UP
from cogcli.core.errors import CallTimeoutError, TransportError
from cogcli.protocols.invoker import CallLimits

MAX_CALLS: Final = 64
"""The most calls in one array, whatever `max_parallel` allows."""
_ANNOUNCED_SECONDS: Final = 1.0
_FOLLOWING_SECONDS: Final = 0.01


class BatchMember:
    """One call of a group. `outcome` is set before `done`."""

    def __init__(self, call: Any, size: int, deadline: float) -> None:
        self.call = call
        self.size = size
        self.deadline = deadline
        self.outcome: Any = None
        self.done = threading.Event()
        self.given_up = False


class _Group:
    """The calls gathered so far. `full`: a further call would exceed the size or number allowed."""

    def __init__(self) -> None:
        self.members: list[BatchMember] = []
        self.size = 0
        self.full = False
        self.closed = False
        self.cancel = Cancellation()

    def add(self, member: BatchMember) -> None:
        self.members.append(member)
        self.size += member.size

    def give_up(self, member: BatchMember) -> None:
        """Mark one call as given up; once every call of a closed group is, its exchange is cancelled."""
        member.given_up = True
        member.done.set()
        if self.closed and all(member.given_up for member in self.members):
            self.cancel.set()


Send = Callable[[list[Any], float, Cancellation], list[Any]]
"""Makes one exchange for several calls until a deadline: an outcome for each, in their order."""


class Batcher:
    """Joins calls of the same foreach and the same kind into groups. One per run."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], _Group] = {}

    def outcome(
        self, call: Any, *, size: int, cap: int, kind: str, place: BatchSlot, limits: CallLimits, send: Send
    ) -> Any:
        """This call's outcome of the exchange; None where `send` raised in another call's thread.

        Raises CallTimeoutError at its deadline, TransportError where it was given up, and, for the call that makes the
        exchange, what `send` raises.
        """
        own = BatchMember(call, size, limits.deadline)
        group = self._join(own, (id(place.siblings), kind), place, cap)
        with limits.cancel.on_cancel(lambda: group.give_up(own)):
            if group.members[0] is own:
                self._close(group, (id(place.siblings), kind), place.siblings, limits)
                _exchange(group, send)
            elif not own.done.wait(max(0.0, limits.deadline - time.monotonic())):
                group.give_up(own)
                raise CallTimeoutError("call.timeout", "no answer in time", left=group.closed)
        if own.given_up:
            raise TransportError("call.transport", GIVEN_UP, left=group.closed)
        return own.outcome

    def _join(self, own: BatchMember, key: tuple[int, str], place: BatchSlot, cap: int) -> _Group:
        with place.siblings.changed:
            group = self._open.get(key)
            if group is not None and (group.size + own.size > cap or len(group.members) >= MAX_CALLS):
                group.full = True
                group = None
            if group is None:
                group = self._open[key] = _Group()
            group.add(own)
        place.settle()
        return group

    def _close(self, group: _Group, key: tuple[int, str], siblings: Siblings, limits: CallLimits) -> None:
        """Wait for the other calls, then close the group."""
        until = min(limits.deadline, time.monotonic() + _ANNOUNCED_SECONDS)
        with siblings.changed:
            while len(group.members) < siblings.width and not group.full and not limits.cancel.is_set:
                rest = until - time.monotonic()
                if rest <= 0:
                    break
                announced = siblings.awaited > 0
                changed = siblings.changed.wait(rest if announced else min(rest, _FOLLOWING_SECONDS))
                if not changed and not announced:
                    break
            group.closed = True
            if self._open.get(key) is group:
                del self._open[key]


def _exchange(group: _Group, send: Send) -> None:
    """Make one exchange for all calls of a group; every call is woken, also where `send` raises."""
    waiting = [member for member in group.members if not member.given_up]
    try:
        if waiting:
            deadline = max(member.deadline for member in waiting)
            outcomes = send([member.call for member in waiting], deadline, group.cancel)
            for member, outcome in zip(waiting, outcomes, strict=True):
                member.outcome = outcome
    finally:
        for member in group.members:
            member.done.set()
