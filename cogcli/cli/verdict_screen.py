"""Check results on a screen: one line each, then failed ones with their checks and the location in
the reply (docs/reference/protocols.md#scenarios).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cogcli.authoring.verification.check_result import FAILED, PASSED, SKIPPED, CheckResult
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.terminal_text import cells, pad, truncate, visible
from cogcli.cli.streams import OutputStream
from cogcli.protocols.exchange_checks import Check, Frame
from cogcli.report.humanize import count_of, duration
from cogcli.report.styled_text import StyledLine, fit, style_of

_SIGN = {PASSED: "done", FAILED: "failed", SKIPPED: "skipped"}
_NAMES = 40
"""Columns that names may take before the rest of a line moves."""


def result_line(out: OutputStream, verdict: CheckResult, name_width: int) -> StyledLine:
    """Return the line of a check result. `name_width` is the width of the column of names."""
    word = _SIGN[verdict.status]
    sign = max(cells(out.glyphs.sign(name)) for name in _SIGN.values())
    name = pad(visible(verdict.id), min(name_width, _NAMES))
    detail = visible(_details_text(verdict))
    used = 4 + sign + cells(name)
    text = (fit(detail, out.width, used), "dim" if verdict.status == SKIPPED else "")
    return [(f"  {pad(out.glyphs.sign(word), sign)} ", style_of(word)), (f"{name}  ", ""), text]


def _details_text(verdict: CheckResult) -> str:
    """Return the end of a result's line."""
    if verdict.status == SKIPPED:
        return f"skipped: {verdict.reason}"
    took = duration(verdict.ms)
    if not verdict.checks:
        return f"{verdict.reason or verdict.subject}"
    passed = sum(check.passed for check in verdict.checks)
    total = len(verdict.checks)
    amount = count_of(total, "check") if passed == total else f"{passed} of {total}"
    called = verdict.called and f"  {verdict.called}"
    return f"{amount:<9} {took}{called}".rstrip()


def details(
    out: OutputStream,
    verdict: CheckResult,
    *,
    repeat_command: str = "",
    detail_by_check: Mapping[str, str] = NOTHING,
) -> list[StyledLine]:
    """Return the lines of a failed result: each check with its location, the details in `detail_by_check`, the
    request, and the command that repeats it.
    """
    sign, dot = out.glyphs.sign(_SIGN[verdict.status]), out.glyphs.dot
    title = f" {verdict.id} {dot} {verdict.subject}" if verdict.subject else f" {verdict.id}"
    lines: list[StyledLine] = [[(sign, style_of(_SIGN[verdict.status])), (visible(title), "bold")]]
    if not verdict.checks and verdict.reason:
        lines.append([(f"    {visible(verdict.reason)}", "")])
    names = max((cells(check.name) for check in verdict.checks), default=0)
    for check in verdict.checks:
        lines += _check_lines(out, check, names)
    extras = {
        **detail_by_check,
        "curl": verdict.curl,
        "episode": verdict.episode,
        "re-run": repeat_command,
    }
    lines += [
        [(f"  {name:<8}", "dim"), (visible(text), "")] for name, text in extras.items() if text
    ]
    return lines


def _check_lines(out: OutputStream, check: Check, names: int) -> Iterable[StyledLine]:
    """Yield the lines of a check."""
    word = "done" if check.passed else "failed"
    name = pad(visible(check.name), names)
    text = f"{name}    {visible(check.detail)}".rstrip()
    yield [(f"    {out.glyphs.sign(word)} ", style_of(word)), (text, "")]
    if check.frame and not check.passed:
        yield from _frame_lines(out, check.frame)


def _frame_lines(out: OutputStream, frame: Frame) -> Iterable[StyledLine]:
    """Yield the line of the reply with marks below. A long line is truncated around the marks."""
    number = str(frame.line)
    room = (out.width or 10_000) - 11 - len(number)
    first = (
        max(0, frame.column - 1 - max(0, room - frame.width) // 2) if len(frame.text) > room else 0
    )
    begin, end = frame.column - 1, frame.column - 1 + frame.width
    before, marked = visible(frame.text[first:begin]), visible(frame.text[begin:end])
    shown = before + marked + visible(frame.text[end:])
    yield [
        (f"        {number} | ", "dim"),
        (shown if out.width is None else truncate(shown, room), ""),
    ]
    marks = "^" * max(1, min(cells(marked), room - cells(before)))
    yield [(f"        {' ' * len(number)} | ", "dim"), (" " * cells(before), ""), (marks, "red")]


def total_text(verdicts: Sequence[CheckResult], seconds: float) -> str:
    """Return the totals, such as `6 passed, 1 failed, 1 skipped in 0.31s`."""
    counts = {
        status: sum(v.status == status for v in verdicts) for status in (PASSED, FAILED, SKIPPED)
    }
    totals = ", ".join(
        f"{count} {status}" for status, count in counts.items() if count or status == PASSED
    )
    return f"{totals} in {seconds:.2f}s"
