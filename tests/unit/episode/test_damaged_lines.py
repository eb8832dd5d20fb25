"""A damaged line of an unfinished log is never taken for truth, and the newest one can be moved away.

`COGCLI_LONG_TESTS=1` tries every bit; else some.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample
from fakes.logged import is_clean
from sample_episode import reopened

from cogcli.base.errors import UnusableEnvironment
from cogcli.episode import reopen as reopen_module
from cogcli.episode.listing.episode_row import read_row
from cogcli.episode.log_reader import EventLog
from cogcli.episode.seal import seal
from cogcli.episode.verify.check import verify

LONG = os.environ.get("COGCLI_LONG_TESTS") == "1"
KEPT = Path(__file__).parents[2] / "episodes"


def log_of(directory: Path) -> bytes:
    return (directory / "events.jsonl").read_bytes()


def write(directory: Path, log: bytes) -> None:
    (directory / "events.torn").unlink(missing_ok=True)
    (directory / "events.jsonl").write_bytes(log)


def events_of(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log_of(directory).splitlines()]


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A run that died after the intent of its second call."""
    journal = sample.one_step_done(tmp_path)
    sample.began(journal, "write", input={"note": "JJ**"})
    journal.close()
    return journal.directory


def altered(log: bytes, start: int, end: int, *, some: int = 1) -> Iterator[tuple[int, bytes]]:
    """The log with one bit altered: each between two places, or one in so many."""
    bits = range(start * 8, end * 8, 1 if LONG else some)
    for bit in bits:
        place, mask = bit // 8, 1 << bit % 8
        yield place, log[:place] + bytes([log[place] ^ mask]) + log[place + 1 :]


def last_line(log: bytes) -> int:
    return log.rindex(b"\n", 0, -1) + 1


def test_no_altered_bit_of_an_unfinished_log_is_taken_for_truth(begun: Path) -> None:
    whole = log_of(begun)
    known = [event for _, event in EventLog(begun)]
    for place, log in altered(whole, 0, len(whole), some=331):
        write(begun, log)
        with pytest.raises(UnusableEnvironment) as caught:
            reopened(begun)
        assert caught.value.exit_code == 3
        assert log_of(begun) == log
        read = [event for _, event in EventLog(begun)]
        assert read == known[: whole.count(b"\n", 0, place)], place
        assert not is_clean(verify(begun)), place


@pytest.mark.parametrize("bit", range(8))
@pytest.mark.parametrize("letter", range(3))
def test_a_first_line_whose_checksum_has_a_damaged_key_is_damaged(
    begun: Path, letter: int, bit: int
) -> None:
    whole = log_of(begun)
    place = whole.index(b'"sum"') + 1 + letter
    write(begun, whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
    assert not list(EventLog(begun))


def test_no_altered_bit_of_the_newest_line_is_taken_for_truth(begun: Path) -> None:
    whole = log_of(begun)
    for place, log in altered(whole, last_line(whole), len(whole), some=23):
        write(begun, log)
        with pytest.raises(UnusableEnvironment) as caught:
            reopened(begun)
        assert caught.value.next == (f"cogcli verify {begun} --repair",)
        assert len([event for _, event in EventLog(begun)]) == whole.count(b"\n") - 1, place
        assert read_row(begun).status == "interrupted"


def test_a_damaged_intent_is_moved_and_its_call_is_in_doubt(begun: Path) -> None:
    whole = log_of(begun)
    kept, intent = whole[: last_line(whole)], events_of(begun)[-1]
    for place, log in altered(whole, len(kept), len(whole) - 1, some=151):
        write(begun, log)
        journal, events, dropped, _ = reopened(begun, mend=True)
        journal.close()
        assert (begun / "events.torn").read_bytes() == log[len(kept) :], place
        assert dropped == len(log) - len(kept)
        again, told = events_of(begun)[-2:]
        for key in ("run_id", "step_id", "agent_id", "phase", "event_type", "payload"):
            assert again[key] == intent[key], place
        assert told["event_type"] == "run.recovered"
        assert told["payload"]["reason"] == "its last line was damaged"
        assert [event.event_type for event in events][-2:] == ["step.started", "run.recovered"]
        assert is_clean(verify(begun)), verify(begun)


def test_a_damaged_result_is_moved_and_its_call_is_open_again(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    sample.planned(journal, ("read", "detect", "Read"))
    sample.ended(journal, "read", sample.began(journal, "read"))
    journal.close()
    whole = log_of(journal.directory)
    kept = whole[: last_line(whole)]
    for place, log in altered(whole, len(kept), len(whole) - 1, some=499):
        write(journal.directory, log)
        reopened(journal.directory, mend=True).journal.close()
        types = [event["event_type"] for event in events_of(journal.directory)]
        assert types == ["run.started", "plan.created", "step.started", "run.recovered"], place
        assert is_clean(verify(journal.directory))


@pytest.mark.parametrize("line", [1, 2, 3, 4])
@pytest.mark.parametrize("bit", range(8))
def test_an_altered_newline_is_put_back(begun: Path, line: int, bit: int) -> None:
    whole = log_of(begun)
    place = sum(map(len, whole.splitlines(keepends=True)[:line])) - 1
    write(begun, whole[:place] + bytes([10 ^ 1 << bit]) + whole[place + 1 :])
    reopened(begun, mend=True).journal.close()
    assert log_of(begun) == whole
    assert not (begun / "events.torn").exists()


def test_damage_that_sound_lines_follow_is_not_mended(begun: Path) -> None:
    whole = log_of(begun)
    lines = whole.splitlines(keepends=True)
    log = whole.replace(lines[-2], lines[-2].replace(b"step.completed", b"step.skipped  "))
    write(begun, log)
    with pytest.raises(UnusableEnvironment) as caught:
        reopened(begun, mend=True)
    assert "lines follow it" in caught.value.message
    assert log_of(begun) == log


def test_a_line_of_which_nobody_can_say_what_it_was_is_not_mended(begun: Path) -> None:
    whole = log_of(begun)
    start = last_line(whole)
    log = whole[:start] + whole[start:].replace(b'"phase":"act"', b"XXXXXXXXXXXXX")
    write(begun, log)
    with pytest.raises(UnusableEnvironment) as caught:
        reopened(begun, mend=True)
    assert "beyond recognition" in caught.value.message
    assert log_of(begun) == log


def test_a_line_altered_in_many_bytes_is_known_by_what_can_be_read(begun: Path) -> None:
    whole = log_of(begun)
    start = last_line(whole)
    write(begun, whole[:start] + whole[start:].replace(b"JJ**", b"other"))
    reopened(begun, mend=True).journal.close()
    assert events_of(begun)[-2]["event_type"] == "step.started"
    assert is_clean(verify(begun))


class Killed(Exception):
    """The process died here."""


@pytest.mark.parametrize("step", ["replace", "cut", "append_derived", "append"])
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_while_mending_marks_the_call_once(
    begun: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    whole = log_of(begun)
    write(begun, whole.replace(b"JJ**", b"JJ*+"))
    real = getattr(reopen_module.Journal, step)

    def dying(*arguments: Any, **options: Any) -> None:
        if after:
            real(*arguments, **options)
        raise Killed

    monkeypatch.setattr(reopen_module.Journal, step, dying)
    with pytest.raises(Killed):
        reopened(begun, mend=True)
    monkeypatch.undo()
    reopened(begun, mend=True, seed=91_000).journal.close()
    types = [(event["event_type"], event.get("step_id")) for event in events_of(begun)[-2:]]
    assert types == [("step.started", "write"), ("run.recovered", None)]
    assert sum(event.get("step_id") == "write" for event in events_of(begun)) == 1
    assert is_clean(verify(begun)), verify(begun)


@pytest.mark.parametrize("name", ["interrupted", "paused"])
def test_an_older_log_without_checksums_is_gone_on_with(tmp_path: Path, name: str) -> None:
    """What is written from now on carries them; both parts verify as one log."""
    first = json.loads((KEPT / name / "events.jsonl").read_bytes().partition(b"\n")[0])
    directory = Path(shutil.copytree(KEPT / name, tmp_path / first["episode_id"]))
    before = log_of(directory)
    journal = reopened(directory).journal
    sample.terminated(journal)
    seal(journal)
    journal.close()
    assert b'"sum":' not in before
    assert log_of(directory).startswith(before)
    assert all(b'"sum":' in line for line in log_of(directory)[len(before) :].splitlines())
    assert is_clean(verify(directory)), verify(directory)


def test_a_line_without_a_checksum_after_one_with_it_is_a_finding(begun: Path) -> None:
    whole = log_of(begun)
    write(begun, whole[:-19] + b"}\n")
    assert "sum.missing" in {finding.code for finding in verify(begun)}
    assert len(list(EventLog(begun))) == whole.count(b"\n") - 1
