"""The log loses nothing, leaks nothing and never goes on after a failure."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample

from cogcli.base.errors import InternalError, UnusableEnvironment
from cogcli.base.redact import MASK
from cogcli.episode import folder as folder_module
from cogcli.episode import journal as journal_module
from cogcli.episode.log_reader import EventLog


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "events.jsonl").read_bytes().splitlines()]


def test_events_are_numbered_and_chained(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.write_run(journal)
    journal.close()
    raw = (journal.directory / "events.jsonl").read_bytes().splitlines()
    head = f"sha256:{hashlib.sha256(f'cogcli/events/1:{journal.episode_id}'.encode()).hexdigest()}"
    for number, line in enumerate(raw):
        event = json.loads(line)
        assert (event["seq"], event["prev"]) == (number, head)
        head = f"sha256:{hashlib.sha256(line).hexdigest()}"


def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        directory = sample.sealed_episode(tmp_path / "runs")
    finally:
        os.umask(before)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()} == {0o600}


def test_the_lock_is_held_until_the_journal_is_closed(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    with open(journal.directory / "events.jsonl", "rb") as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        journal.close()
        journal.close()
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)


def test_an_episode_is_created_once(tmp_path: Path) -> None:
    sample.new_journal(tmp_path).close()
    with pytest.raises(UnusableEnvironment) as refused:
        sample.new_journal(tmp_path)
    assert refused.value.code == "env.runs-dir"


def test_a_clock_that_steps_back_is_clamped_and_said_so(tmp_path: Path) -> None:
    class Backwards:
        times = iter(
            [
                "2026-01-01T00:00:02.000000Z",
                "2026-01-01T00:00:01.000000Z",
                "2026-01-01T00:00:03.000000Z",
            ]
        )

        def now(self) -> str:
            return next(self.times)

        def monotonic(self) -> float:
            return 0.0

    journal = sample.new_journal(tmp_path)
    journal._clock = Backwards()
    first = sample.started(journal)
    second = sample.planned(journal)
    third = sample.terminated(journal)
    assert first.timestamp == second.timestamp
    assert (first.clock, second.clock, third.clock) == (None, "clamped", None)
    assert [line.get("clock") for line in lines(journal.directory)] == [None, "clamped", None]
    journal.close()


def test_secrets_are_masked_when_the_line_is_built(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path, secrets=("hunter2hunter2",))
    event = sample.started(
        journal, inputs={"password": "open sesame", "text": "say hunter2hunter2"}
    )
    journal.close()
    assert lines(journal.directory)[0]["payload"]["inputs"] == {
        "password": MASK,
        "text": f"say {MASK}",
    }
    # What only its key betrays goes on living in the run itself.
    assert event.payload["inputs"] == {"password": "open sesame", "text": f"say {MASK}"}


def test_a_known_list_is_masked_for_every_new_secret_and_under_every_name(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    rows = [{"id": n, "note": f"later-secret-{n % 7}"} for n in range(1000)]

    def log(**values: Any) -> dict[str, Any]:
        sample.began(journal, "call", input=values)
        *_, (_, last) = EventLog(journal.directory)
        found: dict[str, Any] = last.payload["input"]
        return found

    assert log(rows=rows) == log(rows=rows) == {"rows": rows}
    named = {"password": rows, "more": {"target": "x.api_key", "value": rows}}
    assert log(**named) == {"password": MASK, "more": {"target": "x.api_key", "value": MASK}}
    assert log(rows=[*rows, {"api_key": "k"}])["rows"] == [*rows, {"api_key": MASK}]
    journal._redactor.add("later-secret-3")
    found = log(rows=rows)["rows"]
    assert [row["note"] for row in found[:7]] == [
        MASK if n == 3 else f"later-secret-{n}" for n in range(7)
    ]
    journal.close()


def test_documents_kept_beside_the_log_are_masked_too(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path, secrets=("hunter2hunter2",))
    digest = journal.put_blob(b'{"a":"hunter2hunter2"}')
    journal.close()
    kept = (journal.directory / "blobs" / digest[7:]).read_bytes()
    assert kept == f'{{"a":"{MASK}"}}'.encode()
    assert hashlib.sha256(kept).hexdigest() == digest[7:]


def test_a_short_write_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = sample.new_journal(tmp_path)
    real = os.write
    monkeypatch.setattr(folder_module.os, "write", lambda fd, data: real(fd, bytes(data)[:100]))
    sample.write_run(journal)
    monkeypatch.undo()
    journal.close()
    assert [event.seq for _, event in EventLog(journal.directory)] == list(range(8))


def test_a_full_disk_cuts_off_what_was_written_in_part_and_ends_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    size = (journal.directory / "events.jsonl").stat().st_size
    real, calls = os.write, []

    def failing(fd: int, data: bytes) -> int:
        calls.append(fd)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, bytes(data)[:50])

    monkeypatch.setattr(folder_module.os, "write", failing)
    with pytest.raises(UnusableEnvironment) as refused:
        sample.planned(journal)
    monkeypatch.undo()
    assert refused.value.code == "env.disk"
    assert "events.jsonl" in refused.value.message
    assert (journal.directory / "events.jsonl").stat().st_size == size
    with pytest.raises(UnusableEnvironment):
        sample.planned(journal)
    assert (journal.directory / "events.jsonl").stat().st_size == size
    journal.close()


def test_a_failed_sync_is_never_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    calls: list[int] = []

    def failing(fd: int) -> None:
        calls.append(fd)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(journal_module, "fdatasync", failing)
    with pytest.raises(UnusableEnvironment):
        sample.terminated(journal)
    for again in (journal.sync, lambda: sample.terminated(journal)):
        with pytest.raises(UnusableEnvironment):
            again()
    assert len(calls) == 1
    journal.close()


@pytest.mark.parametrize(("durability", "syncs"), [("process", 1), ("power", 2), ("none", 0)])
def test_each_durability_syncs_as_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: Any, syncs: int
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(journal_module, "fdatasync", calls.append)
    journal = sample.new_journal(tmp_path, durability=durability)
    sample.started(journal)
    sample.terminated(journal)
    journal.close()
    assert len(calls) == syncs


def test_a_log_that_was_removed_lets_no_effect_out(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    (journal.directory / "events.jsonl").unlink()
    with pytest.raises(UnusableEnvironment) as refused:
        sample.terminated(journal)
    assert refused.value.code == "env.disk"
    journal.close()


def test_what_is_no_json_is_a_bug_and_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    with pytest.raises(InternalError):
        sample.started(journal, inputs={"x": object()})
    assert sample.started(journal).seq == 0
    journal.close()


def test_a_directory_that_cannot_be_used_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", failing)
    with pytest.raises(UnusableEnvironment) as refused:
        sample.new_journal(tmp_path)
    assert refused.value.code == "env.runs-dir"
    assert list(tmp_path.iterdir()) == []


def test_a_word_that_is_no_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="durability is process or power or none"):
        sample.new_journal(tmp_path, durability="always")


def test_an_event_too_long_for_a_line_is_a_bug_and_is_not_written(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    draft = sample.raw_event(
        sample.RUN, "run.paused", "runtime", {}, evidence_ids=("ev_" + "0" * 2_000_000,)
    )
    with pytest.raises(InternalError):
        journal.append(draft)
    assert (journal.directory / "events.jsonl").stat().st_size == 0
    journal.close()


def test_nothing_is_put_on_disk_after_a_failed_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = sample.new_journal(tmp_path)

    def failing(fd: int, data: bytes) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(folder_module.os, "write", failing)
    with pytest.raises(UnusableEnvironment):
        sample.started(journal)
    for attempt in (
        journal.sync,
        lambda: journal.put_blob(b"{}"),
        lambda: journal.replace("state.json", b"{}"),
    ):
        with pytest.raises(UnusableEnvironment) as refused:
            attempt()
        assert refused.value.code == "env.disk"
    monkeypatch.undo()
    assert sorted(path.name for path in journal.directory.iterdir()) == [
        ".ballast",
        "blobs",
        "events.jsonl",
        "learn.jsonl",
    ]
    assert list((journal.directory / "blobs").iterdir()) == []
    journal.close()
