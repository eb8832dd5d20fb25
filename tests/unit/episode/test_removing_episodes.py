"""Removing takes the lock first, hides the directory before emptying it, and asks again what an episode is."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest
import sample_episode as sample

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.redact import Redactor
from cogcli.base.system import SystemClock, SystemIds
from cogcli.episode import removal
from cogcli.episode.folder import Folder
from cogcli.episode.listing.episode_row import EpisodeRow
from cogcli.episode.removal import PINS, pin, read_pins, remove, remove_leftovers, size_of, unpin
from cogcli.episode.seal import persist_pending
from cogcli.episode.store import Store


def always(row: EpisodeRow) -> bool:
    return True


def paused(runs: Path) -> Path:
    journal = sample.new_journal(runs)
    sample.started(journal)
    persist_pending(journal)
    journal.close()
    return journal.directory


def test_a_sealed_episode_goes_with_everything_in_it(tmp_path: Path) -> None:
    episode = sample.sealed_episode(tmp_path)
    assert remove(episode, always)
    assert list(tmp_path.iterdir()) == []
    assert not remove(episode, always)


def test_an_episode_whose_run_is_alive_stays(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    assert not remove(journal.directory, always)
    journal.close()
    assert remove(journal.directory, always)


def test_what_an_episode_is_is_asked_with_the_lock_held(tmp_path: Path) -> None:
    episode = paused(tmp_path)

    def may_go(row: EpisodeRow) -> bool:
        assert row.status == "pending", "a lock that is only shared lets readers look"
        with open(episode / "events.jsonl", "ab") as log, pytest.raises(BlockingIOError):
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False

    assert not remove(episode, may_go)
    assert episode.is_dir()


def test_a_run_that_is_resumed_meanwhile_finds_nothing_half_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = paused(tmp_path)
    store = Store(tmp_path)
    told: list[str] = []

    def resume_instead(parent: Folder, name: str) -> None:
        for name in os.listdir(tmp_path):
            assert not name.startswith("ep_"), "its name is gone before its files are"
        with pytest.raises(UnusableEnvironment) as refused:
            store.reopen(tmp_path / name, clock=SystemClock(), ids=SystemIds(), redactor=Redactor())
        told.append(refused.value.code)

    monkeypatch.setattr(removal, "_delete_tree", resume_instead)
    assert remove(episode, always)
    assert told == ["episode.busy"]


def test_what_a_crash_left_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = sample.sealed_episode(tmp_path)
    monkeypatch.setattr(removal, "_delete_tree", lambda parent, name: None)
    assert remove(episode, always)
    monkeypatch.undo()
    assert len(list(tmp_path.glob(".gc-*"))) == 1
    assert Store(tmp_path).ids() == []
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []
    remove_leftovers(tmp_path / "nowhere")


def test_an_episode_that_is_just_being_made_stays(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    journal.close()
    assert not remove(journal.directory, always)
    past = time.time() - 3600
    os.utime(journal.directory, (past, past))
    assert remove(journal.directory, always)


def test_links_go_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    episode = sample.sealed_episode(tmp_path / "runs")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    os.symlink(precious, episode / "link")
    assert remove(episode, always)
    assert (precious / "file").exists()


def test_a_link_in_the_place_of_an_episode_is_not_followed(tmp_path: Path) -> None:
    episode = sample.sealed_episode(tmp_path / "elsewhere")
    (tmp_path / "runs").mkdir()
    link = tmp_path / "runs" / episode.name
    os.symlink(episode, link)
    with pytest.raises(UnusableEnvironment):
        remove(link, always)
    assert (episode / "events.jsonl").exists()


def test_the_size_of_an_episode_counts_its_blobs(tmp_path: Path) -> None:
    episode = sample.sealed_episode(tmp_path)
    before = size_of(episode)
    (episode / "blobs").mkdir(exist_ok=True)
    (episode / "blobs" / "x").write_bytes(b"1234")
    assert size_of(episode) == before + 4
    assert size_of(tmp_path / "nowhere") == 0


def test_pins_are_files_outside_the_episode(tmp_path: Path) -> None:
    episode = sample.sealed_episode(tmp_path)
    files = sorted(os.listdir(episode))
    assert read_pins(tmp_path) == frozenset()
    pin(tmp_path, episode.name)
    pin(tmp_path, episode.name)
    assert read_pins(tmp_path) == {episode.name}
    assert sorted(os.listdir(episode)) == files
    assert Store(tmp_path).ids() == [episode.name]
    unpin(tmp_path, episode.name)
    unpin(tmp_path, episode.name)
    assert read_pins(tmp_path) == frozenset()


def test_pins_that_cannot_be_read_are_an_error_and_not_none(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / PINS)
    for action in (
        lambda: read_pins(tmp_path),
        lambda: pin(tmp_path, "ep_x"),
        lambda: unpin(tmp_path, "ep_x"),
    ):
        with pytest.raises(UnusableEnvironment):
            action()
