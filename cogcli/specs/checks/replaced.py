"""The effect of later layers on shipped files (docs/reference/spec-files.md#shipped-unusable).

Shipped files have no errors among themselves. If one has errors together with other layers, it lacks a spec that one of
these layers replaced. The problem is displayed, and a run that needs the file is refused, but the user need not repair
the file. The same is true of a capability that is less safe than the shipped one it replaces: it may be declared, but
is not called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cogcli.base.problems import Problem
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.catalog import Catalog
from cogcli.specs.layers import BUILT_IN
from cogcli.specs.shipped_fit import is_shipped_file
from cogcli.specs.skill import targets_of

_OWN: Final = ("yaml.", "json.", "key.", "value.", "id.", "layout.", "field.", "template.")
"""Codes of problems in the content of a single file, which no other file can cause."""
WITHOUT_SHIPPED: Final = (
    "or leave out what is shipped: builtin = false in cogcli.toml of a trusted project"
)


def lower_shipped_errors(catalog: Catalog, problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems. Those that later layers cause in shipped files have severity R, and name the replaced specs
    and their files.
    """
    if catalog.layers == (BUILT_IN,):
        return [*problems]
    return [
        problem if problem.severity == "W" else _lower_severity(catalog, problem)
        for problem in problems
    ]


def is_made_unusable(problem: Problem) -> bool:
    """Return whether a problem has severity R because a later layer caused it."""
    return problem.severity == "R" and problem.hint.endswith(WITHOUT_SHIPPED)


def _lower_severity(catalog: Catalog, problem: Problem) -> Problem:
    if is_shipped_file(catalog, problem.file) and not problem.code.startswith(_OWN):
        return _name_causes(catalog, problem)
    is_weakened = problem.severity == "E" and problem.code == "safety.weakened"
    if is_weakened and _weakens_only_shipped(catalog, problem.file):
        return problem._replace(severity="R", hint=f"{problem.hint}\n{WITHOUT_SHIPPED}")
    return problem


def _name_causes(catalog: Catalog, problem: Problem) -> Problem:
    """Return a problem of a shipped file with severity R. Its hint lists the files that cause it."""
    replaced = _find_replaced_specs(catalog, problem)
    if problem.severity == "R" and not (replaced and problem.code.startswith("binding.")):
        return problem
    lines = [f"{file} replaces the shipped `{id}`" for id, file in replaced]
    if replaced:
        lines.append("give it there what this file needs, or name it otherwise")
    return problem._replace(severity="R", hint="\n".join([*lines, WITHOUT_SHIPPED]))


def _weakens_only_shipped(catalog: Catalog, file: str) -> bool:
    found = (each for each in catalog.capabilities.values() if each.file == file)
    before = [replaced for each in found for replaced in catalog.replaced.get(each.id, ())]
    return all(is_shipped_file(catalog, each.file) for each in before)


def _find_replaced_specs(catalog: Catalog, problem: Problem) -> list[tuple[str, str]]:
    """Return the specs that replace those for which a shipped file was written, as (id, file).

    If the problem is in a step, only specs that the step uses are returned, otherwise all that the file names.
    """
    named: list[str] = []
    for skill in catalog.skills.values():
        if skill.file == problem.file:
            parts = problem.path.split("/")
            of_step = int(parts[2]) if parts[1:2] == ["steps"] and parts[2:3] else None
            named = [*_find_targets(skill, of_step)]
            if not [*_find_replacements(catalog, named)]:
                named = [*_find_targets(skill, None)]
    for binding in catalog.bindings.values():
        if binding.file == problem.file:
            named = [
                binding.capability,
                f"service:{binding.service}",
                f"binding:{binding.fallback}",
            ]
    for capability in catalog.capabilities.values():
        if capability.file == problem.file:
            named = [*capability.asks]
    return [*dict.fromkeys(_find_replacements(catalog, named))]


def _find_targets(skill: Skill, of_step: int | None) -> Iterator[str]:
    for index, step in enumerate(skill.steps):
        if of_step in (None, index):
            yield from (name for _, name in targets_of(step))


def _find_replacements(catalog: Catalog, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the named specs that replace a shipped one, as (id, file).

    A name without a kind is a capability.
    """
    shipped = {(shadow.kind, shadow.id) for shadow in catalog.shadows if shadow.layer == BUILT_IN}
    for name in names:
        kind, _, id = name.rpartition(":")
        found = {
            "": catalog.capability(id),
            NESTED.rstrip(":"): catalog.skills.get(id),
            "service": catalog.services.get(id),
            "binding": catalog.bindings.get(id),
        }[kind]
        if found is not None and (kind or "capability", found.id) in shipped:
            yield found.id, found.file
        elif found is None and (file := catalog.broken.get(f"{kind or 'capability'}:{id}")):
            yield id, file
