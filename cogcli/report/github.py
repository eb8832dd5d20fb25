"""Problems as workflow commands of GitHub Actions: annotations at their lines
(docs/reference/command-line.md#reports)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.core.problems import Problem
from cogcli.report.check_report import CheckReport

PER_KIND: Final = 10
"""GitHub shows no more of a kind for one step."""


def github(report: CheckReport) -> str:
    """A line per problem, errors first, at most ten of a kind, then how many more there are."""
    of_kind: dict[str, list[str]] = {"error": [], "warning": []}
    for problem, end in report.problems:
        word = "error" if problem.severity == "E" else "warning"
        of_kind[word].append(_annotation(word, problem, end))
    lines = [line for found in of_kind.values() for line in found[:PER_KIND]]
    more = sum(map(len, of_kind.values())) - len(lines)
    lines += [f"::notice::and {more} more"] if more else []
    return "".join(f"{line}\n" for line in lines)


def _annotation(word: str, problem: Problem, end: int) -> str:
    properties = ",".join(f"{name}={_property(value)}" for name, value in _properties(problem, end))
    return f"::{word} {properties}::{_data(problem.summary_line)}"


def _properties(problem: Problem, end: int) -> Iterator[tuple[str, str]]:
    yield "title", f"cogcli ({problem.code})"
    if problem.file:
        yield "file", problem.file
    if problem.line:
        yield "line", str(problem.line)
        yield "col", str(problem.column)
    if end:
        yield "endColumn", str(end)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
