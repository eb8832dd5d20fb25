"""`verify ba_...`: the findings about a batch (docs/reference/batch.md#verify)."""

from __future__ import annotations

from cogcli.base.errors import OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.options import wrong_flag
from cogcli.episode.layout import Finding
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import StyledLine, style_of
from cogcli.scale.batch_check import check_batch
from cogcli.scale.batch_folder import find_batch

_SIGNS = {"error": "failed", "warning": "warning", "info": "skipped"}


def verify_batch(context: CommandContext, names: list[str]) -> int:
    """Check a batch, report the findings, and return the exit code."""
    if len(names) != 1 or context.call.given.keys() & {"all", "head", "anchor", "repair", "report"}:
        raise wrong_flag("a batch is verified alone and without flags", "cogcli verify ba_...")
    batch_id = find_batch(context.settings.runs_dir, names[0])
    findings = check_batch(context.settings, batch_id)
    errors = [each for each in findings if each.severity == "error"]
    context.own["findings"] = [{"batch": batch_id, **each.to_payload()} for each in findings]
    if errors or not context.screen.quiet:
        context.answer(_finding_lines(context, batch_id, findings, len(errors)))
    return context.fail(errors[0].to_payload()) if errors else OK


def _finding_lines(
    context: CommandContext, batch_id: str, findings: list[Finding], errors: int
) -> list[StyledLine]:
    """Return a heading, and a line per finding."""
    glyphs = context.screen.out.glyphs
    status = "failed" if errors else "warning" if findings else "done"
    text = count_of(errors, "finding") if errors else "ledger, episodes and output agree"
    lines: list[StyledLine] = [
        [(f"{glyphs.sign(status)} ", style_of(status)), (f"{batch_id}  {text}", "")]
    ]
    for finding in findings:
        word = _SIGNS[finding.severity]
        place = f"{finding.file}:{finding.line}: " if finding.line else f"{finding.file}: "
        message = visible(f"{place}{finding.code}: {finding.message}")
        lines.append([(f"  {glyphs.sign(word)} ", style_of(word)), (message, "")])
    return lines
