"""Shards, failed lines that run again, and batches and lines that are named by their ids."""

from __future__ import annotations

import json
from typing import Any

import pytest
from counted import RUN, batch_folder, effects, make_counted, outcomes, rows, write_lines

from cogcli.base.errors import UsageError
from cogcli.scale.batch_folder import Shard
from cogcli.scale.shard_words import parse_shard

SLURM = {
    "SLURM_ARRAY_TASK_ID": "12",
    "SLURM_ARRAY_TASK_MIN": "10",
    "SLURM_ARRAY_TASK_STEP": "2",
    "SLURM_ARRAY_TASK_COUNT": "3",
}


def shard(project: Any, part: str, *flags: str, env: dict[str, str] | None = None) -> Any:
    command = ("run", "demo.counted", "--batch", "in.jsonl", "--batch-name", "all")
    output = f"out-{part.replace('/', '-')}.jsonl"
    return project.run(*command, "--shard", part, "-o", output, *flags, env=env)


def test_shards_share_the_lines_of_one_batch(counting: Any) -> None:
    write_lines(counting, [f"t{number}" for number in range(1, 6)])
    shard(counting, "1/2").assert_ok()
    assert [line for line, _ in outcomes(counting, "out-1-2.jsonl")] == [1, 3, 5]
    shard(counting, "2/2").assert_ok()
    assert [line for line, _ in outcomes(counting, "out-2-2.jsonl")] == [2, 4]
    assert effects(counting) == ["t1", "t2", "t3", "t4", "t5"]
    names = {path.name for path in batch_folder(counting).iterdir()}
    assert {"ledger-1-of-2.jsonl", "ledger-2-of-2.jsonl"} <= names
    assert "it was finished before" in shard(counting, "2/2").assert_ok().err
    summary = json.loads((counting.root / "out-2-2.jsonl.summary.json").read_text())
    assert (summary["shard"], summary["lines"]) == ("2/2", 2)


def test_a_shard_of_a_scheduler_and_one_that_lacks_its_name(counting: Any) -> None:
    write_lines(counting, ["a", "b", "c"])
    counting.run(*RUN, "--shard", "1/2").assert_exit(2)
    shard(counting, "auto").assert_exit(2)
    shard(counting, "auto", env=SLURM).assert_ok()
    assert outcomes(counting, "out-auto.jsonl") == [(2, "ok")]


@pytest.mark.parametrize(
    ("text", "environ", "expected"),
    [
        ("2/4", {}, Shard(1, 4)),
        ("auto", SLURM, Shard(1, 3)),
        ("auto/3", SLURM, Shard(1, 3)),
        ("auto/4", {"JOB_COMPLETION_INDEX": "3"}, Shard(3, 4)),
        ("auto", {"JOB_COMPLETION_INDEX": "3"}, None),
        ("auto/3", {"JOB_COMPLETION_INDEX": "3"}, None),
        ("auto", {}, None),
        ("0/4", {}, None),
        ("5/4", {}, None),
        ("1", {}, None),
        ("1/x", {}, None),
        ("", {}, None),
    ],
)
def test_the_words_of_a_shard(text: str, environ: dict[str, str], expected: Shard | None) -> None:
    if expected is None:
        with pytest.raises(UsageError):
            parse_shard(text, environ)
    else:
        assert parse_shard(text, environ) == expected


RETRY = (
    "run",
    "demo.counted",
    "--batch",
    "in.jsonl",
    "--retry-failed",
    "out.jsonl",
    "-o",
    "b.jsonl",
)


def mend(project: Any) -> None:
    """Make the lines that failed succeed."""
    source = project.root / "demo_services.py"
    source.write_text(source.read_text().replace("raise ValueError(rest)", "pass"))


def test_failed_lines_run_again_as_new_tries(counting: Any) -> None:
    write_lines(counting, ["a", "fail:b", "c", "fail:d"])
    counting.run(*RUN).assert_exit(1)
    before = {row["line"]: row["episode_id"] for row in rows(counting)}
    mend(counting)
    counting.run(*RETRY).assert_ok()
    assert outcomes(counting, "b.jsonl") == [(2, "ok"), (4, "ok")]
    assert effects(counting) == ["a", "c", "fail:b", "fail:d"]
    tags = counting.run("ls", "--tag", "try=2", "--json").json["episodes"]
    assert sorted(each["tags"]["retry_of"] for each in tags) == sorted((before[2], before[4]))
    counting.run(*RETRY).assert_ok()
    assert len(effects(counting)) == 4


def test_a_line_that_was_edited_does_not_run_again(counting: Any) -> None:
    write_lines(counting, ["a", "fail:b", "c"])
    counting.run(*RUN).assert_exit(1)
    write_lines(counting, ["a", "fail:x", "c"])
    error = counting.run(*RETRY, "--json").assert_exit(3).json["error"]
    assert error["code"] == "batch.input-changed"
    assert "line 2" in error["message"]
    write_lines(counting, ["other", "fail:b", "c"])
    counting.run(*RETRY).assert_exit(1)
    assert effects(counting) == ["a", "c"]


def test_lines_without_a_row_run_and_another_file_is_no_result(counting: Any) -> None:
    write_lines(counting, ["a", "fail:b", "c"])
    counting.run(*RUN).assert_exit(1)
    out = counting.root / "out.jsonl"
    out.write_text("".join(out.read_text().splitlines(keepends=True)[:1]))
    mend(counting)
    counting.run(*RETRY).assert_ok()
    assert outcomes(counting, "b.jsonl") == [(2, "ok"), (3, "ok")]
    counting.run(*RETRY[:4], "--retry-failed", "in.jsonl", "-o", "c.jsonl").assert_exit(3)


@pytest.mark.slow
def test_a_line_that_waits_is_resumed_in_its_episode(counting: Any) -> None:
    write_lines(counting, ["a", "b"])
    counting.write("die-after", "b")
    counting.installed(*RUN).assert_exit(-9)
    counting.installed(*RUN).assert_exit(5)
    counting.run(*RETRY, "--in-doubt", "skip").assert_ok()
    (row,) = rows(counting, "b.jsonl")
    assert row["episode_id"] == rows(counting)[1]["episode_id"]
    assert effects(counting) == ["a", "b"]


def test_a_batch_is_resumed_by_its_id(counting: Any) -> None:
    write_lines(counting, ["fail:a", "b", "c", "d"])
    stopped = counting.run(*RUN, "--max-failures", "0", "--order", "done").assert_exit(1)
    batch_id = batch_folder(counting).name
    assert f"next: cogcli resume {batch_id}" in stopped.err
    counting.run("resume", batch_id, "--abort").assert_exit(2)
    counting.run("resume", "ba_zzzz").assert_exit(2)
    counting.run("resume", batch_id[:9]).assert_exit(1)
    assert sorted(outcomes(counting)) == [(1, "error"), (2, "ok"), (3, "ok"), (4, "ok")]
    assert effects(counting) == ["b", "c", "d"]


def test_a_changed_skill_is_named_when_a_batch_is_resumed(counting: Any) -> None:
    write_lines(counting, ["fail:a", "b", "c", "d"])
    counting.run(*RUN, "--max-failures", "0").assert_exit(1)
    skill = counting.root / "skills/local/demo/counted/skill.yaml"
    skill.write_text(skill.read_text().replace("The skill", "A skill"))
    error = (
        counting.run("resume", batch_folder(counting).name, "--json").assert_exit(2).json["error"]
    )
    assert error["code"] == "batch.changed"
    assert "the specs changed since" in error["message"]


def test_a_command_that_somebody_else_wrote_is_not_resumed(counting: Any) -> None:
    write_lines(counting, ["fail:a", "b", "c", "d"])
    counting.run(*RUN, "--max-failures", "0").assert_exit(1)
    command = batch_folder(counting) / "command.json"
    command.write_text(command.read_text().replace("out.jsonl", "elsewhere.jsonl"))
    error = (
        counting.run("resume", batch_folder(counting).name, "--json").assert_exit(3).json["error"]
    )
    assert error["code"] == "batch.foreign"
    assert not (counting.root / "elsewhere.jsonl.part").exists()


def test_the_episodes_of_a_batch_are_found_by_line(project: Any) -> None:
    make_counted(project)
    write_lines(project, ["a", "fail:b"])
    project.run(*RUN).assert_exit(1)
    batch_id = batch_folder(project).name
    episodes = project.run("ls", "--batch", batch_id, "--json").assert_ok().json["episodes"]
    assert {each["episode_id"] for each in episodes} == {row["episode_id"] for row in rows(project)}
    project.run("ls", "--batch", "ba_zzzzzzz").assert_exit(2)
    newest = project.run("ls", "--batch", "ba_last", "--json").assert_ok().json["episodes"]
    assert newest == episodes
    shown = project.run("trace", f"{batch_id}/2").assert_ok()
    assert rows(project)[1]["episode_id"] in shown.out
    project.run("state", "show", f"{batch_id[:9]}/1").assert_ok()
    project.run("trace", f"{batch_id}/3").assert_exit(2)
    (batch_folder(project) / "ledger.jsonl").write_bytes(b"")
    assert project.run("trace", f"{batch_id}/2").assert_ok().out == shown.out


def test_a_line_that_waits_for_a_person_is_answered_by_its_name(counting: Any) -> None:
    file = counting.root / "capabilities/demo.count.yaml"
    file.write_text(file.read_text() + "safety: {requires_confirmation: true}\n")
    write_lines(counting, ["a", "b"])
    result = counting.run(*RUN).assert_exit(5)
    assert "0 ok, 2 wait → out.jsonl" in result.err
    assert [status for _, status in outcomes(counting)] == ["pending", "pending"]
    batch_id = batch_folder(counting).name
    counting.run("resume", f"{batch_id}/2", "--approve", "demo.count").assert_ok()
    assert effects(counting) == ["b"]
    counting.run(*RUN).assert_exit(5)
    assert outcomes(counting) == [(1, "pending"), (2, "ok")]
    assert rows(counting)[1]["outputs"] == {"text": "B"}
    counting.run("verify", batch_id).assert_ok()
    counting.run(*RUN, "--confirm", "demo.count").assert_exit(2)
    counting.run(*RUN, "--force", "--confirm", "demo.count").assert_ok()
    assert effects(counting) == ["a", "b", "b"]
