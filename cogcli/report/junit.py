"""Checks as JUnit XML: one suite per group, one case per file or check (docs/reference/command-line.md#reports)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

from cogcli.base.terminal_text import visible, visible_block
from cogcli.report.check_report import CheckReport, ReportCase

_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: CheckReport) -> str:
    """Return the document as text. Suites are in the order of their first cases."""
    cases, seconds = report.cases, f"{report.seconds:.3f}"
    root = ET.Element(
        "testsuites", {"name": f"cogcli {report.command}", **_count_cases(cases), "time": seconds}
    )
    for suite in dict.fromkeys(case.group for case in cases):
        own = [case for case in cases if case.group == suite]
        element = ET.SubElement(
            root, "testsuite", {"name": _clean_line(suite), **_count_cases(own), "skipped": "0"}
        )
        for case in own:
            _add_case(element, case)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _count_cases(cases: Sequence[ReportCase]) -> dict[str, str]:
    failed = sum(bool(case.failures) for case in cases)
    return {"tests": str(len(cases)), "failures": str(failed), "errors": "0"}


def _add_case(suite: ET.Element, case: ReportCase) -> None:
    named = {"classname": _clean_line(case.group), "name": _clean_line(case.name)}
    element = ET.SubElement(
        suite, "testcase", named | ({"file": _clean_line(case.file)} if case.file else {})
    )
    for failure in case.failures:
        attributes = {"type": _clean_line(failure.code), "message": _clean_line(failure.message)}
        ET.SubElement(element, "failure", attributes).text = _clean_block(failure.text)
    if case.notes:
        ET.SubElement(element, "system-out").text = _clean_block("\n".join(case.notes))


def _clean_line(text: str) -> str:
    return _NO_XML.sub("\ufffd", visible(text))


def _clean_block(text: str) -> str:
    return _NO_XML.sub("\ufffd", visible_block(text))
