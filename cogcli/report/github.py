"""Problems as workflow commands of GitHub Actions: annotations at their lines
(docs/reference/command-line.md#reports)."""

from __future__ import annotations

from typing import Final

from cogcli.base.problems import Problem
from cogcli.base.terminal_text import visible
from cogcli.report.check_report import CheckReport

PER_KIND: Final = 10
"""GitHub shows at most this many annotations of a kind for one step."""


def github(report: CheckReport) -> str:
    """Return a line per problem, errors first, with at most ten lines per severity and then the
    number of further problems."""
    of_kind: dict[str, list[str]] = {"error": [], "warning": []}
    for problem, end in report.problems:
        word = problem.severity_word(as_error=False)
        of_kind[word].append(_render_annotation(word, problem, report.place(problem.file), end))
    lines = [line for found in of_kind.values() for line in found[:PER_KIND]]
    more = sum(map(len, of_kind.values())) - len(lines)
    lines += [f"::notice::and {more} more"] if more else []
    return "".join(f"{line}\n" for line in lines)


def _render_annotation(word: str, problem: Problem, file: str, end: int) -> str:
    named = {"title": f"cogcli ({problem.code})", "file": file, "line": problem.line or "",
             "col": problem.column if problem.line else "", "endColumn": end or ""}  # fmt: skip
    texts = {name: _escape_text(str(value)) for name, value in named.items() if value != ""}
    properties = (
        f"{name}={text.replace(':', '%3A').replace(',', '%2C')}" for name, text in texts.items()
    )
    return f"::{word} {','.join(properties)}::{_escape_text(problem.summary_line)}"


def _escape_text(text: str) -> str:
    """Return the text without characters that end the command, move the cursor of a log or change the text
    direction."""
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))
