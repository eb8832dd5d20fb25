"""Nested skills: no cycles, at most ten deep (docs/reference/skill.md#graph-checks)."""

from __future__ import annotations

from typing import Final

from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.graph import shortest_cycle
from cogcli.specs.skill import NESTED, Skill, skills_of, targets_of

MAX_DEPTH: Final = 10


def check_nesting(context: CheckContext) -> None:
    """`skill.cycle` and `skill.depth` of all skills in the catalog, at the steps that nest."""
    skills = context.catalog.skills
    below = {id: [n for n in skills_of(skills[id]) if n in skills] for id in sorted(skills)}
    nested = {id: ids for id, ids in below.items() if ids}
    depths: dict[str, int] = {}
    for id in nested:
        cycle = shortest_cycle(id, lambda name: nested.get(name, ()))
        if cycle:
            _report(context, skills[id], "skill.cycle", f"cycle {' -> '.join(cycle)}", cycle[1])
        if _depth(nested, id, depths) > MAX_DEPTH:
            deepest = max(nested[id], key=lambda name: depths.get(name, 0))
            _report(context, skills[id], "skill.depth", f"skills nest more than {MAX_DEPTH} deep", deepest)


def _depth(nested: dict[str, list[str]], id: str, depths: dict[str, int]) -> int:
    """The depth of nesting below a skill, at most one more than allowed; a cycle counts once."""
    stack = [id]
    while stack:
        current = stack[-1]
        if current not in depths:
            depths[current] = -1
            stack += [below for below in nested.get(current, ()) if below not in depths]
            continue
        stack.pop()
        if depths[current] < 0:
            below = [max(depths[n], 0) + 1 for n in nested.get(current, ())]
            depths[current] = max(below, default=0)
    return depths[id]


def _report(context: CheckContext, skill: Skill, code: str, message: str, nested: str) -> None:
    """Report a problem at the first step that calls the nested skill."""
    calls = (
        (n, path)
        for n, step in enumerate(skill.steps)
        for path, name in targets_of(step)
        if name == NESTED + nested
    )
    index, path = next(calls)
    context.step_report(skill, index).error(code, path, message)
