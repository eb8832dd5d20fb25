"""Static checks of specs that lie in no file."""

from __future__ import annotations

from collections.abc import Iterable

from cogcli.base.problems import Problem
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.skill_spec import Skill
from cogcli.specs.binding_chain import SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.skills import check_skills


def problems_of(*skills: Skill, capabilities: Iterable[Capability] = ()) -> list[Problem]:
    """The problems of skills with each other and with what they call."""
    catalog = Catalog(
        skills={skill.id: skill for skill in skills},
        capabilities={each.id: each for each in capabilities},
    )
    context = CheckContext(catalog, SelectionOptions())
    check_skills(context)
    return context.problems()
