"""A format of `--report` is a renderer of the one report model and a row of `RENDERERS`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cogcli.app.checks.reports import RENDERERS
from cogcli.cli.report_files import parse_reports
from cogcli.report.check_report import CaseFailure, CheckReport, ReportCase

REPORT = CheckReport(
    "validate", 0.5, (ReportCase("skill", "a.yaml", (CaseFailure("ref.unwritten", "no", "no"),)),)
)


def toy(report: CheckReport) -> str:
    return "".join(f"{case.name}: {len(case.failures)}\n" for case in report.cases)


def test_without_its_row_the_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="expected one of"):
        parse_reports([f"toy:{tmp_path}/toy.txt"])


def test_a_renderer_and_its_row_are_all_that_a_format_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RENDERERS, "toy", toy)
    # Only the whole envelope and annotations ask for more than the place of a file.
    context: Any = SimpleNamespace(settings=SimpleNamespace(require_inside=str))
    path = str(tmp_path / "toy.txt")
    requested = parse_reports([f"toy:{path}"], without=("github",))
    requested.write(context, lambda: REPORT, 1)
    assert Path(path).read_text() == "a.yaml: 1\n"
