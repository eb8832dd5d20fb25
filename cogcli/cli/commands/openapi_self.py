"""`openapi verify-invoker` and `openapi verify-errors`: our own rules, each really provoked
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
    """Provoke every line of the command that was asked for."""
    given = context.arguments
    wanted = report_files.parse_reports(given.many("--report"), verdict_reports.KINDS)
    name = given.command.name if given.command else ""
    errors = name == "openapi verify-errors"
    lines = app.error_lines() if errors else app.invoker_lines(given.text("--protocol") or "openapi")
    names = max(map(cells, lines), default=0)
    if not context.json:
        said = count_of(len(lines), "row" if errors else "rule")
        head: StyledLine = [(f"{said} {context.screen.out.glyphs.dot} servers on 127.0.0.1", "bold")]
        context.screen.answer_lines([head])

    def heard(verdict: Verdict) -> None:
        if not context.json:
            context.screen.answer_lines([row(context.screen.out, verdict, names)])

    verified = app.provoke_rules(lines, listener=heard)
    if not context.json:
        told = [
            line for v in verified.verdicts if v.status == FAILED for line in details(context.screen.out, v)
        ]
        context.screen.answer_lines([*told, [(sums(verified.verdicts, verified.seconds), "")]])
    return conclude(context, name, verified.verdicts, verified.seconds, wanted)
