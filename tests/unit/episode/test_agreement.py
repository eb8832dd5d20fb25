"""A row of an episode whose files do not agree shows no good status."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample

from cogcli.episode.listing.episode_listing import list_rows
from cogcli.episode.listing.episode_row import EpisodeFilter, read_row
from cogcli.episode.seal import persist_pending
from cogcli.episode.store import Store

OWNER = b"k" * 32


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """A finished run with the checkpoint of its owner."""
    return sample.sealed_episode(tmp_path / "runs", owner=OWNER)


@pytest.fixture
def paused(tmp_path: Path) -> Path:
    journal = sample.one_step_done(tmp_path / "others")
    journal.append(
        sample.raw_event(sample.RUN, "run.paused", "runtime", {"reason": "a person is needed"})
    )
    persist_pending(journal)
    journal.close()
    return journal.directory


def change(episode: Path, name: str, old: str, new: str) -> None:
    text = (episode / name).read_text()
    assert old in text
    (episode / name).write_text(text.replace(old, new, 1))


def change_entry(episode: Path, name: str) -> None:
    """Make the manifest name a file as it is now."""
    manifest = json.loads((episode / "manifest.json").read_bytes())
    data = (episode / name).read_bytes()
    for entry in manifest["files"]:
        if entry["name"] == name:
            entry |= {"sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)}
    (episode / "manifest.json").write_text(
        json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    )


def forge_summary(episode: Path) -> None:
    change(episode, "summary.json", '"status": "ok"', '"status": "error"')
    change_entry(episode, "summary.json")


def test_a_whole_episode_has_its_status(sealed: Path, paused: Path) -> None:
    assert (read_row(sealed, OWNER).fault, read_row(sealed, OWNER).shown_status) == ("", "ok")
    assert (read_row(paused, OWNER).fault, read_row(paused, OWNER).shown_status) == ("", "pending")


@pytest.mark.parametrize(
    ("attack", "file"),
    [
        (lambda e: change(e, "summary.json", '"status": "ok"', '"status": "partial"'), "summary.json"),
        (lambda e: change(e, "state.json", '"status": "ok"', '"status": "no"'), "state.json"),
        (lambda e: change(e, "manifest.json", '"created_at"', '"created_on"'), "manifest.json"),
        (lambda e: change(e, "manifest.json", '"chain"', '"chains"'), "manifest.json"),
        (lambda e: (e / "manifest.json").write_text("{"), "manifest.json"),
        (lambda e: (e / "events.jsonl").write_bytes((e / "events.jsonl").read_bytes()[:-200]), "events.jsonl"),
        (lambda e: change(e, "events.jsonl", '"phase":"terminate"', '"phase":"terminatE"'), "events.jsonl"),
        (lambda e: (e / "events.jsonl").unlink(), "events.jsonl"),
        (lambda e: (e / "learn.jsonl").write_text(""), "learn.jsonl"),
        (lambda e: (e / "decision.json").write_text("{}"), "decision.json"),
        (forge_summary, "manifest.json"),
    ],
)  # fmt: skip
def test_an_altered_file_is_named(sealed: Path, attack: Callable[[Path], Any], file: str) -> None:
    attack(sealed)
    row = read_row(sealed, OWNER)
    assert row.shown_status == "altered"
    assert file in row.fault
    assert [
        each.shown_status
        for each in list_rows(sealed.parent, EpisodeFilter(), Store(sealed.parent).ids, OWNER)
    ] == ["altered"]
    good = EpisodeFilter(outcomes=("ok",))
    assert not list(list_rows(sealed.parent, good, Store(sealed.parent).ids, OWNER, worth=1))


def test_the_status_is_that_of_the_log(sealed: Path) -> None:
    forge_summary(sealed)
    row = read_row(sealed)
    assert (row.status, row.fault) == ("ok", "summary.json says `error`, the log `ok`")


def test_a_manifest_that_was_removed_leaves_an_unsealed_episode(sealed: Path) -> None:
    (sealed / "manifest.json").unlink()
    assert read_row(sealed).shown_status == "unsealed"


def test_what_fits_together_is_known_by_the_key_of_its_owner_alone(sealed: Path) -> None:
    """Whoever rewrites all files without the key leaves a checkpoint that does not fit."""
    change(sealed, "checkpoint.jsonl", '"events":', '"events" :')
    assert read_row(sealed, OWNER).shown_status == "ok", (
        "a record without a MAC vouches for nothing"
    )
    shutil.rmtree(sealed)
    whole = sample.sealed_episode(sealed.parent, owner=OWNER)
    lines = (whole / "events.jsonl").read_bytes().split(b"\n")
    manifest = json.loads((whole / "manifest.json").read_bytes())
    manifest["pins"] = {}
    (whole / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    assert read_row(whole).shown_status == "ok", "nothing but the key shows it"
    assert read_row(whole, OWNER).fault == "manifest.json is not the one that your key vouches for"
    assert len(lines) > 2


@pytest.mark.parametrize("line", [1, 2, 3, 4])
def test_an_altered_line_of_an_unfinished_log_is_found(paused: Path, line: int) -> None:
    lines = (paused / "events.jsonl").read_bytes().split(b"\n")
    lines[line - 1] = lines[line - 1].replace(b'"timestamp":"2', b'"timestamp":"1')
    (paused / "events.jsonl").write_bytes(b"\n".join(lines))
    row = read_row(paused)
    assert row.shown_status == "altered"
    assert row.fault.startswith("events.jsonl:")


def test_a_summary_before_the_end_is_a_fault(paused: Path) -> None:
    (paused / "summary.json").write_text("{}")
    assert read_row(paused).fault == "summary.json exists, and the run has not ended"


def test_a_torn_last_line_is_no_fault(paused: Path) -> None:
    with open(paused / "events.jsonl", "ab") as log:
        log.write(b'{"seq":9,"id":"ev_')
    assert not read_row(paused).fault


def test_the_index_believes_no_row_of_another_user(sealed: Path) -> None:
    """A row that says `ok` of an altered episode, written with another key, does not count."""
    runs = sealed.parent

    def listed(owner: bytes) -> str:
        rows = list_rows(runs, EpisodeFilter(), Store(runs).ids, owner, worth=1)
        return next(rows).shown_status

    assert [listed(OWNER) for _ in range(2)] == ["ok", "ok"]
    kept = (runs / ".index.db").read_bytes()
    change(sealed, "summary.json", '"status": "ok"', '"status": "error"')
    assert listed(OWNER) == "altered"
    import sqlite3

    (runs / ".index.db").write_bytes(kept)
    database = sqlite3.connect(runs / ".index.db")
    from cogcli.episode.listing import episode_index
    from cogcli.episode.listing.episode_listing import _change_mark

    row = list(database.execute("SELECT * FROM episode").fetchone())[:-1]
    row[-1] = _change_mark(sealed)
    forged = episode_index._row_mac(row, b"y" * 32)
    database.execute("UPDATE episode SET mark = ?, sum = ?", (row[-1], forged))
    database.commit()
    database.close()
    assert listed(OWNER) == "altered"
