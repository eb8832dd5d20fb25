"""What is wrong with the packs of a registry as a whole (docs/reference/pack.md#check)."""

from __future__ import annotations

from cogcli.core.problems import Problem
from cogcli.governance.pack_check import check_references, check_rules
from cogcli.specs.catalog import Catalog
from cogcli.specs.problem_report import ProblemReport


def pack_problems(catalog: Catalog) -> list[Problem]:
    """The problems of all packs of a whole catalog that no file shows by itself; of files given by name only theirs."""
    found = []
    for id, pack in catalog.packs.items():
        if catalog.only is None or pack.file in catalog.only:
            report = ProblemReport(pack.file, catalog.places.get(pack.file), subject=f"pack `{id}`")
            check_references(pack, report, catalog.by_name)
            check_rules(pack, report, catalog.by_name)
            found += report.problems
    return found
