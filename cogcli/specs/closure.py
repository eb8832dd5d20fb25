"""The part of a loaded catalog that one skill or capability can reach, as a run loads it
(docs/reference/execution.md#start). Pure: no file is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cogcli.specs.catalog import Catalog
from cogcli.specs.skill import capabilities_of, skills_of

_OF_SPECS: Final = ("skill", "case", "capability", "binding", "service", "pack")


def skill_closure(catalog: Catalog, id: str) -> Catalog:
    """Return a skill with its nested skills, the capabilities they call, gates and probes, their bindings and services.

    Without such a skill return only the parts that count for every run.
    """
    skills, called, waiting = set[str](), set[str](), [id]
    while waiting:
        name = waiting.pop()
        if name not in skills:
            skills.add(name)
            if skill := catalog.skills.get(name):
                waiting += skills_of(skill)
                called.update(capabilities_of(skill))
    return _build_closure(catalog, skills, called)


def capability_closure(catalog: Catalog, id: str) -> Catalog:
    """Return a capability, by id or alias, with its gates and probe, their bindings and services."""
    return _build_closure(catalog, (), (id,))


def _build_closure(catalog: Catalog, skills: Iterable[str], called: Iterable[str]) -> Catalog:
    reached, waiting = set[str](), [*called]
    while waiting:
        id = catalog.aliases.get(waiting[-1], waiting[-1])
        waiting.pop()
        if id not in reached:
            reached.add(id)
            if capability := catalog.capabilities.get(id):
                waiting += capability.asks
    bindings_of = {id: ids for id in reached if (ids := catalog.bindings_of.get(id))}
    bindings = {id: catalog.bindings[id] for ids in bindings_of.values() for id in ids}
    services = {binding.service for binding in bindings.values()}
    named = {"skill": set(skills), "capability": reached, "service": services}
    return catalog._replace(
        skills={id: catalog.skills[id] for id in named["skill"] if id in catalog.skills},
        capabilities={id: catalog.capabilities[id] for id in reached if id in catalog.capabilities},
        bindings=bindings,
        bindings_of=bindings_of,
        services={id: catalog.services[id] for id in services if id in catalog.services},
        packs={},
        broken={
            key: file for key, file in catalog.broken.items() if _is_relevant(key, file, named)
        },
        partial=True,
        only=None,
    )


def _is_relevant(key: str, file: str, named: dict[str, set[str]]) -> bool:
    """Return whether a file with errors concerns a run of these specs.

    Bindings count if they are in a folder of one of the capabilities. Every file that chooses among bindings counts.
    """
    kind, _, id = key.partition(":")
    if kind == "binding":
        return any(f"/{capability}/" in f"/{file}" for capability in named["capability"])
    return id in named[kind] if kind in named else kind not in _OF_SPECS
