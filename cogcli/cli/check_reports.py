"""The problems of `validate` in the formats of `--report`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogcli.report import check_report

if TYPE_CHECKING:
    from cogcli.app.checks import RegistryCheck
    from cogcli.cli.code_frame import Sources

KINDS: Final = ("junit", "sarif", "json", "md", "github")


def _report(
    checked: RegistryCheck, sources: Sources | None = None, *, strict: bool = False
) -> check_report.CheckReport:
    from cogcli.app.check_reports import registry_report

    return registry_report(checked, strict=strict, end_of=sources.end if sources else lambda *place: 0)


def junit_of(checked: RegistryCheck, *, strict: bool) -> str:
    """A case per file; problems that do not fail the check are notes."""
    from cogcli.report.junit import junit

    return junit(_report(checked, strict=strict))


def sarif_of(checked: RegistryCheck, sources: Sources) -> str:
    """Every problem as a result, its code's page as the rule."""
    from cogcli import __version__
    from cogcli.app.explain import pages
    from cogcli.report.sarif import sarif

    rules = {code: (meaning, cure) for code, (meaning, _, cure) in pages().items()}
    return sarif(_report(checked, sources), rules, version=__version__)


def github_of(checked: RegistryCheck, sources: Sources) -> str:
    """Annotations, a line each."""
    from cogcli.report.github import github

    return github(_report(checked, sources))


def markdown_of(checked: RegistryCheck, *, limit: int | None = None) -> str:
    """A heading and a table."""
    return check_report.markdown(_report(checked), limit=limit)
