"""`validate`: the problems of spec files; exit code 1 if there is an error
(docs/reference/command-line.md#errors, docs/reference/command-line.md#reports).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated, NoReturn

from cogcli.app.checks import registry_check
from cogcli.app.checks.file_fixes import FileFix, find_fixes, write_fixes
from cogcli.app.checks.registry_check import CheckRequirements, RegistryCheck
from cogcli.app.checks.reports import RENDERERS, registry_report
from cogcli.app.checks.watch import take_snapshot, wait_for_change
from cogcli.base.errors import OK, CogcliError
from cogcli.base.problems import Problem
from cogcli.base.terminal_text import visible, visible_block
from cogcli.cli.code_frame import Sources
from cogcli.cli.context import CommandContext
from cogcli.cli.empty_checks import find_refusal
from cogcli.cli.envelope import dumps, error_object
from cogcli.cli.options import (
    OUTPUT,
    argument,
    choice,
    command,
    switch,
    text,
    wrong_flag,
    wrong_value,
)
from cogcli.cli.prompt import read_stdin
from cogcli.cli.render_error import problem_lines
from cogcli.cli.report_files import RequestedReports, parse_reports
from cogcli.report.check_report import CheckReport, concise, problems_summary
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import StyledLine

_STDIN = "<stdin>"
_MAX_BYTES = 256 * 1024
_MAX_ROUNDS = 5
"""The maximum number of rounds of --fix. A fixed file may reveal further problems."""
_REPORT = "also write junit, sarif, json, md; github: annotations on stderr (repeatable)"
FORMATS = ("text", "concise", "github", "jsonl")


@command(
    examples=(
        ("cogcli validate --fix", "correct what has one right answer"),
        ("cogcli validate --strict --format github --report junit:junit.xml", "in CI"),
        ("cogcli validate --against .cogcli/episodes", "may runs that wait continue?"),
    ),
    exits=(0, 1, 2, 3, 130),
)
def validate(
    context: CommandContext,
    words: Annotated[list[str], argument("[PATH...|-]")],
    *,
    format: Annotated[
        str, choice("--format", "WORD", FORMATS, panel=OUTPUT, default="text")
    ] = "text",
    report: Annotated[
        list[str],
        text(
            "--report",
            "KIND:PATH",
            _REPORT,
            OUTPUT,
            completes=("junit:", "sarif:", "json:", "md:", "github"),
        ),
    ],
    strict: Annotated[
        bool, switch("--strict", help="fail on warnings about your own specs, too")
    ] = False,
    ready: Annotated[
        bool, switch("--ready", help="fail where this machine lacks a variable, an extra or trust")
    ] = False,
    fix: Annotated[
        bool, switch("--fix", help="correct your own files where only one answer is right")
    ] = False,
    watch: Annotated[bool, switch("--watch", help="check again whenever a file changes")] = False,
    against: Annotated[
        list[str],
        text(
            "--against",
            "EP",
            "also judge what the specs mean for these recorded runs: episodes or their directory (repeatable)",
            completes="episodes",
        ),
    ],
    stdin_filename: Annotated[
        str | None, text("--stdin-filename", "FILE", "the file name of the text that `-` reads")
    ] = None,
) -> int:
    """Check all specs, or those at the given paths."""
    wanted = parse_reports(report)
    if watch:
        _require_screen_only(words, has_answer=bool(context.json or report or against))
    paths, contents = _paths_and_contents(context, words, stdin_filename)
    if fix and contents:
        raise wrong_flag("`--fix` changes files, and `-` is not a file", "name the file")
    run = _Validation(
        context, paths, contents, format=format, demands=CheckRequirements(strict, ready), fix=fix
    )
    if watch:
        run.watch()
    code = _check_once(context, run, wanted)
    return (_forecast_runs(context, against) or code) if against else code


def _check_once(context: CommandContext, run: _Validation, reports: RequestedReports) -> int:
    """Check once, write the wanted reports and return the exit code. Raise the refusal of an empty check."""
    code = run.check()
    refusal = run.refusal if code == OK else None
    if refusal is not None:
        context.error, code = error_object(refusal), refusal.exit_code
    reports.write(context, run.report, code, maximum=100)
    if refusal is not None:
        raise refusal
    return code


def _require_screen_only(words: Sequence[str], *, has_answer: bool) -> None:
    """Raise UsageError for a watch with stdin or with a final answer, because a watch never ends."""
    if has_answer or "-" in words:
        raise wrong_flag(
            "`--watch` checks again and again, for a person",
            "leave --json, --report, --against and `-` out",
        )


def _forecast_runs(context: CommandContext, names: Sequence[str]) -> int:
    """Display the effect of the specs on recorded runs, and return the exit code."""
    from cogcli.cli.run_forecasts import (
        forecast_runs,  # loads what runs; other checks need none of it
    )

    return forecast_runs(context, names)


class _Validation:
    """A repeatable check of the same paths, with the same flags."""

    def __init__(
        self,
        context: CommandContext,
        paths: list[str],
        contents: dict[str, bytes],
        *,
        format: str,
        demands: CheckRequirements,
        fix: bool,
    ) -> None:
        self._context = context
        self._paths = paths
        self._contents = contents
        self._format = format
        self._demands = demands
        self._fix = fix

    def check(self) -> int:
        """Check, write the problems, and return the exit code."""
        context, settings = self._context, self._context.settings
        checked = registry_check.validate(settings, self._paths, contents=self._contents)
        fixes = [] if self._contents else find_fixes(settings, checked)
        written: list[FileFix] = []
        for _ in range(_MAX_ROUNDS if self._fix else 0):
            if not fixes:
                break
            written += fixes
            write_fixes(settings, fixes)
            checked = registry_check.validate(settings, self._paths)
            fixes = find_fixes(settings, checked)
        if written:
            _report_fixes(context, written)
        fixable = frozenset(problem for each in fixes for problem in each.problems)
        code = _fill_envelope(context, checked, fixable, self._demands)
        self._checked, self._sources = checked, Sources(context.base, self._contents)
        if not context.json:
            _write_problems(context, checked, fixable, self._sources, self._format)
        return code

    @property
    def refusal(self) -> CogcliError | None:
        """The error of a check without any file of the user; None if it checked at least one."""
        if self._contents or (self._paths and self._checked.files) or not self._checked.is_empty:
            return None
        empty = (
            "these paths hold no specs" if self._paths else "there is nothing of your own to check"
        )
        return find_refusal(
            checked=0, total=0, empty=empty, hint="make a skill: cogcli new skill DOMAIN.SLUG"
        )

    def report(self) -> CheckReport:
        """Return the problems for report files."""
        return _build_report(self._context, self._checked, self._demands, self._sources)

    def watch(self) -> NoReturn:
        """Check again whenever a file changes, until Ctrl-C ends it."""
        context = self._context
        settings = context.settings  # the last that could be read
        while True:
            seen = take_snapshot(settings, self._paths)
            if context.screen.out.real_tty:
                context.answer(_CLEAR)
            try:
                context.reread_settings()
                self.check()
                settings = context.settings
            except CogcliError as error:
                context.answer(
                    [[(f"error[{error.code}]", "error"), (f": {visible(error.message)}", "")]]
                )
            context.note("watching; Ctrl-C ends")
            wait_for_change(seen, partial(take_snapshot, settings, self._paths), time.sleep)


_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
"""Empties a terminal."""


def _paths_and_contents(
    context: CommandContext, words: Sequence[str], name: str | None
) -> tuple[list[str], dict[str, bytes]]:
    """Return the paths to check, with the content of stdin under its file name."""
    if "-" not in words:
        if name is not None:
            raise wrong_flag("`--stdin-filename` names what `-` reads", "add `-`")
        return list(words), {}
    if words.count("-") > 1:
        raise wrong_value("stdin can be read only once", "keep one `-`")
    name = (name or _STDIN).replace("\\", "/").removeprefix("./")
    return [name if word == "-" else word for word in words], {
        name: read_stdin(context.screen, _MAX_BYTES)
    }


def _report_fixes(context: CommandContext, fixes: Sequence[FileFix]) -> None:
    """Display the written fixes on stderr."""
    counts: Counter[str] = Counter()
    for fix in fixes:
        counts[fix.file] += fix.fixed
        context.note(visible_block(fix.diff).rstrip("\n"))
    context.own["fixed"] = [{"file": file, "count": count} for file, count in counts.items()]
    count = count_of(counts.total(), "problem")
    context.note(f"fixed {count} in {count_of(len(counts), 'file')}")


def _fill_envelope(
    context: CommandContext,
    check: RegistryCheck,
    fixable: frozenset[Problem],
    demands: CheckRequirements,
) -> int:
    """Fill the envelope, and return the exit code."""
    failing = check.failing_problems(demands)
    context.own["problems"] = [
        {**problem.to_payload(), "fixable": problem in fixable} for problem in check.problems
    ]
    context.own["counts"] = check.counts
    context.own["own_counts"] = check.own_counts
    return context.fail(failing[0].to_payload()) if failing else OK


def _build_report(
    context: CommandContext, check: RegistryCheck, demands: CheckRequirements, sources: Sources
) -> CheckReport:
    """Return the report of a check, whose paths begin at the root of the repository."""
    return registry_report(check, demands, end_of=sources.end, base=context.base)


def _write_problems(
    context: CommandContext,
    check: RegistryCheck,
    fixable: frozenset[Problem],
    sources: Sources,
    format: str,
) -> None:
    """Write the problems to stdout in the given `--format`."""
    width = context.screen.out.width
    if format == "text":
        hidden = _hidden_warnings(context, check)
        for problem in (each for each in check.problems if each not in hidden):
            lines = problem_lines(
                problem, width=width, as_error=False, sources=sources, fixable=problem in fixable
            )
            context.answer([*lines, [("", "")]])
        context.answer(_total_lines(check, len(fixable), width, hidden=bool(hidden)))
        if check.unusable:
            what = count_of(check.unusable, "shipped file")
            context.note(
                f"{what} cannot be used with the specs that replace shipped ones here: cogcli doctor"
            )
    elif format == "github":
        context.answer(
            RENDERERS["github"](_build_report(context, check, CheckRequirements(), sources))
        )
    else:
        for p in check.problems:
            line = dumps(p.to_payload()) if format == "jsonl" else concise(p, as_error=False)
            context.answer(f"{line}\n")


def _hidden_warnings(context: CommandContext, check: RegistryCheck) -> frozenset[Problem]:
    """Return the warnings of shipped files, which are displayed only with `-v`.

    An extra that is not installed causes many of them. They are counted in any case.
    """
    if context.verbose:
        return frozenset()
    return frozenset(p for p in check.problems if p.severity != "E" and p.file in check.shipped)


def _total_lines(
    check: RegistryCheck, fixable: int, width: int | None, *, hidden: bool
) -> list[StyledLine]:
    """Return the lines with the totals."""
    words = ", ".join(
        count_of(count, "capability" if kind == "capabilities" else kind[:-1], kind)
        for kind, count in check.own_counts.items()
    )
    words += (
        f" of your own, {count_of(len(check.shipped), 'shipped file')}" if check.shipped else ""
    )
    sums = problems_summary(check.problems, check.shipped, fixable)
    sums = f"{sums.removesuffix('.')}, shown with -v." if hidden else sums
    shown = sorted(check.problems, key=lambda problem: problem.severity == "W")
    why = f"   Why? cogcli explain {shown[0].code}" if shown else ""
    style = "red" if check.errors else "yellow" if check.warnings else "green"
    head = f"Checked {words} in {check.seconds:.2f}s."
    if width is not None and len(sums) + len(why) > width:
        return [[(head, "")], [(sums, style)], [(why.strip(), "dim")]]
    return [[(head, "")], [(sums, style), (why, "dim")]]
