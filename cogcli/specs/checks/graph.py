"""The graph of a skill's steps: its problems, its plan order, and predecessors and successors as bit sets."""

from __future__ import annotations

from collections.abc import Sequence

from cogcli.core.problems import suggestion
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.skill import Skill, Step


class StepGraph:
    """Steps by position in plan order: topological, ties by file order.

    Bit n of a set is the step at position n. `before[n]` holds all steps that n waits for, directly or not; `after[n]`
    all that wait for n. With a cycle `order` is empty.
    """

    def __init__(self, dependencies: Sequence[tuple[int, ...]]) -> None:
        self.order = _plan_order(dependencies)
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

    def beside(self, position: int) -> int:
        """The steps concurrent with this one, as bits; bits above the last step are set too, so use it as a mask."""
        return ~(self.before[position] | self.after[position] | 1 << position)


def dependencies_of(skill: Skill, report: ProblemReport) -> list[tuple[int, ...]]:
    """For each step in file order the indices of those it waits for; reports unknown names and self-references."""
    index_of = {step.id: index for index, step in enumerate(skill.steps)}
    found: list[tuple[int, ...]] = []
    for index, step in enumerate(skill.steps):
        named = step.config.depends_on
        if named is None:
            found.append((index - 1,) if index else ())
        else:
            found.append(_named_dependencies(step, index, named, index_of, report))
    return found


def _named_dependencies(
    step: Step, index: int, named: Sequence[str], index_of: dict[str, int], report: ProblemReport
) -> tuple[int, ...]:
    indices = []
    for n, name in enumerate(named):
        other = index_of.get(name)
        if other is None:
            message = f"step `{step.id}`: depends on unknown step `{name}`"
            report.error("graph.unknown", _place(report, index, n), message, hint=suggestion(name, index_of))
        elif other == index:
            report.error("graph.self", _place(report, index, n), f"step `{step.id}`: depends on itself")
        else:
            indices.append(other)
    return tuple(indices)


def _place(report: ProblemReport, step: int, n: int) -> tuple[str | int, ...]:
    """The path of a dependency: in the config, else in the step itself."""
    return (*report.first(("steps", step, "config", "depends_on"), ("steps", step, "depends_on")), n)


def report_cycle(skill: Skill, dependencies: Sequence[tuple[int, ...]], report: ProblemReport) -> None:
    """`graph.cycle` at a written dependency of a cycle; only one cycle is reported."""
    cycle = _cycle(dependencies)
    if not cycle:
        return
    # A cycle of steps that only wait for the step before in the file does not exist.
    start = next(n for n, index in enumerate(cycle) if skill.steps[index].config.depends_on is not None)
    turned = [*cycle[start:-1], *cycle[: start + 1]]
    names = [skill.steps[index].id for index in turned]
    written = skill.steps[turned[0]].config.depends_on or ()
    place = _place(report, turned[0], written.index(names[1]))
    report.error("graph.cycle", place, f"cycle {' -> '.join(names)}")


def _plan_order(dependencies: Sequence[tuple[int, ...]]) -> list[int]:
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


def _cycle(dependencies: Sequence[tuple[int, ...]]) -> list[int]:
    """A cycle of indices along the dependencies, its first repeated at the end; empty if there is none."""
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
