"""`openapi verify-bindings`: run scenarios against mock servers or live services
(docs/reference/protocols.md#scenarios).

`verify-invoker` and `verify-errors` provoke each rule of cogcli itself
(docs/reference/protocols.md#own-rules).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from shlex import quote

from cogcli.authoring import openapi_checks, scenario_sources
from cogcli.authoring.check_reports import check_results_report
from cogcli.authoring.self_checks import check_rules, list_failure_rules, list_invoker_rules
from cogcli.authoring.verification.check_result import FAILED, SKIPPED, CheckResult, CheckResults
from cogcli.authoring.verification.harness import SelfCheck
from cogcli.base.errors import OK, CogcliError, UnusableEnvironment
from cogcli.base.terminal_text import cells, visible
from cogcli.cli.context import CommandContext
from cogcli.cli.empty_checks import conclude, find_refusal
from cogcli.cli.options import Flags, Protocol, Reports, command, integer, switch, text, wrong_flag
from cogcli.cli.report_files import RequestedReports, parse_reports
from cogcli.cli.verdict_screen import details, result_line, total_text
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import StyledLine

_MAX_LISTED = 40
_SHOWN = 20


def _no_live_call() -> UnusableEnvironment:
    """Return the error of `--live` if no scenario called a live service."""
    hint = "leave `mock_server` out of a scenario: then --live calls its service"
    return UnusableEnvironment("check.nothing", "--live: no live service was called", hint=hint)


class ScenarioFlags(Flags):
    """The flags that select scenarios and how they are called."""

    all: bool = switch("--all", help="every scenario")
    scenario: list[str] = text(
        "--scenario", "FILE", "a scenario file, or its name in the list (repeatable)"
    )
    scenarios_dir: str | None = text(
        "--scenarios-dir", "DIR", "the directory of scenarios", default="tooling/PROTOCOL_scenarios"
    )
    protocol: Protocol
    live: bool = switch("--live", help="call the real services of scenarios without a mock server")
    strict: bool = switch(
        "--strict", help="the whole reply has to match its schema, not only what outputs read"
    )
    jobs: int | None = integer(
        "--jobs", "number of scenarios at the same time", minimum=1, maximum=64, default="4"
    )
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
    """Verify all scenarios or the named ones. Return exit code 1 if one fails."""
    settings = context.settings
    wanted = parse_reports(flags.report, without=("sarif",))
    protocol = flags.protocol or "openapi"
    source = scenario_sources.find_scenarios(settings, protocol, flags.scenarios_dir)
    scenarios = scenario_sources.read_scenarios(
        settings, source, _requested_scenarios(context, source, flags)
    )
    jobs, live = flags.jobs or 4, flags.live
    names = max((cells(scenario.id) for scenario in scenarios), default=0)
    kind = "shipped scenario" if source.shipped and settings.project else "scenario"
    servers = "live services" if live else "mock servers on 127.0.0.1"
    parts = [count_of(len(scenarios), kind), servers, f"{jobs} at a time"]
    head = f" {context.screen.out.glyphs.dot} ".join(parts)
    listener = _start_listing(context, head, names)
    verified = openapi_checks.verify_bindings(
        settings,
        source,
        scenarios,
        protocol=protocol,
        live=live,
        strict=flags.strict,
        jobs=jobs,
        listener=listener,
    )
    without: tuple[str, ...] = ()
    if flags.all:
        without = scenario_sources.bindings_without_scenario(settings, scenarios, protocol)
    context.own["without_scenario"] = list(without)
    context.answer(_result_lines(context, verified.results, verified.seconds, flags))
    if without:
        context.answer([[(f"without a scenario: {_first_bindings(without)}", "warning")]])
    called = {verdict.called for verdict in verified.results}
    refusal = _no_live_call() if live and openapi_checks.LIVE not in called else None
    return _finish_checks(context, verified, wanted, without, refusal)


def _first_bindings(bindings: tuple[str, ...]) -> str:
    """Return the first bindings and the number of the others, as text."""
    more = f" and {len(bindings) - _SHOWN} more" if len(bindings) > _SHOWN else ""
    return visible(", ".join(bindings[:_SHOWN])) + more


def _requested_scenarios(
    context: CommandContext, source: scenario_sources.ScenarioSource, flags: ScenarioFlags
) -> list[str] | None:
    """Return the scenarios that `--scenario` names; None for all.

    Raise UsageError, with the list of scenarios, if neither flag is given.
    """
    named = flags.scenario
    if flags.all and named:
        raise wrong_flag("`--all` takes no `--scenario`", "leave one of them out")
    if flags.all:
        return None
    if named:
        return named
    known = scenario_sources.list_names(source)
    where = context.settings.display_path(source.directory)
    listed = [f"  {name}" for name in known[:_MAX_LISTED]]
    if len(known) > _MAX_LISTED:
        listed.append(f"  and {len(known) - _MAX_LISTED} more")
    head = f"scenarios in {where}:" if known else f"there are no scenarios in {where}"
    raise wrong_flag("give `--all` or `--scenario FILE`", "\n".join([head, *listed]))


def _result_lines(
    context: CommandContext, verdicts: Sequence[CheckResult], seconds: float, flags: ScenarioFlags
) -> list[StyledLine]:
    """Return the failed results in full, with `-v` all of them, and the totals."""
    out = context.screen.out
    lines: list[StyledLine] = []
    for verdict in verdicts:
        if verdict.status == FAILED or (context.verbose and verdict.checks):
            lines += details(out, verdict, repeat_command=_command_for_one(context, verdict, flags))
    hint = "" if flags.report else "   save: --report junit:PATH"
    return [*lines, [(total_text(verdicts, seconds), ""), (hint, "dim")]]


def _command_for_one(context: CommandContext, verdict: CheckResult, flags: ScenarioFlags) -> str:
    """Return the command that verifies one scenario again."""
    words = ["cogcli", "openapi", "verify-bindings", "-v"]
    for flag, value in (("--protocol", flags.protocol), ("--scenarios-dir", flags.scenarios_dir)):
        if value:
            words += [flag, value]
    words += [name for name, is_on in (("--live", flags.live), ("--strict", flags.strict)) if is_on]
    return f"{' '.join(map(quote, words))}{context.again} --scenario {quote(verdict.file)}"


@command(
    examples=(
        ("cogcli openapi verify-invoker", "timeouts, headers, modes, caps, retries"),
        (
            "cogcli openapi verify-invoker --json | jq '.scenarios[] | select(.passed | not)'",
            "what failed",
        ),
        ("cogcli openapi verify-invoker --report junit:invoker.xml", "for CI"),
    ),
    exits=(0, 1, 2, 3),
)
def verify_invoker(
    context: CommandContext, *, protocol: Protocol = "openapi", report: Reports
) -> int:
    """Test each rule of an invoker. Return exit code 1 if one fails."""
    return _provoke_rules(context, list_invoker_rules(protocol or "openapi"), "rule", report)


@command(
    examples=(
        ("cogcli openapi verify-errors", "every row of the failure model"),
        ("cogcli openapi verify-errors --json | jq -r '.scenarios[].id'", "list them"),
        ("cogcli openapi verify-errors --report junit:errors.xml", "for CI"),
    ),
    exits=(0, 1, 2, 3),
)
def verify_errors(context: CommandContext, *, report: Reports = ()) -> int:  # type: ignore[assignment]
    """Provoke each row of the failure model. Return exit code 1 if one fails."""
    return _provoke_rules(context, list_failure_rules(), "row", report)


def _provoke_rules(
    context: CommandContext, rules: Mapping[str, SelfCheck], noun: str, report: Sequence[str]
) -> int:
    """Provoke each rule, and return the exit code."""
    wanted, out = parse_reports(report, without=("sarif",)), context.screen.out
    head = f"{count_of(len(rules), noun)} {out.glyphs.dot} servers on 127.0.0.1"
    listener = _start_listing(context, head, max(map(cells, rules), default=0))
    verified = check_rules(rules, listener=listener)
    failed = [line for v in verified.results if v.status == FAILED for line in details(out, v)]
    context.answer([*failed, [(total_text(verified.results, verified.seconds), "")]])
    return _finish_checks(context, verified, wanted)


def _start_listing(context: CommandContext, head: str, names: int) -> Callable[[CheckResult], None]:
    """Write the first line, and return a listener that writes a line per result.

    Names are in a column of `names` cells.
    """
    context.answer([[(head, "bold")]])
    return lambda verdict: context.answer([result_line(context.screen.out, verdict, names)])


def _finish_checks(
    context: CommandContext,
    results: CheckResults,
    reports: RequestedReports,
    without: tuple[str, ...] = (),
    refusal: CogcliError | None = None,
) -> int:
    """Fill the envelope, write the reports, and return the exit code. `refusal` is the error of a command whose checks
    all pass but do not cover the request.
    """
    verdicts, seconds = results
    context.own["scenarios"] = [verdict.to_payload() for verdict in verdicts]
    failed = [verdict for verdict in verdicts if verdict.status == FAILED]
    code = OK
    if failed:
        count = f" ({count_of(len(failed), 'failure')})" if len(failed) > 1 else ""
        message = f"{failed[0].id}: {failed[0].reason}{count}"
        code = context.fail({"code": "verify.failed", "message": message})
    nothing = find_refusal(
        checked=sum(verdict.status != SKIPPED for verdict in verdicts),
        total=len(verdicts),
        empty="there is no scenario to verify",
        hint="`cogcli new scenario BINDING` writes one; --scenarios-dir DIR names where they are",
    )
    return conclude(
        context,
        reports,
        lambda: check_results_report(context.call.command, verdicts, seconds, without),
        code,
        nothing or refusal,
    )
