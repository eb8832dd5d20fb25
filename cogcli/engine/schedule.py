"""Which steps may start: dependencies are counted down, never scanned."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from cogcli.engine.plan import StepPlan


class ReadySet:
    """The steps of a plan that are ready, by position in plan order."""

    def __init__(self, plan: StepPlan) -> None:
        self._dependents = plan.dependents
        self._waiting_on = list(plan.waiting_on)
        self._ready = [index for index, count in enumerate(self._waiting_on) if not count]
        self._blocked: set[int] = set()
        self._stranded: set[int] = set()
        heapify(self._ready)

    def __bool__(self) -> bool:
        return bool(self._ready)

    def pop(self) -> int:
        """The first ready step in plan order. Raises IndexError where none is."""
        return heappop(self._ready)

    def release(self, index: int) -> None:
        """Count a step as done for its dependents."""
        for dependent in self._dependents[index]:
            self._waiting_on[dependent] -= 1
            if not self._waiting_on[dependent] and dependent not in self._blocked:
                heappush(self._ready, dependent)

    def block(self, index: int) -> list[int]:
        """Mark all steps downstream as never to run: those steps, each given once, in plan order."""
        return self._downstream(index, self._blocked)

    def strand(self, index: int) -> list[int]:
        """Note that no step downstream will become ready: those steps, each given once, in plan order."""
        return self._downstream(index, self._stranded)

    def _downstream(self, index: int, known: set[int]) -> list[int]:
        found: list[int] = []
        front = [index]
        while front:
            for dependent in self._dependents[front.pop()]:
                if dependent not in known:
                    known.add(dependent)
                    found.append(dependent)
                    front.append(dependent)
        return sorted(found)
