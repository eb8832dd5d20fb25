"""`validate`: problems are the answer, exit 1 if there is an error (docs/reference/command-line.md#errors,
docs/reference/command-line.md#reports)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cogcli.app.checks import registry_check
from cogcli.app.checks.registry_check import RegistryCheck
from cogcli.app.checks.reports import RENDERERS, registry_report
from cogcli.cli.code_frame import Sources
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import dumps
from cogcli.cli.options import OUTPUT, argument, choice, command, switch, text, wrong_flag, wrong_value
from cogcli.cli.prompt import read_stdin
from cogcli.cli.render_error import problem_lines
from cogcli.cli.report_files import parse_reports
from cogcli.core.errors import OK
from cogcli.report.check_report import concise
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import StyledLine

_STDIN = "<stdin>"
_LARGEST = 256 * 1024
_REPORT = "also write junit, sarif, json, md; github: annotations on stderr (repeatable)"
FORMATS = ("text", "concise", "github", "jsonl")


@command(
    examples=(
        ("cogcli validate", "everything"),
        ("cogcli validate --report junit:junit.xml --report sarif:cogcli.sarif", "for CI"),
        ("cogcli validate --strict --format github", "in CI"),
    ),
    exits=(0, 1, 2, 3),
)
def validate(
    context: CommandContext,
    words: Annotated[list[str], argument("[PATH...|-]")],
    *,
    format: Annotated[str, choice("--format", "WORD", FORMATS, panel=OUTPUT, default="text")] = "text",
    report: Annotated[list[str], text("--report", "KIND:PATH", _REPORT, OUTPUT)],
    strict: Annotated[bool, switch("--strict", help="warnings fail, too")] = False,
    stdin_filename: Annotated[
        str | None, text("--stdin-filename", "FILE", "the file that the text read by `-` stands for")
    ] = None,
) -> int:
    """Check all, or the paths given."""
    wanted = parse_reports(report)
    paths, contents = _paths(context, words, stdin_filename)
    checked = registry_check.validate(context.settings, paths, contents=contents)
    code = _fill_envelope(context, checked, strict=strict)
    sources = Sources(context.base, contents)
    if not context.json:
        _answer(context, checked, sources, format)
    wanted.write(context, lambda: registry_report(checked, strict=strict, end_of=sources.end), code, most=100)
    return code


def _paths(
    context: CommandContext, words: Sequence[str], name: str | None
) -> tuple[list[str], dict[str, bytes]]:
    """The paths to check, stdin under the name it stands for."""
    if "-" not in words:
        if name is not None:
            raise wrong_flag("`--stdin-filename` names what `-` reads", "add `-`")
        return list(words), {}
    if words.count("-") > 1:
        raise wrong_value("stdin can be read only once", "keep one `-`")
    name = (name or _STDIN).replace("\\", "/").removeprefix("./")
    return [name if word == "-" else word for word in words], {name: read_stdin(context.screen, _LARGEST)}


def _fill_envelope(context: CommandContext, checked: RegistryCheck, *, strict: bool) -> int:
    """Fill the envelope; returns the exit code."""
    failed = checked.errors or (strict and checked.warnings)
    context.own["problems"] = [problem.to_payload() for problem in checked.problems]
    context.own["counts"] = checked.counts
    if not failed:
        return OK
    first = next((p for p in checked.problems if p.severity == "E"), checked.problems[0])
    return context.fail(first.to_payload())


def _answer(context: CommandContext, checked: RegistryCheck, sources: Sources, format: str) -> None:
    width = context.screen.out.width
    if format == "text":
        for problem in checked.problems:
            lines = problem_lines(problem, width=width, as_error=False, sources=sources)
            context.answer([*lines, [("", "")]])
        context.answer(_sums(checked))
    elif format == "github":
        context.answer(RENDERERS["github"](registry_report(checked, strict=False, end_of=sources.end)))
    else:
        for p in checked.problems:
            line = dumps(p.to_payload()) if format == "jsonl" else concise(p, as_error=False)
            context.answer(f"{line}\n")


def _sums(checked: RegistryCheck) -> list[StyledLine]:
    words = ", ".join(
        count_of(count, "capability" if kind == "capabilities" else kind[:-1], kind)
        for kind, count in checked.counts.items()
    )
    sums = f"{count_of(checked.errors, 'error')}, {count_of(checked.warnings, 'warning')}."
    told = sorted(checked.problems, key=lambda problem: problem.severity == "W")
    why = f"   Why? cogcli explain {told[0].code}" if told else ""
    style = "red" if checked.errors else "yellow" if checked.warnings else "green"
    return [[(f"Checked {words} in {checked.seconds:.2f}s.", "")], [(sums, style), (why, "dim")]]
