"""What a model is asked and answers, and what follows from the kind of a failure (docs/reference/models.md#port)."""

from __future__ import annotations

import json

import pytest

from cogcli.agent.models.port import (
    KINDS,
    ModelError,
    ModelReply,
    ModelRequest,
    TokenUsage,
    retry_wait,
)
from cogcli.base.errors import FAILURE_OF, exit_code

REQUEST = ModelRequest(({"role": "user", "content": "hello"},), call_id="c1")
EXITS = {
    "auth": 3,
    "rate_limited": 6,
    "timeout": 6,
    "unreachable": 6,
    "overloaded": 6,
    "bad_request": 1,
    "context_too_long": 1,
    "protocol": 1,
}


def test_a_hash_is_of_what_the_model_sees() -> None:
    assert REQUEST._replace(call_id="c2", timeout_ms=1).request_hash == REQUEST.request_hash
    others = [
        REQUEST._replace(messages=({"role": "user", "content": "hullo"},)),
        REQUEST._replace(tools=({"name": "t", "description": "", "parameters": {}},)),
        REQUEST._replace(json_schema={}),
        REQUEST._replace(max_tokens=1),
        REQUEST._replace(temperature=0.5),
        REQUEST._replace(seed=1),
        REQUEST._replace(stop=("x",)),
    ]
    assert len({REQUEST.request_hash, *(other.request_hash for other in others)}) == 8


def test_a_reply_and_an_error_survive_json() -> None:
    reply = ModelReply(
        "hi",
        ({"id": "1", "name": "t", "args": {"a": 1}},),
        "tool_calls",
        TokenUsage(1, 2, True),
        "m",
        "r",
    )
    assert ModelReply.from_payload(json.loads(json.dumps(reply.to_payload()))) == reply
    error = ModelError("protocol", "it broke off", partial="half", hint="h", retry_after=2.0)
    assert (
        ModelError.from_payload(json.loads(json.dumps(error.to_payload()))).__dict__
        == error.__dict__
    )
    assert json.loads(json.dumps(REQUEST.to_payload()))["messages"] == list(REQUEST.messages)


@pytest.mark.parametrize("kind", EXITS)
def test_code_exit_and_retry_follow_from_the_kind(kind: str) -> None:
    assert set(EXITS) == set(KINDS)
    error = ModelError(kind, "m").to_error()
    assert exit_code(error.code) == error.exit_code == EXITS[kind]
    assert type(error) is FAILURE_OF[error.code].cls
    assert ModelError(kind, "m").retryable is (EXITS[kind] == 6)


def test_a_cause_with_a_code_of_its_own_keeps_it() -> None:
    error = ModelError("auth", "not set", code="env.missing", hint="export X").to_error()
    assert (error.code, error.exit_code, error.hint) == ("env.missing", 3, "export X")


def test_waits_double_within_a_quarter_and_end_after_two() -> None:
    error = ModelError("overloaded", "m")
    waits = [[retry_wait(error, attempt, seed) for attempt in (1, 2, 3)] for seed in range(50)]
    for first, second, third in waits:
        assert first is not None
        assert 0.375 <= first < 0.625
        assert second is not None
        assert 0.75 <= second < 1.25
        assert third is None
    assert len({first for first, _, _ in waits}) == 50
    assert waits[7] == [retry_wait(error, attempt, 7) for attempt in (1, 2, 3)]


def test_the_provider_says_how_long_to_wait_up_to_half_a_minute() -> None:
    assert retry_wait(ModelError("rate_limited", "m", retry_after=3.0), 1, 0) == 3.0
    assert retry_wait(ModelError("rate_limited", "m", retry_after=900.0), 2, 0) == 30.0
    assert retry_wait(ModelError("rate_limited", "m", retry_after=1.0), 3, 0) is None
    assert retry_wait(ModelError("bad_request", "m", retry_after=1.0), 1, 0) is None
