"""`doctor`: one line per check, only problems expand (docs/reference/command-line.md#views)."""

from __future__ import annotations

import time
from typing import Annotated, Any

from cogcli.app.checks.doctor import Diagnosis, diagnose
from cogcli.app.checks.doctor_services import DoctorCheck
from cogcli.app.checks.reports import diagnosis_report
from cogcli.cli.command import command
from cogcli.cli.context import CommandContext
from cogcli.cli.options import Reports, switch
from cogcli.cli.report_files import parse_reports
from cogcli.core.errors import NO, OK
from cogcli.core.terminal_text import cells, pad, truncate, visible
from cogcli.report.glyphs import style_of
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import StyledLine

_SIGNS = {"ok": "done", "warning": "warning", "error": "failed", "skipped": "skipped"}


@command(
    examples=(
        ("cogcli doctor", "all checks"),
        ("cogcli doctor --net --strict", "in CI"),
        ("cogcli doctor --json | jq .checks", "for scripts"),
    ),
    exits=(0, 1, 2, 3),
)
def doctor(
    context: CommandContext,
    *,
    net: Annotated[
        bool,
        switch("--net", help="also ask the servers of services whether they answer; no secret is sent"),
    ] = False,
    strict: Annotated[bool, switch("--strict", help="warnings fail, too")] = False,
    report: Reports,
) -> int:
    """Diagnose and answer."""
    started, wanted = time.monotonic(), parse_reports(report, without=("sarif",))
    diagnosis = diagnose(context.settings, net=net)
    context.own["checks"] = [
        {**check._asdict(), "details": list(check.details)} for check in diagnosis.checks
    ]
    errors = sum(check.status == "error" for check in diagnosis.checks)
    warnings = sum(check.status == "warning" for check in diagnosis.checks)
    if not context.json:
        sums = f"{diagnosis.summary} {count_of(errors, 'error')}, {count_of(warnings, 'warning')}.".strip()
        context.screen.answer_lines([*_lines(context, diagnosis), [(sums, "")]])
    failed = bool(errors or (warnings and strict))
    if failed:
        context.error = _error(diagnosis.checks, "error" if errors else "warning")
    code = NO if failed else OK
    wanted.write(
        context, lambda: diagnosis_report(diagnosis, time.monotonic() - started, strict=strict), code
    )
    return code


def _error(checks: list[DoctorCheck], status: str) -> dict[str, Any]:
    """The first check that failed, as the envelope's error."""
    first = next(check for check in checks if check.status == status)
    return {
        "code": "doctor.found",
        "message": f"{first.name}: {first.message}",
        "retryable": False,
        "hint": first.fix,
        "next": ["cogcli explain doctor.found"],
    }


def _lines(context: CommandContext, diagnosis: Diagnosis) -> list[StyledLine]:
    out = context.screen.out
    head = diagnosis.head.replace(" · ", f" {out.glyphs.dot} ")
    lines: list[StyledLine] = [[(_cut(head, out.width), "bold")]]
    names = max((cells(check.name) for check in diagnosis.checks), default=0)
    sign = max(cells(out.glyphs.sign(word)) for word in _SIGNS.values())
    group = ""
    for check in diagnosis.checks:
        if check.group != group:
            group = check.group
            lines.append([(group, "bold")])
        lines += _check(context, check, names, sign)
    return lines


def _check(context: CommandContext, check: DoctorCheck, names: int, sign: int) -> list[StyledLine]:
    out = context.screen.out
    word = _SIGNS[check.status]
    line: StyledLine = [
        (f"  {pad(out.glyphs.sign(word), sign)} ", style_of(word)),
        (_cut(f"{pad(visible(check.name), names)}  {visible(check.message)}", out.width, 3 + sign), ""),
    ]
    if check.status == "ok":
        return [line]
    indent = " " * (5 + sign + names)
    fixes = check.fix.split("\n") if check.fix else []
    details = [
        *check.details,
        *(f"{'     ' if number else 'fix: '}{fix}" for number, fix in enumerate(fixes)),
    ]
    return [line, *([(indent + _cut(visible(text), out.width, len(indent)), "dim")] for text in details)]


def _cut(text: str, width: int | None, used: int = 0) -> str:
    return text if width is None else truncate(text, width - used)
