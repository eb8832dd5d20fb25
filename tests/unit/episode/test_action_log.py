"""Actions as text: the same document as from objects, in a file when they are many, and evidence without them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sample_episode as sample

from cogcli.episode import action_log, projection
from cogcli.episode.action_log import (
    ActionLog,
    DocumentText,
    iterate_actions,
    leave_out_actions,
)
from cogcli.episode.document_bytes import to_bytes
from cogcli.episode.log_reader import EventLog
from cogcli.episode.projection import Projection, project_bytes, state_text
from cogcli.episode.verify.check import verify

ACTIONS = [{"id": f"action_{n}", "tool": "t", "x-n": {"deep": [n, "a\nb"]}} for n in range(50)]


@pytest.mark.parametrize("kept", [0, 100, 10_000_000], ids=["file", "both", "memory"])
def test_the_text_of_a_document_is_that_from_objects(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(action_log, "_IN_MEMORY", kept)
    monkeypatch.setattr(action_log, "_CHUNK", 64)
    spooled, plain = Projection(actions=ActionLog()), Projection()
    sizes = []
    for action in ACTIONS:
        spooled.actions.append(action)
        plain.actions.append(action)
        text = state_text(spooled.result(), 2)
        sizes.append((text, b"".join(state_text(plain.result(), 2).chunks())))
    for text, whole in sizes:  # a document that was projected earlier is a prefix
        assert b"".join(text.chunks()) == whole
        assert text.size == len(whole)
        assert text.equals([whole[:70], b"", whole[70:]])
        assert not text.equals([whole[:-1]])
        assert not text.equals([whole, b" "])
        assert not text.equals([whole.replace(b"action_0", b"action_x")])
    assert list(spooled.actions) == ACTIONS


def test_no_action_is_an_empty_list() -> None:
    spooled, plain = Projection(actions=ActionLog()), Projection()
    assert state_text(spooled.result(), 2) == state_text(plain.result(), 2)
    assert DocumentText(b"ab").equals([b"a", b"b"])


def test_the_evidence_of_a_long_run_counts_its_actions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`verify` accepts both forms: older logs hold all actions, however many."""
    (tmp_path / "whole").mkdir()
    whole = sample.sealed_episode(tmp_path / "whole")
    monkeypatch.setattr(projection, "MOST_ACTIONS", 1)
    monkeypatch.setattr(action_log, "_IN_MEMORY", 0)
    episode = sample.sealed_episode(tmp_path)
    events = [event for _, event in EventLog(episode)]
    stored = (episode / "state.json").read_bytes()
    outcomes = events[-1].payload["outcomes"]
    assert "actions" not in outcomes
    assert outcomes["action_count"] == len(json.loads(stored)["outcomes"]["actions"]) > 1
    assert stored == project_bytes(events) == (whole / "state.json").read_bytes()
    for directory in (episode, whole):
        assert [each for each in verify(directory) if each.severity == "error"] == []
    altered = stored.replace(b'"result_status": "ok"', b'"result_status": "no"', 1)
    assert altered != stored
    (episode / "state.json").write_bytes(altered)
    found = [each for each in verify(episode) if each.severity == "error"]
    assert [each.code for each in found] == ["state.differs"]
    assert '"result_status": "no"' in (found[0].found or "")


STATES = sorted(Path(__file__).parents[2].glob("episodes/*/state.json"))


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_actions_are_left_out_of_any_chunks(size: int) -> None:
    for file in STATES:
        data = file.read_bytes()
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        whole = json.loads(data)
        whole["outcomes"]["actions"] = []
        assert json.loads(leave_out_actions(chunks)) == whole


@pytest.mark.parametrize(
    "text", [b"", b"{}", b'{"outcomes": {"actions": [1]}}', b'\n  "outcomes": {']
)
def test_another_form_is_unchanged(text: bytes) -> None:
    assert leave_out_actions([text]) == text


def test_without_actions_no_later_list_is_left_out() -> None:
    document = {"outcomes": {"status": "ok", "actions": []}, "x-agent": {"actions": [1, 2]}}
    assert json.loads(leave_out_actions([to_bytes(document)])) == document


WITH_ACTIONS = [file for file in STATES if b'"actions": [\n' in file.read_bytes()]


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_actions_are_read_from_any_chunks(size: int) -> None:
    assert WITH_ACTIONS
    for file in WITH_ACTIONS:
        data = file.read_bytes()
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        assert list(iterate_actions(chunks)) == json.loads(data)["outcomes"]["actions"]


CHANGES = {
    "another indentation": (b"\n      }", b"\n     }"),
    "another spelling": (b'": "', b'":  "'),
    "a name twice": (b'\n        "id"', b'\n        "id": "other",\n        "id"'),
    "something behind an action": (b"\n      }", b"\n      }x"),
    "no end": (b"\n    ]", b"\n     ]"),
}


@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES)
def test_actions_of_another_form_are_refused(before: bytes, after: bytes) -> None:
    data = WITH_ACTIONS[0].read_bytes()
    start = data.index(b'"actions": [\n')
    changed = data[:start] + data[start:].replace(before, after, 1)
    assert changed != data
    with pytest.raises(ValueError, match=r"."):
        list(iterate_actions([changed]))
