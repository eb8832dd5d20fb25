"""What holds for every adapter of a language model, whatever it asks (docs/reference/models.md#port)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from contracts.model_targets import ASKED, CALL, KEY, TARGETS, TEXT, ModelTarget
from fakes.models import ask, failure, streamed
from support.waiting import wait_until

from cogcli.agent.models.port import ModelError, ModelInfo, ModelReply
from cogcli.app.settings.model_adapters import MODELS
from cogcli.base.calls import Cancellation


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ModelTarget]:
    with TARGETS[request.param](tmp_path) as made:
        yield made


def able(target: ModelTarget, behaviour: str) -> None:
    """Leave a test that is about something this adapter has not."""
    if behaviour not in target.models:
        pytest.skip(f"{target.name}: no such thing as `{behaviour}`")


def test_the_suite_covers_every_adapter() -> None:
    assert set(TARGETS) == set(MODELS)


def test_an_answer_is_the_models_own_text(target: ModelTarget) -> None:
    reply = ask(target.models["text"], ASKED)
    assert (reply.text, reply.tool_calls, reply.finish) == (TEXT, (), "stop")
    assert reply.usage.tokens_in > 0
    assert reply.usage.tokens_out > 0
    assert reply.request_id
    assert ModelReply.from_payload(json.loads(json.dumps(reply.to_payload()))) == reply


def test_a_stream_gives_the_same_answer_in_pieces(target: ModelTarget) -> None:
    pieces, reply = streamed(target.models["text"], ASKED)
    assert "".join(pieces) == TEXT
    whole = ask(target.models["text"], ASKED)
    assert reply._replace(request_id="") == whole._replace(request_id="")


@pytest.mark.parametrize("stream", [False, True])
def test_tools_are_called_under_their_own_names(target: ModelTarget, stream: bool) -> None:
    asked = target.models["calls"]
    reply = streamed(asked, ASKED)[1] if stream else ask(asked, ASKED)
    assert (reply.text, reply.tool_calls, reply.finish) == ("", (CALL,), "tool_calls")


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_with_too_much_to_do_says_when_to_ask_again(
    target: ModelTarget, stream: bool
) -> None:
    error = failure(target.models["busy"], ASKED, stream=stream)
    assert (error.kind, error.retryable, error.retry_after) == ("rate_limited", True, 0)
    assert error.to_error().code == "call.overloaded"


@pytest.mark.parametrize("stream", [False, True])
def test_a_key_that_is_not_accepted_is_named_by_its_setting_alone(
    target: ModelTarget, stream: bool
) -> None:
    error = failure(target.models["forbidden"], ASKED, stream=stream)
    assert (error.kind, error.retryable, error.to_error().exit_code) == ("auth", False, 3)
    assert "sk-other-key" not in json.dumps(error.to_payload())


def test_a_stream_that_breaks_off_is_no_answer(target: ModelTarget) -> None:
    error = failure(target.models["broken"], ASKED, stream=True)
    assert (error.kind, error.retryable) == ("protocol", False)
    assert error.partial


@pytest.mark.parametrize("stream", [False, True])
def test_no_answer_within_the_time_of_the_request(target: ModelTarget, stream: bool) -> None:
    able(target, "slow")
    error = failure(target.models["slow"], ASKED._replace(timeout_ms=50), stream=stream)
    assert (error.kind, error.retryable) == ("timeout", True)


def test_giving_up_ends_a_request_at_once(target: ModelTarget) -> None:
    able(target, "slow")
    cancel, errors = Cancellation(), []

    def call() -> None:
        try:
            ask(target.models["slow"], ASKED, cancel)
        except ModelError as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    wait_until(lambda: bool(cancel._callbacks))
    cancel.set()
    thread.join(60)
    assert [(error.kind, error.retryable) for error in errors] == [("unreachable", False)]


def test_giving_up_ends_a_stream_between_two_pieces(target: ModelTarget) -> None:
    able(target, "stall")
    cancel = Cancellation()
    stream = target.models["stall"].stream(ASKED, cancel)
    first = next(stream)
    cancel.set()
    with pytest.raises(ModelError) as caught:
        for _ in stream:
            pass
    assert not caught.value.retryable
    assert first.text


def test_a_stream_that_nobody_reads_to_its_end_is_closed(target: ModelTarget) -> None:
    stream = target.models["text"].stream(ASKED, Cancellation())
    next(stream)
    stream.close()
    assert ask(target.models["text"], ASKED).text == TEXT


def test_a_model_describes_itself_without_being_asked(target: ModelTarget) -> None:
    before = len(target.requests)
    info = target.models["text"].describe()
    assert isinstance(info, ModelInfo)
    assert info.adapter == target.name
    assert "stream" in info.features
    assert json.loads(json.dumps(info.to_payload()))["name"] == info.name
    assert len(target.requests) == before


def test_requests_of_several_threads_are_answered_each(target: ModelTarget) -> None:
    replies: list[str] = []

    def call() -> None:
        replies.append(ask(target.models["text"], ASKED).text)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert replies == [TEXT] * 4


def test_the_key_goes_to_the_server_and_nowhere_else(target: ModelTarget) -> None:
    reply = ask(target.models["text"], ASKED)
    for seen in target.requests:
        assert KEY in (seen.headers.get("x-api-key"), seen.headers.get("authorization", "")[7:])
        assert KEY not in json.dumps(seen.body)
    assert KEY not in json.dumps(reply.to_payload())
