"""A rerun that takes over an approval, killed at each of its calls that change something on disk: never two effects
(docs/reference/episode.md#redeemed)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from crash_zygote import INSTALLED
from support.examples import LONG
from support.project import Project

SOURCE = """
def send(text: str) -> dict[str, object]:
    with open("sent", "a") as ledger:
        ledger.write(text + "\\n")
    return {"text": text}
"""
WINDOW = 8
"""Calls from the one on that makes the folder of the marks: the mark, the event and the intent."""
WANTED = {(0, 1), (1, 0), (1, 1)}
"""Marks after the kill and effects after resuming: unused, spent or in doubt, and used."""


class Copy:
    """A copy of a project with its home."""

    def __init__(self, base: Path, template: Path, env: dict[str, str]) -> None:
        self.base = base
        self.root = base / "project"
        self.err = base / "err"
        shutil.copytree(template, base)
        home = {"HOME": str(base / "home"), "TMPDIR": str(base / "home/temporary")}
        self.env = {**env, **home}

    def run(self, *arguments: str, **more: str) -> int:
        out = self.base / "out"
        return INSTALLED.run(list(arguments), self.root, {**self.env, **more}, out, self.err)

    def effects(self) -> int:
        ledger = self.root / "sent"
        return len(ledger.read_text().split()) if ledger.exists() else 0

    def episodes(self) -> list[Path]:
        return sorted((self.root / ".cogcli/episodes").glob("ep_*"))

    def marks(self) -> int:
        folder = self.root / ".cogcli/redeemed"
        return len(os.listdir(folder)) if folder.exists() else 0


@pytest.fixture
def closed(project: Project) -> Path:
    """The folder of a project whose only episode has ended with an unused approval, and of its home."""
    project.services(SOURCE)
    project.capability("demo.mail.send", "send", extra="safety: {requires_confirmation: true}\n")
    file = project.root / "capabilities/demo.mail.send.yaml"
    effect = "side_effects: true, idempotent: false"
    file.write_text(file.read_text().replace("side_effects: false", effect))
    project.skill("demo.mail", "- {id: send, uses: demo.mail.send, input: {text: {$literal: x}}}\n")
    project.run("run", "demo.mail", "-q").assert_exit(5)
    project.run("approvals", "approve", "@last", "--by", "ann").assert_ok()
    project.run("resume", "@last", "--abort", "-q").assert_ok()
    return project.root.parent


def test_a_killed_rerun_never_has_two_effects(
    closed: Path, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.mktemp("copies")
    names = base / "names"
    whole = Copy(base / "whole", closed, project.env)
    (old,) = whole.episodes()
    line = ("rerun", old.name, "--from", "send", "-q")
    assert whole.run(*line, CRASH_NAMES=str(names)) == 0
    assert (whole.effects(), whole.marks()) == (1, 1)
    calls = names.read_text().split()
    last = len(calls) - calls[::-1].index("mkdir")
    window = range(last, last + WINDOW)
    around = sorted(range(1, len(calls) + 1), key=lambda point: (point not in window, -point))
    seen: set[tuple[int, int]] = set()
    told = []
    for number, point in enumerate(around):
        # Threads share the count: on a busy machine the same call may have another number.
        if not LONG and number >= WINDOW and seen >= WANTED:
            break
        copy = Copy(base / str(point), closed, project.env)
        before = {file.name: file.read_bytes() for file in copy.episodes()[0].glob("*.json*")}
        assert copy.run(*line, CRASH_AT=str(point)) == -9
        marked = copy.marks()
        resumed = [
            (copy.run("resume", episode.name, "-q"), copy.err.read_text())
            for episode in copy.episodes()[1:]
        ]
        first = copy.effects()
        told.append((point, marked, first, resumed))
        code = copy.run(*line)
        assert copy.effects() <= 1, f"killed at call {point}, {calls[point - 1]}"
        assert code == (0 if copy.effects() > first else 5)
        assert before == {
            file.name: file.read_bytes() for file in copy.episodes()[0].glob("*.json*")
        }
        seen.add((marked, first))
        shutil.rmtree(copy.base)
    assert seen >= WANTED, f"mkdir at {last}: {told}"
