"""Rules 2 and 3: a large value is stored once, wherever it stands, and nothing in data can pass for a reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
import sample_episode as sample
from fakes.logged import is_clean
from hypothesis import given
from hypothesis import strategies as st

from cogcli.base.canonical import digest
from cogcli.base.errors import UnusableEnvironment
from cogcli.base.redact import Redactor
from cogcli.base.system import FakeClock, FakeIds
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.events import RunResumed
from cogcli.episode.blobs import LIST_TYPE, MAX_BLOB, SPILL, is_list_reference, is_reference
from cogcli.episode.document_bytes import to_bytes
from cogcli.episode.large_values import IN_FULL, PART, SMALL, BlobReader, ValueShortener
from cogcli.episode.log_reader import EventLog
from cogcli.episode.projection import project, state_bytes
from cogcli.episode.reopen import reopen
from cogcli.episode.seal import persist_pending, seal
from cogcli.episode.summary import summary_of
from cogcli.episode.verify.check import verify

pytestmark = pytest.mark.sampled(4)

BIG = "x" * SMALL
FORGED = {"$blob": f"sha256:{'0' * 64}", "bytes": 3, "media_type": "application/json"}
FORGED_LIST = {**FORGED, "media_type": LIST_TYPE}


class Kept(dict[str, bytes]):
    """Blobs in memory."""

    def put(self, data: bytes) -> str:
        name = digest(data)
        self[name] = data
        return name


def round_trip(payload: dict[str, Any]) -> tuple[dict[str, Any], Kept, dict[str, Any]]:
    """The payload as logged, its blobs, and the payload as read again."""
    kept = Kept()
    logged = ValueShortener(kept.put).shorten(payload)
    return logged, kept, BlobReader(kept.get).expand_payload(logged)


def test_equal_values_are_stored_once_wherever_they_stand() -> None:
    payload = {
        "inputs": {"text": BIG, "n": 1},
        "output": {"deep": [{"text": BIG}]},
        "writes": [{"target": "vars.text", "strategy": "overwrite", "value": BIG}],
        "attempts": [{"status": "success", "request": {"body": BIG}, "reply": BIG}],
        "outcomes": {"status": "ok", "outputs": {"text": BIG}},
    }
    logged, kept, read = round_trip(payload)
    assert read == payload
    assert [len(data) for data in kept.values()] == [len(json.dumps(BIG))]
    assert logged["inputs"]["n"] == 1
    assert is_reference(logged["writes"][0]["value"])


def test_what_is_no_value_of_a_step_stands_in_its_line_up_to_the_old_limit() -> None:
    records = [{"id": f"s{n}", "description": "d" * 50} for n in range(100)]
    logged, kept, _ = round_trip({"step_records": records})
    assert logged == {"step_records": records}
    assert not kept
    logged, kept, read = round_trip({"step_records": records * 20})
    assert is_reference(logged["step_records"])
    assert read == {"step_records": records * 20}


def test_a_list_of_many_small_values_is_one_blob() -> None:
    items = [{"n": n} for n in range(1000)]
    logged, kept, read = round_trip({"inputs": {"items": items}})
    assert is_reference(logged["inputs"]["items"])
    assert len(kept) == 1
    assert read == {"inputs": {"items": items}}


def rows(count: int) -> list[Any]:
    return [{"id": n, "name": f"row {n}", "note": "n" * 60} for n in range(count)]


def test_a_list_that_grows_has_new_blobs_only_for_its_end() -> None:
    kept = Kept()
    shortener, reader = ValueShortener(kept.put), BlobReader(kept.get)
    sizes = []
    for count in (5000, 5050, 10_000, 10_050):
        before = sum(map(len, kept.values()))
        logged = shortener.shorten({"output": {"rows": rows(count)}})
        assert is_list_reference(logged["output"]["rows"])
        assert reader.expand_payload(logged) == {"output": {"rows": rows(count)}}
        sizes.append(sum(map(len, kept.values())) - before)
    added = len(json.dumps(rows(50)))
    assert max(sizes[1], sizes[3]) <= added + 4 * PART


ELEMENTS = st.sampled_from(
    [1, True, 1.0, "n" * 60, "x" * (SMALL + 1), {"note": "n" * 600}, [1, [2]], FORGED, FORGED_LIST]
)


@pytest.mark.sampled(16)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 200),
            st.lists(ELEMENTS, min_size=1, max_size=6),
            st.integers(1, 120),
            st.booleans(),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_a_remembered_list_has_the_reference_that_a_new_one_has(
    changes: list[tuple[int, list[Any], int, bool]],
) -> None:
    kept = Kept()
    shortener = ValueShortener(kept.put)
    items: list[Any] = []
    for dropped, added, times, is_copied in changes:
        items = [*items[: len(items) - dropped], *added * times]
        if is_copied:
            items = json.loads(json.dumps(items))
        payload = {
            "output": {"rows": items, "again": [items]},
            "writes": [{"target": "vars.rows", "value": items}, {"value": "x" * 3000}],
            "attempts": [{"status": "success", "request": {"body": items}, "reply": "y" * 3000}],
            "step_records": items,
        }
        fresh = ValueShortener(Kept().put).shorten(payload)
        known = shortener.shorten(shortener.recall(payload))
        assert orjson.dumps(known) == orjson.dumps(fresh)
        assert BlobReader(kept.get).expand_payload(orjson.loads(orjson.dumps(known))) == payload


def test_a_list_that_every_event_hands_on_is_cut_once_and_then_at_its_end() -> None:
    put: list[int] = []
    kept = Kept()

    def count(data: bytes) -> str:
        put.append(len(data))
        return kept.put(data)

    shortener = ValueShortener(count)
    items = rows(5000)
    shortener.shorten(shortener.recall({"output": items}))
    put.clear()
    handed_on = {"inputs": {"rows": list(items)}, "writes": [{"value": list(items)}]}
    shortener.shorten(shortener.recall(handed_on))
    assert put == []
    shortener.shorten(shortener.recall({"output": rows(5050)}))
    assert sum(put) <= 3 * PART


def test_a_list_that_continues_a_known_one_is_encoded_only_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept, lengths = Kept(), list[int]()
    shortener = ValueShortener(kept.put)
    items = rows(5000)
    shortener.shorten(shortener.recall({"output": items}))

    encode = orjson.dumps

    def dumps(value: object) -> bytes:
        text = encode(value)
        lengths.append(len(text))
        return text

    monkeypatch.setattr("cogcli.episode.large_values.orjson.dumps", dumps)
    continued = [*items, *rows(50)]
    payload = {"output": continued, "writes": [{"value": list(continued)}]}
    known = shortener.shorten(shortener.recall(payload))
    monkeypatch.undo()
    assert max(lengths) <= 3 * PART
    fresh = ValueShortener(Kept().put).shorten(payload)
    assert orjson.dumps(known) == orjson.dumps(fresh)


def test_only_the_last_lists_are_remembered_and_none_that_is_huge() -> None:
    put: list[int] = []

    def count(data: bytes) -> str:
        put.append(len(data))
        return digest(data)

    shortener = ValueShortener(count)
    lists = [[f"{name} {n:040}" for n in range(1000)] for name in "abcde"]
    huge = ["x" * 4000] * 4300  # more than 16 MiB
    for items in (*lists, huge):
        shortener.shorten(shortener.recall({"output": items}))
    for items, is_known in ((lists[1], True), (lists[4], True), (lists[0], False), (huge, False)):
        put.clear()
        shortener.shorten(shortener.recall({"output": items}))
        assert (not put) is is_known


def test_a_very_long_list_has_parts_of_parts() -> None:
    kept = Kept()
    items = list(range(1_000_000))
    logged = ValueShortener(kept.put).shorten({"output": items})
    assert len(kept[logged["output"]["$blob"]]) <= 3 * PART
    assert BlobReader(kept.get).expand_payload(logged) == {"output": items}


def test_lines_that_name_a_part_share_its_elements() -> None:
    kept = Kept()
    shortener, reader = ValueShortener(kept.put), BlobReader(kept.get)
    first, second = (
        reader.expand_payload(shortener.shorten({"output": rows(count)}))["output"]
        for count in (1000, 1050)
    )
    assert first[0] is second[0]
    assert first is not second


def test_a_list_with_a_missing_part_keeps_its_reference() -> None:
    kept = Kept()
    logged = ValueShortener(kept.put).shorten({"output": rows(1000)})
    names = json.loads(kept[logged["output"]["$blob"]])
    del kept[names[1]["$blob"]]
    assert BlobReader(kept.get).expand_payload(logged) == logged


def test_parts_that_name_each_other_give_no_more_than_a_line_may_hold() -> None:
    kept = Kept()
    value: Any = ["x" * 1_000_000]
    for _ in range(20):
        reference = {**naming(kept, value), "media_type": LIST_TYPE}
        value = [reference, reference]
    read = BlobReader(kept.get).expand_payload({"output": reference})["output"]
    assert is_list_reference(read)


def test_a_part_that_is_known_counts_only_under_its_size() -> None:
    kept = Kept()
    reader = BlobReader(kept.get)
    logged = ValueShortener(kept.put).shorten({"output": rows(1000)})
    assert reader.expand_payload(logged) == {"output": rows(1000)}
    names = json.loads(kept[logged["output"]["$blob"]])
    lying = {**naming(kept, [{**names[0], "bytes": -5}]), "media_type": LIST_TYPE}
    assert reader.expand_payload({"output": lying}) == {"output": lying}


def test_a_log_of_rules_2_has_no_lists_in_parts() -> None:
    kept = Kept()
    logged = ValueShortener(kept.put, 2).shorten({"output": {"rows": rows(1000), "x": FORGED_LIST}})
    assert is_reference(logged["output"]["rows"])
    assert logged["output"]["x"] == FORGED_LIST
    assert BlobReader(kept.get).expand_payload(logged, 2)["output"]["x"] == FORGED_LIST


_LEAVES = st.sampled_from(
    [
        FORGED,
        FORGED_LIST,
        ["z"] * 6000,
        [BIG, FORGED_LIST, "z" * SMALL] * 3,
        BIG,
        "y" * SPILL,
        1,
        None,
        "",
        {"$blob": 1},
        {"$blob": FORGED},
        [],
    ]
)
_KEYS = st.sampled_from(["a", "input", "$blob"])
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner), max_leaves=8
)


@given(
    st.dictionaries(
        st.sampled_from(["output", "input", "attempts", "writes", "x-a", "read"]), _VALUES
    )
)
def test_any_payload_reads_back_as_it_was(payload: dict[str, Any]) -> None:
    _, _, read = round_trip(payload)
    assert read == payload


@given(_VALUES)
def test_any_value_of_a_document_reads_back_as_it_was(value: Any) -> None:
    kept = Kept()
    assert BlobReader(kept.get).expand_document(ValueShortener(kept.put).refer(value)) == value


def naming(kept: Kept, held: Any) -> dict[str, Any]:
    """A reference to a blob that holds these bytes of JSON, references in it and all."""
    text = json.dumps(held).encode()
    return {"$blob": kept.put(text), "bytes": len(text), "media_type": "application/json"}


def test_blobs_that_name_each_other_give_no_more_than_a_line_may_hold() -> None:
    kept = Kept()
    value: Any = "x" * 1_000_000
    for _ in range(20):  # a million characters, doubled twenty times
        reference = naming(kept, value)
        value = [reference, reference]
    asked: list[str] = []

    def get(digest: str) -> bytes | None:
        asked.append(digest)
        return kept.get(digest)

    BlobReader(get).expand_payload({"output": value})
    assert "" in asked
    assert sum(len(kept[digest]) for digest in asked if digest) <= MAX_BLOB


def test_lines_that_name_the_same_text_share_it() -> None:
    kept = Kept()
    reader = BlobReader(kept.get)
    given = reader.expand_payload(ValueShortener(kept.put).shorten({"inputs": {"text": BIG}}))
    passed_on = reader.expand_payload(
        ValueShortener(kept.put).shorten({"output": [BIG, "z" + BIG]})
    )
    assert given["inputs"]["text"] is passed_on["output"][0]


def test_only_the_last_texts_are_kept() -> None:
    kept = Kept()
    reader = BlobReader(kept.get)
    lines = [ValueShortener(kept.put).shorten({"output": f"{n}{BIG}"}) for n in (1, 2, 3, 1)]
    first, *_, last = [reader.expand_payload(line)["output"] for line in lines]
    assert first == last
    assert first is not last


def test_a_chain_of_blobs_ends() -> None:
    kept = Kept()
    value: Any = "end"
    for _ in range(5000):
        value = naming(kept, [value])
    BlobReader(kept.get).expand_payload({"output": value})


# -- a whole episode ---------------------------------------------------------------------------------------------------


def finished(runs_dir: Path, text: str) -> Path:
    """A sealed run of one step that gives back what it got."""
    journal = sample.new_journal(runs_dir)
    sample.started(journal, inputs={"text": text})
    sample.planned(journal, ("echo", "act", "Echo"))
    intent = sample.began(journal, "echo", input={"text": text})
    writes = [sample.written("outputs.text", text), sample.written("vars.text", text)]
    sample.ended(journal, "echo", intent, output={"text": text}, writes=writes)
    sample.terminated(journal, outputs={"text": text})
    seal(journal)
    journal.close()
    return journal.directory


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize("size", [256 * 1024, 900_000, 5_000_000])
def test_an_episode_is_little_larger_than_its_values(tmp_path: Path, size: int) -> None:
    directory = finished(tmp_path, "é" * (size // 2))
    assert size_of(directory) <= 2.5 * size
    assert is_clean(verify(directory))


def test_outputs_stand_in_full_up_to_a_mebibyte(tmp_path: Path) -> None:
    state = json.loads((finished(tmp_path / "a", "x" * 1_000_000) / "state.json").read_bytes())
    assert state["outcomes"]["outputs"] == {"text": "x" * 1_000_000}
    assert is_reference(state["x-cognitive"]["outputs"]["text"])
    state = json.loads((finished(tmp_path / "b", "x" * IN_FULL) / "state.json").read_bytes())
    assert is_reference(state["outcomes"]["outputs"]["text"])


def test_a_long_list_of_outputs_is_not_stored_as_a_whole_beside_its_values(tmp_path: Path) -> None:
    values = [f"{n:05}" * 1000 for n in range(400)]
    journal = sample.new_journal(tmp_path)
    sample.started(journal, inputs={"values": values})
    sample.terminated(journal, outputs={"values": values})
    seal(journal)
    journal.close()
    assert size_of(journal.directory) <= 1.5 * sum(map(len, values))
    assert is_clean(verify(journal.directory))


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    "values",
    [[n % 10 for n in range(150_000)], [[n] for n in range(40_000)], [{"n": n, "of": None} for n in range(20_000)]],
    ids=["digits", "lists", "objects"],
)  # fmt: skip
def test_a_long_list_of_small_values_takes_no_more_room_for_being_indented(
    tmp_path: Path, values: list[Any]
) -> None:
    size = len(json.dumps(values, separators=(",", ":")))
    journal = sample.new_journal(tmp_path)
    sample.started(journal, inputs={"values": values})
    sample.terminated(journal, outputs={"values": values, "count": len(values)})
    seal(journal)
    journal.close()
    assert 256 * 1024 < size < IN_FULL
    assert size_of(journal.directory) <= 2.5 * size
    assert is_clean(verify(journal.directory))
    text = (journal.directory / "state.json").read_text()
    assert json.loads(text)["outcomes"]["outputs"] == {"values": values, "count": len(values)}
    assert f'\n      "count": {len(values)}\n' in text


def test_an_old_log_indents_its_outputs_as_it_always_did() -> None:
    document = {"outcomes": {"outputs": {"values": list(range(5000))}}}
    assert state_bytes(document, rules=1) == to_bytes(document)


def test_a_plan_says_what_its_steps_were_given_and_what_they_produced(tmp_path: Path) -> None:
    [step] = json.loads((finished(tmp_path / "a", "short") / "state.json").read_bytes())["plan"][
        "steps"
    ]
    assert (step["inputs"], step["outputs"]) == ({"text": "short"}, {"text": "short"})
    [step] = json.loads((finished(tmp_path / "b", BIG) / "state.json").read_bytes())["plan"][
        "steps"
    ]
    assert is_reference(step["inputs"]["text"])
    assert step["inputs"] == step["outputs"]


def test_a_blob_that_a_document_or_a_line_names_is_missed(tmp_path: Path) -> None:
    directory = finished(tmp_path, BIG)
    [blob] = (directory / "blobs").iterdir()
    blob.unlink()
    findings = verify(directory)
    assert {(finding.code, finding.file) for finding in findings} >= {
        ("blob.missing", "events.jsonl"),
        ("file.missing", f"blobs/{blob.name}"),
    }
    log = EventLog(directory)
    assert any(is_reference(event.payload["inputs"]["text"]) for _, event in log if event.seq == 0)
    assert log.unresolved


def test_a_value_that_only_the_state_holds_is_stored_with_it(tmp_path: Path) -> None:
    """What steps appended piece by piece is large only as a whole."""
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    sample.planned(journal, *((f"s{n}", "act", "Add") for n in range(8)))
    for n in range(8):
        writes = [sample.written("vars.all", [str(n) * 1000], "append")]
        sample.ended(journal, f"s{n}", sample.began(journal, f"s{n}"), output={}, writes=writes)
    persist_pending(journal)
    journal.close()
    state = json.loads((journal.directory / "state.json").read_bytes())
    reference = state["x-cognitive"]["vars"]["all"]
    assert is_reference(reference)
    assert is_clean(verify(journal.directory))
    blob = journal.directory / "blobs" / reference["$blob"][7:]
    assert json.loads(blob.read_bytes()) == [str(n) * 1000 for n in range(8)]
    blob.unlink()
    assert "blob.missing" in {finding.code for finding in verify(journal.directory)}


# -- logs of earlier rules ---------------------------------------------------------------------------------------------

GOLDENS = Path(__file__).resolve().parents[2] / "episodes"


def test_a_run_says_which_rules_it_follows(tmp_path: Path) -> None:
    events = [event for _, event in EventLog(finished(tmp_path, "x"))]
    assert events[0].payload["rules"] == 3
    assert all("rules" not in event.payload for event in events[1:])


def test_a_log_that_names_no_rules_is_continued_under_the_first(tmp_path: Path) -> None:
    directory = tmp_path / "ep"
    directory.mkdir()
    for name in ("events.jsonl", "learn.jsonl"):
        (directory / name).write_bytes((GOLDENS / "paused" / name).read_bytes())
    reopened = reopen(
        directory, clock=FakeClock(1_900_000_000), ids=FakeIds(900), redactor=Redactor()
    )
    run = reopened.events[0].run_id or ""
    reopened.journal.append(
        draft_of(RunResumed(reason=BIG * 20, checkpoint={"input": {"text": BIG}}), run)
    )
    reopened.journal.close()
    last = json.loads((directory / "events.jsonl").read_bytes().splitlines()[-1])
    assert is_reference(last["payload"]["reason"])
    assert last["payload"]["checkpoint"] == {"input": {"text": BIG}}
    *_, (_, event) = EventLog(directory)
    assert event.payload["reason"] == BIG * 20


def test_data_of_an_old_log_that_looks_like_a_reference_stays_data() -> None:
    line = {
        "seq": 0,
        "id": "ev_1",
        "phase": "start",
        "payload": {"inputs": {"deep": FORGED}, "rules": 1},
    }
    [(_, event)] = EventLog(json.dumps(line).encode() + b"\n")
    assert event.payload["inputs"] == {"deep": FORGED}


def test_a_log_of_later_rules_is_shown_and_not_continued(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    journal.close()
    log = journal.directory / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"rules":3', b'"rules":4'))
    assert project(event for _, event in EventLog(journal.directory))["version"] == "1.0"
    with pytest.raises(UnusableEnvironment, match="later version"):
        reopen(
            journal.directory, clock=FakeClock(1_900_000_000), ids=FakeIds(900), redactor=Redactor()
        )


# -- figures -----------------------------------------------------------------------------------------------------------


def test_one_sitting_never_lasts_longer_than_its_timestamps_say(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    metrics = {
        "started_at": "2023-11-14T22:13:20.001000Z",
        "completed_at": None,
        "duration_ms": 5000,
    }
    sample.terminated(journal, metrics=metrics)
    seal(journal)
    journal.close()
    summary = json.loads((journal.directory / "summary.json").read_bytes())
    assert summary["duration_ms"] == 1
    assert (
        json.loads((journal.directory / "state.json").read_bytes())["outcomes"]["metrics"][
            "duration_ms"
        ]
        == 1
    )


def test_a_resumed_run_lasts_as_long_as_its_sittings(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    journal.append(draft_of(RunResumed(reason="again", checkpoint={}), sample.RUN))
    metrics = {
        "started_at": "2023-11-14T22:13:20.001000Z",
        "completed_at": None,
        "duration_ms": 5000,
    }
    sample.terminated(journal, metrics=metrics)
    seal(journal)
    journal.close()
    assert json.loads((journal.directory / "summary.json").read_bytes())["duration_ms"] == 5000


def test_coverage_counts_the_steps_that_never_came_to_run(tmp_path: Path) -> None:
    from cogcli.episode.log_fold import fold_log

    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    capabilities = {"read": "text.file.read", "send": "mail.send"}
    sample.planned(
        journal, ("read", "act", "Read"), ("send", "act", "Send"), capabilities=capabilities
    )
    sample.ended(journal, "read", sample.began(journal, "read"), output={})
    sample.terminated(journal, "aborted")
    account = fold_log(EventLog(journal.directory))
    journal.close()
    assert summary_of(account)["metrics"]["tool_coverage"] == 1 / 2
    assert to_bytes(summary_of(account))
