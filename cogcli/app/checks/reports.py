"""The report of each command that checks something (docs/reference/command-line.md#reports)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from cogcli import __version__
from cogcli.app.checks.registry_check import RegistryCheck
from cogcli.app.explain import pages
from cogcli.core.problems import Problem, Severity
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
from cogcli.report.coverage import KINDS
from cogcli.report.github import github
from cogcli.report.humanize import count_of
from cogcli.report.junit import junit
from cogcli.report.sarif import sarif
from cogcli.verification.check_result import FAILED, SKIPPED, CheckResult

if TYPE_CHECKING:
    from cogcli.app.checks.doctor import Diagnosis
    from cogcli.app.checks.doctor_services import DoctorCheck

_FOUND: Final = "doctor.found"


def registry_report(
    checked: RegistryCheck, *, strict: bool, end_of: Callable[[str, int, int], int]
) -> CheckReport:
    """`validate`: a case per file, shipped ones last, in their own groups; problems that do not fail it are notes.

    `end_of` gives the column after the token at a file's line and column.
    """
    fails = frozenset(checked.fails(strict=strict))
    own: dict[str, list[Problem]] = {file: [] for file in checked.files}
    for problem in checked.problems:
        own[problem.file].append(problem)

    def case(file: str, kind: str) -> ReportCase:
        failing = [p for p in own[file] if p in fails]
        notes = [concise(p, as_error=False) for p in own[file] if p not in failing]
        failures = [CaseFailure(p.code, p.message, concise(p, as_error=False)) for p in failing]
        return ReportCase(kind, file or "registry", tuple(failures), tuple(notes), file)

    shipped = checked.shipped
    theirs = [p for p in checked.problems if p.file in shipped]
    mine = [p for p in checked.problems if p.file not in shipped]
    tables = [(mine, "place"), (theirs, "shipped file")]
    return CheckReport(
        "validate",
        checked.seconds,
        tuple(
            case(file, f"shipped {kind}" if file in shipped else kind)
            for file, kind in checked.files.items()
        ),
        tuple((p, end_of(p.file, p.line, p.column)) for p in checked.problems),
        problems_summary(checked.problems, shipped),
        tuple(problems_table(problems, place=place) for problems, place in tables if problems),
        shipped,
    )


def check_results_report(
    command: str, results: Sequence[CheckResult], seconds: float, without: Sequence[str] = ()
) -> CheckReport:
    """`openapi verify-*`: a case per check, in a group per result; a result without checks is one case. `without` names
    the bindings without a scenario, which fail nothing."""
    failed = _failed(results)
    problems = [
        Problem(
            r.code or "verify.failed", "E", r.file, int(bool(r.file)), 1, "", f"{r.id}: {r.reason}"
        )
        for r in failed
    ]
    header = ("| result | id | reason |", "| --- | --- | --- |")
    rows = tuple(f"| {r.status} | {cell(r.id)} | {cell(r.reason)} |" for r in results)
    noted = [f"Without a scenario: {cell(', '.join(without))}."] if without else []
    return CheckReport(
        command,
        seconds,
        tuple(case for result in results for case in _cases(command, result))
        + tuple(ReportCase(command, binding, (), ("without a scenario",)) for binding in without),
        tuple((problem, 0) for problem in problems),
        " ".join([f"{count_of(len(results), 'verdict')}, {len(failed)} failed.", *noted]),
        (MarkdownTable(header, rows),),
    )


def _failed(results: Sequence[CheckResult]) -> list[CheckResult]:
    return [result for result in results if result.status == FAILED]


def counts_report(command: str, summary: str, table: MarkdownTable, seconds: float) -> CheckReport:
    """`registry coverage` and `stats`: a table, and nothing that fails."""
    return CheckReport(command, seconds, summary=summary, tables=(table,))


def skill_tests_report(
    results: Sequence[CheckResult],
    seconds: float,
    problems: Sequence[Problem],
    coverage: Sequence[dict[str, Any]],
) -> CheckReport:
    """`test`: a case per check, in a group per test case; the problems of files that are none; a table of what ran."""
    report = check_results_report("test", results, seconds)
    failures = {p: CaseFailure(p.code, p.message, concise(p)) for p in problems}
    unreadable = tuple(
        ReportCase("test files", p.file, (failures[p],), (), p.file) for p in problems
    )
    header = (
        "| skill | steps | branches | error paths | not run |",
        "| --- | --- | --- | --- | --- |",
    )
    rows = tuple(_coverage_row(entry) for entry in coverage)
    failed = [
        (result, problem)
        for result, (problem, _) in zip(_failed(results), report.problems, strict=True)
    ]
    return report._replace(
        cases=report.cases + unreadable,
        problems=tuple((p, 0) for p in (*problems, *(_placed(*each) for each in failed))),
        summary=f"{report.summary} {problems_summary(problems)}" if problems else report.summary,
        tables=(*report.tables, MarkdownTable(header, rows)) if coverage else report.tables,
    )


def _placed(result: CheckResult, problem: Problem) -> Problem:
    """The problem at the line of the file that the first failed check is about."""
    frame = result.frame
    return problem._replace(line=frame.line, column=frame.column) if frame else problem


def _coverage_row(entry: dict[str, Any]) -> str:
    kinds = [entry[kind] for kind in KINDS]
    missing = cell("; ".join(name for kind in kinds for name in kind["missing"]))
    counts = " | ".join(f"{kind['ran']}/{kind['total']}" for kind in kinds)
    return f"| {cell(entry['skill'])} | {counts} | {missing} |"


def _cases(command: str, result: CheckResult) -> list[ReportCase]:
    known = {"reason": result.reason, "curl": result.curl, "episode": result.episode}
    text = "\n".join(f"{name}: {part}" for name, part in known.items() if part)

    def failures(failed: bool, message: str) -> tuple[CaseFailure, ...]:
        return (CaseFailure(result.code or "verify.failed", message, text),) if failed else ()

    if not result.checks:
        notes = (f"skipped: {result.reason}",) if result.status == SKIPPED else ()
        failed = failures(result.status == FAILED, result.reason)
        return [ReportCase(command, result.id, failed, notes, result.file)]
    group = f"{command} {result.id}"
    return [
        ReportCase(
            group,
            check.name,
            failures(not check.passed, check.detail or check.name),
            (),
            result.file,
        )
        for check in result.checks
    ]


def diagnosis_report(diagnosis: Diagnosis, seconds: float, *, strict: bool) -> CheckReport:
    """`doctor`: a case per check. What does not fail it (a warning, unless `strict`) is a note."""

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


def _sarif(report: CheckReport) -> str:
    """SARIF with the pages of codes as its rules."""
    rules = {code: (meaning, cure) for code, (meaning, _, cure) in pages().items()}
    return sarif(report, rules, version=__version__)


RENDERERS: Final[dict[str, Callable[[CheckReport], str]]] = {
    "junit": junit,
    "sarif": _sarif,
    "md": markdown,
    "github": github,
}
"""The text of a report by its kind."""
