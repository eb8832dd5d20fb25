"""`openapi verify-bindings`: scenarios against mock servers, or live (docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from cogcli.app import openapi_checks as app
from cogcli.cli import report_files, verdict_reports
from cogcli.cli.verdict_screen import details, row, sums
from cogcli.core.errors import NO, OK, UsageError
from cogcli.core.terminal_text import cells
from cogcli.report.humanize import count_of
from cogcli.verification.verdict import FAILED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogcli.cli.context import CommandContext
    from cogcli.report.styled_text import StyledLine
    from cogcli.verification.scenario import Scenario
    from cogcli.verification.verdict import Verdict

_LISTED = 40


def execute(context: CommandContext) -> int:
    """Verify all scenarios, or the named ones; exit code 1 if one fails."""
    given, settings = context.arguments, context.settings
    wanted = report_files.parse_reports(given.many("--report"), verdict_reports.KINDS)
    protocol = given.text("--protocol") or "openapi"
    source = app.find_scenarios(settings, protocol, given.text("--scenarios-dir"))
    scenarios = app.read_scenarios(settings, source, _names(context, source))
    jobs, live = given.integer("--jobs", 4), given.on("--live")
    names = max((cells(scenario.id) for scenario in scenarios), default=0)
    if not context.json:
        context.screen.answer_lines([_head(context, scenarios, jobs=jobs, live=live)])

    def show(verdict: Verdict) -> None:
        if not context.json:
            context.screen.answer_lines([row(context.screen.out, verdict, names)])

    verified = app.verify_bindings(
        settings, source, scenarios, protocol=protocol, live=live, jobs=jobs, listener=show
    )
    if not context.json:
        context.screen.answer_lines(_summary(context, verified.verdicts, verified.seconds))
    return conclude(context, "openapi verify-bindings", verified.verdicts, verified.seconds, wanted)


def _names(context: CommandContext, source: app.ScenarioSource) -> list[str] | None:
    """The named scenarios, None for all. Raises UsageError, with the list, where neither is given."""
    given = context.arguments
    named = given.many("--scenario")
    if given.on("--all"):
        if named:
            raise UsageError("usage.flag", "`--all` takes no `--scenario`", hint="leave one of them out")
        return None
    if named:
        return named
    known = app.list_names(source)
    where = context.settings.display_path(source.directory)
    listed = [f"  {name}" for name in known[:_LISTED]]
    if len(known) > _LISTED:
        listed.append(f"  and {len(known) - _LISTED} more")
    head = f"scenarios in {where}:" if known else f"there are no scenarios in {where}"
    raise UsageError("usage.flag", "say `--all`, or `--scenario FILE`", hint="\n".join([head, *listed]))


def _head(context: CommandContext, scenarios: Sequence[Scenario], *, jobs: int, live: bool) -> StyledLine:
    dot = context.screen.out.glyphs.dot
    servers = "live services" if live else "mock servers on 127.0.0.1"
    return [(f"{count_of(len(scenarios), 'scenario')} {dot} {servers} {dot} {jobs} at a time", "bold")]


def _summary(context: CommandContext, verdicts: Sequence[Verdict], seconds: float) -> list[StyledLine]:
    """The failed verdicts in full (with -v all), and the totals."""
    out = context.screen.out
    lines: list[StyledLine] = []
    verbose = context.arguments.on("--verbose")
    for verdict in verdicts:
        if verdict.status == FAILED or (verbose and verdict.checks):
            lines += details(out, verdict, again=_again(context, verdict))
    hint = "" if context.arguments.many("--report") else "   save: --report junit:PATH"
    return [*lines, [(sums(verdicts, seconds), ""), (hint, "dim")]]


def _again(context: CommandContext, verdict: Verdict) -> str:
    given = context.arguments
    words = ["cogcli", "openapi", "verify-bindings", "-v"]
    for flag in ("--protocol", "--scenarios-dir"):
        if value := given.text(flag):
            words += [flag, value]
    if given.on("--live"):
        words.append("--live")
    return f"{' '.join(map(quote, words))}{context.again} --scenario {quote(verdict.file)}"


def conclude(
    context: CommandContext,
    command: str,
    verdicts: Sequence[Verdict],
    seconds: float,
    wanted: list[report_files.ReportFile],
) -> int:
    """Fill the envelope, write the reports; returns the exit code."""
    context.own["scenarios"] = [verdict.to_payload() for verdict in verdicts]
    failed = [verdict for verdict in verdicts if verdict.status == FAILED]
    code = NO if failed else OK
    if failed:
        first = failed[0]
        count = f" ({count_of(len(failed), 'failure')})" if len(failed) > 1 else ""
        context.error = {
            "code": "verify.failed",
            "message": f"{first.id}: {first.reason}{count}",
            "retryable": False,
            "hint": "",
            "next": ["cogcli explain verify.failed"],
        }

    def whole() -> str:
        from cogcli.cli.envelope import envelope

        return envelope(command, code, error=context.error, warnings=context.warnings, own=dict(context.own))

    texts = {
        "junit": lambda: verdict_reports.junit_of(command, verdicts, seconds=seconds),
        "md": lambda: verdict_reports.markdown_of(command, verdicts),
        "json": whole,
    }
    report_files.write(wanted, texts)
    if any(report.kind == report_files.GITHUB for report in wanted):
        context.screen.notify(verdict_reports.github_of(verdicts))
    _write_github_summary(context, command, verdicts)
    return code


def _write_github_summary(context: CommandContext, command: str, verdicts: Sequence[Verdict]) -> None:
    """Append a table to `GITHUB_STEP_SUMMARY`, where set. A file that cannot be written is no error of the check."""
    path = context.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    try:
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(verdict_reports.markdown_of(command, verdicts))
    except OSError:
        return
