"""`episodes archive`, `episodes extract`, and `gc` over archives, with the installed command."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.project import Project

from cogcli.app import archive_episodes, gc
from cogcli.app.archive_episodes import EpisodeArchiver
from cogcli.app.settings import Settings
from cogcli.base.file_lock import lock
from cogcli.episode.archive import transfer, writer
from cogcli.episode.archive.writer import ArchiveSeries, ArchiveWriter


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Three finished runs."""
    made = Project(tmp_path).demo()
    made.run("run", "demo.review", "-p", "text=a").assert_exit(1)
    for text in ("one", "two"):
        made.run("run", "demo.greet", "-p", f"text={text}").assert_ok()
    return made


def files_of(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def runs_dir(project: Project) -> Path:
    return project.root / ".cogcli/episodes"


def archives(project: Project) -> list[Path]:
    return sorted(runs_dir(project).glob(".archives/*"))


@pytest.mark.sampled(6)
def test_folders_come_back_byte_by_byte(project: Project) -> None:
    before = {directory.name: files_of(directory) for directory in project.episodes}
    names = list(before)
    first = project.started("episodes", "archive", names[0], names[1]).assert_ok()
    assert first.out.splitlines() == [
        f".cogcli/episodes/.archives/000001.cogarchive/{name}" for name in names[:2]
    ]
    assert [directory.name for directory in project.episodes] == names[2:]
    rest = project.run("episodes", "archive", "--all", "--json").assert_ok().json["archived"]
    assert [row["episode_id"] for row in rest["episodes"]] == names[2:]
    assert project.episodes == []
    assert len(archives(project)) == 1
    project.started("episodes", "extract", *names).assert_ok()
    assert {directory.name: files_of(directory) for directory in project.episodes} == before
    project.run("verify", "--all").assert_ok()
    assert sorted(path.name for path in runs_dir(project).iterdir()) == sorted(
        [".archives", *names]
    )


def test_an_extracted_episode_is_archived_again_without_a_second_copy(project: Project) -> None:
    name = project.episode.name
    project.run("episodes", "archive", name).assert_ok()
    size = archives(project)[0].stat().st_size
    project.run("episodes", "extract", name).assert_ok()
    project.run("resume", name).assert_exit(2)
    project.run("episodes", "archive", name).assert_ok()
    assert archives(project)[0].stat().st_size == size
    assert name not in [directory.name for directory in project.episodes]
    # Both do nothing where nothing is to be done.
    project.run("episodes", "archive", name).assert_ok()
    other = project.episode.name
    assert (
        project.run("episodes", "extract", other).assert_ok().out == f".cogcli/episodes/{other}\n"
    )


def test_a_mailed_archive_is_extracted_elsewhere(project: Project, tmp_path: Path) -> None:
    before = {directory.name: files_of(directory) for directory in project.episodes}
    project.run("episodes", "archive", "--all").assert_ok()
    mailed = tmp_path / "mailed.cogarchive"
    shutil.move(archives(project)[0], mailed)
    project.run("episodes", "extract", str(mailed), "--to", str(tmp_path / "here")).assert_ok()
    assert {path.name: files_of(path) for path in (tmp_path / "here").iterdir()} == before
    again = project.run("episodes", "extract", str(mailed), "--to", str(tmp_path / "here"))
    again.assert_exit(2)
    assert "output.exists" in again.err


def test_what_is_not_sealed_or_does_not_verify_keeps_its_folder(project: Project) -> None:
    names = [directory.name for directory in project.episodes]
    state = project.episode / "state.json"
    state.write_bytes(state.read_bytes() + b" ")
    (project.episodes[1] / "manifest.json").unlink()
    (project.episodes[2] / "notes.txt").write_text("mine")
    before = {directory.name: files_of(directory) for directory in project.episodes}
    found = project.run("episodes", "archive", *names, "--json").assert_exit(3).json
    assert [row["error"] for row in found["archived"]["episodes"]] == ["archive.refused"] * 3
    assert {directory.name: files_of(directory) for directory in project.episodes} == before
    assert archives(project) == []
    alone = project.run("episodes", "archive", names[0]).assert_exit(3)
    assert "state.json" in alone.err


def test_another_episode_under_an_archived_id_is_kept(project: Project) -> None:
    name = project.episode.name
    project.run("episodes", "archive", name).assert_ok()
    project.run("episodes", "extract", name).assert_ok()
    (project.episode / "checkpoint.jsonl").unlink()
    refused = project.run("episodes", "archive", name).assert_exit(3)
    assert "another episode under this id" in refused.err
    assert project.episode.name == name


def test_usage(project: Project) -> None:
    project.run("episodes", "archive").assert_exit(2)
    project.run("episodes", "archive", "@last", "--all").assert_exit(2)
    project.run("episodes", "extract").assert_exit(2)
    project.run("episodes", "extract", "ep_none").assert_exit(2)
    project.run("episodes", "extract", "ba_01JD8").assert_exit(2)


class Killed(BaseException):
    """The process ended here."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("place", ["append", "sync", "close", "remove"])
def test_a_kill_loses_no_episode(
    project: Project, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The same command again ends with the same files."""
    before = {directory.name: files_of(directory) for directory in project.episodes}
    settings = own_settings(project, monkeypatch)

    def kill(*owner: object, **_: object) -> None:
        if place == "close" and isinstance(owner[0], ArchiveWriter):
            os.close(owner[0]._fd)  # the end of a process closes its files
            owner[0]._folder.close()
        raise Killed

    owners = {"append": ArchiveSeries, "sync": ArchiveWriter, "close": ArchiveWriter}
    with monkeypatch.context() as killed:
        if place == "remove":
            killed.setattr(archive_episodes, "remove_archived_folder", kill)
        else:
            killed.setattr(owners[place], "append_folder" if place == "append" else place, kill)
        archiver = EpisodeArchiver(settings, lambda batch, episode: True)
        with pytest.raises(Killed):
            list(archiver.archive(project.episodes))
    project.run("verify", "--all").assert_ok()
    assert len(project.run("ls", "--json").json["episodes"]) == 3
    project.run("episodes", "archive", "--all").assert_ok()
    assert project.episodes == []
    project.run("episodes", "extract", *before).assert_ok()
    assert {directory.name: files_of(directory) for directory in project.episodes} == before


def own_settings(project: Project, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of the commands of a project."""
    monkeypatch.setenv("HOME", str(project.home))
    return Settings({}, project.env, base=str(project.root))


def test_no_folder_goes_before_its_record_is_on_disk(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = own_settings(project, monkeypatch)
    done: list[str] = []

    def noted(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def call(*args: Any, **options: Any) -> Any:
            done.append(name)
            return real(*args, **options)

        monkeypatch.setattr(owner, name, call)

    noted(ArchiveWriter, "append")
    noted(writer, "fdatasync")
    noted(archive_episodes, "remove_archived_folder")
    list(EpisodeArchiver(settings, lambda batch, episode: True).archive(project.episodes))
    removed = "remove_archived_folder"
    assert done[:7] == [*["append"] * 3, "fdatasync", *[removed] * 3]
    assert project.episodes == []


def test_a_folder_that_its_record_does_not_equal_is_kept(project: Project) -> None:
    name = project.episode.name
    project.run("episodes", "archive", name).assert_ok()
    archive = archives(project)[0]
    project.run("episodes", "extract", name).assert_ok()
    (project.episode / "checkpoint.jsonl").unlink()
    assert not transfer.remove_archived_folder(project.episode, archive)
    assert project.episode.name == name
    project.run("episodes", "extract", name, "--to", "copies").assert_ok()
    shutil.copy(project.root / "copies" / name / "checkpoint.jsonl", project.episode)
    assert transfer.remove_archived_folder(project.episode, archive)


def test_what_changes_after_the_plan_of_gc_keeps_an_archive(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = own_settings(project, monkeypatch)
    first, second, third = (directory.name for directory in project.episodes)
    project.run("episodes", "archive", second, third).assert_ok()
    wanted = gc.parse_criteria(settings, keep=1, older_than=None, outcome=None, expired=False)
    planned = gc.plan_sweep(settings, wanted)
    assert [row.id for row in planned.rows] == [second, third]
    project.run("gc", "--pin", third).assert_ok()
    assert gc.remove_planned_episodes(settings, wanted, planned).rows == []
    project.run("gc", "--unpin", third).assert_ok()
    project.run("episodes", "archive", first).assert_ok()  # into the same archive
    assert gc.remove_planned_episodes(settings, wanted, planned).rows == []
    assert len(archives(project)) == 1
    project.run("verify", "--all").assert_ok()


def test_a_folder_half_written_is_never_seen(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = project.episode.name
    project.run("episodes", "archive", name).assert_ok()
    leftover = runs_dir(project) / ".extract-0123456789abcdef"
    leftover.mkdir()
    (leftover / "events.jsonl").write_bytes(b"{}")
    project.run("verify", "--all").assert_ok()
    project.run("episodes", "extract", name).assert_ok()
    assert not leftover.exists()
    assert transfer.is_archived_as(project.episode, archives(project)[0])


def test_gc_removes_whole_archives(project: Project) -> None:
    names = [directory.name for directory in project.episodes]
    project.run("episodes", "archive", *names[1:]).assert_ok()
    kept = project.run("gc", "--keep", "2", "--yes", "--json").assert_ok().json["removed"]
    assert (kept["episodes"], kept["kept"]) == ([], {"newest": 2, "archived": 1})
    project.run("gc", "--pin", names[1]).assert_ok()
    kept = project.run("gc", "--keep", "1", "--yes", "--json").assert_ok().json["removed"]
    assert kept["kept"] == {"newest": 1, "pinned": 1, "archived": 1}
    project.run("gc", "--unpin", names[1]).assert_ok()
    planned = project.run("gc", "--keep", "1", "--dry-run", "--json").assert_ok().json["removed"]
    assert planned["episodes"] == names[1:]
    assert planned["bytes"] == archives(project)[0].stat().st_size
    removed = project.started("gc", "--keep", "1", "--yes", "--json").assert_ok().json["removed"]
    assert removed["episodes"] == names[1:]
    assert archives(project) == []
    assert [directory.name for directory in project.episodes] == names[:1]


def test_gc_leaves_an_archive_that_is_being_written(project: Project) -> None:
    project.run("episodes", "archive", "--all").assert_ok()
    with ArchiveWriter(archives(project)[0]):
        kept = project.started("gc", "--keep", "0", "--yes", "--json").assert_ok().json["removed"]
    assert kept["episodes"] == []
    assert len(archives(project)) == 1


def test_lines_of_a_batch_are_archived_once_their_end_is_recorded(project: Project) -> None:
    project.write("in.jsonl", '{"text":"a"}\n{"text":"b"}\n')
    project.run("run", "demo.greet", "--batch", "in.jsonl", "-o", "out.jsonl").assert_ok()
    batch = next((runs_dir(project) / ".batches").iterdir())
    lines = [directory.name for directory in project.episodes[:2]]
    ledger = batch / "ledger.jsonl"
    recorded = ledger.read_bytes()
    ledger.write_bytes(recorded.splitlines(keepends=True)[0])
    found = project.run("episodes", "archive", batch.name, "--json").assert_exit(3).json
    outcomes = [row.get("error") for row in found["archived"]["episodes"]]
    assert sorted(outcomes, key=str) == [None, "archive.refused"]
    ledger.write_bytes(recorded)
    with ledger.open("ab") as running:
        lock(running.fileno(), wait=False)
        project.started("episodes", "archive", batch.name).assert_exit(3)
    project.run("episodes", "archive", batch.name).assert_ok()
    assert sorted(path.name for path in (batch / "archives").iterdir()) == ["000001.cogarchive"]
    assert not {directory.name for directory in project.episodes} & set(lines)
    project.run("trace", f"{batch.name}/2").assert_ok()
    project.run("verify", batch.name).assert_ok()
    project.run("episodes", "extract", batch.name).assert_ok()
    assert {directory.name for directory in project.episodes} >= set(lines)
