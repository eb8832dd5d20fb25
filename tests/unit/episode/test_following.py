"""A log that grows is read event by event, up to the moment when its run is gone."""

from __future__ import annotations

from pathlib import Path

import pytest
import sample_episode as sample

from cogcli.base.errors import UnusableEnvironment
from cogcli.episode.journal import Journal
from cogcli.episode.log_reader import EventLog
from cogcli.episode.seal import seal


class Turns:
    """What the run does each time when the reader has read everything."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.waits = 0

    def __call__(self) -> None:
        self.waits += 1
        if self.waits == 1:
            sample.planned(self.journal, ("read", "detect", "Read"))
        elif self.waits == 2:
            sample.terminated(self.journal)
            seal(self.journal)
            self.journal.close()


def test_events_come_as_they_are_written_until_the_run_ends(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    turns = Turns(journal)
    kinds = []
    for number, event in EventLog(journal.directory, turns):
        kinds.append((event.event_type, turns.waits))
        assert number == len(kinds)
    assert kinds == [
        ("run.started", 0),
        ("plan.created", 1),
        ("run.terminated", 2),
        ("run.state_projection", 2),
    ]


def test_a_run_that_died_ends_the_reading(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    log = EventLog(journal.directory, journal.close)
    assert [event.event_type for _, event in log] == ["run.started"]


def test_a_finished_log_is_read_once(tmp_path: Path) -> None:
    def never() -> None:
        raise AssertionError("there is nothing to wait for")

    episode = sample.sealed_episode(tmp_path)
    assert len(list(EventLog(episode, never))) == (episode / "events.jsonl").read_bytes().count(
        b"\n"
    )


def test_a_directory_without_a_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableEnvironment):
        list(EventLog(tmp_path, lambda: None))
