"""Snapshots of a run that is alive: when they are due, what they hold, and what they may never do."""

from __future__ import annotations

import json
import os
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample

from cogcli.base.errors import UnusableEnvironment
from cogcli.episode import snapshot
from cogcli.episode.journal import Journal
from cogcli.episode.listing.episode_row import read_row
from cogcli.episode.log_reader import EventLog
from cogcli.episode.projection import project_bytes
from cogcli.episode.seal import persist_pending, seal
from cogcli.episode.snapshot import SHARE, Snapshots
from cogcli.episode.verify.check import verify

LATER = 10**9


@pytest.fixture
def running(tmp_path: Path) -> Journal:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    sample.planned(journal, *((f"step_{n}", "act", f"step {n}") for n in (1, 2, 3)))
    return journal


def last_event(journal: Journal) -> Any:
    return [event for _, event in EventLog(journal.directory)][-1]


def test_the_first_snapshot_holds_what_its_event_says(running: Journal) -> None:
    Snapshots(running).begin()
    data = (running.directory / "state.json").read_bytes()
    evidence = last_event(running)
    events = [event for _, event in EventLog(running.directory)]
    assert data == project_bytes(events[: evidence.seq])
    assert (evidence.phase, evidence.event_type) == ("runtime", "run.state_projection")
    assert evidence.payload["state"] == {
        "sha256": sha256(data).hexdigest(),
        "size_bytes": len(data),
    }
    assert evidence.payload["snapshot"] is True
    assert evidence.payload["outcomes"].keys() == {"status", "metrics", "error"}
    assert evidence.payload["links"] == json.loads(data)["links"]


def test_only_what_changed_is_written_again_and_not_at_once(running: Journal) -> None:
    snapshots = Snapshots(running)
    assert not snapshots.is_due(LATER), "the first one is taken, not waited for"
    snapshots.begin()
    snapshots.begin()
    assert running.count == 3
    assert not snapshots.is_due(LATER), "nothing changed"
    sample.began(running, "step_1")
    assert not snapshots.is_due(time.monotonic())
    assert snapshots.is_due(LATER)
    snapshots.take()
    state = json.loads((running.directory / "state.json").read_bytes())
    assert state["plan"]["steps"][0]["status"] == "running"


def test_a_slow_snapshot_makes_the_next_one_later(
    running: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]

    def tick() -> float:
        now[0] += 0.5
        return now[0]

    monkeypatch.setattr(snapshot.time, "monotonic", tick)
    snapshots = Snapshots(running)
    snapshots.begin()
    sample.began(running, "step_1")
    ended = now[0]
    assert not snapshots.is_due(ended + SHARE * 0.5 - 0.1)
    assert snapshots.is_due(ended + SHARE * 0.5 + 0.1)


def test_blobs_of_a_snapshot_make_the_next_one_wait_for_as_much_log(running: Journal) -> None:
    """A value that only the state holds is stored with each snapshot: together they take no more room than the log."""
    snapshots = Snapshots(running)
    snapshots.begin()
    for step in ("step_1", "step_2"):
        intent = sample.began(running, step)
        writes = [sample.written("vars.list", ["x" * 3000], "append")]
        sample.ended(running, step, intent, writes=writes)
    snapshots.take()
    stored = running.stored
    assert stored > 6000, stored
    sample.began(running, "step_3")
    assert not snapshots.is_due(LATER)
    size = running.size
    while running.size < size + stored:
        sample.began(running, "step_3")
    assert snapshots.is_due(LATER)


def test_verify_knows_a_snapshot_from_a_final_document(running: Journal) -> None:
    Snapshots(running).begin()
    sample.began(running, "step_1")
    running.close()
    found = verify(running.directory)
    assert not [finding for finding in found if finding.severity == "error"]
    told = next(finding for finding in found if finding.code == "state.snapshot")
    assert told.message == "a snapshot: it holds the first 2 events; 1 came later"
    row = read_row(running.directory)
    assert (row.status, row.fault) == ("interrupted", "")


def test_a_run_killed_right_after_a_snapshot_does_not_wait_for_a_person(running: Journal) -> None:
    Snapshots(running).begin()
    running.close()
    assert read_row(running.directory).status == "interrupted"


def test_an_altered_snapshot_is_found(running: Journal) -> None:
    Snapshots(running).begin()
    running.close()
    state = running.directory / "state.json"
    state.write_text(state.read_text().replace('"pending"', '"ok"'))
    assert "state.differs" in {finding.code for finding in verify(running.directory)}
    assert read_row(running.directory).shown_status == "altered"


@pytest.mark.parametrize("finish", [seal, persist_pending])
def test_the_end_writes_evidence_of_its_own(running: Journal, finish: Any) -> None:
    if finish is seal:
        sample.terminated(running)
    Snapshots(running).begin()
    finish(running)
    running.close()
    evidence = last_event(running)
    assert "snapshot" not in evidence.payload
    assert "outputs" in evidence.payload["outcomes"]
    assert not [
        f for f in verify(running.directory) if f.severity == "error" or f.code == "state.snapshot"
    ]


def test_a_disk_without_room_stops_snapshots_not_the_run(
    running: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise UnusableEnvironment("env.disk", "no room")

    monkeypatch.setattr(running.folder, "replace", refuse)
    snapshots = Snapshots(running)
    snapshots.begin()
    sample.began(running, "step_1")
    assert not snapshots.is_due(LATER)
    monkeypatch.undo()
    sample.terminated(running)
    seal(running)
    running.close()
    assert not [finding for finding in verify(running.directory) if finding.severity == "error"]


def test_a_blob_that_cannot_be_read_gives_no_snapshot(running: Journal) -> None:
    """Its reference is no value: the state would hold it, and the digest of that state would be in the log."""
    snapshots = Snapshots(running)
    snapshots.begin()
    intent = sample.began(running, "step_1")
    writes = [sample.written("vars.text", "x" * 30_000)]
    sample.ended(running, "step_1", intent, writes=writes)
    before = (running.directory / "state.json").read_bytes()
    blobs = list((running.directory / "blobs").iterdir())
    assert blobs
    for blob in blobs:
        blob.rename(blob.with_name(f"away-{blob.name}"))
    snapshots.take()
    assert (running.directory / "state.json").read_bytes() == before
    assert last_event(running).event_type != "run.state_projection"
    assert not snapshots.is_due(LATER), "it has given up"


def test_a_log_that_was_cut_gives_no_snapshot(running: Journal) -> None:
    snapshots = Snapshots(running)
    log = running.directory / "events.jsonl"
    os.truncate(log, log.stat().st_size - 10)
    snapshots.begin()
    assert not (running.directory / "state.json").exists()
    with pytest.raises(UnusableEnvironment) as refused:
        running.sync()
    assert refused.value.code == "episode.altered"


def test_a_long_backlog_puts_a_snapshot_off(
    running: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All snapshots together take at most 1 % of the time so far, so what the next one will take counts before it."""
    snapshots = Snapshots(running)
    snapshots.begin()
    sample.began(running, "step_1")
    now = time.monotonic()
    assert snapshots.is_due(now + 60)
    monkeypatch.setattr(
        snapshot, "_FOLD_SPEED", running.size / 2
    )  # so that this log takes two seconds
    assert not snapshots.is_due(now + 60)
    assert snapshots.is_due(now + 300)


def test_a_resume_of_a_long_log_takes_no_snapshot_first(
    running: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_LONG", running.size)
    Snapshots(running).begin()
    assert not (running.directory / "state.json").exists()
    sample.began(running, "step_1")
    snapshots = Snapshots(running)
    snapshots.begin()
    assert snapshots.is_due(LATER)
