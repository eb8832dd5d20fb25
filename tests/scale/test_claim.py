"""The claim of an episode: of many processes that want a line, one gets it, and what exists is never run again."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from counted import make_counted

from cogcli.base.redact import Redactor
from cogcli.base.system import SystemClock, SystemIds
from cogcli.episode.folder import Folder
from cogcli.episode.journal import Journal
from cogcli.scale.claim import Claim, ClaimState, claim
from cogcli.scale.identity import BatchKey, LineTask, batch_id_of, is_batch_id

EPISODE = "ep_01M7XJNZDYM9S346Q3D25VT4F5"


def open_journal(claimed: Claim) -> Journal:
    ports: Any = {"clock": SystemClock(), "ids": SystemIds(), "redactor": Redactor()}
    return claimed.open_journal("trace", **ports)


def test_one_claim_is_free_and_the_others_are_busy(tmp_path: Path) -> None:
    found: list[Claim] = []
    begin = threading.Barrier(8)

    def work() -> None:
        begin.wait()
        found.append(claim(tmp_path, EPISODE))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    states = sorted(each.state.name for each in found)
    assert states == [*["BUSY"] * 7, "FREE"]
    (free,) = (each for each in found if each.state is ClaimState.FREE)
    free.release()
    again = claim(tmp_path, EPISODE)
    assert again.state is ClaimState.FREE
    again.release()


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    journal = open_journal(claim(tmp_path, EPISODE))
    assert claim(tmp_path, EPISODE).state is ClaimState.BUSY
    assert journal.discard()
    assert not (tmp_path / EPISODE).exists()
    again = claim(tmp_path, EPISODE)
    assert again.state is ClaimState.FREE
    again.release()


def test_what_a_killed_process_left_before_its_first_event_is_removed(tmp_path: Path) -> None:
    journal = open_journal(claim(tmp_path, EPISODE))
    journal.put_blob(b"{}")
    journal.close()
    episode = tmp_path / EPISODE
    (episode / "checkpoint.jsonl").write_text("old")
    (episode / ".tmp-1").write_text("old")
    (episode / "events.jsonl").write_text('{"seq":0')
    claimed = claim(tmp_path, EPISODE)
    assert claimed.state is ClaimState.FREE
    assert {path.name for path in episode.iterdir()} == {"events.jsonl", "learn.jsonl", "blobs"}
    assert not (episode / "events.jsonl").read_bytes()
    assert not list((episode / "blobs").iterdir())
    claimed.release()


def test_begun_and_sealed_runs_are_seen(project: Any) -> None:
    make_counted(project)
    project.run("run", "demo.counted", "-p", "text=a").assert_ok()
    runs, name = project.episode.parent, project.episode.name
    assert claim(runs, name).state is ClaimState.SEALED
    (project.episode / "manifest.json").unlink()
    assert claim(runs, name).state is ClaimState.BEGUN


def test_an_archived_run_is_sealed(project: Any) -> None:
    make_counted(project)
    project.run("run", "demo.counted", "-p", "text=a").assert_ok()
    episode = project.episode
    project.run("episodes", "archive", episode.name).assert_ok()
    assert not episode.exists()
    found: list[Claim] = []
    begin = threading.Barrier(4)

    def work() -> None:
        begin.wait()
        found.append(claim(episode.parent, episode.name))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {each.state for each in found} <= {ClaimState.SEALED, ClaimState.BUSY}
    assert claim(episode.parent, episode.name).state is ClaimState.SEALED
    assert not episode.exists()


def test_a_folder_that_another_process_removed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, removed = Folder.make, []

    def make_and_lose_once(self: Folder, name: str) -> Folder:
        made = make(self, name)
        if not removed:
            removed.append(name)
            made.close()
            self.remove_directory(name)
            raise FileNotFoundError(name)
        return made

    monkeypatch.setattr(Folder, "make", make_and_lose_once)
    claimed = claim(tmp_path, EPISODE)
    assert (claimed.state, removed) == (ClaimState.FREE, [EPISODE])
    claimed.release()


def test_a_link_in_the_place_of_an_episode_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / EPISODE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="no episode can be made"):
        claim(tmp_path, EPISODE)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_the_ids_of_a_batch_sort_by_line_and_follow_from_what_runs() -> None:
    key = BatchKey(batch_id_of({"skill": "a.b"}), 1_700_000_000_000)
    assert is_batch_id(key.id)
    tasks = [LineTask(line, 1, b"{}") for line in (1, 2, 9, 10, 31, 32, 1024, 10**9, 2**40 - 1)]
    ids = [key.episode_id(task) for task in tasks]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    first = tasks[0]
    others = [first._replace(attempt=2), first._replace(data=b"[]"), first._replace(line=3)]
    assert key.episode_id(first) not in {key.episode_id(other) for other in others}
    assert key.run_id(first) not in {key.run_id(other) for other in others}
    assert key.run_id(first) == BatchKey(key.id, 5).run_id(first)
