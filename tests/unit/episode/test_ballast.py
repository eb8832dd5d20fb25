"""A full disk still gets its terminal event, in the room kept for it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample
from fakes.logged import is_clean

from cogcli.base.errors import UnusableEnvironment
from cogcli.episode import folder as folder_module
from cogcli.episode import journal as journal_module
from cogcli.episode.disk_reserve import SIZE, describe_holder
from cogcli.episode.document_bytes import milliseconds_between
from cogcli.episode.folder import Folder
from cogcli.episode.journal import Journal
from cogcli.episode.listing.episode_row import read_row
from cogcli.episode.log_reader import EventLog
from cogcli.episode.seal import persist_pending, seal
from cogcli.episode.verify.check import verify
from cogcli.run.results import close_after_error

Full = Callable[[Path], None]


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Full:
    """Fills the disk of an episode: no byte more fits while its ballast is there."""
    real = os.write

    def fill(directory: Path) -> None:
        def write(fd: int, data: bytes) -> int:
            if (directory / ".ballast").exists():
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(fd, data)

        monkeypatch.setattr(folder_module.os, "write", write)

    return fill


def refused(act: Callable[[], Any]) -> UnusableEnvironment:
    with pytest.raises(UnusableEnvironment) as caught:
        act()
    assert caught.value.code == "env.disk"
    return caught.value


def begun(tmp_path: Path) -> Journal:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    sample.planned(journal, ("read", "detect", "Read"))
    return journal


def test_room_is_kept_while_the_run_is_alive(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    ballast = journal.directory / ".ballast"
    assert ballast.stat().st_blocks * 512 >= SIZE
    assert ballast.stat().st_mode & 0o777 == 0o600
    assert is_clean(verify(journal.directory))
    persist_pending(journal)
    journal.close()
    assert not ballast.exists()


def test_a_sealed_episode_holds_no_ballast(tmp_path: Path) -> None:
    directory = sample.sealed_episode(tmp_path)
    assert not (directory / ".ballast").exists()
    (directory / ".ballast").write_bytes(b"")
    assert {finding.code for finding in verify(directory) if finding.severity == "error"} == {
        "file.extra"
    }


def test_a_run_that_a_full_disk_stops_ends_and_is_sealed(tmp_path: Path, full: Full) -> None:
    journal = begun(tmp_path)
    full(journal.directory)
    refused(lambda: sample.began(journal, "read"))
    refused(lambda: sample.began(journal, "read"))
    close_after_error(journal)
    journal.close()
    assert is_clean(verify(journal.directory))
    assert (read_row(journal.directory).status, read_row(journal.directory).sealed) == (
        "error",
        True,
    )
    summary = json.loads((journal.directory / "summary.json").read_bytes())
    assert (summary["status_reason"], summary["error"]["code"]) == ("env.disk", "env.disk")
    events = [event for _, event in EventLog(journal.directory)]
    ended = next(event for event in events if event.event_type == "run.terminated")
    spent = milliseconds_between(events[0].timestamp, events[1].timestamp)
    assert ended.metrics == {
        "started_at": events[0].timestamp,
        "completed_at": events[1].timestamp,
        "duration_ms": spent,
    }
    assert summary["duration_ms"] == spent


def test_a_run_with_an_effect_in_doubt_waits_and_is_not_sealed(tmp_path: Path, full: Full) -> None:
    journal = begun(tmp_path)
    intent = sample.began(journal, "read", side_effects="effect")
    full(journal.directory)
    refused(lambda: sample.ended(journal, "read", intent))
    waiting = close_after_error(journal)
    journal.close()
    assert waiting is not None
    assert [event.id for event in waiting.open_doubts] == [intent.id]
    assert is_clean(verify(journal.directory))
    assert (read_row(journal.directory).status, read_row(journal.directory).sealed) == (
        "pending",
        False,
    )
    kinds = [event.event_type for _, event in EventLog(journal.directory)]
    assert kinds[-2:] == ["run.paused", "run.state_projection"]


def test_where_not_even_the_pause_fits_the_log_reads_as_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = begun(tmp_path)
    sample.began(journal, "read", side_effects="effect")

    def write(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(folder_module.os, "write", write)
    refused(lambda: sample.began(journal, "other"))
    assert close_after_error(journal) is not None
    journal.close()
    monkeypatch.undo()
    assert (read_row(journal.directory).status, read_row(journal.directory).sealed) == (
        "interrupted",
        False,
    )


def test_the_terminal_event_itself_is_written_where_the_ballast_was(
    tmp_path: Path, full: Full
) -> None:
    journal = begun(tmp_path)
    full(journal.directory)
    event = sample.terminated(journal)
    journal.close()
    assert event.seq == 2
    assert [seen.seq for _, seen in EventLog(journal.directory)] == [0, 1, 2]


def test_only_the_root_run_ends_in_the_room_kept_for_it(tmp_path: Path, full: Full) -> None:
    journal = begun(tmp_path)
    full(journal.directory)
    ended = sample.raw_event(sample.CHILD, "run.terminated", "terminate", {})
    refused(lambda: journal.append(ended))
    assert (journal.directory / ".ballast").exists()
    sample.terminated(journal)
    journal.close()


def test_a_large_member_that_finds_no_room_ends_the_log(tmp_path: Path, full: Full) -> None:
    journal = begun(tmp_path)
    full(journal.directory)
    refused(lambda: sample.began(journal, "read", input={"text": "x" * 70_000}))
    refused(lambda: sample.began(journal, "read"))
    close_after_error(journal)
    journal.close()
    assert is_clean(verify(journal.directory))


@pytest.mark.parametrize(
    ("place", "name", "number"),
    [(folder_module.os, "write", errno.EIO), (journal_module, "fdatasync", errno.ENOSPC)],
)
def test_no_event_follows_a_broken_disk_or_a_failed_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, number: int
) -> None:
    def failing(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    journal = begun(tmp_path)
    monkeypatch.setattr(place, name, failing)
    paused = sample.raw_event(sample.RUN, "run.paused", "runtime", {"reason": "r"})
    refused(lambda: journal.append(paused, durable=True))
    monkeypatch.undo()
    size = (journal.directory / "events.jsonl").stat().st_size
    close_after_error(journal)
    refused(lambda: sample.terminated(journal))
    journal.close()
    assert (journal.directory / "events.jsonl").stat().st_size == size
    assert is_clean(verify(journal.directory))


def test_what_cannot_be_cut_off_again_is_never_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = begun(tmp_path)
    real = os.write

    def write(fd: int, data: bytes) -> int:
        if len(data) < 60:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, bytes(data)[: len(data) - 50])

    def truncate(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(folder_module.os, "write", write)
    monkeypatch.setattr(journal_module.os, "ftruncate", truncate)
    refused(lambda: sample.began(journal, "read"))
    monkeypatch.undo()
    refused(lambda: sample.terminated(journal))
    journal.close()
    assert is_clean(verify(journal.directory))


def test_an_episode_in_which_nothing_was_committed_is_taken_back(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    journal.put_blob(sample.SPECS)
    close_after_error(journal)
    journal.close()
    assert list(tmp_path.iterdir()) == []


def test_what_was_committed_stays_whatever_stopped_the_run(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    close_after_error(journal)
    journal.close()
    assert read_row(journal.directory).status == "interrupted"


def test_a_disk_without_room_for_it_gets_no_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reserve(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", reserve)
    with pytest.raises(UnusableEnvironment) as caught:
        sample.new_journal(tmp_path)
    assert caught.value.code == "env.runs-dir"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EFBIG, errno.EINVAL])
def test_a_file_system_that_keeps_no_room_goes_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def reserve(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", reserve)
    assert is_clean(verify(sample.sealed_episode(tmp_path)))


def test_what_the_ballast_says_of_its_holder_is_data(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as folder:
        assert describe_holder(folder) == "another process"
        (tmp_path / ".ballast").write_bytes(b"pid 12 on host.example\n\0\0")
        assert describe_holder(folder) == "process 12 on host.example"
        for text in (b"pid 12 on \x1b[31m\n", b"", b"pid x on y\n", b"pid 12 on y"):
            (tmp_path / ".ballast").write_bytes(text)
            assert describe_holder(folder) == "another process"


def test_a_ballast_that_cannot_be_removed_leaves_the_episode_unsealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = sample.new_journal(tmp_path)
    sample.write_run(journal)

    def failing(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "unlink", failing)
    assert ".ballast" in refused(lambda: seal(journal)).message
    monkeypatch.undo()
    seal(journal)
    journal.close()
    assert {finding.code for finding in verify(journal.directory)} == {"signature.none"}
