"""The order in which concurrent steps of one run write. Positions are those in plan order.

1. A step that is done with its call waits with its writes for every earlier step beside it that shares a target and
   may still write: which of them ran first must not show in any result.
2. It watches the last of these only; when that one is over it looks again.
3. On resume and replay a step whose writes are in the log waits only for those that wrote before it there: in a run
   that waited for a person at an earlier step the others wrote meanwhile.
4. Two concurrent deep merges must not set one leaf to different values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cogcli.base.errors import OutputMappingError
from cogcli.base.merge import STRATEGIES
from cogcli.base.refs import overlap
from cogcli.state.reducer import Write


class WriteOrder:
    """Which steps may still write, which wait for which, and what was merged. Sets of positions are bit sets."""

    def __init__(
        self, writes_after: Mapping[int, int], size: int, wrote_at: Callable[[int], int | None]
    ) -> None:
        """`wrote_at`: the log position of the writes of the step at a position; None where the log has none."""
        self._after = writes_after
        self._wrote_at = wrote_at
        self._open = (1 << size) - 1 if writes_after else 0
        self._watchers: dict[int, list[int]] = {}
        self._merged: dict[int, list[Write]] = {}

    def must_wait(self, index: int) -> bool:
        """Whether an overlapping step earlier in plan order may still write; if so, a later `close` gives this one."""
        others = self._after.get(index, 0) & self._open
        then = self._wrote_at(index) if others else None
        if then is not None:  # by the log only those wait that wrote before this step
            places = [other for other in range(index) if others >> other & 1]
            earlier = [
                other for other in places if (at := self._wrote_at(other)) is not None and at < then
            ]
            others = sum(1 << other for other in earlier)
        if others:
            self._watchers.setdefault(others.bit_length() - 1, []).append(index)
        return bool(others)

    def close(self, indices: Sequence[int]) -> list[int]:
        """Note that these steps write nothing any more. Gives the steps that no longer have to wait, in plan order."""
        if not self._after:
            return []
        free = []
        for index in indices:
            self._open &= ~(1 << index)
        for index in indices:
            free += [
                waiting for waiting in self._watchers.pop(index, ()) if not self.must_wait(waiting)
            ]
        return sorted(free)

    def remember(self, index: int, writes: list[Write]) -> None:
        """Keep the writes of a step that may conflict, for `require_no_conflict` of concurrent ones."""
        merges = [write for write in writes if STRATEGIES[write.strategy].conflict]
        if merges and self._after:
            self._merged[index] = merges

    def require_no_conflict(self, index: int, writes: list[Write]) -> None:
        """Raises OutputMappingError when a concurrent merge set one leaf to another value."""
        if not self._merged or index not in self._after:
            return
        for earlier, theirs in self._merged.items():
            if self._after[index] >> earlier & 1:
                for write in writes:
                    _require_agreement(write, theirs)


def _require_agreement(ours: Write, others: list[Write]) -> None:
    conflict = STRATEGIES[ours.strategy].conflict
    for theirs in others:
        if conflict is None or not overlap(ours.target, theirs.target):
            continue
        depth = min(len(ours.target.path), len(theirs.target.path))
        leaf = conflict(_wrapped(theirs, depth), _wrapped(ours, depth))
        if leaf is not None:
            part = f"`{leaf}`" if leaf else "it"
            raise OutputMappingError(
                "output.merge", f"`{ours.target.text}`: two concurrent steps set {part} differently"
            )


def _wrapped(write: Write, depth: int) -> Any:
    """A write's value as seen from a place that many segments deep."""
    value = write.value
    for segment in reversed(write.target.path[depth:]):
        value = {segment: value}
    return value
