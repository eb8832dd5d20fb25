"""`openapi verify-bindings`: scenarios against mock servers, or live (docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated

from cogcli.app import openapi_checks as app
from cogcli.cli import report_files, verdict_reports
from cogcli.cli.command import command
from cogcli.cli.context import CommandContext
from cogcli.cli.options import Flags, Protocol, Reports, integer, switch, text
from cogcli.cli.verdict_screen import details, row, sums
from cogcli.core.errors import NO, OK, UsageError
from cogcli.core.terminal_text import cells
from cogcli.report.humanize import count_of
from cogcli.verification.verdict import FAILED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogcli.report.styled_text import StyledLine
    from cogcli.verification.scenario import Scenario
    from cogcli.verification.verdict import Verdict

_LISTED = 40


class ScenarioFlags(Flags):
    """Which scenarios are called, and how."""

    all: Annotated[bool, switch("--all", help="every scenario")]
    scenario: Annotated[
        list[str], text("--scenario", "FILE", "this one: a file, or a name of the list (repeatable)")
    ]
    scenarios_dir: Annotated[
        str | None,
        text("--scenarios-dir", "DIR", "where scenarios are", default="tooling/PROTOCOL_scenarios"),
    ]
    protocol: Protocol
    live: Annotated[
        bool, switch("--live", help="call the services themselves where a scenario names no mock server")
    ]
    jobs: Annotated[int | None, integer("--jobs", "scenarios at a time", least=1, most=64, default="4")]
    report: Reports


@command(
    examples=(
        ("cogcli openapi verify-bindings --all", "every scenario, against mock servers"),
        ("cogcli openapi verify-bindings --scenario data.schema.validate.mock", "one"),
        ("cogcli openapi verify-bindings --all --report junit:bindings.xml", "for CI"),
    ),
    exits=(0, 1, 2, 3),
)
def verify_bindings(context: CommandContext, *, flags: ScenarioFlags) -> int:
    """Verify all scenarios, or the named ones; exit code 1 if one fails."""
    settings = context.settings
    wanted = report_files.parse_reports(flags.report, verdict_reports.KINDS)
    protocol = flags.protocol or "openapi"
    source = app.find_scenarios(settings, protocol, flags.scenarios_dir)
    scenarios = app.read_scenarios(settings, source, _names(context, source, flags))
    jobs, live = flags.jobs or 4, flags.live
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
        context.screen.answer_lines(_summary(context, verified.verdicts, verified.seconds, flags))
    return conclude(context, "openapi verify-bindings", verified.verdicts, verified.seconds, wanted)


def _names(context: CommandContext, source: app.ScenarioSource, flags: ScenarioFlags) -> list[str] | None:
    """The named scenarios, None for all. Raises UsageError, with the list, where neither is given."""
    named = flags.scenario
    if flags.all:
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


def _summary(
    context: CommandContext, verdicts: Sequence[Verdict], seconds: float, flags: ScenarioFlags
) -> list[StyledLine]:
    """The failed verdicts in full (with -v all), and the totals."""
    out = context.screen.out
    lines: list[StyledLine] = []
    for verdict in verdicts:
        if verdict.status == FAILED or (context.verbose and verdict.checks):
            lines += details(out, verdict, again=_again(context, verdict, flags))
    hint = "" if flags.report else "   save: --report junit:PATH"
    return [*lines, [(sums(verdicts, seconds), ""), (hint, "dim")]]


def _again(context: CommandContext, verdict: Verdict, flags: ScenarioFlags) -> str:
    words = ["cogcli", "openapi", "verify-bindings", "-v"]
    for flag, value in (("--protocol", flags.protocol), ("--scenarios-dir", flags.scenarios_dir)):
        if value:
            words += [flag, value]
    if flags.live:
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
