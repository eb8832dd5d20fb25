"""Worker processes: they are replaced when they die, and a line is claimed again, at most three times."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from counted import RUN, batch_folder, effects, make_counted, outcomes, rows, write_lines
from support.waiting import wait_until

COGCLI = str(Path(sys.executable).parent / "cogcli")
pytestmark = pytest.mark.slow


def test_workers_share_the_lines_and_a_dead_one_is_replaced(project: Any) -> None:
    make_counted(project, "idempotent")
    write_lines(project, [*(f"t{number}" for number in range(8)), "fail:x"])
    project.write("die-before", "t3")
    project.installed(*RUN, "--jobs", "2").assert_exit(1)
    assert outcomes(project) == [*((line, "ok") for line in range(1, 9)), (9, "error")]
    assert effects(project) == [f"t{number}" for number in range(8)]
    summary = json.loads((project.root / "out.jsonl.summary.json").read_text())
    assert (summary["executor"], summary["workers"]) == ("local", 2)
    ledger = (batch_folder(project) / "ledger.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["line"] for line in ledger) == list(range(1, 10))
    again = project.installed(*RUN).assert_exit(1)
    assert "it was finished before" in again.err


def test_a_line_that_ends_three_workers_fails_alone(project: Any) -> None:
    make_counted(project, "idempotent")
    write_lines(project, ["a", "b"])
    project.write("die-before", "b b1 b2")
    source = project.root / "demo_services.py"
    text = source.read_text().replace('file.write(" ".join(', 'file.write("b") or (" ".join(')
    source.write_text(text)
    project.installed(*RUN, "--jobs", "2").assert_exit(1)
    assert outcomes(project) == [(1, "ok"), (2, "error")]
    assert rows(project)[1]["error"]["code"] == "batch.worker-died"
    assert effects(project) == ["a"]


@pytest.mark.sampled(6)
def test_a_signal_stops_the_batch_and_the_same_command_resumes_its_lines(project: Any) -> None:
    make_counted(project, "idempotent")
    write_lines(project, ["sleep:3", "sleep:3.1", "c"])
    process = subprocess.Popen(
        [COGCLI, *RUN, "--jobs", "2"], cwd=project.root, env=project.env, stderr=subprocess.PIPE
    )
    wait_until(lambda: len(project.episodes) == 2)
    workers = _children(process.pid)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (130, 143), err
    assert b"Traceback" not in err
    wait_until(lambda: not any(map(_is_alive, workers)))
    assert effects(project) == []
    project.installed(*RUN).assert_ok()
    assert effects(project) == ["c", "sleep:3", "sleep:3.1"]


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return list(map(int, path.read_text().split()))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_untrusted_project_gets_no_code_in_a_worker(counting: Any) -> None:
    write_lines(counting, ["a", "b"])
    counting.run(*RUN, "--jobs", "2", env={"COGCLI_TRUST_PROJECT": "0"}).assert_exit(3)
    assert effects(counting) == []


def test_a_worker_that_reads_other_specs_is_no_worker(counting: Any) -> None:
    from cogcli.scale.frames import read_frames, write_frame

    write_lines(counting, ["a"])
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "cogcli.scale.worker"], cwd=counting.root, env=counting.env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    first = {
        "flags": {}, "base": str(counting.root), "batch": "ba_" + "0" * 26, "created_ms": 1,
        "skill": "demo.counted", "options": {}, "specs": "sha256:other", "in_doubt": "",
    }  # fmt: skip
    write_frame(process.stdin.fileno(), first)
    (frame,) = read_frames(process.stdout.fileno())
    process.stdin.close()
    process.stdout.close()
    assert process.wait(60) == 0
    assert frame["code"] == "batch.worker-differs"


@pytest.mark.sampled(6)
def test_a_worker_that_stands_still_holds_its_own_line_only(project: Any) -> None:
    make_counted(project, "idempotent")
    write_lines(project, ["sleep:0.5", "sleep:0.6", *(f"t{number}" for number in range(6))])
    process = subprocess.Popen(
        [COGCLI, *RUN, "--jobs", "2"], cwd=project.root, env=project.env, stderr=subprocess.PIPE
    )
    wait_until(lambda: len(project.episodes) == 2)
    stopped = _children(process.pid)[0]
    os.kill(stopped, signal.SIGSTOP)
    try:
        ledger = batch_folder(project) / "ledger.jsonl"
        wait_until(lambda: ledger.read_bytes().count(b"\n") == 7)
        assert process.poll() is None
    finally:
        os.kill(stopped, signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert len(effects(project)) == 8
