"""Sealing may be cut anywhere and done again: the bytes are the same."""

from __future__ import annotations

import errno
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample
from fakes.logged import is_clean

from cogcli.base.errors import InternalError, UnusableEnvironment
from cogcli.episode import manifest as manifest_files
from cogcli.episode.journal import Journal
from cogcli.episode.log_reader import EventLog
from cogcli.episode.seal import persist_pending, seal
from cogcli.episode.verify.check import verify


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(directory.iterdir()) if file.is_file()}


class Killed(Exception):
    """The process died here."""


@pytest.mark.parametrize("cut", range(5))
def test_a_crash_between_any_two_steps_leaves_what_the_next_try_completes_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    whole = contents(sample.sealed_episode(tmp_path / "whole"))
    journal = sample.new_journal(tmp_path / "cut")
    sample.write_run(journal)
    steps: list[str] = []
    replace, derived = Journal.replace, Journal.append_derived

    def counted(step: Any) -> Any:
        def wrapper(self: Journal, *arguments: Any) -> Any:
            if len(steps) == cut:
                raise Killed
            steps.append(step.__name__)
            return step(self, *arguments)

        return wrapper

    monkeypatch.setattr(Journal, "replace", counted(replace))
    monkeypatch.setattr(Journal, "append_derived", counted(derived))
    with pytest.raises(Killed):
        seal(journal)
    monkeypatch.undo()
    assert "manifest.json" not in contents(journal.directory)
    assert is_clean(verify(journal.directory))
    seal(journal)
    assert contents(journal.directory) == whole
    seal(journal)
    assert contents(journal.directory) == whole
    journal.close()


def test_the_order_is_learn_summary_evidence_state_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = sample.new_journal(tmp_path)
    sample.write_run(journal)
    order: list[str] = []
    replace, derived = Journal.replace, Journal.append_derived
    monkeypatch.setattr(
        Journal,
        "replace",
        lambda self, name, data: (order.append(name), replace(self, name, data))[1],
    )
    monkeypatch.setattr(
        Journal,
        "append_derived",
        lambda self, draft: (order.append(draft.event_type), derived(self, draft))[1],
    )
    seal(journal)
    journal.close()
    assert order == [
        "learn.jsonl",
        "summary.json",
        "run.state_projection",
        "state.json",
        "manifest.json",
    ]


def test_the_evidence_repeats_outcomes_and_links_of_the_document(tmp_path: Path) -> None:
    directory = sample.sealed_episode(tmp_path)
    *_, (_, evidence) = EventLog(directory)
    state = json.loads((directory / "state.json").read_bytes())
    assert evidence.phase == "runtime"
    assert evidence.payload == {
        "status": state["outcomes"]["status"],
        "outcomes": state["outcomes"],
        "links": state["links"],
        "state": {
            "sha256": hashlib.sha256((directory / "state.json").read_bytes()).hexdigest(),
            "size_bytes": (directory / "state.json").stat().st_size,
        },
    }


def test_a_paused_run_stops_after_its_state_document(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    persist_pending(journal)
    journal.close()
    assert sorted(contents(journal.directory)) == ["events.jsonl", "learn.jsonl", "state.json"]
    assert contents(journal.directory)["learn.jsonl"] == b""
    assert is_clean(verify(journal.directory))


def test_a_run_that_has_not_ended_is_not_sealed(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    with pytest.raises(InternalError):
        seal(journal)
    journal.close()


def test_the_manifest_names_every_file_and_the_head_of_the_chain(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    specs = journal.put_blob(sample.SPECS)
    sample.started(journal, inputs={"text": "x" * 70_000}, pins={"specs_blob": specs, "specs": {}})
    sample.terminated(journal)
    seal(journal)
    journal.close()
    directory = journal.directory
    manifest = json.loads((directory / "manifest.json").read_bytes())
    found = {
        str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file()
    } - {"manifest.json"}
    assert [entry["name"] for entry in manifest["files"]] == sorted(found)
    for entry in manifest["files"]:
        data = (directory / entry["name"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
        assert entry["size_bytes"] == len(data)
    last = (directory / "events.jsonl").read_bytes().splitlines()
    assert manifest["chain"] == {
        "events": len(last),
        "head": f"sha256:{hashlib.sha256(last[-1]).hexdigest()}",
    }
    assert manifest["created_at"] == json.loads(last[-1])["timestamp"]
    assert {entry["kind"] for entry in manifest["files"]} == {
        "blob",
        "events",
        "learn",
        "state",
        "summary",
    }
    assert is_clean(verify(directory))


def test_the_manifest_can_be_checked_without_our_code(tmp_path: Path) -> None:
    directory = sample.sealed_episode(tmp_path)
    manifest = json.loads((directory / "manifest.json").read_bytes())
    sums = "".join(f"{entry['sha256']}  {entry['name']}\n" for entry in manifest["files"])
    done = subprocess.run(
        ["sha256sum", "-c"], input=sums.encode(), cwd=directory, capture_output=True, check=False
    )
    assert done.returncode == 0


def test_a_secret_that_only_its_key_betrays_stands_in_no_file(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal, inputs={"password": "open sesame"})
    sample.planned(journal, ("a", "act", "A"))
    intent = sample.began(journal, "a", input={"password": "open sesame"})
    excerpt = '{"password":"open sesame"}'
    writes = [sample.written("vars.api_key", "open sesame")]
    sample.ended(
        journal, "a", intent, output={"token": "open sesame"}, writes=writes, input_excerpt=excerpt
    )
    sample.terminated(journal, outputs={"secret": "open sesame"})
    seal(journal)
    journal.close()
    for data in contents(journal.directory).values():
        assert b"open sesame" not in data
    assert is_clean(verify(journal.directory))


def test_a_secret_known_too_late_does_not_make_the_evidence_differ(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.write_run(journal)
    journal._redactor.add("three features")
    seal(journal)
    journal.close()
    assert is_clean(verify(journal.directory))


def test_a_directory_swapped_for_a_link_leads_no_write_astray(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    journal = sample.new_journal(tmp_path / "runs")
    sample.started(journal, inputs={"text": "x" * 70_000})
    moved = tmp_path / "moved"
    journal.directory.rename(moved)
    journal.directory.symlink_to(elsewhere)
    sample.terminated(journal)
    seal(journal)
    journal.close()
    assert list(elsewhere.iterdir()) == []
    assert is_clean(verify(moved))
    with pytest.raises(UnusableEnvironment):
        verify(journal.directory)


@pytest.mark.parametrize("damage", ["blob", "line", "torn"])
def test_nothing_is_derived_from_a_log_that_cannot_be_read_whole(
    tmp_path: Path, damage: str
) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal, inputs={"text": "x" * 70_000})
    sample.terminated(journal)
    log = journal.directory / "events.jsonl"
    if damage == "blob":
        next((journal.directory / "blobs").iterdir()).unlink()
    elif damage == "line":
        log.write_bytes(log.read_bytes().replace(b"\n", b"}\n", 1))
    else:
        log.write_bytes(log.read_bytes() + b"torn")
    for finish in (seal, persist_pending):
        with pytest.raises(UnusableEnvironment) as refused:
            finish(journal)
        assert refused.value.code == (
            "episode.unreadable" if damage == "blob" else "episode.altered"
        )
    journal.close()
    assert not (journal.directory / "manifest.json").exists()


def test_no_manifest_leaves_out_what_could_not_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process out of descriptors just then: the next try seals all of it."""
    journal = sample.new_journal(tmp_path)
    sample.started(journal, inputs={"text": "x" * 70_000})
    sample.terminated(journal)
    seal(journal)
    manifest = journal.directory / "manifest.json"
    whole = manifest.read_bytes()
    manifest.unlink()
    real = manifest_files.Folder.sub

    def sub(self: Any, name: str) -> Any:
        if sys._getframe(1).f_code is manifest_files.list_files.__code__:
            raise OSError(errno.EMFILE, "Too many open files")
        return real(self, name)

    monkeypatch.setattr(manifest_files.Folder, "sub", sub)
    with pytest.raises(UnusableEnvironment) as refused:
        seal(journal)
    assert (refused.value.code, manifest.exists()) == ("episode.unreadable", False)
    monkeypatch.undo()
    seal(journal)
    journal.close()
    assert manifest.read_bytes() == whole
