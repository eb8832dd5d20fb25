"""Verdicts in the formats of `--report` (docs/reference/command-line.md#reports)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogcli.app.check_reports import verdicts_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogcli.verification.verdict import Verdict

KINDS: Final = ("junit", "json", "md", "github")


def junit_of(command: str, verdicts: Sequence[Verdict], *, seconds: float) -> str:
    """A case for each check, in a suite for each scenario; a scenario without checks is one case."""
    from cogcli.report.junit import junit

    return junit(verdicts_report(command, verdicts, seconds))


def markdown_of(command: str, verdicts: Sequence[Verdict]) -> str:
    """A table with a row per verdict."""
    from cogcli.report.check_report import markdown

    return markdown(verdicts_report(command, verdicts, 0))


def github_of(verdicts: Sequence[Verdict]) -> str:
    """Annotations of what failed, a line each, at the scenario's file."""
    from cogcli.report.github import github

    return github(verdicts_report("", verdicts, 0))
