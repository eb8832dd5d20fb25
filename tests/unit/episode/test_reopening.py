"""An episode whose process died is continued with: nothing committed is lost, nothing else is believed."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample
from fakes.logged import is_clean
from sample_episode import reopened

from cogcli.base.errors import CogcliError, UnusableEnvironment, UsageError
from cogcli.base.system import FakeClock
from cogcli.episode import reopen as reopen_module
from cogcli.episode.blobs import BlobFolder
from cogcli.episode.log_reader import EventLog
from cogcli.episode.seal import seal
from cogcli.episode.verify.check import verify

pytestmark = pytest.mark.sampled(2)


def refused(directory: Path, kind: type[CogcliError] = UnusableEnvironment) -> CogcliError:
    before = log_of(directory)
    with pytest.raises(kind) as caught:
        reopened(directory)
    assert log_of(directory) == before
    return caught.value


def log_of(directory: Path) -> bytes:
    try:
        fd = os.open(directory / "events.jsonl", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    with open(fd, "rb") as file:
        return file.read()


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The directory of a run that died after its first step."""
    journal = sample.one_step_done(tmp_path)
    journal.close()
    return journal.directory


def append(directory: Path, data: bytes) -> None:
    with open(directory / "events.jsonl", "ab") as file:
        file.write(data)


def test_sequence_chain_and_time_go_on_from_the_last_line(killed: Path) -> None:
    before = log_of(killed)
    journal, events, dropped, _ = reopened(killed)
    assert ([event.seq for event in events], dropped) == ([0, 1, 2, 3], 0)
    sample.terminated(journal)
    seal(journal)
    journal.close()
    assert log_of(killed).startswith(before)
    assert is_clean(verify(killed))
    assert {path.name for path in killed.iterdir()} == {
        "events.jsonl", "learn.jsonl", "summary.json", "state.json", "manifest.json",
    }  # fmt: skip


def test_time_does_not_go_back_before_what_the_log_says(killed: Path) -> None:
    journal, events, _, _ = reopened(killed, clock=FakeClock(1_600_000_000))
    event = sample.terminated(journal)
    journal.close()
    assert (event.timestamp, event.clock) == (events[-1].timestamp, "clamped")


@pytest.mark.sampled(4)
@pytest.mark.slow
def test_a_log_cut_at_any_byte_of_its_last_line_is_recovered(killed: Path) -> None:
    whole = log_of(killed)
    kept = whole[: whole.rindex(b"\n", 0, -1) + 1]
    step = 1 if "COGCLI_LONG_TESTS" in os.environ else 5
    for cut in sorted({*range(len(kept), len(whole), step), len(whole) - 1}):
        for name in ("events.torn", "learn.jsonl"):
            (killed / name).unlink(missing_ok=True)
        (killed / "events.jsonl").write_bytes(whole[:cut])
        journal, events, dropped, _ = reopened(killed)
        journal.close()
        assert dropped == cut - len(kept)
        assert [event for _, event in EventLog(killed)] == events
        assert log_of(killed).startswith(kept)
        assert [event.event_type for event in events][3:] == (["run.recovered"] if dropped else [])
        assert is_clean(verify(killed)), verify(killed)
        if dropped:
            assert (killed / "events.torn").read_bytes() == whole[len(kept) : cut]


def test_the_log_tells_what_was_cut_and_where(killed: Path) -> None:
    size, last = len(log_of(killed)), json.loads(log_of(killed).splitlines()[-1])
    append(killed, b'{"seq":4,"id"')
    journal, events, dropped, _ = reopened(killed)
    journal.close()
    assert dropped == 13
    told = events[-1]
    assert (told.event_type, told.phase, told.caused_by, told.seq) == (
        "run.recovered", "runtime", last["id"], 4,
    )  # fmt: skip
    assert told.payload == {
        "reason": "the process died while it wrote its last line",
        "checkpoint": {"offset": size, "head": told.prev},
        "dropped_bytes": 13,
    }


@pytest.mark.parametrize(
    "tail",
    [b"\0" * 4096, b"\0" * 700_000, b"\0\n", b"garbage\n", b"[]", b"garbage\n{", b"\n", b"{}", b'{"a":1}\n\0'[:-2]],
)  # fmt: skip
def test_a_tail_that_is_no_line_is_cut_and_kept(killed: Path, tail: bytes) -> None:
    before = log_of(killed)
    append(killed, tail)
    journal, _, dropped, _ = reopened(killed)
    journal.close()
    assert dropped == len(tail)
    assert (killed / "events.torn").read_bytes() == tail
    assert log_of(killed).startswith(before)
    assert is_clean(verify(killed))


def test_a_whole_line_without_its_newline_was_not_committed(killed: Path) -> None:
    whole = log_of(killed)
    (killed / "events.jsonl").write_bytes(whole[:-1])
    journal, events, _, _ = reopened(killed)
    journal.close()
    assert [event.event_type for event in events] == [
        "run.started", "plan.created", "step.started", "run.recovered",
    ]  # fmt: skip


def test_torn_tails_of_two_crashes_are_both_kept(killed: Path) -> None:
    append(killed, b"first")
    reopened(killed).journal.close()
    append(killed, b"second")
    journal, events, dropped, _ = reopened(killed, seed=91_000)
    assert dropped == 6
    sample.terminated(journal)
    seal(journal)
    journal.close()
    assert (killed / "events.torn").read_bytes() == b"firstsecond"
    assert [
        event.payload["dropped_bytes"] for event in events if event.event_type == "run.recovered"
    ] == [
        5,
        6,
    ]
    assert is_clean(verify(killed))
    names = [
        entry["name"] for entry in json.loads((killed / "manifest.json").read_bytes())["files"]
    ]
    assert "events.torn" in names


class Killed(Exception):
    """The process died here."""


@pytest.mark.parametrize("step", ["replace", "cut", "append"])
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_during_recovery_loses_no_byte_and_tells_of_each_once(
    killed: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    append(killed, b"torn bytes")
    real = getattr(reopen_module.Journal, step)

    def dying(*arguments: Any, **options: Any) -> None:
        if after:
            real(*arguments, **options)
        raise Killed

    monkeypatch.setattr(reopen_module.Journal, step, dying)
    with pytest.raises(Killed):
        reopened(killed)
    monkeypatch.undo()
    journal, events, _, _ = reopened(killed, seed=91_000)
    journal.close()
    told = [
        event.payload["dropped_bytes"] for event in events if event.event_type == "run.recovered"
    ]
    assert told == [10]
    assert (killed / "events.torn").read_bytes() == b"torn bytes"
    assert is_clean(verify(killed))


def test_a_bad_line_in_the_middle_is_refused_and_named(killed: Path) -> None:
    lines = log_of(killed).splitlines(keepends=True)
    (killed / "events.jsonl").write_bytes(b"".join([lines[0], b"garbage\n", *lines[2:]]))
    error = refused(killed)
    assert (error.code, error.exit_code) == ("episode.unreadable", 3)
    assert "events.jsonl:2" in error.message


def test_a_last_line_that_is_json_but_no_event_is_refused_and_nothing_is_cut(killed: Path) -> None:
    append(killed, b"[]\n")
    before = log_of(killed)
    error = refused(killed)
    assert (Path(error.file).name, error.line) == ("events.jsonl", before.count(b"\n"))
    assert error.next == (f"cogcli verify {killed}",)
    assert log_of(killed) == before


def test_a_log_whose_first_line_is_gone_says_so(killed: Path) -> None:
    (killed / "events.jsonl").write_bytes(log_of(killed).partition(b"\n")[2])
    error = refused(killed)
    assert "first lines are missing" in error.message
    assert (error.expected, error.found) == ("run.started", "plan.created, seq 1")


def test_every_altered_byte_before_the_last_line_is_refused(killed: Path) -> None:
    whole = log_of(killed)
    last = whole.rindex(b"\n", 0, -1)
    for place in range(0, last, 7):
        (killed / "events.jsonl").write_bytes(
            whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        )
        assert refused(killed).code == "episode.unreadable", place


def test_a_sealed_episode_is_refused_with_the_line_that_repeats_it(tmp_path: Path) -> None:
    directory = sample.sealed_episode(tmp_path)
    error = refused(directory, UsageError)
    assert (error.code, error.exit_code) == ("episode.sealed", 2)
    assert error.next == (f"cogcli rerun {directory.name}",)


def test_a_log_without_an_event_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    journal.close()
    for text in (b"", b'{"seq":0'):
        (journal.directory / "events.jsonl").write_bytes(text)
        assert "nothing began before" in refused(journal.directory).message


def test_another_tools_log_is_refused(killed: Path) -> None:
    (killed / "events.jsonl").write_text(
        '{"id":"x","episode_id":"ep_a","phase":"start","payload":{}}\n'
    )
    assert "without a chain" in refused(killed).message


def test_a_missing_blob_is_refused(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal, inputs={"text": "x" * 70_000})
    journal.close()
    for blob in (journal.directory / "blobs").iterdir():
        blob.unlink()
    assert "is not there" in refused(journal.directory).message


@pytest.mark.parametrize(
    "kind", ["link", "fifo", "hard link", "directory", "hard link of state", "extra", "none"]
)
def test_what_is_no_plain_file_of_an_episode_is_refused(
    killed: Path, tmp_path: Path, kind: str
) -> None:
    log, away = killed / "events.jsonl", tmp_path / "elsewhere"
    if kind == "hard link of state":
        away.write_text("{}")
        os.link(away, killed / "state.json")
    elif kind == "extra":
        (killed / "notes.txt").write_text("")
    else:
        log.rename(away)
        make = {
            "link": lambda: log.symlink_to(away),
            "fifo": lambda: os.mkfifo(log),
            "hard link": lambda: os.link(away, log),
            "directory": log.mkdir,
            "none": lambda: None,
        }
        make[kind]()
    with pytest.raises(UnusableEnvironment) as caught:
        reopened(killed)
    assert caught.value.code == "episode.unreadable"


def test_a_linked_directory_is_refused(killed: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(killed)
    with pytest.raises(UnusableEnvironment):
        reopened(link)


def test_whoever_comes_second_is_told_who_holds_the_episode(killed: Path) -> None:
    first = reopened(killed)
    with pytest.raises(UnusableEnvironment) as caught:
        reopened(killed)
    assert caught.value.code == "episode.busy"
    assert f"process {os.getpid()} on {os.uname().nodename}" in caught.value.message
    first.journal.close()
    reopened(killed).journal.close()


def test_a_reader_that_looks_at_the_lock_is_waited_for(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = os.open(killed / "events.jsonl", os.O_RDONLY)
    fcntl.flock(reader, fcntl.LOCK_SH)
    monkeypatch.setattr(reopen_module.time, "sleep", lambda _: os.close(reader))
    reopened(killed).journal.close()


def test_the_lock_of_a_process_that_was_killed_is_free(killed: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from cogcli.base.redact import Redactor\n"
        "from cogcli.base.system import SystemClock, SystemIds; from cogcli.episode.store import Store\n"
        "d = Path(sys.argv[1]); r = Store(d.parent).reopen(d, clock=SystemClock(), ids=SystemIds(),"
        " redactor=Redactor())\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(killed)], check=False)
    assert done.returncode == -9
    assert (killed / ".ballast").exists()
    reopened(killed).journal.close()
    assert not (killed / ".ballast").exists()


def test_a_file_system_without_locks_is_refused(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", failing)
    error = refused(killed)
    assert error.code == "env.runs-dir"
    assert "cannot be locked: No locks available" in error.message


def test_what_was_never_put_in_place_is_removed(killed: Path) -> None:
    (killed / ".tmp-0123456789abcdef").write_text("half")
    (killed / "blobs").mkdir()
    (killed / "blobs" / ".tmp-0123456789abcdef").write_text("half")
    reopened(killed).journal.close()
    assert not list(killed.rglob(".tmp-*"))


def test_an_episode_that_cannot_be_written_is_refused(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def read_only(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(errno.EROFS, "Read-only file system")
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(UnusableEnvironment) as caught:
        reopened(killed)
    assert "cannot be written: Read-only file system" in caught.value.message


def test_a_disk_too_full_for_the_end_of_the_run_is_refused_before_anything_is_cut(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(killed, b"torn")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert refused(killed).code == "env.disk"
    assert not (killed / "events.torn").exists()
    monkeypatch.undo()
    reopened(killed).journal.close()


def test_a_blob_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read again, it could be refused just then, and its reference taken for its value."""
    journal = sample.new_journal(tmp_path)
    sample.started(journal, inputs={"text": "x" * 70_000})
    journal.close()
    real, read = BlobFolder.get, []

    def get(self: BlobFolder, digest: str) -> bytes | None:
        read.append(digest)
        return real(self, digest) if read.count(digest) == 1 else None

    monkeypatch.setattr(BlobFolder, "get", get)
    again, events, _, _ = reopened(journal.directory)
    again.close()
    assert len(read) == 1
    assert events[0].payload["inputs"] == {"text": "x" * 70_000}
