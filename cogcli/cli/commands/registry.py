"""`registry contracts|smoke|executability|coverage|stats|catalog`: checks and figures of the
registry (docs/reference/command-line.md#registry-checks).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from cogcli.app.checks.call_stats import measure_calls
from cogcli.app.checks.reports import counts_report
from cogcli.app.inventory.catalog import whole_catalog
from cogcli.app.needs import KINDS, count_first_needs
from cogcli.authoring import contracts as checks
from cogcli.authoring.check_reports import check_results_report
from cogcli.authoring.executability import check_skills, measure_coverage
from cogcli.authoring.spec_results import SpecResult, count_passed_results, summary_line
from cogcli.authoring.verification.check_result import FAILED, PASSED, CheckResult
from cogcli.base.errors import OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.empty_checks import conclude, find_refusal
from cogcli.cli.envelope import dumps
from cogcli.cli.listing import Column, show
from cogcli.cli.options import Examples, ListFlags, Reports, argument, command
from cogcli.cli.report_files import RequestedReports, parse_reports
from cogcli.cli.verdict_screen import details
from cogcli.declarations.value_types import Json
from cogcli.report.check_report import CheckReport, MarkdownTable, cell
from cogcli.report.styled_text import StyledLine

_Capabilities = Annotated[list[str], argument("[CAP|GLOB ...]", "capabilities")]
_CALL_COLUMNS: Final = (
    Column("capability"),
    Column("calls", right=True),
    Column("failed", right=True),
    Column("median_ms", title="median ms", right=True),
    Column("p95_ms", title="95 % ms", right=True),
)


def _load_examples(name: str) -> Examples:
    line = f"cogcli {name}"
    return (
        (line, "all layers"),
        (f"{line} --report junit:registry.xml", "for CI"),
        (f"{line} --json", "for scripts"),
    )


@command(examples=_load_examples, exits=(0, 1, 2, 3))
def contracts(context: CommandContext, words: _Capabilities, *, report: Reports) -> int:
    """Call each capability with its examples, and with inputs that it must refuse. Return exit code
    1 if one fails.
    """
    wanted = parse_reports(report, without=("sarif",))
    found = checks.check_contracts(context.settings, words)
    return _finish_checks(context, found.checked, found.seconds, wanted, "contracts")


@command(examples=_load_examples, exits=(0, 1, 2, 3))
def smoke(context: CommandContext, words: _Capabilities, *, report: Reports) -> int:
    """Call each capability once. Return exit code 1 if a call fails."""
    wanted = parse_reports(report, without=("sarif",))
    found = checks.check_contracts(context.settings, words, once=True)
    return _finish_checks(context, found.checked, found.seconds, wanted, "capabilities called")


@command(examples=_load_examples, exits=(0, 1, 2, 3))
def executability(
    context: CommandContext,
    words: Annotated[list[str], argument("[SKILL|GLOB ...]", "skills")],
    *,
    report: Reports,
) -> int:
    """Run the cases of each skill that can run here. Return exit code 1 if one fails."""
    wanted = parse_reports(report, without=("sarif",))
    found = check_skills(context.settings, words)
    return _finish_checks(context, found.checked, found.seconds, wanted, "skills ran")


def _count_results(results: Sequence[SpecResult]) -> Json:
    """Return the numbers of specs that passed, failed, and lack something on this machine."""
    statuses = [each.result.status for each in results]
    return {
        "total": len(results),
        "passed": statuses.count(PASSED),
        "failed": statuses.count(FAILED),
        "needs": count_first_needs(each.needs for each in results if each.needs),
    }


def _finish_checks(
    context: CommandContext,
    checked: Sequence[SpecResult],
    seconds: float,
    reports: RequestedReports,
    noun: str,
) -> int:
    """Write failures, needs and totals, fill the envelope, write the reports, and return the exit
    code.
    """
    results = [each.result for each in checked]
    failed = [result for result in results if result.status == FAILED]
    lacking = [each for each in checked if each.needs]
    context.own["checks"] = [_check_row(each) for each in checked]
    context.own["counts"] = _count_results(checked)
    line = summary_line(checked, noun)
    context.answer([*_failure_lines(context, results), *_need_lines(context, lacking)])
    context.answer([[(line, "red" if failed else "green")]])
    code = OK
    if failed:
        message = f"{failed[0].id}: {failed[0].reason}"
        code = context.fail({"code": failed[0].code, "message": message})
    yours = count_passed_results(checked, shipped=False)
    context.own["yours"] = dict(zip(("passed", "total"), yours, strict=True))
    refusal = find_refusal(
        checked=len(checked) - len(lacking),
        total=len(checked),
        untrusted=sum(each.needs_trust for each in checked),
    )
    return conclude(
        context, reports, lambda: _check_report(context, results, seconds, line), code, refusal
    )


def _check_row(result: SpecResult) -> Json:
    needs = [need.to_payload() for need in result.needs]
    return {**result.result.to_payload(), "needs": needs}


def _check_report(
    context: CommandContext, results: Sequence[CheckResult], seconds: float, line: str
) -> CheckReport:
    return check_results_report(context.call.command, results, seconds)._replace(summary=f"{line}.")


def _failure_lines(context: CommandContext, results: Sequence[CheckResult]) -> list[StyledLine]:
    shown = [r for r in results if r.status == FAILED or (context.verbose and r.checks)]
    again = f"cogcli {context.call.command}{context.again}"
    return [
        line
        for result in shown
        for line in details(context.screen.out, result, repeat_command=again)
    ]


def _need_lines(context: CommandContext, lacking: Sequence[SpecResult]) -> list[StyledLine]:
    """Return a line per kind of need with the specs that have it. With `-v` it is a line per spec,
    with the remedy.
    """
    lines: list[StyledLine] = []
    for kind, word in KINDS.items():
        own = [each for each in lacking if [*count_first_needs([each.needs])] == [kind]]
        if context.verbose:
            lines += [[(visible(_need_text(each, kind)), "warning")] for each in own]
        elif own:
            names = ", ".join(each.result.id for each in own)
            lines.append([(f"needs {word}: ", "warning"), (visible(names), "")])
    return lines


def _need_text(result: SpecResult, kind: str) -> str:
    """Return the need of a kind that a spec has, and its remedy."""
    need = next(need for need in result.needs if need.kind == kind)
    cure = f" ({'; '.join(need.cure.split(chr(10)))})" if need.cure else ""
    return f"{result.result.id} {need.sentence}{cure}"


@command(examples=_load_examples, exits=(0, 2, 3))
def coverage(context: CommandContext, *, report: Reports) -> int:
    """Call all examples, run all cases, and report which specs of the registry ran."""
    wanted = parse_reports(report, without=("sarif",))
    measured = measure_coverage(context.settings)
    found = context.own["coverage"] = measured.counts
    line = f"{_coverage_line(found)} ran"
    for kind, one in found.items():
        if one["missing"]:
            context.answer(
                [[(f"{kind} not run: ", "warning"), (visible(", ".join(one["missing"])), "")]]
            )
    context.answer([[(line, "")]])
    header = ("| kind | ran | of | not run |", "| --- | --- | --- | --- |")
    rows = [
        f"| {kind} | {one['ran']} | {one['total']} | {cell(', '.join(one['missing']))} |"
        for kind, one in found.items()
    ]
    table = MarkdownTable(header, tuple(rows))
    refusal = find_refusal(
        checked=sum(one["ran"] for one in found.values()),
        total=sum(one["total"] for one in found.values()),
        untrusted=measured.untrusted,
    )
    return conclude(
        context,
        wanted,
        lambda: counts_report(context.call.command, f"{line}.", table, 0.0),
        OK,
        refusal,
    )


def _coverage_line(coverage: Mapping[str, Json]) -> str:
    """Return `86/97 capabilities, 51/62 skills`, with the user's specs apart from the shipped ones."""
    yours = [
        f"{one['yours']['ran']}/{one['yours']['total']} {kind}"
        for kind, one in coverage.items()
        if one["yours"]["total"]
    ]
    shipped = [
        f"{one['ran'] - one['yours']['ran']}/{one['total'] - one['yours']['total']} {kind}"
        for kind, one in coverage.items()
        if one["total"] > one["yours"]["total"]
    ]
    if yours and shipped:
        return f"yours {', '.join(yours)}; shipped {', '.join(shipped)}"
    return ", ".join(yours or shipped)


@command(examples=_load_examples, exits=(0, 2, 3))
def stats(context: CommandContext, *, report: Reports) -> int:
    """Count the specs, and the calls in the stored runs."""
    wanted = parse_reports(report, without=("sarif",))
    found = context.own["stats"] = measure_calls(context.settings)
    specs = ", ".join(f"{one['total']} {kind}" for kind, one in found["specs"].items())
    episodes = found["episodes"]
    calls = sum(row["calls"] for row in found["calls"])
    line = f"{specs}; {calls} calls in {episodes['read']} episodes"
    line += f", {episodes['unreadable']} cannot be read" if episodes["unreadable"] else ""
    if not context.json and found["calls"]:
        show(context, _CALL_COLUMNS, found["calls"], ListFlags())
    context.answer([[(line, "")]])
    header = (
        "| capability | calls | failed | median ms | 95 % ms |",
        "| --- | --- | --- | --- | --- |",
    )
    rows = [
        f"| {cell(row['capability'])} | {row['calls']} | {row['failed']} | {_number_text(row['median_ms'])} |"
        f" {_number_text(row['p95_ms'])} |"
        for row in found["calls"]
    ]
    table = MarkdownTable(header, tuple(rows))
    wanted.write(context, lambda: counts_report(context.call.command, f"{line}.", table, 0.0), OK)
    return OK


def _number_text(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


@command(examples=_load_examples, exits=(0, 2, 3))
def catalog(context: CommandContext, *, report: Reports) -> int:
    """Write the catalog as one JSON object."""
    wanted = parse_reports(report, without=("sarif",))
    found = context.own["catalog"] = whole_catalog(context.settings)
    context.answer(f"{dumps(found)}\n")
    line = ", ".join(f"{len(entries)} {kind}" for kind, entries in found.items())
    header = ("| skill | what it does | needs |", "| --- | --- | --- |")
    rows = [
        f"| {cell(one['id'])} | {cell(one['description'])} | {cell(', '.join(n['text'] for n in one['needs']))} |"
        for one in found["skills"]
    ]
    table = MarkdownTable(header, tuple(rows))
    wanted.write(context, lambda: counts_report(context.call.command, f"{line}.", table, 0.0), OK)
    return OK
