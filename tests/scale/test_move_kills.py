"""A batch that is killed while it moves episodes to an archive, and torn archives: the same command completes both.

`COGCLI_LONG_TESTS=1` kills before each change of a file, else at three of them. With strace, it kills at system calls.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from counted import RUN, batch_folder, effects, make_counted, outcomes, rows, write_lines

from cogcli.episode.archive.reader import Archive
from cogcli.episode.memory_folder import HAS_FILES_IN_MEMORY

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
ARCHIVED = (*RUN, "--keep", "archived")
TEXTS = ("a", "b", "c")
SEED = 26
PROGRAM = """
import os
import signal
import sys

left = int(sys.argv.pop(1))
armed = False

def count(name):
    real = getattr(os, name)
    def call(*arguments, **named):
        global left
        left -= armed
        if armed and not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)
    setattr(os, name, call)

for name in ("write", "rename", "replace", "mkdir", "unlink", "rmdir", "ftruncate", "fsync", "fdatasync"):
    count(name)

from cogcli.__main__ import main
from cogcli.scale.keeping import BatchKeeper

move = BatchKeeper._move_together

def armed_move(self, lines):
    global armed
    armed = True
    move(self, lines)
    armed = False

BatchKeeper._move_together = armed_move
sys.exit(main())
"""
"""Kills itself before the given change of a file that moving episodes makes."""


@pytest.fixture
def in_folders(counting: Any) -> Any:
    """A project with a finished batch in folders, whose results must be made again."""
    write_lines(counting, TEXTS)
    counting.run(*RUN, "--keep", "folders").assert_ok()
    (counting.root / "out.jsonl").unlink()
    return counting


class Saved:
    """A copy of all that a project keeps."""

    def __init__(self, project: Any) -> None:
        self._root: Path = project.root
        self._copy = self._root.parent / f"{self._root.name}-saved"
        shutil.copytree(self._root, self._copy, symlinks=True)

    def restore(self) -> None:
        shutil.rmtree(self._root)
        shutil.copytree(self._copy, self._root, symlinks=True)


def kill_at_change(project: Any, number: int) -> int:
    """Run the batch until it is killed before so many changes while it moves. The exit code."""
    command = [sys.executable, "-c", PROGRAM, str(number), *ARCHIVED, "-q"]
    done = subprocess.run(
        command, cwd=project.root, env=project.env, capture_output=True, check=False
    )
    assert b"Traceback" not in done.stderr, done.stderr
    return done.returncode


def archived(project: Any) -> list[str]:
    """The ids of the episodes that can be read in archives."""
    found: list[str] = []
    for path in (batch_folder(project) / "archives").glob("*.cogarchive"):
        if path.stat().st_size:
            with Archive.open(path) as archive:
                found += archive.episode_ids()
    return sorted(found)


def folders(project: Any) -> set[str]:
    return {path.name for path in (project.root / ".cogcli/episodes").glob("ep_*")}


@pytest.mark.sampled(6)
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_kill_while_episodes_move_loses_none_and_is_completed(in_folders: Any) -> None:
    episodes = folders(in_folders)
    saved = Saved(in_folders)
    numbers: Iterator[int] = count(1)
    if not LONG:
        numbers = iter(sorted(random.Random(SEED).sample(range(1, 45), 3)))
    killed = 0
    for number in numbers:
        saved.restore()
        code = kill_at_change(in_folders, number)
        assert code in (0, -9), code
        killed += code == -9
        assert folders(in_folders) | set(archived(in_folders)) == episodes, number
        in_folders.run(*ARCHIVED).assert_ok()
        assert folders(in_folders) == set(), number
        assert archived(in_folders) == sorted(episodes), number
        assert effects(in_folders) == list(TEXTS)
        assert outcomes(in_folders) == [(1, "ok"), (2, "ok"), (3, "ok")]
        in_folders.run("verify", batch_folder(in_folders).name).assert_ok()
        if code == 0:
            break
    assert killed >= (40 if LONG else 3)


@pytest.mark.skipif(not HAS_FILES_IN_MEMORY, reason="no files in memory here")
def test_an_archive_that_is_torn_anywhere_is_completed(project: Any) -> None:
    make_counted(project, "none")
    write_lines(project, TEXTS)
    project.run(*ARCHIVED).assert_ok()
    batch = batch_folder(project)
    archive, ledger = batch / "archives/000001.cogarchive", batch / "ledger.jsonl"
    whole, before = archive.read_bytes(), sorted(row["episode_id"] for row in rows(project))
    chance = random.Random(SEED)
    for size in sorted(chance.sample(range(len(whole)), 400 if LONG else 4)):
        archive.write_bytes(whole[:size])
        ledger.write_bytes(b"")
        (project.root / "out.jsonl").unlink()
        project.run(*ARCHIVED).assert_ok()
        assert sorted(row["episode_id"] for row in rows(project)) == before, size
        assert archived(project) == before, size
        project.run("verify", batch.name).assert_ok()
        for other in (batch / "archives").glob("*.cogarchive"):
            other.unlink()


CALLS = {
    "write": "write",
    "rename": "rename,renameat,renameat2",
    "mkdir": "mkdir,mkdirat",
    "sync": "fsync,fdatasync",
}


def trace(project: Any, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run the batch under strace."""
    command = ["strace", "-f", "-qq", *words, sys.executable, "-m", "cogcli", *ARCHIVED, "-q"]
    return subprocess.run(
        command, cwd=project.root, env=project.env, capture_output=True, check=False
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not LONG, reason="kills at system calls: COGCLI_LONG_TESTS=1, or check.py --long"
)
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.usefixtures("hours_in_a_long_run")
@pytest.mark.parametrize("effect", ["effect", "none"])
@pytest.mark.parametrize("call", CALLS)
def test_a_kill_at_any_system_call_repeats_no_effect(project: Any, call: str, effect: str) -> None:
    make_counted(project, effect)
    write_lines(project, TEXTS)
    saved = Saved(project)
    log = project.root.parent / "strace.log"
    assert trace(project, "-o", str(log), "-e", f"trace={CALLS[call]}").returncode == 0
    total = len(re.findall(r"(?m)^\d+ +\w+\(", log.read_text()))
    assert total, "no such call was made"
    for number in range(1, total + 1):
        saved.restore()
        words = (
            "-e",
            f"trace={CALLS[call]}",
            "-e",
            f"inject={CALLS[call]}:signal=KILL:when={number}",
        )
        trace(project, *words)
        result = project.started(*ARCHIVED)
        assert result.code in (0, 5), (number, result.err)
        done = effects(project)
        waiting = {TEXTS[line - 1] for line, status in outcomes(project) if status == "pending"}
        assert effect == "none" or len(done) == len(set(done)), number
        assert set(TEXTS) - set(done) <= waiting, number
        assert [line for line, _ in outcomes(project)] == [1, 2, 3], number
        project.run("verify", batch_folder(project).name).assert_ok()
