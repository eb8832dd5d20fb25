"""The index answers as the directories would, whatever happens to them or to it."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.base.errors import CogcliError
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.events import RunResumed
from cogcli.episode.document_bytes import milliseconds_between
from cogcli.episode.listing import episode_listing as surveying
from cogcli.episode.listing import episode_row
from cogcli.episode.listing.episode_index import FILE, Index
from cogcli.episode.listing.episode_listing import count_episodes, find_indexed_ids, list_rows
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow, read_row
from cogcli.episode.seal import seal
from cogcli.episode.store import Store

pytestmark = pytest.mark.sampled(2)

EVERYTHING = EpisodeFilter()


def finished(runs: Path, seed: int, status: str = "ok", **changes: Any) -> Path:
    journal = sample.new_journal(runs, seed=seed)
    sample.started(journal, **changes)
    sample.terminated(journal, status)
    seal(journal)
    journal.close()
    return journal.directory


def interrupted(runs: Path, seed: int) -> Path:
    journal = sample.new_journal(runs, seed=seed)
    sample.started(journal)
    journal.close()
    return journal.directory


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Six episodes of all kinds, one of them unreadable, one of another tool."""
    runs = tmp_path / "runs"
    finished(runs, 1000)
    finished(runs, 2000, "error")
    interrupted(runs, 3000)
    finished(runs, 4000, tags={"team": "search", "n": "3"})
    (runs / "ep_01HF7YAT0000000000000000ZZ").mkdir()
    (runs / "ep_01HF7YAT0000000000000000ZZ/notes.txt").touch()
    foreign = runs / "ep_other.tool-1"
    foreign.mkdir()
    (foreign / "events.jsonl").write_text(
        '{"id":"e1","timestamp":"2023-11-14T22:13:20Z","episode_id":"x","phase":"start"}\n'
    )
    return runs


@pytest.mark.parametrize("name", ["ep_sealed-elsewhere", "ep_01HF7YAT0000000000000000ZY"])
@pytest.mark.parametrize("summary", [True, False])
def test_a_sealed_episode_of_another_tool_is_looked_at_again_each_time(
    runs: Path, name: str, summary: bool
) -> None:
    """Nothing that the index goes by tells that its log was changed in place."""
    from support import foreign_tool as tool

    directory = tool.write(runs / name, tool.release_notes(name))
    if not summary:
        (directory / "summary.json").unlink()
    for status, before in (("ok", "error"), ("error", "ok"), ("ok", "error")):
        text = (directory / "events.jsonl").read_text()
        text = text.replace(f'"status": "{before}", "metrics"', f'"status": "{status}", "metrics"')
        (directory / "events.jsonl").write_text(text)
        for _ in range(2):
            row = next(row for row in asked(runs) if row.id == name)
            assert row.sealed
            is_altered = status == "error" or not summary
            assert (row.status, row.shown_status) == (status, "altered" if is_altered else "ok")


def asked(runs: Path, wanted: EpisodeFilter = EVERYTHING) -> list[EpisodeRow]:
    return list(list_rows(runs, wanted, Store(runs).ids, worth=1))


def plainly(runs: Path, wanted: EpisodeFilter = EVERYTHING) -> list[EpisodeRow]:
    """The answer without any index."""
    found = []
    for name in Store(runs).ids():
        try:
            row = read_row(runs / name)
        except CogcliError:
            continue
        if wanted.fits(row):
            found.append(row)
    return found


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change is settled at once: tests need not wait for the clock to move on."""
    monkeypatch.setattr(surveying, "_SETTLED", -1)


def opened_episodes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the episodes that are looked into from now on."""
    seen: list[str] = []
    real = surveying.read_row

    def watched(directory: str, *rest: Any, **named: Any) -> EpisodeRow:
        seen.append(Path(directory).name)
        return real(directory, *rest, **named)

    monkeypatch.setattr(surveying, "read_row", watched)
    return seen


def test_the_first_answer_and_every_later_one_are_the_same(runs: Path) -> None:
    plain = plainly(runs)
    assert len(plain) == 5
    assert [asked(runs) for _ in range(3)] == [plain] * 3
    assert stat.S_IMODE(os.stat(runs / FILE).st_mode) == 0o600


def test_only_what_is_not_sealed_is_looked_into_again(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(runs)
    seen = opened_episodes(monkeypatch)
    asked(runs)
    assert sorted(seen) == sorted(
        name for name in Store(runs).ids() if not (runs / name / "manifest.json").exists()
    )


def test_few_episodes_need_no_index(runs: Path) -> None:
    assert len(list(Store(runs).episode_rows())) == 5
    assert not (runs / FILE).exists()


def test_what_appears_is_there_at_once(runs: Path, patient: None) -> None:
    asked(runs)
    new = finished(runs, 9000)
    assert asked(runs)[0].id == new.name
    assert asked(runs) == plainly(runs)


def test_a_run_that_ends_shows_its_outcome(runs: Path, patient: None) -> None:
    journal = sample.new_journal(runs, seed=9000)
    sample.started(journal)
    assert asked(runs)[0].status == "running"
    sample.terminated(journal)
    seal(journal)
    journal.close()
    assert (asked(runs)[0].status, asked(runs)[0].sealed) == ("ok", True)


def test_what_vanishes_is_gone_at_once(runs: Path, patient: None) -> None:
    asked(runs)
    shutil.rmtree(asked(runs)[0].directory)
    assert asked(runs) == plainly(runs)
    database = sqlite3.connect(runs / FILE)
    assert database.execute("SELECT count(*) FROM episode").fetchone() == (5,)
    database.close()


def test_an_episode_that_was_replaced_is_looked_into(runs: Path, patient: None) -> None:
    first = asked(runs)[-3]
    asked(runs)
    (first.directory / "summary.json").write_text(
        (first.directory / "summary.json").read_text().replace("notes.draft", "notes.other")
    )
    assert asked(runs) == plainly(runs)
    altered = next(row for row in asked(runs) if row.id == first.id)
    assert altered.skill == first.skill, "the log counts"
    assert (altered.status, altered.shown_status) == (first.status, "altered")
    assert altered.fault.startswith("summary.json ")


def test_a_link_in_the_place_of_an_episode_is_not_followed(runs: Path, patient: None) -> None:
    asked(runs)
    newest = asked(runs)[0].directory
    newest.rename(runs.parent / "elsewhere")
    os.symlink(runs.parent / "elsewhere", newest)
    assert newest.name not in [row.id for row in asked(runs)]


FILTERS = [
    EpisodeFilter(skill="notes.draft"), EpisodeFilter(skill="no.such"), EpisodeFilter(outcomes=("error",)),
    EpisodeFilter(outcomes=("interrupted", "error")), EpisodeFilter(trace_id=f"{1002:032x}"),
    EpisodeFilter(trace_id="00000000"), EpisodeFilter(tags=(("team", "search"), ("n", "3"))),
    EpisodeFilter(tags=(("team", "platform"),)), EpisodeFilter(since="2023-11-14T22:13:20.001000Z"),
    EpisodeFilter(since="2030"), EpisodeFilter(trace_id="'; DROP TABLE episode; --"),
]  # fmt: skip


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_filters_answer_the_same_cold_and_warm(runs: Path, wanted: EpisodeFilter) -> None:
    plain = plainly(runs, wanted)
    assert asked(runs, wanted) == plain
    assert asked(runs, wanted) == plain
    asked(runs)
    assert asked(runs, wanted) == plain


def test_a_reader_that_stops_early_leaves_a_part_that_is_completed_later(
    runs: Path, patient: None
) -> None:
    for count in (1, 2, 3, 1):
        walk = list_rows(runs, EVERYTHING, Store(runs).ids, worth=1)
        found = [next(walk) for _ in range(count)]
        walk.close()
        assert found == plainly(runs)[:count]
    assert asked(runs) == plainly(runs)


@pytest.mark.parametrize(
    "damage", ["garbage", "empty", "cut", "other", "directory", "link", "fifo"]
)
def test_a_database_that_is_none_is_done_without_or_made_anew(
    runs: Path, patient: None, damage: str
) -> None:
    plain = plainly(runs)
    asked(runs)
    file = runs / FILE
    size = file.stat().st_size
    if damage == "garbage":
        file.write_bytes(os.urandom(5000))
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "cut":
        os.truncate(file, size // 2 + 100)
    elif damage == "other":
        file.unlink()
        with sqlite3.connect(file) as database:
            database.execute("CREATE TABLE episode (id TEXT)")
        database.close()
    else:
        file.unlink()
        if damage == "directory":
            file.mkdir()
        elif damage == "link":
            (runs.parent / "target").write_bytes(b"precious")
            file.symlink_to(runs.parent / "target")
        else:
            os.mkfifo(file)
    assert [asked(runs) for _ in range(3)] == [plain] * 3
    if damage == "link":
        assert (runs.parent / "target").read_bytes() == b"precious"


@pytest.mark.sampled(4)
@pytest.mark.slow
@examples(60)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 200))
def test_overwritten_bytes_never_show_what_is_not_so(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int
) -> None:
    """No row that is not true is ever shown; what goes unnoticed can at most hide one until the file is deleted."""
    runs = tmp_path_factory.mktemp("flips")
    for number in range(3):
        finished(runs, 1000 * (number + 1), "error" if number else "ok")
    plain = plainly(runs)
    asked(runs)
    data = bytearray((runs / FILE).read_bytes())
    chosen = random.Random(seed)
    start = chosen.randrange(100, len(data) - count)
    data[start : start + count] = chosen.randbytes(count)
    (runs / FILE).write_bytes(data)
    assert [row for row in asked(runs) if row not in plain] == []
    (runs / FILE).unlink(missing_ok=True)
    assert asked(runs) == plain


def test_a_locked_database_is_done_without(runs: Path, patient: None) -> None:
    asked(runs)
    writer = sqlite3.connect(runs / FILE, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    finished(runs, 9000)
    assert asked(runs) == plainly(runs)
    writer.execute("ROLLBACK")
    writer.close()
    assert asked(runs) == plainly(runs)
    assert (runs / FILE).exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_read(runs: Path) -> None:
    plain = plainly(runs)
    runs.chmod(0o500)
    try:
        assert asked(runs) == plain
        assert not (runs / FILE).exists()
    finally:
        runs.chmod(0o700)


def test_a_read_only_database_still_answers(runs: Path, patient: None) -> None:
    asked(runs)
    (runs / FILE).chmod(0o400)
    finished(runs, 9000)
    assert asked(runs) == plainly(runs)
    assert asked(runs) == plainly(runs)


def test_the_file_may_be_deleted_while_it_is_read(runs: Path, patient: None) -> None:
    asked(runs)
    walk: Iterator[EpisodeRow] = list_rows(runs, EVERYTHING, Store(runs).ids, worth=1)
    found = [next(walk)]
    (runs / FILE).unlink()
    assert [*found, *walk] == plainly(runs)
    assert asked(runs) == plainly(runs)


def test_names_come_from_an_index_that_is_whole_and_only_then(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_indexed_ids(runs, "ep_") is None
    asked(runs)
    assert find_indexed_ids(runs, "ep_") is None, (
        "changed a moment ago: something could still hide behind the time stamp"
    )
    monkeypatch.setattr(surveying, "_SETTLED", -1)
    asked(runs)
    assert find_indexed_ids(runs, "ep_") == Store(runs).ids()
    assert find_indexed_ids(runs, "ep_", skip=1, limit=1) == Store(runs).ids()[1:2]
    assert find_indexed_ids(runs, "ep_other") == ["ep_other.tool-1"]
    new = finished(runs, 9000)
    assert find_indexed_ids(runs, "ep_") is None
    assert Store(runs).resolve("@last") == new
    asked(runs)
    assert Store(runs).resolve("@last") == new
    assert Store(runs).resolve(new.name[:28]) == new


def test_nothing_is_listed_while_an_index_knows_that_it_is_whole(runs: Path, patient: None) -> None:
    asked(runs)
    asked(runs)

    def names() -> list[str]:
        raise AssertionError("the directory was listed")

    assert list(list_rows(runs, EVERYTHING, names, worth=1)) == plainly(runs)


@pytest.mark.parametrize("value", [2**70, 2**63, -(2**64), 1e300])
def test_values_that_no_database_takes_are_shown_all_the_same(runs: Path, value: float) -> None:
    import orjson

    file = next(row for row in asked(runs) if row.sealed).directory / "summary.json"
    summary = orjson.loads(file.read_bytes())
    file.write_text(
        orjson.dumps(summary)
        .decode()
        .replace(f'"duration_ms":{summary["duration_ms"]}', f'"duration_ms":{value}')
    )
    assert asked(runs) == plainly(runs)
    assert asked(runs) == plainly(runs)


def test_rows_that_another_reader_writes_meanwhile_are_shown_once(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, real = plainly(runs), surveying._list_changes
    index = Index(runs)
    assert index.create()
    index.close()

    def overtaken(runs_dir: Path, known: set[str]) -> tuple[list[str], set[str]]:
        found = real(runs_dir, known)
        monkeypatch.setattr(surveying, "_list_changes", real)
        assert asked(runs) == plain  # and writes every row
        return found

    monkeypatch.setattr(surveying, "_list_changes", overtaken)
    assert asked(runs) == plain


def test_many_readers_at_once_agree(runs: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    plain = plainly(runs)
    with ThreadPoolExecutor(8) as pool:
        assert all(found == plain for found in pool.map(lambda _: asked(runs), range(40)))


@pytest.mark.parametrize("ends", [256 * 1024, 1500])
def test_a_run_that_was_resumed_took_its_sittings_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: int
) -> None:
    """The second time the resumption is in neither end of the log."""
    monkeypatch.setattr(episode_row, "_ENDS", ends)
    journal = sample.new_journal(tmp_path)
    begun = sample.started(journal)
    paused = sample.planned(journal, ("read", "detect", "Read"))
    journal.close()
    assert read_row(journal.directory).duration_ms == milliseconds_between(
        begun.timestamp, paused.timestamp
    )
    again = sample.reopened(journal.directory).journal  # more than a minute later
    checkpoint = {"offset": 1, "event": paused.id}
    draft = draft_of(
        RunResumed(reason="resumed", checkpoint=checkpoint), sample.RUN, caused_by=paused.id
    )
    resumed = again.append(draft)
    for _ in range(8):
        last = sample.began(again, "read")
    again.close()
    first = milliseconds_between(begun.timestamp, paused.timestamp)
    second = milliseconds_between(resumed.timestamp, last.timestamp)
    assert first is not None
    assert second is not None
    assert read_row(journal.directory).duration_ms == first + second < 1000


def test_an_index_of_an_older_version_gets_its_index_of_ids(runs: Path, patient: None) -> None:
    before = [*list_rows(runs, EVERYTHING, Store(runs).ids, worth=1)]
    made = _schema_of(runs)
    with sqlite3.connect(runs / FILE) as database:
        database.execute("DROP INDEX episode_id")
    database.close()
    assert [*list_rows(runs, EVERYTHING, Store(runs).ids, worth=1)] == before
    assert _schema_of(runs) == made


def test_an_index_that_a_first_reading_made_is_kept_however_large_the_logs_are(
    runs: Path, patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surveying, "HEAVY", 0)
    for _ in range(2):
        asked(runs)
        assert count_episodes(runs, Store(runs).ids) == 6
    opened = opened_episodes(monkeypatch)
    asked(runs)
    assert len(opened) == 3, "sealed episodes are not read again"


def test_a_file_with_the_name_of_an_episode_is_no_episode(runs: Path, patient: None) -> None:
    asked(runs)
    (runs / "ep_01HF7YAT0000000000000000ZX").touch()
    assert asked(runs) == plainly(runs)
    assert count_episodes(runs, Store(runs).ids) == 6


def test_the_number_of_episodes_is_the_same_with_and_without_an_index(
    runs: Path, patient: None
) -> None:
    def listed() -> list[str]:
        raise AssertionError("the directory was listed")

    ids = Store(runs).ids
    assert count_episodes(runs, ids) == 6
    for _ in range(2):  # the first reading makes the index, which changes the directory
        assert len([*list_rows(runs, EVERYTHING, Store(runs).ids, worth=1)]) == 5
    assert count_episodes(runs, listed) == 6
    finished(runs, 5000)
    assert count_episodes(runs, ids) == 7


def _schema_of(runs: Path) -> list[object]:
    database = sqlite3.connect(runs / FILE)
    try:
        return database.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
    finally:
        database.close()
