"""The problems of packs that depend on the whole registry (docs/reference/pack.md#check)."""

from __future__ import annotations

from cogcli.base.problems import Problem
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import Pack
from cogcli.policy.customer_text import check_texts
from cogcli.policy.pack_check import check_limits, check_references, check_rules
from cogcli.policy.pack_gaps import check_gaps
from cogcli.policy.read_check import check_reads
from cogcli.specs.binding_chain import SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.skills import check_nesting, check_skills
from cogcli.specs.pack_skills import with_pack_skills
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.skill import skills_of
from cogcli.specs.skill_tools import skill_tools, tool_names


def pack_problems(catalog: Catalog) -> list[Problem]:
    """Return the problems of packs that only the whole registry shows.

    If the catalog is of named files, return only the problems of these files."""
    found = []
    for id, pack in catalog.packs.items():
        if catalog.only is None or pack.file in catalog.only:
            report = ProblemReport(pack.file, catalog.places.get(pack.file), subject=f"pack `{id}`")
            names = tool_names(catalog)
            check_references(pack, report, names)
            known = {name: catalog.by_name.get(name) for name in names}
            check_rules(pack, report, known)
            check_limits(pack, report, known)
            check_gaps(pack, report, known)
            check_reads(pack, report)
            check_texts(pack, report, _list_contracts(catalog, pack))
            found += [*report.problems, *_template_problems(catalog, pack)]
    return found


def _list_contracts(catalog: Catalog, pack: Pack) -> dict[str, Capability]:
    """Return the contracts of the capabilities, and of the skills that are tools of a pack."""
    return {**catalog.by_name, **skill_tools(catalog, pack, catalog.by_name)}


def _template_problems(catalog: Catalog, pack: Pack) -> list[Problem]:
    """Return the problems of a pack's templates. They are checked like skills."""
    whole = with_pack_skills(catalog, pack)
    plans = {id: skill for id, skill in whole.skills.items() if skill.at}
    nested = {name for skill in plans.values() for name in skills_of(skill)}
    known = {id: skill for id, skill in whole.skills.items() if id in plans or id in nested}
    context = CheckContext(whole._replace(skills=known), SelectionOptions())
    check_skills(context)
    check_nesting(context)
    return [problem for problem in context.problems() if problem.file == pack.file]
