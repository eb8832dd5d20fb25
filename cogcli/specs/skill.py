"""The targets that the steps of a skill may call (docs/reference/skill.md#steps)."""

from __future__ import annotations

from collections.abc import Iterator

from cogcli.declarations.skill_spec import Skill, Step
from cogcli.declarations.spec_types import NESTED


def targets_of(step: Step) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every target that a step may call, as (path in the step, name)."""
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


def list_targets(skill: Skill) -> list[str]:
    """Return the capabilities and nested skills that the steps of a skill may call, in order, without repeats."""
    return list(dict.fromkeys(target for step in skill.steps for _, target in targets_of(step)))


def capabilities_of(skill: Skill) -> list[str]:
    """Return the capabilities in `list_targets`, by id or alias."""
    return [target for target in list_targets(skill) if not target.startswith(NESTED)]


def skills_of(skill: Skill) -> list[str]:
    """Return the ids of the nested skills in `list_targets`."""
    return [target[len(NESTED) :] for target in list_targets(skill) if target.startswith(NESTED)]
