"""Episodes are created alone and found by whatever a user knows of them, and by nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sample_episode as sample
from fakes.logged import is_clean

from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.episode.layout import is_episode_id
from cogcli.episode.listing.episode_row import read_row
from cogcli.episode.seal import persist_pending, seal
from cogcli.episode.store import Store
from cogcli.episode.verify.check import verify


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three sealed episodes, the middle one failed; and one interrupted, older than all."""
    runs = tmp_path / "runs"
    journal = sample.new_journal(runs, seed=0)
    sample.started(journal)
    journal.close()
    for seed, status in ((1000, "ok"), (2000, "error"), (3000, "ok")):
        journal = sample.new_journal(runs, seed=seed)
        sample.started(journal)
        sample.terminated(journal, status)
        seal(journal)
        journal.close()
    return runs


def test_ids_come_newest_first(runs: Path) -> None:
    ids = Store(runs).ids()
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == 4
    assert [row.id for row in Store(runs).episode_rows()] == ids


def test_names_count_back_from_the_newest(runs: Path) -> None:
    store = Store(runs)
    ids = store.ids()
    for name, expected in (
        ("@last", 0),
        ("last", 0),
        ("@last~0", 0),
        ("@last~2", 2),
        ("last~3", 3),
    ):
        assert store.resolve(name).name == ids[expected]
    assert store.resolve("@failed").name == ids[1]
    assert store.resolve("failed").name == ids[1]


def test_an_id_a_prefix_a_trace_and_a_path_all_lead_there(runs: Path) -> None:
    store = Store(runs)
    row = next(store.episode_rows())
    assert row.trace_id is not None
    for text in (row.id, row.id[:-1], row.trace_id, str(row.directory), f"{row.directory}/"):
        assert store.resolve(text) == row.directory


def test_a_mailed_episode_is_found_by_its_path(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(runs)
    shutil.copytree(store.resolve("@last"), tmp_path / "mailed")
    assert store.resolve(str(tmp_path / "mailed")) == tmp_path / "mailed"
    monkeypatch.chdir(tmp_path)
    assert Store(tmp_path / "none").resolve("mailed") == tmp_path / "mailed"
    assert Store(tmp_path / "none").resolve("./mailed") == tmp_path / "mailed"


def test_several_candidates_are_listed(runs: Path) -> None:
    with pytest.raises(UsageError) as refused:
        Store(runs).resolve("ep_01HF")
    assert refused.value.code == "episode.ambiguous"
    assert "ep_01HF" in refused.value.found
    with pytest.raises(UsageError) as refused:
        Store(runs).resolve("00000000")
    assert refused.value.code == "episode.ambiguous"


@pytest.mark.parametrize(
    "text",
    ["nothing", "ep_01J", "ep_zzzz", "@last~9", "../../etc", "/etc/passwd", "ep_1\n", "..", ".", "", "e" * 300,
     "ep_../../x", "@first", "ep_\x00aaaa", "a/b"],
)  # fmt: skip
def test_what_names_no_episode_is_a_usage_error(runs: Path, text: str) -> None:
    with pytest.raises((UsageError, UnusableEnvironment)) as refused:
        Store(runs).resolve(text)
    assert refused.value.code in ("episode.unknown", "episode.unreadable")


def test_ids_differ_by_more_than_case() -> None:
    assert is_episode_id("ep_01HF7YAT000000000000000001")
    assert not is_episode_id("ep_01hF7YAT000000000000000001")
    assert is_episode_id("ep_2024_abc123_s0")
    for text in (
        "ep_a..b",
        "ep_.a",
        "ep_a.",
        "ep_",
        "x",
        "ep_é",
        "ep_a/b",
        "ep_" + "a" * 62,
        "ep_a\n",
    ):
        assert not is_episode_id(text)


def test_a_link_among_the_episodes_is_not_one(runs: Path, tmp_path: Path) -> None:
    store = Store(runs)
    real = store.resolve("@last")
    link = runs / "ep_7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
    shutil.move(real, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", link)
    assert link.name not in store.ids()
    with pytest.raises(UnusableEnvironment):
        store.resolve(link.name)


def test_a_link_that_takes_the_place_of_the_runs_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    store = Store(tmp_path / "runs" / "episodes")
    os.symlink(tmp_path / "other", tmp_path / "runs")
    with pytest.raises(UnusableEnvironment) as refused:
        sample.new_journal(store.runs_dir)
    assert refused.value.code == "env.runs-dir"
    assert list((tmp_path / "other").iterdir()) == []


def test_a_missing_runs_directory_holds_nothing_and_an_unusable_one_is_refused(
    tmp_path: Path,
) -> None:
    assert Store(tmp_path / "none").ids() == []
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableEnvironment) as refused:
        sample.new_journal(tmp_path / "file")
    assert refused.value.code == "env.runs-dir"


def test_the_overview_of_a_sealed_episode_comes_from_its_summary(runs: Path) -> None:
    row = read_row(Store(runs).resolve("@last"))
    assert (row.status, row.sealed, row.skill, row.duration_ms) == ("ok", True, "notes.draft", 1)
    assert row.tags == {"team": "platform"}


def test_a_log_alone_tells_the_same(runs: Path) -> None:
    directory = Store(runs).resolve("@last~1")
    sealed = read_row(directory)
    for name in ("manifest.json", "summary.json"):
        (directory / name).unlink()
    alone = read_row(directory)
    assert not alone.sealed
    assert alone.shown_status == "unsealed"
    assert alone._replace(sealed=True, duration_ms=sealed.duration_ms, fault="") == sealed


def test_a_run_is_running_while_locked_then_interrupted(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    assert read_row(journal.directory).status == "running"
    journal.close()
    assert read_row(journal.directory).status == "interrupted"


def test_a_paused_run_is_pending(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    persist_pending(journal)
    journal.close()
    assert read_row(journal.directory).status == "pending"


def test_a_run_that_ended_unsealed_shows_its_outcome(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    sample.terminated(journal, "vetoed")
    journal.close()
    assert read_row(journal.directory).status == "vetoed"


def test_an_overview_survives_any_summary(runs: Path) -> None:
    directory = Store(runs).resolve("@last")
    for text in (
        "",
        "[]",
        '{"status":"novel"}',
        '{"status":"ok","skill":3,"tags":[],"duration_ms":"x"}',
    ):
        (directory / "summary.json").write_text(text)
        assert read_row(directory).status == "ok"


RUNS = """
import os, sys
from pathlib import Path

import sample_episode as sample
from cogcli.base.redact import Redactor
from cogcli.base.system import SystemClock, SystemIds
from cogcli.episode.seal import seal
from cogcli.episode.store import Store

begin, go = os.pipe()
for _ in range(20):
    if os.fork() == 0:
        os.close(go)
        os.read(begin, 1)
        ids = SystemIds()
        journal = Store(Path(sys.argv[1])).create(
            f"ep_{ids.ulid()}", trace_id=ids.trace_id(), clock=SystemClock(), ids=ids, redactor=Redactor()
        )
        sample.write_run(journal)
        seal(journal)
        journal.close()
        os.write(1, f"{journal.directory.name}\\n".encode())
        os._exit(0)
os.close(go)
for _ in range(20):
    assert os.wait()[1] == 0
"""
"""Twenty processes that wait for each other, then write a run each; their ids on standard output."""


def test_twenty_processes_at_once_each_get_their_own_episode(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUNS, str(tmp_path / "runs")],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    names = done.stdout.split()
    assert len(set(names)) == 20
    assert sorted(Store(tmp_path / "runs").ids()) == sorted(names)
    for name in names:
        assert is_clean(verify(tmp_path / "runs" / name))
        assert (
            json.loads((tmp_path / "runs" / name / "manifest.json").read_bytes())["episode_id"]
            == name
        )
