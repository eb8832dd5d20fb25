"""The tiny model itself: a real one, whose answers follow from its seed (`support.tinymodel`)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.models import ask, failure, model, request, streamed
from support.tinymodel import TinyModel

from cogcli.agent.models.port import LanguageModel

pytestmark = pytest.mark.sampled(2)

TOOLS = (
    {
        "name": "orders.lookup",
        "description": "finds an order",
        "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}},
    },
    {
        "name": "payments.refund",
        "description": "pays money back",
        "parameters": {
            "type": "object",
            "properties": {"order_id": {"type": "string"}, "amount": {"type": "number"}},
        },
    },
)
TESTS = Path(__file__).resolve().parents[2]


def opened(server: TinyModel, name: str, adapter: str = "openai") -> LanguageModel:
    return model(adapter, name, base_url=server.base_url if adapter == "openai" else server.address)


def answers(seed: int, name: str, adapter: str = "openai") -> list[Any]:
    with TinyModel(seed=seed) as server:
        asked = opened(server, name, adapter)
        prompts = (f"refund ord_{number}" for number in range(12))
        return [ask(asked, request(prompt, tools=TOOLS))[:2] for prompt in prompts]


def test_equal_seeds_give_equal_answers_and_other_seeds_others() -> None:
    assert answers(1, "bigram") == answers(1, "bigram")
    assert answers(1, "bigram") != answers(2, "bigram")
    assert (
        answers(1, "bigram-json")
        == answers(1, "bigram-json")
        == answers(1, "bigram-json", "anthropic")
    )


@pytest.mark.sampled(4)
def test_replies_are_of_the_format_and_often_wrong_in_content() -> None:
    known, names, natively = {tool["name"] for tool in TOOLS}, set(), 0
    for seed in range(12):
        for text, calls in answers(seed, "bigram-json"):
            natively += bool(calls)
            reply = json.loads(text) if text else {"tool_calls": calls}
            assert set(reply) <= {
                "thinking",
                "tool_calls",
                "context_updates",
                "response",
                "switch_mode",
                "switch_why",
            }
            names |= {call["name"] for call in reply.get("tool_calls", ())}
            assert all(isinstance(call["args"], dict) for call in reply.get("tool_calls", ()))
    assert known < names
    assert natively


def test_half_of_the_replies_are_damaged() -> None:
    good = bad = 0
    for seed in range(6):
        for text, calls in answers(seed, "bigram-half"):
            try:
                good += bool(calls) or isinstance(json.loads(text), dict)
            except ValueError:
                bad += 1
    assert good > 10
    assert bad > 10


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_what_is_counted_here_is_what_the_server_counted(
    tiny_model: TinyModel, adapter: str
) -> None:
    asked, sums = opened(tiny_model, "bigram-json", adapter), [0, 0]
    for number in range(6):
        call = ask if number % 2 else (lambda asked, given: streamed(asked, given)[1])
        usage = call(asked, request(f"refund ord_{number}", tools=TOOLS)).usage
        assert not usage.estimated
        sums = [sums[0] + usage.tokens_in, sums[1] + usage.tokens_out]
    assert sums == list(tiny_model.usage)
    assert (tiny_model.answers, len(tiny_model.requests)) == (6, 6)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("429", "rate_limited"), ("529", "overloaded"), ("500", "protocol"), ("garbage", "protocol")],
)
@pytest.mark.parametrize("stream", [False, True])
def test_faults(tiny_model: TinyModel, fault: str, kind: str, stream: bool) -> None:
    assert failure(opened(tiny_model, f"fault:{fault}"), request(), stream=stream).kind == kind
    assert tiny_model.usage == (0, 0)


def test_a_fault_of_the_first_requests_alone(tiny_model: TinyModel) -> None:
    asked = opened(tiny_model, "fault:429:2")
    kinds = [failure(asked, request()).kind for _ in range(2)]
    assert kinds == ["rate_limited", "rate_limited"]
    assert ask(asked, request()).text


def test_a_script_goes_on_to_its_last_reply() -> None:
    with TinyModel(scripts={"s": ["one", {"response": "two"}]}) as server:
        asked = opened(server, "script:s")
        assert [ask(asked, request()).text for _ in range(3)] == [
            "one",
            '{"response": "two"}',
            '{"response": "two"}',
        ]
        assert failure(opened(server, "script:t"), request()).kind == "bad_request"


def test_as_a_process_it_says_where_it_is(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts.json"
    scripts.write_text('{"s": ["hello"]}')
    command = [sys.executable, "-m", "support.tinymodel", "--seed", "3", "--scripts", str(scripts)]
    process = subprocess.Popen(
        command,
        cwd=TESTS,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    try:
        assert process.stdout is not None
        base = process.stdout.readline().strip()
        assert ask(model("openai", "script:s", base_url=base), request()).text == "hello"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 0
