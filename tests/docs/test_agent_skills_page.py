"""The page for users of agent-skills (`come-from-agent-skills`) does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.guide_tool import REGISTRY, TOOL, write_files
from support.pages import Reader
from support.project import Project

pytestmark = pytest.mark.sampled(6)

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/come-from-agent-skills.md"


def test_the_page_does_what_it_says(project: Project) -> None:
    write_files(project.root.parent / "agent-skills", TOOL)
    write_files(project.root.parent / "agent-skill-registry", REGISTRY)
    del project.env["COGCLI_TRUST_PROJECT"]
    printed = (
        project.run("import", "agent-skills", "../agent-skills", "--json")
        .assert_ok()
        .json["setup"]["files"]
    )
    reader = Reader(project)
    reader.read(PAGE)
    assert len(reader.ran) == 5
    for name in ("cogcli.toml", ".agent-skills/active_bindings.json"):
        lines = [line for line in printed[name].splitlines() if not line.startswith("#")]
        assert (project.root / name).read_text().split() == " ".join(lines).split()
