"""The order in which concurrent steps of one run write. Positions are those in plan order.

1. A finished step delays its writes until every earlier concurrent step that shares a target has written or ended.
   Timing must not affect any result.
2. It waits for only the last of these steps, and checks again when that one ends.
3. On resume and replay, a step with recorded writes waits only for steps that wrote before it in the log. While a run
   waited for a person at an earlier step, the other steps may have written.
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
    """Tracks which steps may still write, which steps wait for others, and the merged values. Sets of positions
    are bit sets.
    """

    def __init__(
        self, writes_after: Mapping[int, int], size: int, wrote_at: Callable[[int], int | None]
    ) -> None:
        """`wrote_at` returns the log position of the writes of the step at a position, or None if the log has none."""
        self._after = writes_after
        self._wrote_at = wrote_at
        self._open = (1 << size) - 1 if writes_after else 0
        self._watchers: dict[int, list[int]] = {}
        self._merged: dict[int, list[Write]] = {}

    def must_wait(self, index: int) -> bool:
        """Return whether an overlapping step earlier in plan order may still write. If so, a later `close`
        returns this step.
        """
        others = self._after.get(index, 0) & self._open
        then = self._wrote_at(index) if others else None
        if then is not None:  # over a log only steps that wrote earlier count
            places = [other for other in range(index) if others >> other & 1]
            earlier = [
                other for other in places if (at := self._wrote_at(other)) is not None and at < then
            ]
            others = sum(1 << other for other in earlier)
        if others:
            self._watchers.setdefault(others.bit_length() - 1, []).append(index)
        return bool(others)

    def close(self, indices: Sequence[int]) -> list[int]:
        """Record that these steps will not write any more. Return the steps that no longer have to wait, in plan
        order.
        """
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
        """Store the merges of a step, so that `require_no_conflict` can compare concurrent steps with them."""
        merges = [write for write in writes if STRATEGIES[write.strategy].find_conflict]
        if merges and self._after:
            self._merged[index] = merges

    def require_no_conflict(self, index: int, writes: list[Write]) -> None:
        """Raise OutputMappingError if a concurrent merge set one leaf to another value."""
        if not self._merged or index not in self._after:
            return
        for earlier, theirs in self._merged.items():
            if self._after[index] >> earlier & 1:
                for write in writes:
                    _require_agreement(write, theirs)


def _require_agreement(ours: Write, others: list[Write]) -> None:
    conflict = STRATEGIES[ours.strategy].find_conflict
    for theirs in others:
        if conflict is None or not overlap(ours.target, theirs.target):
            continue
        depth = min(len(ours.target.path), len(theirs.target.path))
        leaf = conflict(_nest_value(theirs, depth), _nest_value(ours, depth))
        if leaf is not None:
            part = f"`{leaf}`" if leaf else "it"
            raise OutputMappingError(
                "output.merge", f"`{ours.target.text}`: two concurrent steps set {part} differently"
            )


def _nest_value(write: Write, depth: int) -> Any:
    """Return the value of a write wrapped in `depth` objects, as seen from the enclosing place."""
    value = write.value
    for segment in reversed(write.target.path[depth:]):
        value = {segment: value}
    return value
