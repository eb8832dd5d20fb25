"""The threat model names a test for each promise, and each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/explanation/threat-model.md"


def _rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_each_promise_names_its_test() -> None:
    assert len(_rows()) > 15
    assert all(re.search(r"`test_\w+`|`tests/[\w/]+\.py`", row[3]) for row in _rows())


def test_each_named_test_exists() -> None:
    source = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(tests/[\w/]+\.py|test_\w+)`", PAGE.read_text())
    missing = [
        name
        for name in named
        if not ((ROOT / name).exists() if "/" in name else f"def {name}(" in source)
    ]
    assert missing == []


def test_the_pages_lead_to_each_other() -> None:
    assert "docs/explanation/threat-model.md" in (ROOT / "SECURITY.md").read_text()
    assert "../../SECURITY.md" in PAGE.read_text()
    assert "explanation/threat-model.md" in (ROOT / "docs/README.md").read_text()
    assert "@" not in (ROOT / "SECURITY.md").read_text(), "no address of a person"
