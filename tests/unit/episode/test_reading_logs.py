"""Any log can be read as far as it goes; nothing half-written is taken for data."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
import sample_episode as sample
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.base.errors import UnusableEnvironment
from cogcli.episode.log_lines import Lines
from cogcli.episode.log_reader import EventLog
from cogcli.episode.projection import project

pytestmark = pytest.mark.sampled(2)


def log_of(*events: dict[str, object]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


FOREIGN = log_of(
    {
        "id": "1",
        "timestamp": "2024-01-15T10:30:00Z",
        "episode_id": "ep_a",
        "phase": "start",
        "payload": {"task": "t"},
    },
    {
        "id": "2",
        "timestamp": "2024-01-15T10:30:01Z",
        "episode_id": "ep_a",
        "phase": "novel",
        "payload": {},
    },
)


def count(data: bytes) -> tuple[int, EventLog]:
    log = EventLog(data)
    return sum(1 for _ in log), log


def test_foreign_logs_are_read_with_the_seeds_fields_alone() -> None:
    events = [event for _, event in EventLog(FOREIGN)]
    assert [(event.seq, event.event_type, event.phase) for event in events] == [
        (None, None, "start"),
        (None, None, "novel"),
    ]


@pytest.mark.sampled(4)
@pytest.mark.slow
def test_a_log_torn_at_any_byte_reads_as_its_whole_lines(tmp_path: Path) -> None:
    directory = sample.sealed_episode(tmp_path)
    data = (directory / "events.jsonl").read_bytes()
    for cut in range(len(data)):
        found, log = count(data[:cut])
        assert found == data[:cut].count(b"\n")
        assert log.stopped is None
        assert log.torn == len(data[:cut]) - (data[:cut].rfind(b"\n") + 1)


@pytest.mark.parametrize(
    "tail", [b"\0" * 4096, b'{"id":"3"', b"\0\0\n", b"not json\n", b"[1]", b'{"a":1\n']
)
def test_a_last_line_that_is_no_event_is_torn(tail: bytes) -> None:
    found, log = count(FOREIGN + tail)
    assert (found, log.torn, log.stopped) == (2, len(tail), None)


@pytest.mark.parametrize("bad", [b"[1]\n", b"7\n", b"null\n", b'{"a":1,"a":2}\n'])
def test_a_last_line_that_is_json_but_no_event_was_never_torn(bad: bytes) -> None:
    found, log = count(FOREIGN + bad)
    assert (found, log.torn) == (2, 0)
    assert log.stopped is not None
    assert (log.stopped.code, log.stopped.line) == ("line.broken", 3)


@pytest.mark.parametrize(
    "bad", [b"\0\0\n", b"not json\n", b"[1]\n", b'{"a":1,"a":2}\n', b'{"a":NaN}\n', b"\n"]
)
def test_a_bad_line_in_the_middle_stops_the_reading_there(bad: bytes) -> None:
    first, second = FOREIGN.splitlines(keepends=True)
    found, log = count(first + bad + second)
    assert found == 1
    assert log.stopped is not None
    assert (log.stopped.code, log.stopped.line) == ("line.broken", 2)


def test_a_line_without_end_is_not_read_into_memory() -> None:
    found, log = count(FOREIGN + b"x" * (9 << 20))
    assert found == 2
    assert log.stopped is not None


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_lines_that_hold_a_text_have_the_numbers_that_a_reader_gives_them(size: int) -> None:
    data = b"one\n\ntwo marks\nthree\nfour marks\nfive marks"
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    expected = [(number, line) for number, line in Lines([data]) if b"marks" in line]
    assert (
        list(Lines(chunks).containing(b"none", b"marks"))
        == expected
        == [(3, b"two marks"), (5, b"four marks")]
    )


def test_a_line_that_names_a_blob_is_a_batch_of_its_own() -> None:
    """The values of many blobs may not fit into memory."""
    value = {"$blob": "sha256:" + "0" * 64, "bytes": 1, "media_type": "application/json"}
    named = log_of({"id": "1", "phase": "act", "payload": {"output": value}})
    data = FOREIGN * 2 + named * 3
    assert [len(batch) for batch in Lines([FOREIGN * 2, data]).batches()] == [4, *[1] * 7]


@pytest.mark.parametrize("bad", [b"{torn", b'{"seq":1,"seq":1}', b"[1]"])
def test_a_batch_ends_before_a_line_that_is_refused(bad: bytes) -> None:
    lines = Lines([FOREIGN, FOREIGN + bad + b"\n" + FOREIGN])
    batches = lines.batches()
    assert [number for number, _, _ in next(batches)] == [1, 2]
    assert [number for number, _, _ in next(batches)] == [3, 4]
    assert lines.refused is None
    assert list(batches) == []
    assert lines.refused is not None
    assert (lines.count, lines.refused.number) == (4, 5)


def test_members_of_a_wrong_type_count_as_absent() -> None:
    wrong = {"id": 1, "timestamp": [], "episode_id": {}, "phase": None, "run_id": {}, "step_id": 4, "seq": True,
             "metrics": "x", "evidence_ids": 3, "event_type": [], "payload": 7, "caused_by": {}}  # fmt: skip
    [(_, event)] = EventLog(log_of(wrong))
    assert (event.id, event.timestamp, event.phase, event.run_id, event.seq) == (
        "",
        "",
        "",
        None,
        None,
    )
    assert event.payload == 7


@given(st.binary(max_size=200))
@examples(200)
def test_no_bytes_at_all_break_the_reader_or_the_projection(data: bytes) -> None:
    project(event for _, event in EventLog(FOREIGN + data))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
_KEYS = ["step_id", "step_status", "tool", "action_id", "writes", "steps", "step_records", "status", "beliefs", "facts",
         "usage", "inputs", "frame", "skill", "error", "outputs", "reads", "result_artifacts", "metrics", "attempts",
         "latency_ms", "tags", "seed", "options", "pins", "key", "value", "reason", "binding"]  # fmt: skip
_TYPES = [None, "run.started", "plan.created", "step.started", "step.completed", "step.failed", "call.retried",
          "run.terminated", "run.state_projection", "gate.decided"]  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.slow
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "phase": st.sampled_from(
                    ["start", "plan", "act", "memory", "interpret", "terminate", "runtime"]
                ),
                "event_type": st.sampled_from(_TYPES),
                "payload": st.dictionaries(st.sampled_from(_KEYS), _JSON, max_size=6) | _JSON,
                "metrics": _JSON,
            }
        ),
        max_size=8,
    )
)
@examples(300)
def test_no_payload_at_all_breaks_a_fold(events: list[dict[str, object]]) -> None:
    from cogcli.episode.document_bytes import to_bytes
    from cogcli.episode.learn import learn_lines
    from cogcli.episode.log_fold import fold_log
    from cogcli.episode.projection import state_text
    from cogcli.episode.summary import summary_of

    account = fold_log(EventLog(log_of(*events)))
    projection = account.projection
    json.loads(b"".join(state_text(projection.result(), projection.rules).chunks()))
    to_bytes(summary_of(account))
    if account.projection.terminated is not None:
        learn_lines(account)


@pytest.mark.sampled(4)
def test_a_reader_of_a_run_in_progress_sees_a_prefix(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    reader_end, writer_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader_end)
        sample.started(journal)
        for n in range(3000):
            sample.ended(journal, f"s{n}", sample.began(journal, f"s{n}"))
        os.write(writer_end, b"done")
        os._exit(0)
    os.close(writer_end)
    seen = 0
    while seen < 6001:
        log = EventLog(journal.directory)
        numbers = [event.seq for _, event in log]
        assert numbers == list(range(len(numbers)))
        assert log.stopped is None
        assert len(numbers) >= seen
        seen = len(numbers)
        time.sleep(0.001)
    os.waitpid(child, 0)
    os.close(reader_end)
    journal.close()


def test_a_fifo_or_a_link_instead_of_a_log_is_refused_at_once(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(FOREIGN)
    for name, make in (("fifo", os.mkfifo), ("link", lambda path: os.symlink(target, path))):
        (tmp_path / name).mkdir()
        make(tmp_path / name / "events.jsonl")
        with pytest.raises(UnusableEnvironment) as refused:
            list(EventLog(tmp_path / name))
        assert refused.value.code == "episode.unreadable"
