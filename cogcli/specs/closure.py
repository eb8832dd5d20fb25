"""The part of a loaded catalog that a skill or capability can reach, as a run loads it. Pure: no file is read.

The rules are in docs/reference/execution.md#start.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, TypeVar

from cogcli.specs.catalog import Catalog
from cogcli.specs.skill import capabilities_of, skills_of

S = TypeVar("S")
_OF_SPECS: Final = ("skill", "case", "capability", "binding", "service", "pack")


def skill_closure(catalog: Catalog, id: str) -> Catalog:
    """Return the catalog that one skill needs.

    It has the skill with its nested skills, their capabilities, gates and probes, and their bindings and services. If
    the skill does not exist, it has only the parts that every run needs.
    """
    skills = reach_skills(catalog, [id])
    found = (catalog.skills[name] for name in skills if name in catalog.skills)
    called = [name for skill in found for name in capabilities_of(skill)]
    return _build_closure(catalog, skills, called)


def capability_closure(catalog: Catalog, id: str) -> Catalog:
    """Return the catalog of a capability, its gates and probe, and their bindings and services.

    `id` may be an alias.
    """
    return _build_closure(catalog, (), (id,))


def reach_skills(catalog: Catalog, ids: Iterable[str]) -> dict[str, None]:
    """Return the ids of these skills and of all skills nested in them, including ids without a spec."""
    reached: dict[str, None] = {}
    waiting = [*ids]
    while waiting:
        id = waiting.pop()
        if id not in reached:
            reached[id] = None
            if skill := catalog.skills.get(id):
                waiting += skills_of(skill)
    return reached


def reach_capabilities(catalog: Catalog, names: Iterable[str]) -> dict[str, None]:
    """Return the ids of these capabilities, and of their gates and probes, including ids without a spec.

    The names may be aliases.
    """
    reached: dict[str, None] = {}
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        id = catalog.aliases.get(name, name)
        if id not in reached:
            reached[id] = None
            if capability := catalog.capabilities.get(id):
                waiting += capability.asks
    return reached


def _build_closure(catalog: Catalog, skills: Collection[str], targets: Iterable[str]) -> Catalog:
    reached = reach_capabilities(catalog, targets)
    bindings_of = {id: ids for id in reached if (ids := catalog.bindings_of.get(id))}
    bindings = {id: catalog.bindings[id] for ids in bindings_of.values() for id in ids}
    services = {binding.service for binding in bindings.values()}
    ids_by_kind: dict[str, Collection[str]] = {
        "skill": skills,
        "capability": reached,
        "service": services,
    }
    broken = catalog.broken.items()
    return catalog._replace(
        skills=select_specs(catalog.skills, skills),
        capabilities=select_specs(catalog.capabilities, reached),
        bindings=bindings,
        bindings_of=bindings_of,
        services=select_specs(catalog.services, services),
        packs={},
        broken={key: file for key, file in broken if _is_relevant(key, file, ids_by_kind)},
        partial=True,
        only=None,
    )


def select_specs(specs: dict[str, S], ids: Iterable[str]) -> dict[str, S]:
    """Return the specs that exist for these ids, in the order of the ids."""
    return {id: specs[id] for id in ids if id in specs}


def _is_relevant(key: str, file: str, ids_by_kind: dict[str, Collection[str]]) -> bool:
    """Return whether a file with errors affects a run of these specs.

    A binding is relevant if it is in the folder of one of the capabilities. Every file that chooses among bindings is
    relevant.
    """
    kind, _, id = key.partition(":")
    if kind == "binding":
        return any(f"/{capability}/" in f"/{file}" for capability in ids_by_kind["capability"])
    return id in ids_by_kind[kind] if kind in ids_by_kind else kind not in _OF_SPECS
