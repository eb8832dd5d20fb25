"""The targets that the steps of a skill call: capabilities by id or alias, and nested skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogcli.specs.skill import Skill, Step

PREFIX = "skill:"


def targets_of(step: Step) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every target that a step may call, as (path below the step, name)."""
    router, scatter = step.config.router, step.config.scatter
    if router:
        for case, target in router.cases.items():
            yield ("config", "router", "cases", case), target
        if router.default:
            yield ("config", "router", "default"), router.default
    elif scatter:
        for index, target in enumerate(scatter.targets.values()):
            yield ("config", "scatter", "capabilities", index), target
    else:
        yield ("uses",), step.uses


def capabilities_of(skill: Skill) -> list[str]:
    """The capabilities that a skill's steps name, each once, in order."""
    return list(
        dict.fromkeys(t for step in skill.steps for _, t in targets_of(step) if not t.startswith(PREFIX))
    )


def skills_of(skill: Skill) -> list[str]:
    """The nested skills that a skill's steps name, each once, in order."""
    found = (t[len(PREFIX) :] for step in skill.steps for _, t in targets_of(step) if t.startswith(PREFIX))
    return list(dict.fromkeys(found))
