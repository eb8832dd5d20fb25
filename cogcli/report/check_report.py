"""The result of a check as one model for all report formats: cases in groups, problems with their places, tables
(docs/reference/command-line.md#reports)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem
from cogcli.base.terminal_text import visible
from cogcli.report.humanize import count_of


class CaseFailure(NamedTuple):
    """The reason why a case failed: a code, one sentence, and the full text."""

    code: str
    message: str
    text: str


class ReportCase(NamedTuple):
    """One item that was checked. `notes` do not fail it."""

    group: str
    name: str
    failures: tuple[CaseFailure, ...] = ()
    notes: tuple[str, ...] = ()
    file: str = ""


class MarkdownTable(NamedTuple):
    """A table: its two header lines, and its rows. Cells contain no markup."""

    header: tuple[str, str]
    rows: tuple[str, ...]


class CheckReport(NamedTuple):
    """The result of one command. Each problem is followed by the column after its end; 0 if that is
    unknown."""

    command: str
    seconds: float
    cases: tuple[ReportCase, ...] = ()
    problems: tuple[tuple[Problem, int], ...] = ()
    summary: str = ""
    tables: tuple[MarkdownTable, ...] = ()
    shipped: frozenset[str] = frozenset()
    """The files with problems that are shipped with cogcli, not written by the user."""
    places: Mapping[str, str] = NOTHING
    """The paths from the root of the repository, of files whose path differs from it."""

    def place(self, file: str) -> str:
        """Return the path of a file as hosts of repositories expect it."""
        return self.places.get(file, file)


def markdown(report: CheckReport, *, limit: int | None = None) -> str:
    """Return a heading, the summary, and each table with at most `limit` rows and the number of further rows."""
    lines = [f"# cogcli {report.command}", *(["", report.summary] if report.summary else [])]
    for header, rows in report.tables:
        lines += ["", *header, *rows[:limit]]
        if len(rows) > len(rows[:limit]):
            lines += ["", f"and {len(rows) - len(rows[:limit])} more"]
    return "\n".join(lines) + "\n"


def problems_summary(
    problems: Sequence[Problem], shipped_files: Collection[str] | None = None, fixable: int = 0
) -> str:
    """Return the counts of problems, such as `1 error, 2 warnings.`

    If `shipped_files` is given, the problems of these files are counted separately: `1 error, 0 warnings
    in your files, 1 fixable with --fix; shipped: 2 warnings.`"""
    if shipped_files is None or not problems:
        return f"{_render_counts(problems)}."
    shipped_problems = [problem for problem in problems if problem.file in shipped_files]
    own_counts = _render_counts(
        [problem for problem in problems if problem.file not in shipped_files]
    )
    with_fix = f", {fixable} fixable with --fix" if fixable else ""
    shipped_counts = _render_counts(shipped_problems) if shipped_problems else "none"
    return f"{own_counts} in your files{with_fix}; shipped: {shipped_counts}."


def _render_counts(problems: Sequence[Problem]) -> str:
    errors = sum(problem.severity == "E" for problem in problems)
    return f"{count_of(errors, 'error')}, {count_of(len(problems) - errors, 'warning')}"


def problems_table(problems: Sequence[Problem], *, place: str = "place") -> MarkdownTable:
    """Return a table with one row per problem. `place` is the header of the location column."""
    header = (f"| severity | code | {place} | problem |", "| --- | --- | --- | --- |")
    return MarkdownTable(header, tuple(map(_render_row, problems)))


def _render_row(problem: Problem) -> str:
    word = problem.severity_word(as_error=False)
    place = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
    return f"| {word} | `{problem.code}` | {cell(place)} | {cell(problem.summary_line)} |"


_ENTITIES = str.maketrans({char: f"&#{ord(char)};" for char in "&<>|[]*_\\"})


def cell(text: str) -> str:
    """Return a string for a table cell. Markup is escaped, except code spans."""
    return visible(text).translate(_ENTITIES)


def concise(problem: Problem, *, as_error: bool = True) -> str:
    """Return a line such as `FILE:23:13: error[ref.unwritten] message`.

    Without `as_error`, a problem of severity R is a warning."""
    word = problem.severity_word(as_error=as_error)
    place = f"{problem.file}:{problem.line}:{problem.column}: " if problem.file else ""
    hint = f" ({'; '.join(problem.hint.split(chr(10)))})" if problem.hint else ""
    return visible(f"{place}{word}[{problem.code}] {problem.message}{hint}")
