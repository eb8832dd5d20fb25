"""A killed batch, and the same command again: each effect at most once, each line once.

`COGCLI_LONG_TESTS=1` kills at 20 seeded moments as well.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from counted import (
    RUN,
    assert_same_outputs,
    batch_folder,
    effects,
    make_counted,
    outcomes,
    rows,
    write_lines,
)

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
COGCLI = str(Path(sys.executable).parent / "cogcli")
TEXTS = ("a", "b", "c", "d")


def kill_at(project: Any, flag: str, text: str) -> None:
    """Run a batch whose process is killed around the effect of a line."""
    project.write(flag, text)
    project.installed(*RUN).assert_exit(-9)


@pytest.mark.slow
def test_a_line_that_may_have_had_its_effect_waits_and_the_others_run(counting: Any) -> None:
    write_lines(counting, TEXTS)
    kill_at(counting, "die-after", "b")
    counting.installed(*RUN).assert_exit(5)
    assert outcomes(counting) == [(1, "ok"), (2, "pending"), (3, "ok"), (4, "ok")]
    assert effects(counting) == ["a", "b", "c", "d"]
    waiting = rows(counting)[1]
    assert waiting["error"]["code"] == "effect.in-doubt"
    counting.installed(*RUN).assert_exit(5)
    assert outcomes(counting)[1] == (2, "pending")
    counting.installed(*RUN, "--in-doubt", "skip").assert_ok()
    assert [line for line, _ in outcomes(counting)] == [1, 2, 3, 4]
    assert rows(counting)[1]["status"] == "ok"
    assert effects(counting) == ["a", "b", "c", "d"]


@pytest.mark.slow
def test_a_call_that_may_be_repeated_is(project: Any) -> None:
    make_counted(project, "idempotent")
    write_lines(project, TEXTS)
    kill_at(project, "die-before", "b")
    part = (project.root / "out.jsonl.part").read_bytes()
    assert part.count(b"\n") <= 1
    project.installed(*RUN).assert_ok()
    assert outcomes(project) == [(1, "ok"), (2, "ok"), (3, "ok"), (4, "ok")]
    assert effects(project) == ["a", "b", "c", "d"]


def test_an_empty_episode_of_a_killed_process_is_where_the_line_starts(counting: Any) -> None:
    write_lines(counting, ["a"])
    counting.run(*RUN).assert_ok()
    (row,) = rows(counting)
    for left in ("nothing", "an empty log", "half an event"):
        _forget(counting)
        (counting.root / "effects").unlink()
        episode = counting.episode
        for path in sorted(episode.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        if left != "nothing":
            text = "" if left == "an empty log" else '{"seq":0,'
            (episode / "events.jsonl").write_text(text)
        counting.run(*RUN).assert_ok()
        assert [each["episode_id"] for each in rows(counting)] == [row["episode_id"]], left
        assert effects(counting) == ["a"]
        counting.run("verify", "@last").assert_ok()


def _forget(project: Any) -> None:
    """Remove the ledger and the results of the batch, but not its episodes."""
    (batch_folder(project) / "ledger.jsonl").write_bytes(b"")
    (project.root / "out.jsonl").unlink(missing_ok=True)


def test_sealed_episodes_are_taken_over_if_the_ledger_lacks_them(counting: Any) -> None:
    write_lines(counting, ["a", "fail:b"])
    counting.run(*RUN).assert_exit(1)
    before = rows(counting)
    _forget(counting)
    counting.run(*RUN).assert_exit(1)
    assert rows(counting) == before
    assert effects(counting) == ["a"]


def test_an_altered_episode_is_no_result(counting: Any) -> None:
    write_lines(counting, ["a", "b"])
    counting.run(*RUN).assert_ok()
    _forget(counting)
    summary = counting.episodes[1] / "summary.json"
    summary.write_text(summary.read_text().replace('"A"', '"Z"'))
    counting.run(*RUN).assert_exit(1)
    assert outcomes(counting) == [(1, "error"), (2, "ok")]
    assert rows(counting)[0]["error"]["code"] == "episode.altered"
    assert effects(counting) == ["a", "b"]


def test_a_ledger_and_a_part_that_are_cut_anywhere_are_continued(counting: Any) -> None:
    write_lines(counting, ["a", "b"])
    counting.run(*RUN).assert_ok()
    whole = (counting.root / "out.jsonl").read_bytes()
    ledger = batch_folder(counting) / "ledger.jsonl"
    entries = ledger.read_bytes()
    sizes = range(len(entries) + 1) if LONG else (0, 1, len(entries) // 2 - 1, len(entries) - 1)
    for size in sizes:
        ledger.write_bytes(entries[:size])
        (counting.root / "out.jsonl").unlink()
        (counting.root / "out.jsonl.part").write_bytes(whole[: size * len(whole) // len(entries)])
        counting.run(*RUN).assert_ok()
        assert (counting.root / "out.jsonl").read_bytes() == whole, size
        assert ledger.read_bytes() == entries, size
    assert effects(counting) == ["a", "b"]


def test_a_damaged_ledger_is_refused(counting: Any) -> None:
    write_lines(counting, ["a", "b"])
    counting.run(*RUN).assert_ok()
    ledger = batch_folder(counting) / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"line":1,', b'"line":3,'))
    result = counting.run(*RUN, "--json").assert_exit(3)
    assert result.json["error"]["code"] == "batch.damaged"


def test_an_input_that_was_edited_is_another_batch(counting: Any) -> None:
    write_lines(counting, ["fail:a", "b", "c", "d"])
    counting.run(*RUN, "--batch-name", "n", "--max-failures", "0").assert_exit(1)
    write_lines(counting, ["fail:a", "b", "c", "e"])
    (counting.root / "out.jsonl.part").unlink()
    counting.run(*RUN, "--batch-name", "n").assert_exit(1)
    assert outcomes(counting) == [(1, "error"), (2, "ok"), (3, "ok"), (4, "ok")]
    assert "e" in effects(counting)


def start(project: Any, *flags: str) -> subprocess.Popen[bytes]:
    """A batch in a process of its own, after its first line began to run."""
    process = subprocess.Popen(
        [COGCLI, *RUN, *flags], cwd=project.root, env=project.env, stderr=subprocess.PIPE
    )
    until = time.monotonic() + 60
    while not (project.episodes and (project.episode / "events.jsonl").exists()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)
    return process


@pytest.mark.slow
def test_a_second_command_is_refused_and_ctrl_c_leaves_the_line_interrupted(counting: Any) -> None:
    write_lines(counting, ["sleep:30", "b"])
    process = start(counting)
    second = counting.run(*RUN, "--json").assert_exit(3)
    assert second.json["error"]["code"] == "batch.busy"
    assert f"process {process.pid} on" in second.json["error"]["message"]
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"stopping, up to 5s for running lines" in err
    assert b"Traceback" not in err
    (episode,) = counting.episodes
    lines = (episode / "events.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["event_type"] for line in lines]
    assert "run.terminated" not in kinds
    assert "run.aborting" not in kinds


def children(pid: int) -> list[int]:
    """The child processes of a process; none if it is gone."""
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except FileNotFoundError:
        return []


def kill_some(process: subprocess.Popen[bytes], chance: random.Random) -> None:
    """Kill workers at random moments, then the batch."""
    for _ in range(chance.randint(0, 2)):
        time.sleep(chance.uniform(0, 0.4))
        for child in chance.sample(workers := children(process.pid), min(1, len(workers))):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
    time.sleep(chance.uniform(0, 0.4))
    process.kill()
    process.communicate()


@pytest.mark.slow
@pytest.mark.skipif(not LONG, reason="20 seeded kills: COGCLI_LONG_TESTS=1, or check.py --long")
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("seed", range(20))
def test_a_batch_that_is_killed_at_random_moments_is_completed(
    project: Any, seed: int, jobs: str
) -> None:
    make_counted(project)
    texts = [f"t{number}" for number in range(40)]
    write_lines(project, texts)
    chance = random.Random(seed)
    for _ in range(3):
        kill_some(start(project, "--jobs", jobs), chance)
    result = project.started(*RUN, "--jobs", jobs)
    assert result.code in (0, 5), result.err
    assert [line for line, _ in outcomes(project)] == list(range(1, 41))
    done = effects(project)
    assert len(done) == len(set(done))
    waiting = [row for row in rows(project) if row["status"] == "pending"]
    assert all(row["error"]["code"] == "effect.in-doubt" for row in waiting)
    missing = set(texts) - set(done)
    assert missing <= {texts[row["line"] - 1] for row in waiting}
    assert_same_outputs(project, texts)
    project.run("verify", batch_folder(project).name).assert_ok()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a limit of files in the shell")
def test_a_full_disk_stops_the_batch_and_the_same_command_completes_it(project: Any) -> None:
    project.demo()
    lines = "".join(json.dumps({"text": f"{line}" * 9_000}) + "\n" for line in range(1, 9))
    project.write("in.jsonl", lines)
    command = ("run", "demo.greet", "--batch", "in.jsonl", "-o", "out.jsonl")
    limited = subprocess.run(
        ["bash", "-c", 'ulimit -f 66; exec "$0" "$@"', COGCLI, *command],
        cwd=project.root, env=project.env, capture_output=True, check=False,
    )  # fmt: skip
    assert limited.returncode == 3, limited.stderr
    assert b"error[env.disk]" in limited.stderr
    assert b"Traceback" not in limited.stderr
    project.run(*command).assert_ok()
    assert outcomes(project) == [(line, "ok") for line in range(1, 9)]
    assert len(project.episodes) == 8
