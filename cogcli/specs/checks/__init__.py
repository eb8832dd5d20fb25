"""The static checks of a catalog (docs/reference/spec-files.md#problems, docs/reference/skill.md#checks):
every problem, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.core.problems import sort_problems
from cogcli.schema.engine_choice import require_engine
from cogcli.specs.binding_chain import SelectionOptions
from cogcli.specs.checks.bindings import check_binding
from cogcli.specs.checks.capabilities import check_capability
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.default_selection import check_defaults
from cogcli.specs.checks.nesting import check_nesting
from cogcli.specs.checks.overlay import check_host
from cogcli.specs.checks.selectable import check_choices, needed_files
from cogcli.specs.checks.service_contract import check_wire
from cogcli.specs.checks.services import check_function, check_service
from cogcli.specs.checks.skills import check_skill

if TYPE_CHECKING:
    from cogcli.core.problems import Problem
    from cogcli.specs.catalog import Catalog


def check(catalog: Catalog, *, options: SelectionOptions | None = None) -> list[Problem]:
    """All problems of a catalog in order, including those of reading.

    For one skill's closure only those of files that it needs: of bindings and services the chosen ones and their
    fallbacks. For files given by name only theirs. Raises EnvironmentRefusal for an unknown schema engine.
    """
    require_engine()
    context = CheckContext(catalog, options or SelectionOptions())
    for skill in catalog.skills.values():
        check_skill(context, skill)
    check_nesting(context)
    for capability in catalog.capabilities.values():
        check_capability(context, capability)
    for binding in catalog.bindings.values():
        check_binding(context, binding)
        check_function(context, binding)
    for service in catalog.services.values():
        check_service(context, service)
    check_defaults(context)
    check_host(context)
    check_choices(context)
    wanted = needed_files(context) if catalog.partial else None
    bindings = [b for b in catalog.bindings.values() if wanted is None or b.file in wanted.files]
    documents = check_wire(context, bindings)
    problems = [*catalog.problems, *context.problems()]
    if wanted:
        # Only the documents of what is needed were looked at.
        return sort_problems(p for p in problems if p.file in documents or wanted.holds(p))
    only = catalog.only
    if only is None:
        return sort_problems(problems)
    described = {file for file, services in documents.items() if not only.isdisjoint(services)}
    return sort_problems(p for p in problems if p.file in only or p.file in described)
