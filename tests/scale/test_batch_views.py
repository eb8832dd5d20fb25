"""`verify ba_...`, `report ba_...` and `batch merge`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest
from counted import RUN, batch_folder, outcomes, rows, write_lines
from support.html_reader import read_page

from cogcli.base.canonical import digest
from cogcli.declarations.checksum import add_sum
from cogcli.episode.schemas import SCHEMAS
from cogcli.scale.ledger import first_head


@pytest.fixture
def finished(counting: Any) -> Any:
    """A project with a finished batch of three lines, of which one failed."""
    write_lines(counting, ["a", "fail:b", "c"])
    counting.run(*RUN).assert_exit(1)
    return counting


def test_a_batch_that_nobody_altered_is_sound(finished: Any) -> None:
    result = finished.run("verify", batch_folder(finished).name).assert_ok()
    assert "ledger, episodes and output agree" in result.out
    finished.run("verify", batch_folder(finished).name, "@last").assert_exit(2)


def test_archived_episodes_of_a_batch_are_checked_where_they_are(finished: Any) -> None:
    finished.run("episodes", "archive", "--all").assert_ok()
    result = finished.run("verify", batch_folder(finished).name, "--json").assert_ok()
    assert "episode.missing" not in {each["code"] for each in result.json["findings"]}


def test_an_input_that_is_gone_is_a_warning(finished: Any) -> None:
    replace(finished.root / "in.jsonl", '"a"', '"x"')
    result = finished.run("verify", batch_folder(finished).name, "--json").assert_ok()
    (finding,) = result.json["findings"]
    assert (finding["code"], finding["severity"]) == ("batch.input-changed", "warning")


def test_an_entry_of_another_line_is_found(finished: Any) -> None:
    def swap(entries: list[dict[str, Any]]) -> None:
        entries[0]["h"], entries[2]["h"] = entries[2]["h"], entries[0]["h"]

    forge(batch_folder(finished) / "ledger.jsonl", swap)
    result = finished.run("verify", batch_folder(finished).name, "--json").assert_exit(1)
    assert "the hash is not that of the line" in result.json["findings"][0]["message"]


def forge(ledger: Path, alter: Callable[[list[dict[str, Any]]], None]) -> None:
    """Alter the entries of a ledger, and make a sound chain of them."""
    entries = [json.loads(line) for line in ledger.read_text().splitlines()]
    alter(entries)
    forged, head = b"", first_head(ledger.parent.name, "1/1")
    for entry in entries:
        text = orjson.dumps({**entry, "prev": head} | {"sum": ""}).replace(b',"sum":""', b"")
        line = add_sum(text)
        head, forged = digest(line), forged + line + b"\n"
    ledger.write_bytes(forged)


def test_the_ids_of_lines_that_ran_again_are_checked(finished: Any) -> None:
    first = batch_folder(finished).name
    finished.run(*RUN[:4], "--retry-failed", "out.jsonl", "-o", "again.jsonl").assert_exit(1)
    (folder,) = (
        each for each in batch_folder_parent(finished).iterdir() if each.name not in (first,)
    )
    finished.run("verify", folder.name).assert_ok()

    def rename(entries: list[dict[str, Any]]) -> None:
        entries[0]["ep"] = f"{entries[0]['ep'][:-1]}{'0' if entries[0]['ep'][-1] != '0' else '1'}"

    forge(folder / "ledger.jsonl", rename)
    result = finished.run("verify", folder.name, "--json").assert_exit(1)
    assert "the episode of try 2 of the line is" in result.json["findings"][0]["message"]


def batch_folder_parent(project: Any) -> Path:
    path: Path = project.root / ".cogcli/episodes/.batches"
    return path


def test_the_files_of_a_batch_fit_their_schemas(finished: Any) -> None:
    folder = batch_folder(finished)
    finished.run(*RUN, "--keep", "archived").assert_exit(1)
    documents = {
        "batch": [folder / "batch.json"],
        "batch-command": [folder / "command.json"],
        "batch-summary": [finished.root / "out.jsonl.summary.json"],
    }
    found = {
        name: [json.loads(path.read_text()) for path in paths] for name, paths in documents.items()
    }
    found["ledger"] = [
        json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()
    ]
    moved = {
        "kind": "moved",
        "line": 1,
        "try": 1,
        "ep": found["ledger"][0]["ep"],
        "at": "000001.cogarchive:9",
    }
    found["ledger"].append({**moved, "prev": found["ledger"][0]["prev"], "sum": "00000000"})
    sent = {**found["ledger"][-1], "kind": "sent", "worker": "w"}
    del sent["at"]
    found["ledger"].append(sent)
    for name, values in found.items():
        schema = jsonschema.Draft202012Validator(SCHEMAS[name]())
        for value in values:
            schema.validate(value)
            assert not schema.is_valid({**value, "other": 1}), name


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def drop_last_line(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


ALTERATIONS: dict[str, tuple[str, Callable[[Any], None]]] = {
    "an entry": (
        "batch.damaged",
        lambda project: replace(batch_folder(project) / "ledger.jsonl", '"calls":1', '"calls":2'),
    ),
    "a row": (
        "batch.rows",
        lambda project: replace(project.root / "out.jsonl", '"text":"A"', '"text":"Z"'),
    ),
    "a missing row": ("batch.rows", lambda project: drop_last_line(project.root / "out.jsonl")),
    "a row of no entry": (
        "batch.rows",
        lambda project: drop_last_line(batch_folder(project) / "ledger.jsonl"),
    ),
    "an episode": (
        "document.differs",
        lambda project: replace(project.episodes[-1] / "summary.json", '"A"', '"Z"'),
    ),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_what_was_altered_is_found(finished: Any, name: str) -> None:
    code, alter = ALTERATIONS[name]
    alter(finished)
    result = finished.run("verify", batch_folder(finished).name, "--json").assert_exit(1)
    codes = {each["code"] for each in result.json["findings"]}
    assert code in codes or name == "an episode", codes


def test_the_page_of_a_batch_has_its_counts_and_runs_no_script(finished: Any) -> None:
    batch_id = batch_folder(finished).name
    finished.run("report", batch_id[:10], "-o", "page.html").assert_ok()
    page = (finished.root / "page.html").read_text()
    assert "2 ok, 1 failed" in page
    assert "call.server-error" in page
    assert rows(finished)[1]["episode_id"] in page
    assert "<script" not in page
    assert "<svg" in page
    assert finished.run("report", batch_id, "-o", "-").assert_ok().out == page
    read_page(page)


def test_the_results_of_shards_are_merged_in_the_order_of_lines(counting: Any) -> None:
    write_lines(counting, ["a", "fail:b", "c"])
    run = ("run", "demo.counted", "--batch", "in.jsonl", "--batch-name", "n")
    counting.run(*run, "--shard", "1/2", "-o", "one.jsonl").assert_ok()
    counting.run(*run, "--shard", "2/2", "-o", "two.jsonl").assert_exit(1)
    merge = ("batch", "merge", "two.jsonl", "one.jsonl", "-o", "all.jsonl")
    counting.run(*merge).assert_ok()
    assert outcomes(counting, "all.jsonl") == [(1, "ok"), (2, "error"), (3, "ok")]
    summary = json.loads((counting.root / "all.jsonl.summary.json").read_text())
    assert (summary["lines"], summary["calls"]) == (3, 3)
    assert sum(summary["ms"]["buckets"].values()) == 3
    counting.run(*merge).assert_exit(2)
    counting.run(*merge, "--force").assert_ok()
    for files, found in (
        (("one.jsonl",), "missing 2/2"),
        (("one.jsonl", "one.jsonl", "two.jsonl"), "1/2"),
    ):
        result = counting.run("batch", "merge", *files, "-o", "x.jsonl", "--json").assert_exit(2)
        error = result.json["error"]
        assert (error["code"], error["found"]) == ("batch.parts", found)
    assert not (counting.root / "x.jsonl").exists()


def test_later_rows_win_and_gaps_are_refused(finished: Any) -> None:
    source = finished.root / "demo_services.py"
    source.write_text(source.read_text().replace("raise ValueError(rest)", "pass"))
    again = ("--retry-failed", "out.jsonl", "-o", "again.jsonl")
    finished.run(*RUN[:4], *again).assert_ok()
    finished.run("batch", "merge", "out.jsonl", "again.jsonl", "-o", "all.jsonl").assert_ok()
    assert outcomes(finished, "all.jsonl") == [(1, "ok"), (2, "ok"), (3, "ok")]
    result = finished.run("batch", "merge", "again.jsonl", "-o", "x.jsonl", "--json")
    assert result.assert_exit(2).json["error"]["code"] == "batch.parts"
    finished.run("batch", "merge", "in.jsonl", "-o", "x.jsonl").assert_exit(3)
