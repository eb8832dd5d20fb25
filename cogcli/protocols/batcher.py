"""Calls of one foreach that go out as one (docs/reference/protocols.md#batch).

1. The first to come gathers. It waits for those that the coordinator announced, and a moment for those that follow on
   answers just given; never past its own deadline, and never long: who comes later goes with the next ones.
2. Whoever gathered makes the exchange for all. It ends once nobody waits for it any more.
3. Each of them keeps its own deadline, its own cancellation and its own outcome.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from cogcli.core.calls import Cancellation
from cogcli.core.connections import GIVEN_UP
from cogcli.core.errors import CallTimeoutError, TransportError

if TYPE_CHECKING:
    from cogcli.core.calls import BatchSlot, Siblings
    from cogcli.protocols.invoker import CallLimits

MOST: Final = 64
"""Calls in one array, whatever `max_parallel` says."""
_AWAITED_SECONDS: Final = 1.0
_MOMENT: Final = 0.01


class Joined:
    """One call among those that go out together. `outcome` is set before `done`."""

    def __init__(self, call: Any, size: int, deadline: float) -> None:
        self.call = call
        self.size = size
        self.deadline = deadline
        self.outcome: Any = None
        self.done = threading.Event()
        self.given_up = False


class _Group:
    """Calls gathered so far. `full` once one more would be too much."""

    def __init__(self) -> None:
        self.members: list[Joined] = []
        self.size = 0
        self.full = False
        self.closed = False
        self.cancel = Cancellation()

    def add(self, joined: Joined) -> None:
        self.members.append(joined)
        self.size += joined.size

    def give_up(self, joined: Joined) -> None:
        """One of them waits no longer; the exchange ends with the last."""
        joined.given_up = True
        joined.done.set()
        if self.closed and all(member.given_up for member in self.members):
            self.cancel.set()


Send = Callable[[list[Any], float, Cancellation], list[Any]]
"""Makes one exchange for several calls: an outcome for each, in their order."""


class Gathering:
    """Where calls of the same siblings and the same kind meet. One per run."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], _Group] = {}

    def outcome(
        self, call: Any, *, size: int, cap: int, kind: str, place: BatchSlot, context: CallLimits, send: Send
    ) -> Any:
        """What this call's part of the exchange was; None where the exchange broke down in our own code.

        Raises CallTimeoutError, TransportError where this call waits no longer, and what `send` raises for the one
        that makes the exchange.
        """
        mine = Joined(call, size, context.deadline)
        group = self._join(mine, (id(place.siblings), kind), place, cap)
        with context.cancel.told(lambda: group.give_up(mine)):
            if group.members[0] is mine:
                self._close(group, (id(place.siblings), kind), place.siblings, context)
                _exchange(group, send)
            elif not mine.done.wait(max(0.0, context.deadline - time.monotonic())):
                group.give_up(mine)
                raise CallTimeoutError("call.timeout", "no answer in time", left=group.closed)
        if mine.given_up:
            raise TransportError("call.transport", GIVEN_UP, left=group.closed)
        return mine.outcome

    def _join(self, mine: Joined, key: tuple[int, str], place: BatchSlot, cap: int) -> _Group:
        with place.siblings.changed:
            group = self._open.get(key)
            if group is not None and (group.size + mine.size > cap or len(group.members) >= MOST):
                group.full = True
                group = None
            if group is None:
                group = self._open[key] = _Group()
            group.add(mine)
        place.settle()
        return group

    def _close(self, group: _Group, key: tuple[int, str], siblings: Siblings, context: CallLimits) -> None:
        """Wait for the others, then let nobody in any more."""
        until = min(context.deadline, time.monotonic() + _AWAITED_SECONDS)
        with siblings.changed:
            while len(group.members) < siblings.width and not group.full and not context.cancel.is_set:
                rest = until - time.monotonic()
                if rest <= 0:
                    break
                awaited = siblings.awaited > 0
                came = siblings.changed.wait(rest if awaited else min(rest, _MOMENT))
                if not came and not awaited:
                    break
            group.closed = True
            if self._open.get(key) is group:
                del self._open[key]


def _exchange(group: _Group, send: Send) -> None:
    """One exchange for all. Whatever happens, nobody is left waiting."""
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
