"""Nested skills: no cycles, at most ten deep (docs/reference/skill.md#graph-checks)."""

from __future__ import annotations

from typing import Final

from cogcli.specs.checks.context import CheckContext
from cogcli.specs.skill import NESTED, Skill, skills_of, targets_of

MAX_DEPTH: Final = 10


def check_nesting(context: CheckContext) -> None:
    """`skill.cycle` and `skill.depth` of all skills in the catalog, at the steps that nest."""
    nested = {
        id: [n for n in skills_of(skill) if n in context.catalog.skills] for id, skill in _skills(context)
    }
    nested = {id: below for id, below in nested.items() if below}
    depths: dict[str, int] = {}
    for id in nested:
        cycle = _way_back(nested, id)
        if cycle:
            _report(
                context, context.catalog.skills[id], "skill.cycle", f"cycle {' -> '.join(cycle)}", cycle[1]
            )
    for id in nested:
        if _depth(nested, id, depths) > MAX_DEPTH:
            deepest = max(nested[id], key=lambda below: depths.get(below, 0))
            message = f"skills nest more than {MAX_DEPTH} deep"
            _report(context, context.catalog.skills[id], "skill.depth", message, deepest)


def _skills(context: CheckContext) -> list[tuple[str, Skill]]:
    return sorted(context.catalog.skills.items())


def _way_back(nested: dict[str, list[str]], id: str) -> list[str]:
    """A shortest path from a skill back to itself, empty without a cycle."""
    came: dict[str, str] = {}
    queue = [id]
    for current in queue:
        for below in nested.get(current, ()):
            if below == id:
                way = [id, current]
                while way[-1] != id:
                    way.append(came[way[-1]])
                return way[::-1] if len(way) > 2 or current != id else [id, id]
            if below not in came:
                came[below] = current
                queue.append(below)
    return []


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


def _report(context: CheckContext, skill: Skill, code: str, said: str, nested: str) -> None:
    """Report a problem at the first step that calls the nested skill."""
    for index, step in enumerate(skill.steps):
        for path, name in targets_of(step):
            if name == NESTED + nested:
                place = ("steps", index, *path)
                context.report(skill.file).error(code, place, f"step `{step.id}`: {said}")
                return
