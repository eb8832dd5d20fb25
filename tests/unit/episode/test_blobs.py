"""Large members live beside the log, and nothing in data can pass for one of them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample
from hypothesis import given
from hypothesis import strategies as st

from cogcli.base.strict_json import InvalidJson
from cogcli.episode import blobs
from cogcli.episode.blobs import MAX_LINE, SPILL, is_reference, resolve, spill
from cogcli.episode.log_reader import EventLog

BIG = "x" * (SPILL + 1)
FORGED = {"$blob": f"sha256:{'0' * 64}", "bytes": 3, "media_type": "application/json"}


def round_trip(payload: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The payload as logged, and as read again."""
    kept: dict[str, bytes] = {}

    def put(data: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        kept[digest] = data
        return digest

    logged = spill(payload, put)
    return logged, resolve(logged, kept.get)


def test_a_member_above_the_limit_becomes_a_reference() -> None:
    logged, read = round_trip({"output": {"text": BIG}, "small": 1})
    assert is_reference(logged["output"])
    assert logged["output"]["bytes"] == len(json.dumps({"text": BIG}, separators=(",", ":")))
    assert logged["small"] == 1
    assert read == {"output": {"text": BIG}, "small": 1}


def test_attempts_keep_their_shape_and_lend_out_request_and_reply() -> None:
    payload = {"attempts": [{"status": "success", "request": {"a": BIG}, "reply": 1}]}
    logged, read = round_trip(payload)
    assert is_reference(logged["attempts"][0]["request"])
    assert logged["attempts"][0]["reply"] == 1
    assert read == payload


@pytest.mark.parametrize(
    "payload",
    [
        {"output": FORGED},
        {"output": {"inner": FORGED}},
        {"attempts": [{"request": FORGED, "reply": {"deep": FORGED}}]},
        {"attempts": FORGED},
        {"writes": [{"value": FORGED}]},
    ],
)
def test_data_that_looks_like_a_reference_comes_back_as_data(payload: dict[str, Any]) -> None:
    _, read = round_trip(payload)
    assert read == payload


@given(st.dictionaries(st.sampled_from(["output", "input", "attempts", "x-a"]), st.sampled_from(
    [FORGED, [FORGED], [{"request": FORGED}], [{"reply": BIG}], BIG, 1, None, {"$blob": 1}, [BIG, FORGED]]
)))  # fmt: skip
def test_any_payload_reads_back_as_it_was(payload: dict[str, Any]) -> None:
    _, read = round_trip(payload)
    assert read == payload


def test_a_line_of_many_middling_members_stays_below_its_limit() -> None:
    payload = {f"x-{n}": "y" * (SPILL - 10) for n in range(40)}
    logged, read = round_trip(payload)
    assert len(json.dumps(logged)) < MAX_LINE
    assert read == payload


def test_folds_see_values_and_the_log_stays_small(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    event = sample.started(journal, inputs={"text": BIG})
    journal.close()
    assert event.payload["inputs"] == {"text": BIG}
    assert (journal.directory / "events.jsonl").stat().st_size < 2000
    [(_, read)] = EventLog(journal.directory)
    assert read.payload == event.payload


def test_an_altered_blob_is_not_taken_for_the_value(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal, inputs={"text": BIG})
    journal.close()
    [blob] = (journal.directory / "blobs").iterdir()
    blob.write_bytes(blob.read_bytes().replace(b"x", b"y"))
    [(_, read)] = EventLog(journal.directory)
    assert is_reference(read.payload["inputs"]["text"])


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_documents_that_we_wrote_are_known_without_the_strict_parser(
    end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "strict_loads", None)
    assert blobs.parse(b'{\n  "a": [\n    1\n  ]\n}' + end) == {"a": [1]}
    assert blobs.parse(b'{"a":[1]}') == {"a": [1]}


@pytest.mark.parametrize(
    "text", [b'{\n  "a": 1,\n  "a": 2\n}', b'{\n  "a": NaN\n}', b'{\n  "a": 1\n}\n}']
)
def test_other_documents_are_read_strictly(text: bytes) -> None:
    with pytest.raises(InvalidJson):
        blobs.parse(text)


@given(st.binary(max_size=40) | st.sampled_from([b'{"$blob":1}', b'{"blob":"$"}', b'"$blo"']))
def test_the_quick_search_for_a_reference_finds_each_mark(data: bytes) -> None:
    assert blobs.may_refer(data) == (blobs.MARK in data)
    assert blobs.may_refer(data + blobs.MARK + data)
