"""Checks of the specs that an agent may call (docs/reference/pack.md#skills)."""

from __future__ import annotations

from cogcli.base.problems import Problem
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.binding_chain import SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.closure import reach_capabilities, reach_skills, select_specs
from cogcli.specs.skill import capabilities_of


def check_agent(catalog: Catalog, *, options: SelectionOptions) -> list[Problem]:
    """Return the problems in the closure of a pack's agent.

    Problems that only make a skill tool unusable are omitted: that tool is not offered to the model, and everything
    else works. If a later layer makes a shipped file unusable, the problem is an ordinary error here.
    """
    needed = CheckContext(_omit_tools(catalog), options).needed_files
    found = check(catalog, options=options, shipped_too=True)
    return [
        each
        for each in found
        if each.severity != "R" or needed is None or needed.is_affected_by(each)
    ]


def _omit_tools(catalog: Catalog) -> Catalog:
    """Return the catalog of the specs that templates need and of the capabilities that the pack permits directly."""
    templates = [id for id, skill in catalog.skills.items() if skill.at]
    skills = select_specs(catalog.skills, reach_skills(catalog, templates))
    permitted = [id for pack in catalog.packs.values() for id in pack.permitted]
    called = [id for id in permitted if not id.startswith(NESTED)]
    called += [name for skill in skills.values() for name in capabilities_of(skill)]
    reached = reach_capabilities(catalog, called)
    capabilities = select_specs(catalog.capabilities, reached)
    return catalog._replace(skills=skills, capabilities=capabilities)
