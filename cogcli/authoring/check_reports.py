"""The reports of commands that verify calls and test skills (docs/reference/command-line.md#reports)."""

from __future__ import annotations

from collections.abc import Sequence

from cogcli.authoring.verification.check_result import FAILED, SKIPPED, CheckResult
from cogcli.base.problems import Problem
from cogcli.declarations.value_types import Json
from cogcli.report.check_report import (
    CaseFailure,
    CheckReport,
    MarkdownTable,
    ReportCase,
    cell,
    concise,
    problems_summary,
)
from cogcli.report.coverage import KINDS
from cogcli.report.humanize import count_of


def check_results_report(
    command: str, results: Sequence[CheckResult], seconds: float, without: Sequence[str] = ()
) -> CheckReport:
    """Return the report of `openapi verify-*`: a case per check, in a group per result.

    A result without checks is one case. `without` names the bindings without a scenario, which are
    listed but do not fail.
    """
    failed = _failed_results(results)
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
        tuple(case for result in results for case in _report_cases(command, result))
        + tuple(ReportCase(command, binding, (), ("without a scenario",)) for binding in without),
        tuple((problem, 0) for problem in problems),
        " ".join([f"{count_of(len(results), 'verdict')}, {len(failed)} failed.", *noted]),
        (MarkdownTable(header, rows),),
    )


def _failed_results(results: Sequence[CheckResult]) -> list[CheckResult]:
    return [result for result in results if result.status == FAILED]


def skill_tests_report(
    results: Sequence[CheckResult],
    seconds: float,
    problems: Sequence[Problem],
    coverage: Sequence[Json],
) -> CheckReport:
    """Return the report of `test`: a case per check, in a group per test case.

    It includes the problems of invalid case files, and a table of coverage.
    """
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
        for result, (problem, _) in zip(_failed_results(results), report.problems, strict=True)
    ]
    return report._replace(
        cases=report.cases + unreadable,
        problems=tuple((p, 0) for p in (*problems, *(_at_first_failure(*each) for each in failed))),
        summary=f"{report.summary} {problems_summary(problems)}" if problems else report.summary,
        tables=(*report.tables, MarkdownTable(header, rows)) if coverage else report.tables,
    )


def _at_first_failure(result: CheckResult, problem: Problem) -> Problem:
    """Return the problem with the location of the first failed check."""
    frame = result.frame
    return problem._replace(line=frame.line, column=frame.column) if frame else problem


def _coverage_row(entry: Json) -> str:
    kinds = [entry[kind] for kind in KINDS]
    missing = cell("; ".join(name for kind in kinds for name in kind["missing"]))
    counts = " | ".join(f"{kind['ran']}/{kind['total']}" for kind in kinds)
    return f"| {cell(entry['skill'])} | {counts} | {missing} |"


def _report_cases(command: str, result: CheckResult) -> list[ReportCase]:
    known = {"reason": result.reason, "curl": result.curl, "episode": result.episode}
    text = "\n".join(f"{name}: {part}" for name, part in known.items() if part)

    def failures(has_failed: bool, message: str) -> tuple[CaseFailure, ...]:
        return (CaseFailure(result.code or "verify.failed", message, text),) if has_failed else ()

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
