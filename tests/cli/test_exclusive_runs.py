"""`--exclusive NAME`: one run at a time until it has ended, pauses and crashes included
(docs/reference/execution.md#exclusive)."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any

import pytest
from support.command_server import COGCLI
from support.project import Project
from support.waiting import wait_until

pytestmark = pytest.mark.sampled(8)

SOURCE = """
import os
import time

def post(text: str) -> dict[str, object]:
    with open("posts", "a") as ledger:
        ledger.write(text + "\\n")
    while os.path.exists("slow"):
        time.sleep(0.01)
    return {"text": text}
"""
EFFECT = "side_effects: true, idempotent: false"
NIGHTLY = ("run", "demo.nightly", "--exclusive", "nightly")


@pytest.fixture
def nightly(project: Project) -> Project:
    """Two skills that post: `demo.nightly` at once, `demo.asked` once a person has approved."""
    project.services(SOURCE)
    for name, extra in (("post", ""), ("ask", "safety: {requires_confirmation: true}\n")):
        project.capability(f"demo.web.{name}", "post", extra=extra)
        file = project.root / f"capabilities/demo.web.{name}.yaml"
        file.write_text(file.read_text().replace("side_effects: false", EFFECT))
    for skill, name in (("demo.nightly", "post"), ("demo.asked", "ask")):
        step = f"- {{id: post, uses: demo.web.{name}, input: {{text: {{$literal: {name}}}}}}}\n"
        project.skill(skill, step)
    return project


def _posts(project: Project) -> list[str]:
    ledger = project.root / "posts"
    return ledger.read_text().split() if ledger.exists() else []


def _waiting(project: Project) -> str:
    """Start a run that waits for a person, and return the id of its episode."""
    result = project.run("run", "demo.asked", "--exclusive", "nightly", "--json").assert_exit(5)
    return str(result.json["episode_id"])


def _error(project: Project, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = project.run(*NIGHTLY, *more, "--json").assert_exit(3).json["error"]
    return found


def _begin(project: Project, *line: str) -> subprocess.Popen[bytes]:
    silent = subprocess.DEVNULL
    command = [COGCLI, *line, "-q"]
    return subprocess.Popen(
        command, cwd=project.root, env=project.env, stdin=silent, stdout=silent, stderr=silent
    )


def _running(project: Project) -> subprocess.Popen[bytes]:
    """Start a run that stays in its call until the file `slow` is gone."""
    project.write("slow", "")
    started = _begin(project, *NIGHTLY)
    wait_until(lambda: _posts(project))
    return started


def test_a_run_that_waits_for_a_person_holds_its_name(nightly: Project) -> None:
    holder = _waiting(nightly)
    error = _error(nightly)
    assert (error["code"], error["message"]) == (
        "run.exclusive",
        f"`nightly` is held by {holder}, which waits for a person",
    )
    assert error["next"] == [f"cogcli trace {holder}", f"cogcli resume {holder} --abort"]
    skipped = nightly.run(*NIGHTLY, "--on-conflict", "skip", "--json").assert_ok().json
    warning = skipped["warnings"][-1]
    assert (warning["code"], holder in warning["message"]) == ("run.exclusive", True)
    assert "episode_id" not in skipped
    for quiet in ((), ("-q",)):
        shown = nightly.run(*NIGHTLY, "--on-conflict", "skip", *quiet).assert_ok()
        assert (shown.out, f"held by {holder}" in shown.err) == ("", True)
    nightly.run("run", "demo.nightly", "--exclusive", "weekly", "-q").assert_ok()
    assert _posts(nightly) == ["post"]

    line = ("resume", holder, "--approve", "demo.web.ask", "--by", "ann", "-q")
    nightly.run(*line).assert_ok()
    nightly.run(*NIGHTLY, "-q").assert_ok()
    assert _posts(nightly) == ["post", "ask", "post"]


@pytest.mark.parametrize("how", ["abort", "removed"])
def test_a_run_that_was_ended_frees_its_name(nightly: Project, how: str) -> None:
    holder = _waiting(nightly)
    nightly.run("resume", holder, "--abort", "-q").assert_ok()
    if how == "removed":
        nightly.run("gc", "--keep", "0", "--yes").assert_ok()
    nightly.run(*NIGHTLY, "-q").assert_ok()


def test_a_rerun_holds_the_name_too(nightly: Project) -> None:
    nightly.run(*NIGHTLY, "-q").assert_ok()
    first = nightly.run("ls", "--json").json["episodes"][0]["episode_id"]
    holder = _waiting(nightly)
    line = ("rerun", first, "--effects", "post=repeat", "-q")
    assert holder in nightly.run(*line).assert_exit(3).err
    nightly.run(*line, "--on-conflict", "skip").assert_ok()
    nightly.run(*line, "--exclusive", "other").assert_ok()
    assert _posts(nightly) == ["post", "post"]


def test_a_run_that_was_killed_holds_its_name_until_it_is_resumed_or_ended(
    nightly: Project,
) -> None:
    started = _running(nightly)
    running = _error(nightly)
    assert "which runs" in running["message"]
    assert running["next"][0].endswith("--follow")
    started.send_signal(signal.SIGKILL)
    started.wait()
    (nightly.root / "slow").unlink()
    error = _error(nightly, "--on-conflict", "wait")  # nobody goes on with it by itself
    (directory,) = (nightly.root / ".cogcli/episodes").glob("ep_*")
    assert error["next"] == [
        f"cogcli resume {directory.name}",
        f"cogcli resume {directory.name} --abort",
    ]
    assert "was cut off" in error["message"]
    line = ("resume", directory.name, "--in-doubt", "post=skip", "--by", "ann", "-q")
    nightly.run(*line)
    nightly.run(*NIGHTLY, "-q").assert_ok()
    assert _posts(nightly) == ["post", "post"]


def test_of_runs_that_start_at_once_one_runs(nightly: Project) -> None:
    nightly.write("slow", "")
    started = [_begin(nightly, *NIGHTLY, "--on-conflict", "skip") for _ in range(4)]
    wait_until(lambda: sum(each.poll() is None for each in started) == 1 and _posts(nightly))
    (nightly.root / "slow").unlink()
    assert [each.wait() for each in started] == [0] * 4
    assert _posts(nightly) == ["post"]


@pytest.mark.sampled(16)
def test_runs_that_wait_follow_each_other(nightly: Project) -> None:
    first = _running(nightly)
    second = _begin(nightly, *NIGHTLY, "--on-conflict", "wait")
    late = _error(nightly, "--on-conflict", "wait", "--wait-timeout", "0.2")
    assert (late["code"], _posts(nightly)) == ("run.exclusive", ["post"])
    (nightly.root / "slow").unlink()
    assert (first.wait(), second.wait()) == (0, 0)
    assert _posts(nightly) == ["post", "post"]
    logs = sorted(nightly.root.rglob("events.jsonl"))
    ends = [json.loads(log.read_text().splitlines()[-1])["timestamp"] for log in logs]
    begins = [json.loads(log.read_text().splitlines()[0])["timestamp"] for log in logs]
    assert ends[0] <= begins[1]


def test_resume_needs_the_name(nightly: Project) -> None:
    """Whoever removed the record of the holder: two runs do not go on at once."""
    holder = _waiting(nightly)
    (nightly.root / ".cogcli/episodes/.exclusive/nightly").unlink()
    other = _waiting(nightly)
    line = ("resume", holder, "--approve", "demo.web.ask", "--by", "ann", "--json")
    refused = nightly.run(*line).assert_exit(3).json["error"]
    assert (refused["code"], other in refused["message"]) == ("run.exclusive", True)
    nightly.run("resume", other, "--abort", "-q").assert_ok()
    nightly.run(*line).assert_ok()


def test_what_cannot_hold_a_name_says_so(nightly: Project) -> None:
    lines = str(nightly.write("lines.jsonl", "{}\n"))
    batch = nightly.run(*NIGHTLY, "--batch", lines, "-o", "out.jsonl").assert_exit(2)
    assert "hold no name" in batch.err
    assert "needs `--exclusive NAME`" in nightly.run(
        "run", "demo.nightly", "--on-conflict", "skip"
    ).assert_exit(2).err  # fmt: skip
    assert (
        "expected" in nightly.run("run", "demo.nightly", "--exclusive", "../up").assert_exit(2).err
    )
    line = (*NIGHTLY, "--wait-timeout", "1")
    assert "needs `--on-conflict wait`" in nightly.run(*line).assert_exit(2).err
    record = nightly.write(".cogcli/episodes/.exclusive/nightly", "something else\n")
    assert f"remove {record}" in _error(nightly)["hint"]
    record.unlink()
    record.mkdir()
    assert nightly.run(*NIGHTLY, "--json").assert_exit(3).json["error"]["code"] == "env.disk"
    assert _posts(nightly) == []
