"""`--keep`: episodes of a batch in folders or in archives, and lines that run without a folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from counted import RUN, batch_folder, effects, make_counted, outcomes, rows, write_lines

from cogcli.episode.archive.reader import Archive
from cogcli.episode.memory_folder import HAS_FILES_IN_MEMORY
from cogcli.scale import keeping
from cogcli.scale.claim import ClaimState, claim
from cogcli.scale.closed_lines import is_line_closed

ARCHIVED = (*RUN, "--keep", "archived")
in_memory = pytest.mark.skipif(not HAS_FILES_IN_MEMORY, reason="no files in memory here")


@pytest.fixture
def pure(project: Any) -> Any:
    """A project whose skill declares that it has no effect."""
    return make_counted(project, "none")


def ledger(project: Any) -> list[dict[str, Any]]:
    """The entries of the ledger."""
    text = (batch_folder(project) / "ledger.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def archives(project: Any) -> list[Path]:
    return sorted((batch_folder(project) / "archives").glob("*.cogarchive"))


def archived(project: Any) -> list[str]:
    """The ids of the archived episodes, in order."""
    found: list[str] = []
    for path in archives(project):
        with Archive.open(path) as archive:
            found += archive.episode_ids()
    return sorted(found)


def folders(project: Any) -> set[str]:
    """The names of the folders of episodes."""
    return {path.name for path in (project.root / ".cogcli/episodes").glob("ep_*")}


# -- lines without an effect -------------------------------------------------------------------------------------------


@in_memory
def test_a_line_without_an_effect_runs_without_a_folder_and_reads_as_any_other(pure: Any) -> None:
    write_lines(pure, ["a", "fail:b"])
    pure.run(*ARCHIVED).assert_exit(1)
    assert folders(pure) == set()
    assert archived(pure) == [row["episode_id"] for row in rows(pure)]
    assert [entry["at"].partition(":")[0] for entry in ledger(pure)] == ["000001.cogarchive"] * 2
    batch = batch_folder(pure).name
    pure.run("verify", batch).assert_ok()
    pure.run("replay", f"{batch}/1").assert_ok()
    assert "demo.count" in pure.run("trace", f"{batch}/1").assert_ok().out
    assert '"A"' in pure.run("state", "show", f"{batch}/1").assert_ok().out
    assert "call.server-error" in pure.run("report", f"{batch}/2", "-o", "-").assert_ok().out
    listed = pure.run("ls", "--batch", batch, "--json").assert_ok().json["episodes"]
    assert [each["episode_id"] for each in listed][::-1] == archived(pure)
    summary = json.loads((pure.root / "out.jsonl.summary.json").read_text())
    (named,) = summary["archives"]
    assert named.startswith("000001.cogarchive sha256:")


@in_memory
def test_an_episode_in_memory_has_the_files_of_one_in_a_folder(pure: Any) -> None:
    write_lines(pure, ["a"])
    pure.run(*ARCHIVED).assert_ok()
    pure.run("episodes", "extract", batch_folder(pure).name).assert_ok()
    kinds = [json.loads(line)["event_type"] for line in events_of(pure.episode)]
    names = sorted(path.name for path in pure.episode.iterdir())
    pure.run(*RUN[:4], "-o", "other.jsonl", "--keep", "folders").assert_ok()
    (other,) = (
        each for each in pure.episodes if each.name == rows(pure, "other.jsonl")[0]["episode_id"]
    )
    assert sorted(path.name for path in other.iterdir()) == names
    assert [json.loads(line)["event_type"] for line in events_of(other)] == kinds


def events_of(episode: Path) -> list[str]:
    return (episode / "events.jsonl").read_text().splitlines()


@pytest.mark.parametrize("effect", ["effect", "idempotent", "unknown"])
def test_a_line_that_may_have_an_effect_has_a_folder_while_it_runs(
    project: Any, effect: str
) -> None:
    make_counted(project, effect)
    write_lines(project, ["a", "fail:b"])
    project.run(*ARCHIVED).assert_exit(1)
    assert folders(project) == set()
    assert [entry["kind"] for entry in ledger(project)] == ["ended", "ended", "moved", "moved"]
    assert archived(project) == [row["episode_id"] for row in rows(project)]
    batch = batch_folder(project)
    assert (batch / "closed").read_text() == "2\n"
    project.run("verify", batch.name).assert_ok()
    project.run("trace", f"{batch.name}/2").assert_ok()


@in_memory
def test_a_line_that_waits_gets_its_folder_and_is_archived_after_its_end(project: Any) -> None:
    make_counted(project, "none", more="safety: {requires_confirmation: true}\n")
    write_lines(project, ["a"])
    project.run(*ARCHIVED).assert_exit(5)
    batch = batch_folder(project).name
    assert len(folders(project)) == 1
    assert ledger(project)[0]["status"] == "pending"
    project.run("resume", f"{batch}/1", "--approve", "demo.count").assert_ok()
    project.run(*ARCHIVED).assert_ok()
    assert folders(project) == set()
    assert outcomes(project) == [(1, "ok")]
    assert effects(project) == ["a"]
    project.run("verify", batch).assert_ok()


@in_memory
@pytest.mark.slow
def test_a_line_without_an_effect_that_is_killed_runs_again(pure: Any) -> None:
    write_lines(pure, ["a", "b", "c"])
    pure.write("die-after", "b")
    pure.installed(*ARCHIVED).assert_exit(-9)
    assert folders(pure) == set()
    pure.installed(*ARCHIVED).assert_ok()
    assert effects(pure) == ["a", "b", "b", "c"]
    assert outcomes(pure) == [(1, "ok"), (2, "ok"), (3, "ok")]
    pure.run("verify", batch_folder(pure).name).assert_ok()


@in_memory
def test_an_archived_line_that_the_ledger_lacks_is_taken_over(pure: Any) -> None:
    write_lines(pure, ["a", "b"])
    pure.run(*ARCHIVED).assert_ok()
    before = rows(pure)
    (batch_folder(pure) / "ledger.jsonl").write_bytes(b"")
    (pure.root / "out.jsonl").unlink()
    pure.run(*ARCHIVED).assert_ok()
    assert rows(pure) == before
    assert effects(pure) == ["a", "b"]
    pure.run("verify", batch_folder(pure).name).assert_ok()


@pytest.mark.sampled(6)
@in_memory
@pytest.mark.slow
def test_each_worker_writes_an_archive_of_its_own(pure: Any) -> None:
    write_lines(pure, [f"t{number}" for number in range(12)])
    pure.started(*ARCHIVED, "--jobs", "2").assert_ok()
    assert 1 <= len(archives(pure)) <= 2
    for path in archives(pure):
        with Archive.open(path) as archive:
            assert archive.contents.indexed
    assert len(archived(pure)) == 12
    pure.run("verify", batch_folder(pure).name).assert_ok()


# -- which are kept in folders -----------------------------------------------------------------------------------------


def test_up_to_a_thousand_lines_have_folders(pure: Any) -> None:
    write_lines(pure, ["a"])
    pure.run(*RUN).assert_ok()
    assert folders(pure) == {rows(pure)[0]["episode_id"]}
    assert not archives(pure)
    assert keeping.uses_archives("auto", 1_001)
    assert not keeping.uses_archives("auto", 1_000)
    assert not keeping.uses_archives("folders", 10**9)
    assert keeping.uses_archives("archived", 1)


@pytest.mark.parametrize("effect", ["none", "effect"])
def test_above_that_the_first_lines_that_fail_keep_folders(
    project: Any, effect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "MOST_FOLDERS", 2)
    make_counted(project, effect)
    write_lines(project, ["a", "fail:b", "fail:c", "fail:d"])
    project.run(*RUN).assert_exit(1)
    found = [row["episode_id"] for row in rows(project)]
    assert folders(project) == {found[1], found[2]}
    assert {found[0], found[3]} <= set(archived(project))
    project.run("verify", batch_folder(project).name).assert_ok()


# -- moves -------------------------------------------------------------------------------------------------------------


def test_a_late_process_finds_no_closed_line_free(counting: Any) -> None:
    write_lines(counting, ["a"])
    counting.run(*ARCHIVED).assert_ok()
    runs, (row,) = counting.root / ".cogcli/episodes", rows(counting)
    batch = batch_folder(counting)

    def late() -> ClaimState:
        return claim(runs, row["episode_id"], lambda: is_line_closed(batch, 1)).state

    assert late() is ClaimState.SEALED
    for path in archives(counting):
        path.unlink()
    assert late() is ClaimState.CLOSED
    assert folders(counting) == set()
    (batch / "closed").write_text("what is this?")
    assert late() is ClaimState.CLOSED
    assert not is_line_closed(batch / "none", 1)


def test_a_line_that_ended_and_was_removed_does_not_run_twice(counting: Any) -> None:
    write_lines(counting, ["a"])
    counting.run(*ARCHIVED).assert_ok()
    for path in archives(counting):
        path.unlink()
    (batch_folder(counting) / "ledger.jsonl").write_bytes(b"")
    (counting.root / "out.jsonl").unlink()
    counting.run(*ARCHIVED).assert_exit(1)
    assert effects(counting) == ["a"]
    (row,) = rows(counting)
    assert row["error"]["code"] == "episode.unreadable"
    assert "does not run twice" in row["error"]["message"]


def test_a_folder_that_is_not_what_its_archive_has_stays(counting: Any) -> None:
    write_lines(counting, ["a"])
    counting.run(*RUN).assert_ok()
    episode = counting.episode
    counting.run("episodes", "archive", "--all").assert_ok()
    counting.run("episodes", "extract", episode.name).assert_ok()
    (episode / "learn.jsonl").write_text("{}\n")
    (counting.root / "out.jsonl").unlink()
    counting.run(*ARCHIVED).assert_ok()
    assert folders(counting) == {episode.name}


def test_closed_lines_of_a_shard_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "closed-2-of-2").write_text("4\n")
    (tmp_path / "closed-1-of-0").write_text("9\n")
    found = [line for line in range(1, 8) if is_line_closed(tmp_path, line)]
    assert found == [2, 4]


class Log:
    """Records what a coordinator does, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def sync(self, archives: Iterable[str]) -> None:
        self.calls.append(f"sync {' '.join(sorted(archives))}")

    def prepare_episode(self, entry: Any) -> None:
        self.calls.append(f"place {entry.line}")

    def move(self) -> None: ...

    def append(self, entry: Any) -> None:
        self.calls.append(f"entry {entry.line}")

    def add(self, line: int, row: bytes) -> None:
        self.calls.append(f"row {line}")

    def may_send(self, line: int) -> bool:
        return True


def test_no_entry_is_written_before_its_archive_is_on_disk() -> None:
    from cogcli.scale.coordinator import Coordinator, StopSignals
    from cogcli.scale.executor import LineEnded
    from cogcli.scale.identity import LineTask
    from cogcli.scale.in_process import InProcessExecutor
    from cogcli.scale.line_result import unsealed_result
    from cogcli.scale.totals import Totals

    def run_line(task: LineTask) -> LineEnded:
        result = unsealed_result(task, None, "ok", 0, None)
        at = "folder" if task.line == 3 else f"00000{task.line}.cogarchive:9"
        return LineEnded(task, result.placed(at))

    class Quiet:
        def begin(self, lines: int, ended: int) -> None: ...
        def update(self, totals: Totals, *, force: bool = False) -> None: ...
        def note(self, text: str) -> None: ...

    log = Log()
    executor = InProcessExecutor(run_line)
    coordinator = Coordinator(
        executor, log, log, Totals(), Quiet(), StopSignals(), keeper=log, clock=lambda: 0.0
    )
    coordinator.run(LineTask(line, 1, b"{}") for line in (1, 2, 3))
    executor.close()
    written = ["place 3", "entry 3", "row 3"]
    synced = ["sync 000001.cogarchive 000002.cogarchive"]
    later = [f"{word} {line}" for line in (1, 2) for word in ("place", "entry", "row")]
    assert log.calls == [*written, *synced, *later]


def test_a_worker_refuses_an_archive_that_cannot_be_written(
    pure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cogcli.episode.archive import writer

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    write_lines(pure, ["a"])
    with monkeypatch.context() as patched:
        patched.setattr(writer, "write_all", refuse)
        result = pure.run(*ARCHIVED, "--json").assert_exit(3)
        assert result.json["error"]["code"] == "env.disk"
    pure.run(*ARCHIVED).assert_ok()
