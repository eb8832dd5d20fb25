"""Recorded answers, given again (docs/reference/models.md#replay)."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.models import ask, failure, model, request, streamed

from cogcli.agent.models.port import LanguageModel, ModelError, ModelOutcome, ModelReply, TokenUsage
from cogcli.agent.models.transcript import Exchange
from cogcli.base.problems import ProblemsFound

FIRST, SECOND = request("one"), request("two")
REPLY = ModelReply("hello", (), "stop", TokenUsage(3, 4), "small-1", "r1")
REPLIED = ModelOutcome(reply=REPLY)


def transcript(root: Path, *exchanges: Exchange, sent: int = 0) -> LanguageModel:
    file = root / "t.jsonl"
    file.write_bytes(b"".join(exchange.to_line() for exchange in exchanges))
    return model("replay", "t.jsonl", file=str(file), sent=sent)


def test_answers_come_in_their_order_errors_too(tmp_path: Path) -> None:
    busy = ModelOutcome(error=ModelError("overloaded", "busy", retry_after=2.0))
    recorded = [Exchange(FIRST.request_hash, busy), Exchange(FIRST.request_hash, REPLIED)]
    asked = transcript(tmp_path, *recorded, Exchange(SECOND.request_hash, REPLIED))
    error = failure(asked, FIRST)
    assert (error.kind, error.retry_after, error.message) == ("overloaded", 2.0, "busy")
    assert ask(asked, FIRST._replace(call_id="other", timeout_ms=1)) == REPLY
    assert streamed(asked, SECOND) == (["hello"], REPLY)
    assert "no answer 4" in failure(asked, SECOND).message


def test_another_request_is_an_error_and_uses_nothing_up(tmp_path: Path) -> None:
    asked = transcript(tmp_path, Exchange(FIRST.request_hash, REPLIED))
    error = failure(asked, SECOND)
    assert (error.kind, "another request" in error.message) == ("bad_request", True)
    assert ask(asked, FIRST) == REPLY


def test_a_later_sitting_goes_on_at_its_number(tmp_path: Path) -> None:
    recorded = [Exchange(FIRST.request_hash, REPLIED), Exchange(SECOND.request_hash, REPLIED)]
    assert ask(transcript(tmp_path, *recorded, sent=1), SECOND) == REPLY


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{", "json.syntax"),
        ("[]", "value.type"),
        ("7", "value.type"),
        ('{"request_hash": "x"}', "value.type"),
        ('{"request_hash": "x", "reply": {}}', "value.type"),
        ('{"request_hash": "x", "reply": null}', "value.type"),
        ('{"request_hash": "x", "error": {"kind": "sad", "message": "m"}}', "value.type"),
        ('{"reply": {}, "error": {}}', "value.type"),
    ],
)
def test_a_line_that_is_no_exchange_has_its_place(tmp_path: Path, line: str, code: str) -> None:
    file = tmp_path / "t.jsonl"
    file.write_bytes(Exchange(FIRST.request_hash, REPLIED).to_line() + line.encode() + b"\n")
    with pytest.raises(ProblemsFound) as caught:
        model("replay", "t.jsonl", file=str(file))
    assert (caught.value.code, caught.value.file, caught.value.line) == (code, "t.jsonl", 2)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ProblemsFound) as caught:
        model("replay", "t.jsonl", file=str(tmp_path / "t.jsonl"))
    assert (caught.value.code, caught.value.file) == ("yaml.io", "t.jsonl")
