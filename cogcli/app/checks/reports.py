"""The report of each command that checks something (docs/reference/command-line.md#reports)."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cogcli import __version__
from cogcli.app.checks.registry_check import CheckRequirements, RegistryCheck
from cogcli.app.explain import pages
from cogcli.base.problems import Problem, Severity
from cogcli.report.check_report import (
    CaseFailure,
    CheckReport,
    MarkdownTable,
    ReportCase,
    cell,
    concise,
    markdown,
    problems_summary,
    problems_table,
)
from cogcli.report.github import github
from cogcli.report.junit import junit
from cogcli.report.sarif import sarif

if TYPE_CHECKING:
    from cogcli.app.checks.doctor import DoctorReport
    from cogcli.app.checks.doctor_services import DoctorCheck

_FOUND: Final = "doctor.found"


def _problems_tables(
    problems: Sequence[Problem], shipped_files: Collection[str]
) -> tuple[MarkdownTable, ...]:
    """Return a table for the user's files and one for shipped files, each only if it has problems."""
    users = [problem for problem in problems if problem.file not in shipped_files]
    others = [problem for problem in problems if problem.file in shipped_files]
    tables = ((users, "place"), (others, "shipped file"))
    return tuple(problems_table(rows, place=place) for rows, place in tables if rows)


def registry_report(
    checked: RegistryCheck,
    demands: CheckRequirements,
    *,
    end_of: Callable[[str, int, int], int],
    base: str = "",
) -> CheckReport:
    """Return the report of `validate`: one case per file. Shipped files are last, in separate groups.

    Problems that do not fail a file are notes. `end_of` takes a file, line and column, and returns the column after the
    token at that place. File names are relative to `base`.
    """
    failing = frozenset(checked.failing_problems(demands))
    own: dict[str, list[Problem]] = {file: [] for file in checked.files}
    for problem in checked.problems:
        own[problem.file].append(problem)

    shipped = checked.shipped
    return CheckReport(
        "validate",
        checked.seconds,
        tuple(
            _file_case(file, f"shipped {kind}" if file in shipped else kind, own[file], failing)
            for file, kind in checked.files.items()
        ),
        tuple((p, end_of(p.file, p.line, p.column)) for p in checked.problems),
        problems_summary(checked.problems, shipped),
        _problems_tables(checked.problems, shipped),
        shipped,
        _find_places_in_repository(base, {problem.file for problem in checked.problems}),
    )


def _find_places_in_repository(base: str, files: set[str]) -> dict[str, str]:
    """Return the paths of these files from the root of the repository that contains `base`; none without a
    repository.
    """
    folder = Path(base or ".").resolve()
    root = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), None)
    if root is None or root == folder:
        return {}
    inside = [file for file in files if file and not os.path.isabs(file)]
    return {file: os.path.relpath(folder / file, root).replace(os.sep, "/") for file in inside}


def _file_case(
    file: str, kind: str, problems: Sequence[Problem], failing: Collection[Problem]
) -> ReportCase:
    """Return the case of one file. Problems that are not in `failing` are notes."""
    failures = [
        CaseFailure(p.code, p.message, concise(p, as_error=False)) for p in problems if p in failing
    ]
    notes = [concise(p, as_error=False) for p in problems if p not in failing]
    return ReportCase(kind, file or "registry", tuple(failures), tuple(notes), file)


def counts_report(command: str, summary: str, table: MarkdownTable, seconds: float) -> CheckReport:
    """Return the report of `registry coverage` or `registry stats`: a table without failures."""
    return CheckReport(command, seconds, summary=summary, tables=(table,))


def diagnosis_report(diagnosis: DoctorReport, seconds: float, *, strict: bool) -> CheckReport:
    """Return the report of `doctor`: one case per check.

    A check with an error fails its case. A warning fails it only with `strict`. Other checks are
    notes."""

    def case(check: DoctorCheck) -> ReportCase:
        text = "\n".join(
            (f"{check.name}: {check.message}", *check.details, *([check.fix] if check.fix else ()))
        )
        failed = check.status == "error" or (strict and check.status == "warning")
        failures = (CaseFailure(_FOUND, check.message, text),) if failed else ()
        return ReportCase(
            f"doctor {check.group}",
            check.name,
            failures,
            () if failed or check.status == "ok" else (text,),
        )

    severities: dict[str, Severity] = {"error": "E", "warning": "W"}
    header = ("| result | group | check | found |", "| --- | --- | --- | --- |")
    rows = tuple(
        f"| {c.status} | {cell(c.group)} | {cell(c.name)} | {cell(c.message)} |"
        for c in diagnosis.checks
    )
    return CheckReport(
        "doctor",
        seconds,
        tuple(map(case, diagnosis.checks)),
        tuple(
            (
                Problem(
                    _FOUND, severities[c.status], "", 0, 0, "", f"{c.name}: {c.message}", hint=c.fix
                ),
                0,
            )
            for c in diagnosis.checks
            if c.status in severities
        ),
        diagnosis.summary,
        (MarkdownTable(header, rows),),
    )


def _to_sarif(report: CheckReport) -> str:
    """Return the report as SARIF, with the page of each code as a rule."""
    rules = {code: (meaning, cure) for code, (meaning, _, cure) in pages().items()}
    return sarif(report, rules, version=__version__)


RENDERERS: Final[dict[str, Callable[[CheckReport], str]]] = {
    "junit": junit,
    "sarif": _to_sarif,
    "md": markdown,
    "github": github,
}
"""The function that renders a report, by format."""
