"""The checks of the specs that an agent may call (docs/reference/pack.md#skills)."""

from __future__ import annotations

from cogcli.base.problems import Problem
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.binding_chain import SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.skill import capabilities_of, skills_of


def check_agent(catalog: Catalog, *, options: SelectionOptions) -> list[Problem]:
    """Return the problems of the closure of a pack's agent.

    Missing needs of a skill tool alone are left out: the tool is withheld from the model, and the rest works. Damage
    that later layers do to shipped files is an error here, since a tool is withheld only because of its bindings.
    """
    needed = CheckContext(_without_tools(catalog), options).needed
    found = check(catalog, options=options, shipped_too=True)
    return [each for each in found if each.severity != "R" or needed is None or needed.holds(each)]


def _without_tools(catalog: Catalog) -> Catalog:
    """Return the catalog of specs that templates need, and of the capabilities that the pack permits directly."""
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
