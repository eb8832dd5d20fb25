"""Watching: what is looked at, and that waiting ends with a change and not before."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.project import Project

from cogcli.app.checks.watch import take_snapshot, wait_for_change
from cogcli.app.settings import Settings

SKILL = "skills/local/demo/greet/skill.yaml"


def append(path: Path) -> None:
    path.write_text(path.read_text() + "\n")


@pytest.mark.parametrize(
    "change",
    [
        lambda root: append(root / SKILL),
        lambda root: (root / SKILL).unlink(),
        lambda root: (root / "skills/local/demo/new.yaml").write_text(""),
        lambda root: (root / "cogcli.toml").write_text("max_workers = 3\n"),
        lambda root: (root / "openapi.json").write_text("{}"),
        lambda root: os.utime(root / SKILL, ns=(1, 1)),
    ],
)
def test_waiting_ends_with_a_change(project: Project, change: Callable[[Path], object]) -> None:
    project.write("cogcli.toml", "")
    project.write(SKILL, "id: demo.greet\n")
    settings = Settings({}, project.env, base=str(project.root))
    before = take_snapshot(settings, ())
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            change(project.root)

    wait_for_change(before, lambda: take_snapshot(settings, ()), sleep)
    assert len(slept) == 3


def test_what_no_check_reads_is_not_looked_at(project: Project) -> None:
    project.write("cogcli.toml", "")
    settings = Settings({}, project.env, base=str(project.root))
    before = take_snapshot(settings, ("notes.txt",))
    for path in ("other.txt", ".cogcli/episodes/x.json", "node_modules/a.json"):
        project.write(path, "{}")
    assert take_snapshot(settings, ("notes.txt",)) == before
    project.write("notes.txt", "")
    assert take_snapshot(settings, ("notes.txt",)) != before
