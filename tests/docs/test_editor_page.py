"""The page about editors does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pages import Reader
from support.project import Project

pytestmark = pytest.mark.sampled(6)

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/edit-with-an-editor.md"


def test_the_page_does_what_it_says(project: Project) -> None:
    project.write("cogcli.toml", "")
    reader = Reader(project)
    reader.read(PAGE)
    assert reader.ran
    first = (project.root / "skills/local/shop/report/skill.yaml").read_text().partition("\n")[0]
    assert f"`{first}`" in PAGE.read_text()
