"""`test`: run the cases next to skills through the real engine (docs/reference/test-case.md)."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import Annotated

from cogcli.app.run_skill import parse_hosts
from cogcli.authoring.check_reports import skill_tests_report
from cogcli.authoring.skill_test_files import record_case, update_cases
from cogcli.authoring.skill_tests import (
    UNTRUSTED,
    CaseResults,
    RequestedCases,
    find_cases,
    find_warning,
    run_cases,
)
from cogcli.authoring.verification.check_result import FAILED, SKIPPED, CheckResult
from cogcli.base.errors import ENVIRONMENT, OK, CogcliError
from cogcli.base.terminal_text import cells, visible, visible_block
from cogcli.cli.context import CommandContext
from cogcli.cli.empty_checks import conclude, find_refusal
from cogcli.cli.options import (
    OUTPUT,
    AllowHost,
    Reports,
    argument,
    command,
    integer,
    switch,
    text,
    wrong_flag,
)
from cogcli.cli.render_error import next_lines, problem_lines
from cogcli.cli.report_files import RequestedReports, parse_reports
from cogcli.cli.verdict_screen import details, result_line, total_text
from cogcli.report.coverage import KINDS, skill_line
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import StyledLine


@command(
    examples=(
        ("cogcli test", "all cases of the project"),
        ("cogcli test 'text.*' --coverage", "some skills, and which steps ran"),
        ("cogcli test --record @last", "a case from an episode"),
    ),
    exits=(0, 1, 2, 3),
)
def run_tests(
    context: CommandContext,
    words: Annotated[list[str], argument("[SKILL|GLOB|PATH ...]", "skills")],
    *,
    coverage: Annotated[
        bool, switch("--coverage", help="show which steps and branches ran", panel=OUTPUT)
    ] = False,
    jobs: Annotated[
        int,
        integer("--jobs", "number of cases at the same time", minimum=1, maximum=64, default="4"),
    ] = 4,
    record: Annotated[
        str | None, text("--record", "EP", "make a case from an episode", completes="episodes")
    ] = None,
    update: Annotated[
        bool, switch("--update", help="accept the outputs of failed cases as expected")
    ] = False,
    allow_host: AllowHost,
    report: Reports,
) -> int:
    """Run test cases. Return exit code 1 if one fails, 3 if one cannot be read."""
    if record is not None:
        if words or update or coverage or report:
            raise wrong_flag("`--record` makes a case and runs none", "give it an episode alone")
        return _record_episode(context, record)
    wanted = parse_reports(report, without=("sarif",))
    found = find_cases(context.settings, words)
    hosts = parse_hosts(allow_host)
    if (warning := find_warning(context.settings, found.cases)) is not None:
        context.warn(warning)
    tested = _run_and_list(context, found, jobs, hosts)
    if update:
        tested = _accept_outputs(context, found, tested)
    context.answer(_failure_lines(context, tested.results.results))
    if coverage:
        context.own["coverage"] = tested.coverage.to_payload()
        context.answer(_coverage_lines(context.own["coverage"]))
    context.answer(_problem_lines(context, found))
    context.answer(
        [
            [
                (total_text(*tested.results), ""),
                ("" if report else "   save: --report junit:PATH", "dim"),
            ]
        ]
    )
    return _finish_checks(context, found, tested, wanted, coverage=coverage)


def _run_and_list(
    context: CommandContext, requested: RequestedCases, jobs: int, hosts: tuple[str, ...]
) -> CaseResults:
    """Run the cases, and write a line for each result."""
    out, cases = context.screen.out, requested.cases
    skills = len({case.skill_id for case in cases})
    parts = [count_of(len(cases), "case"), count_of(skills, "skill"), f"{jobs} at a time"]
    context.answer([[(f" {out.glyphs.dot} ".join(parts), "bold")]])
    names = max((cells(case.id) for case in cases), default=0)

    def listener(result: CheckResult) -> None:
        context.answer([result_line(out, result, names)])

    return run_cases(context.settings, cases, jobs=jobs, listener=listener, allow_hosts=hosts)


def _record_episode(context: CommandContext, episode: str) -> int:
    """Write a case made from an episode, and print its path."""
    made = record_case(context.settings, episode)
    context.own["created"] = [made.file]
    context.answer(f"{visible(made.file)}\n")
    for key in made.masked:
        context.note(f"`{key}` holds masked values: give the case others")
    for line in (
        next_lines([f"cogcli test {quote(made.id)}{context.again}"]) if context.screen.hints else ()
    ):
        context.screen.notify_line(line)
    return OK


def _accept_outputs(
    context: CommandContext, requested: RequestedCases, results: CaseResults
) -> CaseResults:
    """Accept the outputs of failed cases, display the changes of their files, and return the new
    results.
    """
    updated = update_cases(context.settings, requested.cases, results)
    context.own["updated"] = list(updated.diffs)
    for diff in updated.diffs:
        context.answer(visible_block(diff))
    return results._replace(results=results.results._replace(results=updated.results))


def _failure_lines(context: CommandContext, results: Sequence[CheckResult]) -> list[StyledLine]:
    """Return the failed cases in full, with `-v` all of them, each with the commands that inspect
    and repeat it.
    """
    lines: list[StyledLine] = []
    for result in results:
        if result.status == FAILED or (context.verbose and result.checks):
            again = f"cogcli test {quote(result.id)} -v{context.again}"
            more = {
                "case": _display_place(result),
                "look": f"cogcli trace {quote(result.episode)}" if result.episode else "",
            }
            lines += details(
                context.screen.out,
                result._replace(episode=""),
                repeat_command=again,
                detail_by_check=more,
            )
    return lines


def _display_place(result: CheckResult) -> str:
    """Return the file of a case, with the line and column of its first failed check."""
    frame = result.frame
    return f"{result.file}:{frame.line}:{frame.column}" if frame else result.file


def _problem_lines(context: CommandContext, requested: RequestedCases) -> list[StyledLine]:
    """Return the problems of files that could not be read."""
    width = context.screen.out.width
    return [
        line
        for problem in requested.problems
        for line in [*problem_lines(problem, base=context.base, width=width), [("", "")]]
    ]


def _coverage_lines(entries: Sequence[dict[str, object]]) -> list[StyledLine]:
    """Return a line per skill, and below it the parts that no case reached."""
    lines: list[StyledLine] = [[("coverage", "bold")]]
    names = max((cells(str(entry["skill"])) for entry in entries), default=0)
    for entry in entries:
        lines.append([(f"  {entry['skill']:<{names}}  {skill_line(entry)}", "")])
        for kind in KINDS:
            missing = entry[kind]["missing"]  # type: ignore[index]
            if missing:
                lines.append([(f"    not run: {visible('; '.join(missing))}", "warning")])
    return lines


def _finish_checks(
    context: CommandContext,
    requested: RequestedCases,
    tested: CaseResults,
    reports: RequestedReports,
    *,
    coverage: bool,
) -> int:
    """Fill the envelope, write the reports, and return the exit code."""
    results, seconds = tested.results
    context.own["tests"] = [result.to_payload() for result in results]
    failed = [result for result in results if result.status == FAILED]
    code = OK
    if failed:
        count = f" ({count_of(len(failed), 'failure')})" if len(failed) > 1 else ""
        code = context.fail(
            {"code": failed[0].code, "message": f"{failed[0].id}: {failed[0].reason}{count}"}
        )
    if requested.problems:
        context.own["problems"] = [problem.to_payload() for problem in requested.problems]
        context.fail(requested.problems[0].to_payload())
        code = ENVIRONMENT
    entries = tested.coverage.to_payload() if coverage else []
    return conclude(
        context,
        reports,
        lambda: skill_tests_report(results, seconds, requested.problems, entries),
        code,
        _find_refusal(results),
    )


def _find_refusal(results: Sequence[CheckResult]) -> CogcliError | None:
    """Return the error if no case was checked."""
    return find_refusal(
        checked=sum(result.status != SKIPPED for result in results),
        total=len(results),
        untrusted=sum(result.code == UNTRUSTED for result in results),
        empty="there are no test cases",
        hint="they are in the folder `tests` next to a skill; `cogcli test --record EP` makes one of an episode",
    )
