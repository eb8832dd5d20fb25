"""What reads an episode of a long run needs no more memory than for a short one, but for what it shows."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import sample_episode as sample
from fakes.logged import is_clean

from cogcli.app.report_page import read_source, report_page
from cogcli.app.settings import Settings
from cogcli.app.state_document import (
    StoredState,
    iterate_shown_events,
    project_state,
    stored_chunks,
)
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.events import RunStarted, RunTerminated
from cogcli.episode.action_log import has_our_actions, iterate_actions
from cogcli.episode.history import history_of
from cogcli.episode.listing.episode_row import read_row
from cogcli.episode.seal import seal
from cogcli.episode.verify.check import verify
from cogcli.report.thinned_log import thin_log

FEW, MANY = 1_500, 5_000
EVENT = 1_000
"""Bytes that a reader may keep of an event, until there are many: the text of its action, its id, its step. An event
itself takes four times as much.
"""
pytestmark = pytest.mark.sampled(2)


def looped(runs_dir: Path, events: int) -> Path:
    """Return an episode of two loops: one step, and a nested run with one step in each round."""
    journal = sample.new_journal(runs_dir, durability="none")
    sample.started(journal)
    sample.planned(journal, ("loop", "act", "Loop"), ("outer", "act", "Loop"))
    for number in range(events // 8):
        intent = sample.began(journal, f"loop#{number}")
        sample.ended(journal, f"loop#{number}", intent, output={"n": number})
        write_nested_run(journal, number)
    sample.ended(journal, "loop", None)
    sample.ended(journal, "outer", None)
    sample.terminated(journal)
    seal(journal)
    journal.close()
    return journal.directory


def write_nested_run(journal: sample.Journal, number: int) -> None:
    """Write a round of `outer`: a run with one step."""
    path, run = f"outer#{number}", f"run_1{number:015x}"
    sample.began(journal, path)
    start = RunStarted(**{**sample.START, "parent_run_id": sample.RUN, "pins": {}})
    journal.append(draft_of(start, run, step_id=path))
    intent = sample.began(journal, f"{path}/s", run_id=run)
    sample.ended(journal, f"{path}/s", intent, run_id=run, output={"n": number})
    end = RunTerminated(
        status="ok", status_reason=None, outputs={}, error=None, required_missing=[]
    )
    journal.append(draft_of(end, run, step_id=path))
    sample.ended(journal, path, None)


@pytest.fixture(scope="module")
def episodes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    with pytest.MonkeyPatch.context() as patch:
        shorten_lists(patch)
        return (
            looped(tmp_path_factory.mktemp("few"), FEW),
            looped(tmp_path_factory.mktemp("many"), MANY),
        )


def shorten_lists(patch: pytest.MonkeyPatch) -> None:
    """Let lists end early that otherwise end after some ten thousand entries."""
    patch.setattr("cogcli.episode.projection.MOST_ACTIONS", 100)
    patch.setattr("cogcli.report.thinned_log.MOST", 500)


def trace(directory: Path) -> None:
    thinned = thin_log(iterate_shown_events(directory))
    assert thinned.events_left_out
    assert history_of(thinned.events).root is not None


def report(directory: Path) -> None:
    settings = Settings({}, {"HOME": str(directory.parent)}, base=str(directory.parent))
    page = report_page([read_source(settings, directory, lambda error: None)])
    assert b"are left out" in page


def write_state(directory: Path) -> None:
    assert project_state(directory).equals(stored_chunks(directory))


def check(directory: Path) -> None:
    assert is_clean(verify(directory))


def stream_actions(directory: Path) -> None:
    text = StoredState(directory)
    assert has_our_actions(text.chunks())
    assert sum(1 for _ in iterate_actions(text.chunks())) > 100


READERS: list[Callable[[Path], object]] = [
    check,
    trace,
    report,
    write_state,
    stream_actions,
    lambda directory: read_row(directory, None),
]


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    "read", READERS, ids=["verify", "trace", "report", "state show", "state show --json", "status"]
)
def test_memory_does_not_grow_with_the_steps_of_a_loop(
    episodes: tuple[Path, Path],
    read: Callable[[Path], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shorten_lists(monkeypatch)
    read(episodes[0])  # what is imported and compiled once does not count
    peaks = []
    for directory in episodes:
        tracemalloc.start()
        try:
            read(directory)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < EVENT * (MANY - FEW), peaks
