"""`openapi verify-invoker` and `openapi verify-errors`: the rules of cogcli itself, each provoked
(docs/reference/protocols.md#own-rules)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.app import self_checks as app
from cogcli.cli import report_files, verdict_reports
from cogcli.cli.commands.openapi import conclude
from cogcli.cli.verdict_screen import details, row, sums
from cogcli.core.terminal_text import cells
from cogcli.report.humanize import count_of
from cogcli.verification.verdict import FAILED

if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext
    from cogcli.report.styled_text import StyledLine
    from cogcli.verification.verdict import Verdict


def execute(context: CommandContext) -> int:
    """Provoke every rule, or every row of the failure model; exit code 1 if one fails."""
    given = context.arguments
    wanted = report_files.parse_reports(given.many("--report"), verdict_reports.KINDS)
    name = given.command.name if given.command else ""
    errors = name == "openapi verify-errors"
    lines = (
        app.list_failure_rules() if errors else app.list_invoker_rules(given.text("--protocol") or "openapi")
    )
    names = max(map(cells, lines), default=0)
    if not context.json:
        amount = count_of(len(lines), "row" if errors else "rule")
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
    return conclude(context, name, verified.verdicts, verified.seconds, wanted)
