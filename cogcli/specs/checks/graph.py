"""The dependency graph of a skill's steps: its problems, its plan order, and its bit sets of steps."""

from __future__ import annotations

from collections.abc import Sequence

from cogcli.base.problems import KeyPath, suggestion
from cogcli.specs.checks.step_facts import StepFacts


class StepGraph:
    """The steps by position in plan order: topological, ties by file order.

    Sets of steps are bit sets, in which bit n is the step at position n. `before[n]` has all direct and indirect
    dependencies of step n, `after[n]` all steps that depend on it. If the graph has a cycle, `order` is empty.
    """

    def __init__(self, dependencies: Sequence[tuple[int, ...]]) -> None:
        self.order = _sort_indices(dependencies)
        position = {index: n for n, index in enumerate(self.order)}
        self.before: list[int] = []
        for index in self.order:
            bits = 0
            for dependency in dependencies[index]:
                n = position[dependency]
                bits |= self.before[n] | 1 << n
            self.before.append(bits)
        self.after = [0] * len(self.order)
        for index in reversed(self.order):
            n = position[index]
            bits = self.after[n] | 1 << n
            for dependency in dependencies[index]:
                self.after[position[dependency]] |= bits

    def find_concurrent(self, position: int) -> int:
        """Return, as bits, the steps that are concurrent with this one.

        Bits beyond the last step are set too, so the result may be used only as a mask.
        """
        return ~(self.before[position] | self.after[position] | 1 << position)


def dependencies_of(facts: Sequence[StepFacts]) -> list[tuple[int, ...]]:
    """Return, for each step in file order, the indices of its dependencies.

    Report unknown names and self-references.
    """
    index_of = {fact.step.id: index for index, fact in enumerate(facts)}
    found: list[tuple[int, ...]] = []
    for index, fact in enumerate(facts):
        named, indices = fact.step.config.depends_on, []
        if named is None:
            indices = [index - 1] if index else []
        for n, name in enumerate(named or ()):
            other = index_of.get(name)
            if other is None:
                message, hint = f"depends on unknown step `{name}`", suggestion(name, index_of)
                fact.report.error("graph.unknown", _find_place(fact, n), message, hint=hint)
            elif other == index:
                fact.report.error("graph.self", _find_place(fact, n), "depends on itself")
            else:
                indices.append(other)
        found.append(tuple(indices))
    return found


def _find_place(fact: StepFacts, n: int) -> KeyPath:
    """Return the path at which a dependency is declared: in the config, otherwise in the step itself."""
    return (*fact.report.first(("config", "depends_on"), ("depends_on",)), n)


def report_cycle(facts: Sequence[StepFacts], dependencies: Sequence[tuple[int, ...]]) -> None:
    """Report `graph.cycle` at a declared dependency of a cycle. Only one cycle is reported."""
    cycle = _find_cycle(dependencies)
    if not cycle:
        return
    # Every cycle has a written dependency: implicit ones only point to the step before.
    start = next(
        n for n, index in enumerate(cycle) if facts[index].step.config.depends_on is not None
    )
    names = [facts[index].step.id for index in (*cycle[start:-1], *cycle[: start + 1])]
    first = facts[cycle[start]]
    place = _find_place(first, (first.step.config.depends_on or ()).index(names[1]))
    first.report.part("").error("graph.cycle", place, f"cycle {' -> '.join(names)}")


def _sort_indices(dependencies: Sequence[tuple[int, ...]]) -> list[int]:
    from heapq import heapify, heappop, heappush

    waiting = [len(set(needed)) for needed in dependencies]
    dependents: list[list[int]] = [[] for _ in dependencies]
    for index, needed in enumerate(dependencies):
        for other in set(needed):
            dependents[other].append(index)
    ready = [index for index, count in enumerate(waiting) if not count]
    heapify(ready)
    order = []
    while ready:
        index = heappop(ready)
        order.append(index)
        for dependent in dependents[index]:
            waiting[dependent] -= 1
            if not waiting[dependent]:
                heappush(ready, dependent)
    return order if len(order) == len(dependencies) else []


def _find_cycle(dependencies: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the indices of a cycle of dependencies, with the first index repeated at the end. Empty without a
    cycle.
    """
    state = [0] * len(dependencies)
    for start in range(len(dependencies)):
        trail, branches = [start], [iter(dependencies[start])]
        if state[start]:
            continue
        state[start] = 1
        while branches:
            following = next(branches[-1], None)
            if following is None:
                branches.pop()
                state[trail.pop()] = 2
            elif state[following] == 1:
                return [*trail[trail.index(following) :], following]
            elif not state[following]:
                state[following] = 1
                trail.append(following)
                branches.append(iter(dependencies[following]))
    return []
