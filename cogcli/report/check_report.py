"""What a check found, in one model for all its reports: cases in groups, problems with their places, tables
(docs/reference/command-line.md#reports)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from cogcli.base.problems import Problem
from cogcli.base.terminal_text import visible
from cogcli.report.humanize import count_of


class CaseFailure(NamedTuple):
    """Why a case failed: a code, the sentence, and all that is known."""

    code: str
    message: str
    text: str


class ReportCase(NamedTuple):
    """One thing that was checked. `notes` do not fail it."""

    group: str
    name: str
    failures: tuple[CaseFailure, ...] = ()
    notes: tuple[str, ...] = ()
    file: str = ""


class MarkdownTable(NamedTuple):
    """The header of a table with the line below it, and its rows, whose cells hold no markup."""

    header: tuple[str, str]
    rows: tuple[str, ...]


class CheckReport(NamedTuple):
    """The result of one command. Each problem comes with the column just after its end, 0 where that is not known."""

    command: str
    seconds: float
    cases: tuple[ReportCase, ...] = ()
    problems: tuple[tuple[Problem, int], ...] = ()
    summary: str = ""
    tables: tuple[MarkdownTable, ...] = ()
    shipped: frozenset[str] = frozenset()
    """The files among those with problems that are not the user's own."""


def markdown(report: CheckReport, *, limit: int | None = None) -> str:
    """A heading, the summary, and each table with at most `limit` rows, then how many more there are."""
    lines = [f"# cogcli {report.command}", *(["", report.summary] if report.summary else [])]
    for header, rows in report.tables:
        lines += ["", *header, *rows[:limit]]
        if len(rows) > len(rows[:limit]):
            lines += ["", f"and {len(rows) - len(rows[:limit])} more"]
    return "\n".join(lines) + "\n"


def problems_summary(
    problems: Sequence[Problem], shipped: Collection[str] | None = None, fixable: int = 0
) -> str:
    """The sums of problems: `1 error, 2 warnings.`; with the names of the files that are `shipped` apart from them:
    `1 error, 0 warnings in your files, 1 fixable with --fix; shipped: 2 warnings.`"""
    if shipped is None or not problems:
        return f"{_sums(problems)}."
    theirs = [problem for problem in problems if problem.file in shipped]
    own = _sums([problem for problem in problems if problem.file not in shipped])
    with_fix = f", {fixable} fixable with --fix" if fixable else ""
    return f"{own} in your files{with_fix}; shipped: {_sums(theirs) if theirs else 'none'}."


def _sums(problems: Sequence[Problem]) -> str:
    errors = sum(problem.severity == "E" for problem in problems)
    return f"{count_of(errors, 'error')}, {count_of(len(problems) - errors, 'warning')}"


def severity_word(problem: Problem, *, as_error: bool) -> str:
    """`error` or `warning`; a problem of severity R is an error only where `as_error`."""
    return "error" if problem.severity in ("ER" if as_error else "E") else "warning"


def problems_table(problems: Sequence[Problem], *, place: str = "place") -> MarkdownTable:
    """A row per problem, under this name for where it is."""
    header = (f"| severity | code | {place} | problem |", "| --- | --- | --- | --- |")
    return MarkdownTable(header, tuple(map(_problem_row, problems)))


def _problem_row(problem: Problem) -> str:
    word = severity_word(problem, as_error=False)
    place = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
    return f"| {word} | `{problem.code}` | {cell(place)} | {cell(problem.summary_line)} |"


_ENTITIES = str.maketrans({char: f"&#{ord(char)};" for char in "&<>|[]*_\\"})


def cell(text: str) -> str:
    """The text of a cell as it is; only code spans keep their meaning."""
    return visible(text).translate(_ENTITIES)


def concise(problem: Problem, *, as_error: bool = True) -> str:
    """`FILE:23:13: error[ref.unwritten] message`; a problem of severity R is a warning where not `as_error`."""
    word = severity_word(problem, as_error=as_error)
    place = f"{problem.file}:{problem.line}:{problem.column}: " if problem.file else ""
    hint = f" ({'; '.join(problem.hint.split(chr(10)))})" if problem.hint else ""
    return visible(f"{place}{word}[{problem.code}] {problem.message}{hint}")
