"""`run SKILL --batch`: a row for each line, the same batch continued, and what is refused before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from counted import RUN, batch_folder, effects, outcomes, rows, write_lines


def test_each_line_runs_once_and_has_a_row_in_the_order_of_the_input(counting: Any) -> None:
    write_lines(counting, ["a", "fail:b", "c"])
    result = counting.run(*RUN).assert_exit(1)
    assert "2 ok, 1 failed → out.jsonl" in result.err
    assert outcomes(counting) == [(1, "ok"), (2, "error"), (3, "ok")]
    first, second, _ = rows(counting)
    assert list(first) == ["line", "status", "exit_code", "episode_id", "outputs", "error"]
    assert first["outputs"] == {"text": "A"}
    assert first["error"] is None
    assert second["outputs"] is None
    assert (second["exit_code"], second["error"]["code"]) == (1, "call.server-error")
    assert effects(counting) == ["a", "c"]
    assert [episode.name for episode in reversed(counting.episodes)] == [
        row["episode_id"] for row in rows(counting)
    ]
    counting.run("verify", "--all").assert_ok()


def test_the_same_command_runs_nothing_again_and_gives_the_same_answer(counting: Any) -> None:
    write_lines(counting, ["a", "fail:b"])
    counting.run(*RUN).assert_exit(1)
    before = (counting.root / "out.jsonl").read_bytes()
    again = counting.run(*RUN).assert_exit(1)
    assert "it was finished before" in again.err
    assert effects(counting) == ["a"]
    (counting.root / "out.jsonl").unlink()
    counting.run(*RUN).assert_exit(1)
    assert (counting.root / "out.jsonl").read_bytes() == before
    assert effects(counting) == ["a"]


def test_force_runs_a_finished_batch_again_as_its_next_generation(counting: Any) -> None:
    write_lines(counting, ["a"])
    counting.run(*RUN).assert_ok()
    (first,) = rows(counting)
    counting.run(*RUN, "--force").assert_ok()
    (second,) = rows(counting)
    assert first["episode_id"] != second["episode_id"]
    assert effects(counting) == ["a", "a"]
    counting.run(*RUN).assert_ok()
    assert rows(counting) == [second]


def test_the_results_go_to_stdout_without_a_file(counting: Any) -> None:
    write_lines(counting, ["a", "b"])
    result = counting.run("run", "demo.counted", "--batch", "in.jsonl").assert_ok()
    assert [json.loads(line)["line"] for line in result.out.splitlines()] == [1, 2]


def test_the_envelope_names_the_batch_with_its_counts(counting: Any) -> None:
    write_lines(counting, ["a", "fail:b"])
    result = counting.run(*RUN, "--json").assert_exit(1)
    batch = result.json["batch"]
    assert result.json["status"] == "partial"
    assert batch["by_status"] == {
        "error": {"count": 1, "lines": [2]},
        "ok": {"count": 1, "lines": [1]},
    }
    assert batch["batch_id"] == batch_folder(counting).name
    counting.run("run", "demo.counted", "--batch", "in.jsonl", "--json").assert_exit(2)


def test_the_summary_is_a_fold_of_the_ledger(counting: Any) -> None:
    write_lines(counting, ["a", "fail:b", "c"])
    counting.run(*RUN).assert_exit(1)
    summary = json.loads((counting.root / "out.jsonl.summary.json").read_text())
    ledger = (batch_folder(counting) / "ledger.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in ledger]
    assert summary["schema_version"] == "cogcli.batch/1"
    assert (summary["lines"], summary["calls"]) == (3, sum(each["calls"] for each in entries))
    assert summary["by_code"] == {"call.server-error": {"count": 1, "lines": [2]}}
    assert sum(summary["ms"]["buckets"].values()) == 3
    assert [each["line"] for each in entries] == [1, 2, 3]


def test_every_problem_is_reported_before_anything_runs(counting: Any) -> None:
    counting.write("in.jsonl", '{"text": "a"}\n{"txt": 1}\n\n[]\n{"text": 5}\n{"text": "a"\n')
    result = counting.run(*RUN, "--json").assert_exit(2)
    found = [(each["line"], each["code"]) for each in result.json["problems"]]
    assert sorted(found) == [
        (2, "input.missing"),
        (2, "input.unknown"),
        (3, "input.empty"),
        (4, "input.type"),
        (5, "input.type"),
        (6, "input.json"),
    ]
    assert counting.episodes == []
    assert not (counting.root / "out.jsonl.part").exists()


def test_an_invalid_line_is_recorded_as_failed_if_that_is_asked_for(counting: Any) -> None:
    counting.write("in.jsonl", '{"text": "a"}\n{"txt": 1}\nnonsense\n{"text": "b"}\n')
    counting.run(*RUN, "--invalid", "record").assert_exit(1)
    assert outcomes(counting) == [(1, "ok"), (2, "error"), (3, "error"), (4, "ok")]
    assert [row["exit_code"] for row in rows(counting)] == [0, 2, 2, 0]
    assert [row["episode_id"] is None for row in rows(counting)] == [False, True, True, False]
    assert effects(counting) == ["a", "b"]
    before = rows(counting)
    (counting.root / "out.jsonl").unlink()
    counting.run(*RUN, "--invalid", "record").assert_exit(1)
    assert rows(counting) == before


def test_a_file_that_exists_is_not_overwritten(counting: Any) -> None:
    write_lines(counting, ["a"])
    counting.write("out.jsonl", "mine\n")
    result = counting.run(*RUN, "--json").assert_exit(2)
    assert result.json["error"]["code"] == "output.exists"
    assert (counting.root / "out.jsonl").read_text() == "mine\n"
    counting.run(*RUN, "--force").assert_ok()
    assert outcomes(counting) == [(1, "ok")]


@pytest.mark.parametrize(
    "flags",
    [
        ("-o", "x.jsonl"),
        ("--force",),
        ("--batch", "in.jsonl", "-p", "text=x"),
        ("--batch", "in.jsonl", "--plan"),
        ("--batch", "in.jsonl", "--max-failures", "many"),
        ("--batch", "in.jsonl", "--max-failures", "101%"),
        ("--batch", "missing.jsonl"),
        ("--batch", "in.jsonl", "-o", "nowhere/x.jsonl"),
        ("--batch", "in.jsonl", "--tag", "line=1"),
        ("--batch", "in.jsonl", "--confirm", "demo.unknown"),
    ],
)
def test_wrong_flags_are_refused_before_anything_runs(
    counting: Any, flags: tuple[str, ...]
) -> None:
    write_lines(counting, ["a"])
    counting.run("run", "demo.counted", *flags).assert_exit(2)
    assert counting.episodes == []


def test_sending_stops_after_too_many_failures_and_the_batch_can_be_continued(
    counting: Any,
) -> None:
    write_lines(counting, ["a", "fail:b", "fail:c", *(f"d{n}" for n in range(10))])
    result = counting.run(*RUN, "--max-failures", "1").assert_exit(1)
    assert "not run (--max-failures)" in result.err
    assert len(effects(counting)) < 4
    assert not (counting.root / "out.jsonl").exists()
    counting.run(*RUN).assert_exit(1)
    assert len(outcomes(counting)) == 13
    assert len(effects(counting)) == 11


def test_an_output_of_an_unfinished_batch_is_kept(counting: Any) -> None:
    write_lines(counting, ["fail:a", "b", "c", "d"])
    counting.run(*RUN, "--max-failures", "0").assert_exit(1)
    write_lines(counting, ["fail:a", "b", "c", "e"])
    result = counting.run(*RUN, "--json").assert_exit(2)
    error = result.json["error"]
    assert error["code"] == "batch.changed"
    assert "the input differs" in error["message"]


def test_a_large_output_is_in_the_row_in_full(project: Any) -> None:
    project.demo()
    project.write("in.jsonl", json.dumps({"text": "x" * 100_000}) + "\n")
    project.run("run", "demo.greet", "--batch", "in.jsonl", "-o", "out.jsonl").assert_ok()
    assert rows(project)[0]["outputs"] == {"text": "X" * 100_000}


def test_a_batch_folder_that_somebody_else_wrote_is_refused(counting: Any) -> None:
    write_lines(counting, ["a"])
    counting.run(*RUN).assert_ok()
    header = batch_folder(counting) / "batch.json"
    header.write_text(header.read_text().replace('"created_ms": 1', '"created_ms": 2'))
    (counting.root / "out.jsonl").unlink()
    result = counting.run(*RUN, "--json").assert_exit(3)
    assert result.json["error"]["code"] == "batch.foreign"


def test_results_in_the_order_of_their_ends(counting: Any) -> None:
    write_lines(counting, ["a", "b"])
    counting.run(*RUN, "--order", "done").assert_ok()
    assert sorted(outcomes(counting)) == [(1, "ok"), (2, "ok")]


def test_an_untrusted_project_gets_no_code_by_way_of_a_batch(counting: Any) -> None:
    write_lines(counting, ["a"])
    counting.run(*RUN, env={"COGCLI_TRUST_PROJECT": "0"}).assert_exit(3)
    assert effects(counting) == []
    assert not Path(counting.root / "out.jsonl").exists()


def test_rows_that_another_hand_wrote_are_no_results(counting: Any) -> None:
    write_lines(counting, ["a", "b"])
    forged = '{"line":1,"status":"ok","exit_code":0,"episode_id":null,"outputs":{"text":"Z"},"error":null}\n'
    part = counting.write("out.jsonl.part", forged)
    error = counting.run(*RUN, "--json").assert_exit(2).json["error"]
    assert error["code"] == "output.exists"
    counting.run(*RUN, "--force").assert_ok()
    assert [row["outputs"] for row in rows(counting)] == [{"text": "A"}, {"text": "B"}]
    (counting.root / "out.jsonl").unlink()
    part.write_text(forged.replace('"line":1', '"line":7'))
    counting.run(*RUN).assert_ok()
    assert [row["line"] for row in rows(counting)] == [1, 2]


def test_progress_is_a_line_on_a_terminal_and_none_if_that_is_asked_for(counting: Any) -> None:
    write_lines(counting, ["a", "fail:b", "c"])
    live = counting.run(*RUN, "--progress", "live").assert_exit(1).err
    assert "3/3  1 failed" in live
    assert "\x1b[K" in live
    silent = counting.run(*RUN, "--force", "--progress", "none").assert_exit(1).err
    assert silent.splitlines()[0].startswith("2 ok, 1 failed → out.jsonl")


def test_an_unfinished_output_in_another_order_is_made_again(counting: Any) -> None:
    write_lines(counting, ["fail:a", "b", "c", "d"])
    counting.run(*RUN, "--order", "done", "--max-failures", "0").assert_exit(1)
    part = counting.root / "out.jsonl.part"
    part.write_text("".join(reversed(part.read_text().splitlines(keepends=True))))
    counting.run(*RUN).assert_exit(1)
    assert [row["line"] for row in rows(counting)] == [1, 2, 3, 4]
