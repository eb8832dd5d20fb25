"""Problems as a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence

from cogcli.core.problems import Problem
from cogcli.core.terminal_text import visible
from cogcli.report.humanize import count_of


def problem_table(problems: Sequence[Problem], *, limit: int | None = None) -> str:
    """The sums, then a row per problem: at most `limit`, then how many more there are."""
    errors = sum(problem.severity == "E" for problem in problems)
    head = f"{count_of(errors, 'error')}, {count_of(len(problems) - errors, 'warning')}."
    shown = problems if limit is None else problems[:limit]
    lines = [head]
    if shown:
        lines += ["", "| severity | code | place | problem |", "| --- | --- | --- | --- |"]
    lines += [_row(problem) for problem in shown]
    if len(shown) < len(problems):
        lines += ["", f"and {len(problems) - len(shown)} more"]
    return "\n".join(lines) + "\n"


def _row(problem: Problem) -> str:
    word = "error" if problem.severity == "E" else "warning"
    place = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
    return f"| {word} | `{problem.code}` | {_cell(place)} | {_cell(problem.summary_line)} |"


_ENTITIES = str.maketrans({char: f"&#{ord(char)};" for char in "&<>|[]*_\\"})


def _cell(text: str) -> str:
    """The text as it is; only code spans keep their meaning."""
    return visible(text).translate(_ENTITIES)
