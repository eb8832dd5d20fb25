"""Verdicts in the formats of `--report` (docs/reference/command-line.md#reports)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogcli.core.terminal_text import visible
from cogcli.report.humanize import count_of
from cogcli.verification.verdict import FAILED, SKIPPED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogcli.core.problems import Problem
    from cogcli.report.junit import Case
    from cogcli.verification.verdict import Verdict

KINDS: Final = ("junit", "json", "md", "github")


def junit_of(command: str, verdicts: Sequence[Verdict], *, seconds: float) -> str:
    """A case for each check, in a suite for each scenario; a scenario without checks is one case."""
    from cogcli.report.junit import junit

    return junit(f"cogcli {command}", [c for v in verdicts for c in _cases(command, v)], seconds=seconds)


def _cases(command: str, verdict: Verdict) -> list[Case]:
    from cogcli.report.junit import Case, JunitFailure

    suite = f"{command} {verdict.id}" if verdict.checks else command
    code = verdict.code or "verify.failed"
    if not verdict.checks:
        failed = (JunitFailure(code, verdict.reason, _text(verdict)),) if verdict.status == FAILED else ()
        notes = (f"skipped: {verdict.reason}",) if verdict.status == SKIPPED else ()
        return [Case(suite, verdict.id, failed, notes, verdict.file)]
    return [
        Case(
            suite,
            check.name,
            () if check.passed else (JunitFailure(code, check.detail or check.name, _text(verdict)),),
            (),
            verdict.file,
        )
        for check in verdict.checks
    ]


def _text(verdict: Verdict) -> str:
    parts = {"reason": verdict.reason, "curl": verdict.curl, "episode": verdict.episode}
    return "\n".join(f"{name}: {text}" for name, text in parts.items() if text)


def markdown_of(command: str, verdicts: Sequence[Verdict]) -> str:
    """A table with a row per verdict."""
    failed = sum(verdict.status == FAILED for verdict in verdicts)
    lines = [f"# cogcli {command}", "", f"{count_of(len(verdicts), 'verdict')}, {failed} failed.", ""]
    lines += ["| result | id | reason |", "| --- | --- | --- |"]
    lines += [f"| {v.status} | {_cell(v.id)} | {_cell(v.reason)} |" for v in verdicts]
    return "\n".join(lines) + "\n"


def github_of(verdicts: Sequence[Verdict]) -> str:
    """Annotations of what failed, a line each, at the scenario's file."""
    from cogcli.report.github import workflow_commands

    problems = [(_problem(verdict), 0) for verdict in verdicts if verdict.status == FAILED]
    return "".join(f"{line}\n" for line in workflow_commands(problems))


def _problem(verdict: Verdict) -> Problem:
    from cogcli.core.problems import Problem

    message = f"{verdict.id}: {verdict.reason}"
    return Problem(
        verdict.code or "verify.failed", "E", verdict.file, 1 if verdict.file else 0, 1, "", message
    )


_ENTITIES = str.maketrans({char: f"&#{ord(char)};" for char in "&<>|[]*_\\"})


def _cell(text: str) -> str:
    return visible(text).translate(_ENTITIES)
