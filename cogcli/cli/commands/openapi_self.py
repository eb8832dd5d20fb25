"""`openapi verify-invoker` and `openapi verify-errors`: the rules of cogcli itself, each provoked
(docs/reference/protocols.md#own-rules)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogcli.app import self_checks as app
from cogcli.cli import report_files, verdict_reports
from cogcli.cli.command import command
from cogcli.cli.commands.openapi import conclude
from cogcli.cli.context import CommandContext
from cogcli.cli.options import Protocol, Reports
from cogcli.cli.verdict_screen import details, row, sums
from cogcli.core.terminal_text import cells
from cogcli.report.humanize import count_of
from cogcli.verification.verdict import FAILED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogcli.report.styled_text import StyledLine
    from cogcli.verification.verdict import Verdict


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
def verify_invoker(context: CommandContext, *, protocol: Protocol = "openapi", report: Reports) -> int:
    """Provoke every rule of an invoker; exit code 1 if one fails."""
    return _provoke(context, app.list_invoker_rules(protocol or "openapi"), "rule", report)


@command(
    examples=(
        ("cogcli openapi verify-errors", "every row of the failure model"),
        ("cogcli openapi verify-errors --json | jq -r '.scenarios[].id'", "which there are"),
        ("cogcli openapi verify-errors --report junit:errors.xml", "for CI"),
    ),
    exits=(0, 1, 2, 3),
)
def verify_errors(context: CommandContext, *, report: Reports = ()) -> int:  # type: ignore[assignment]
    """Provoke every row of the failure model; exit code 1 if one fails."""
    return _provoke(context, app.list_failure_rules(), "row", report)


def _provoke(context: CommandContext, lines: Any, noun: str, report: Sequence[str]) -> int:
    wanted = report_files.parse_reports(report, verdict_reports.KINDS)
    names = max(map(cells, lines), default=0)
    if not context.json:
        amount = count_of(len(lines), noun)
        head: StyledLine = [(f"{amount} {context.screen.out.glyphs.dot} servers on 127.0.0.1", "bold")]
        context.screen.answer_lines([head])

    def show(verdict: Verdict) -> None:
        if not context.json:
            context.screen.answer_lines([row(context.screen.out, verdict, names)])

    verified = app.provoke_rules(lines, listener=show)
    if not context.json:
        failed = [
            line for v in verified.verdicts if v.status == FAILED for line in details(context.screen.out, v)
        ]
        context.screen.answer_lines([*failed, [(sums(verified.verdicts, verified.seconds), "")]])
    return conclude(context, context.call.command, verified.verdicts, verified.seconds, wanted)
