"""The problems of the packs of one agent run (docs/reference/pack.md#check)."""

from __future__ import annotations

from typing import Final

from cogcli.base.problems import Problem
from cogcli.declarations.pack_spec import Pack
from cogcli.policy.pack_check import check_references
from cogcli.policy.pack_composition import view_additions
from cogcli.policy.read_check import check_reads
from cogcli.run.policy import pack_of
from cogcli.run.policy_request import PolicyRequest
from cogcli.specs.catalog import Catalog
from cogcli.specs.problem_report import ProblemReport

_ADDED: Final = "/policy_layer"
"""The part of a pack that it may add to another one, apart from texts."""


def problems_of_run(catalog: Catalog, request: PolicyRequest) -> list[Problem]:
    """Return the problems of the packs of a run that keep its agent from running in any registry."""
    primary = pack_of(catalog, request._replace(with_packs=()))
    found = _own_problems(catalog, primary)
    for reference in request.with_packs:
        other = catalog.packs[reference.partition("#")[0]]
        problems = _own_problems(catalog, view_additions(primary, other))
        found += [each for each in problems if each.path.startswith(_ADDED)]
    return found


def _own_problems(catalog: Catalog, pack: Pack) -> list[Problem]:
    """Return the problems of a pack that keep its agent from running in any registry."""
    report = ProblemReport(
        pack.file, catalog.places.get(pack.file), subject=f"pack `{pack.pack_id}`"
    )
    check_references(pack, report, None)
    check_reads(pack, report)
    return report.problems
