"""The static checks of a catalog (docs/reference/spec-files.md#problems, docs/reference/skill.md#checks).

They find problems before a run. `CHECKS` lists them; each one reports to its context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.base.problems import Problem, sort_problems
from cogcli.base.schema.engine_choice import require_engine
from cogcli.specs.binding_chain import SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks.bindings import check_bindings
from cogcli.specs.checks.ceilings import check_ceilings
from cogcli.specs.checks.choices import check_choices, check_defaults, check_host
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.replaced import lower_shipped_errors
from cogcli.specs.checks.services import check_services
from cogcli.specs.checks.skills_and_capabilities import check_skills_and_capabilities
from cogcli.specs.contradictions import soften_contradiction


def check_contracts(context: CheckContext) -> None:
    """Compare bindings with the API documents of their services.

    If only the closure of one skill is loaded, only the bindings that it needs are compared.
    """
    catalog, needed = context.catalog, context.needed_files
    bindings = [b for b in catalog.bindings.values() if needed is None or b.file in needed.files]
    for name, protocol in context.protocols.items():
        protocol.check_contracts(context, name, bindings)


CHECKS: Final[dict[str, Callable[[CheckContext], None]]] = {
    "ceilings": check_ceilings,
    "skills and capabilities": check_skills_and_capabilities,
    "bindings": check_bindings,
    "services": check_services,
    "default selection": check_defaults,
    "host overrides": check_host,
    "selection": check_choices,
    "contracts": check_contracts,
}
"""The checks in the order in which they run."""


def check(
    catalog: Catalog, *, options: SelectionOptions | None = None, shipped_too: bool = False
) -> list[Problem]:
    """Return all problems of a catalog in order, including those found when its files were read.

    For the closure of one skill, only problems in required files are returned. Of bindings and services, these are the
    chosen ones and their fallbacks. If files are given by name, only their problems are returned. If a later layer
    makes a shipped file unusable, the problem has severity R; with `shipped_too` it is an ordinary error. Raise
    UnusableEnvironment for an unknown schema engine.
    """
    found = _find_problems(catalog, options or SelectionOptions())
    return found if shipped_too else lower_shipped_errors(catalog, found)


def _find_problems(catalog: Catalog, options: SelectionOptions) -> list[Problem]:
    require_engine()
    context = CheckContext(catalog, options)
    for check_one in CHECKS.values():
        check_one(context)
    found = (soften_contradiction(problem, catalog) for problem in context.problems())
    return sort_problems(_select_reported_problems(context, [*catalog.problems, *found]))


def _select_reported_problems(context: CheckContext, problems: list[Problem]) -> list[Problem]:
    """Return the problems in the files that the catalog was loaded for."""
    only, documents, needed = context.catalog.only, context.documents, context.needed_files
    if needed is not None:
        # Only documents of needed services were checked.
        return [p for p in problems if p.file in documents or needed.is_affected_by(p)]
    if only is None:
        return problems
    described = {file for file, services in documents.items() if not only.isdisjoint(services)}
    reported = described.union(only)
    return [p for p in problems if p.file in reported]
