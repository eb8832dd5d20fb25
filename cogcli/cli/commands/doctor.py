"""`doctor`: one line per check, with details only for problems
(docs/reference/command-line.md#views).
"""

from __future__ import annotations

import time
from typing import Annotated

from cogcli.app.checks.doctor import DoctorReport, diagnose
from cogcli.app.checks.doctor_services import DoctorCheck
from cogcli.app.checks.repairs import find_repairs
from cogcli.app.checks.reports import diagnosis_report
from cogcli.base.errors import OK
from cogcli.base.terminal_text import cells, pad, visible
from cogcli.cli.context import CommandContext
from cogcli.cli.drawing import CheckDisplay, draw_checks, draw_paragraph
from cogcli.cli.options import Reports, command, switch
from cogcli.cli.report_files import parse_reports
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import StyledLine, fit, style_of

_SIGNS = {"ok": "done", "warning": "warning", "error": "failed", "skipped": "skipped"}


@command(
    examples=(
        ("cogcli doctor --fix", "repair what is safe, then check"),
        ("cogcli doctor --net --strict", "for CI"),
        ("cogcli doctor --json | jq .checks", "for scripts"),
    ),
    exits=(0, 1, 2, 3),
)
def doctor(
    context: CommandContext,
    *,
    net: Annotated[
        bool,
        switch(
            "--net",
            help="also reach the servers of services (without secrets) and the language model (with its key)",
        ),
    ] = False,
    strict: Annotated[bool, switch("--strict", help="fail on warnings, too")] = False,
    fix: Annotated[
        bool, switch("--fix", help="first repair what is safe: .gitignore, editor schemas")
    ] = False,
    report: Reports,
) -> int:
    """Check this machine and project. Return exit code 1 if a check fails."""
    started, wanted = time.monotonic(), parse_reports(report, without=("sarif",))
    diagnosis = diagnose(context.settings, net=net)
    if fix and _make_repairs(context, diagnosis):
        diagnosis = diagnose(context.settings, net=net)
    context.own["checks"] = [
        {**check._asdict(), "details": list(check.details)} for check in diagnosis.checks
    ]
    errors = _select_checks(diagnosis, "error")
    warnings = _select_checks(diagnosis, "warning")
    counts = f"{count_of(len(errors), 'error')}, {count_of(len(warnings), 'warning')}."
    sums = f"{diagnosis.summary} {counts}".strip()
    _write_checks(context, diagnosis)
    out = context.screen.out
    context.answer(f"{sums}\n" if out.width is None else draw_paragraph(out, sums))
    code = OK
    found = [*errors, *(warnings if strict else [])]
    if found:
        first = found[0]
        finding = {"code": "doctor.found", "message": f"{first.name}: {first.message}"}
        code = context.fail(finding, first.fix)
    seconds = time.monotonic() - started
    wanted.write(context, lambda: diagnosis_report(diagnosis, seconds, strict=strict), code)
    return code


def _make_repairs(context: CommandContext, diagnosis: DoctorReport) -> bool:
    """Report each repair on stderr, then make it. Return whether any repair was made. Raise the errors of the
    repairs.
    """
    repairs = find_repairs(context.settings, diagnosis.checks)
    for repair in repairs:
        context.note(f"fix: {repair.words}")
    for repair in repairs:
        repair.apply(context.settings, context.settings.project or "")
    context.own["fixed"] = [repair.words for repair in repairs]
    return bool(repairs)


def _select_checks(diagnosis: DoctorReport, status: str) -> list[DoctorCheck]:
    return [check for check in diagnosis.checks if check.status == status]


def _write_checks(context: CommandContext, diagnosis: DoctorReport) -> None:
    """Write the checks: as a table on a terminal, else one line for each."""
    out = context.screen.out
    head = diagnosis.head.replace(" · ", f" {out.glyphs.dot} ")
    context.answer([[(fit(head, out.width), "bold")]])
    if out.width is None:
        context.answer(_report_lines(context, diagnosis))
        return
    groups = {check.group: [_drawn_check(context, one) for one in diagnosis.checks if one.group == check.group]
              for check in diagnosis.checks}  # fmt: skip
    context.answer(draw_checks(out, list(groups.items())))


def _drawn_check(context: CommandContext, check: DoctorCheck) -> CheckDisplay:
    """Return a check as drawn on a terminal."""
    word = _SIGNS[check.status]
    sign = (context.screen.out.glyphs.sign(word), style_of(word))
    return CheckDisplay(
        sign,
        visible(check.name),
        visible(check.message),
        [visible(text) for text in _detail_lines(check)],
    )


def _detail_lines(check: DoctorCheck) -> list[str]:
    """Return the lines below a check with a finding: its details, then its fixes."""
    if check.status == "ok":
        return []
    fixes = check.fix.split("\n") if check.fix else []
    return [
        *check.details,
        *(f"{'     ' if number else 'fix: '}{fix}" for number, fix in enumerate(fixes)),
    ]


def _report_lines(context: CommandContext, diagnosis: DoctorReport) -> list[StyledLine]:
    out = context.screen.out
    lines: list[StyledLine] = []
    names = max((cells(check.name) for check in diagnosis.checks), default=0)
    sign = max(cells(out.glyphs.sign(word)) for word in _SIGNS.values())
    group = ""
    for check in diagnosis.checks:
        if check.group != group:
            group = check.group
            lines.append([(group, "bold")])
        lines += _check_lines(context, check, names, sign)
    return lines


def _check_lines(
    context: CommandContext, check: DoctorCheck, names: int, sign: int
) -> list[StyledLine]:
    out = context.screen.out
    word = _SIGNS[check.status]
    line: StyledLine = [
        (f"  {pad(out.glyphs.sign(word), sign)} ", style_of(word)),
        (f"{pad(visible(check.name), names)}  {visible(check.message)}", ""),
    ]
    indent = " " * (5 + sign + names)
    return [line, *([(indent + visible(text), "dim")] for text in _detail_lines(check))]
