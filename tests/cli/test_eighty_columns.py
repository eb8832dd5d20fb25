"""What a terminal of 80 columns shows of shipped specs: names and descriptions whole, no word broken."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(8)

TERMINAL = {"COGCLI_FORCE_TTY": "80"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("kind", ["skills", "capabilities"])
def test_a_list_shows_each_id_whole(project: Project, kind: str) -> None:
    listed = project.run(kind, "ls", "--all", env=TERMINAL).assert_ok().out
    rows = project.run(kind, "ls").assert_ok().out.splitlines()
    assert all(f" {row.partition(chr(9))[0]} " in listed for row in rows)
    assert max(map(len, listed.splitlines())) <= 80


def test_show_has_the_whole_description(project: Project) -> None:
    shown = project.run("skills", "show", "text.brief", env=TERMINAL).assert_ok().out
    spec = project.run("skills", "show", "text.brief", "--json").json["spec"]
    assert spec["description"] in " ".join(shown.split())
    assert "…" not in shown


def test_a_message_breaks_at_a_blank(project: Project) -> None:
    failed = project.run("run", "text.brief", "--inputfile", "x", env=TERMINAL).assert_exit(2)
    assert "did you mean `--input-file`\n  or `--input`?\n" in failed.err
