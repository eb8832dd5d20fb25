"""The checks of what an agent may call (docs/reference/pack.md#skills)."""

from __future__ import annotations

from cogcli.base.problems import Problem
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.binding_chain import SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.skill import capabilities_of, skills_of


def check_agent(catalog: Catalog, *, options: SelectionOptions) -> list[Problem]:
    """The problems of the closure of a pack's agent. What only a skill tool lacks to be called here is none of them:
    the tool is kept from the model, and the rest works. What later layers break in shipped files is an error here:
    a tool is kept back by its bindings alone."""
    needed = CheckContext(_without_tools(catalog), options).needed
    found = check(catalog, options=options, shipped_too=True)
    return [each for each in found if each.severity != "R" or needed is None or needed.holds(each)]


def _without_tools(catalog: Catalog) -> Catalog:
    """The catalog of what templates need, and of the capabilities that its pack permits by themselves."""
    waiting = [id for id, skill in catalog.skills.items() if skill.at]
    skills = {}
    while waiting:
        skill = catalog.skills.get(waiting.pop())
        if skill is not None and skill.id not in skills:
            skills[skill.id] = skill
            waiting += skills_of(skill)
    permitted = [id for pack in catalog.packs.values() for id in pack.permitted]
    called = [id for id in permitted if not id.startswith(NESTED)]
    called += [name for skill in skills.values() for name in capabilities_of(skill)]
    capabilities = {}
    while called:
        capability = catalog.capability(called.pop())
        if capability is not None and capability.id not in capabilities:
            capabilities[capability.id] = capability
            called += capability.asks
    return catalog._replace(skills=skills, capabilities=capabilities)
