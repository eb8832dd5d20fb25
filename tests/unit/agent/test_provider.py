"""What goes to a provider and what comes back (docs/reference/models.md#providers)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fakes.models import ask, failure, model, request, streamed
from support.raw_server import Conversation, RawServer, serving
from support.tinymodel import TinyModel

from cogcli.agent.models.port import LanguageModel, ModelError
from cogcli.agent.models.provider_api import MAX_REPLY, sent_names
from cogcli.base.errors import ModelAccessError

KEY = "sk-canary-5e1f0c77-not-to-be-seen"
TOOLS = (
    {"name": "orders.lookup", "description": "d", "parameters": {"type": "object"}},
    {"name": "orders_lookup", "description": "d", "parameters": {"type": "object"}},
    {"name": "x" * 80, "description": "d", "parameters": {"type": "object"}},
    {"name": "x" * 81, "description": "d", "parameters": {"type": "object"}},
)
OPENAI = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}
ANTHROPIC = {"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
WHOLE = {"openai": OPENAI, "anthropic": ANTHROPIC}


def opened(adapter: str, url: str, name: str = "m", **settings: Any) -> LanguageModel:
    base = f"{url}/v1" if adapter == "openai" else url
    return model(
        adapter, name, base_url=base, auth_ref="MODEL_KEY", environ={"MODEL_KEY": KEY}, **settings
    )


def answering(value: Any, **reply: Any) -> Callable[[Conversation], None]:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return lambda conversation: conversation.reply(body, **reply)


def html_page(conversation: Conversation) -> None:
    """What stands at an address that is not that of an API."""
    page = b"<html>"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(page)}\r\n\r\n"
    conversation.send(head.encode() + page)


def sent_to(server: RawServer) -> Any:
    return json.loads(server.requests[-1].body)


@pytest.fixture(params=["openai", "anthropic"])
def adapter(request: pytest.FixtureRequest) -> Iterator[str]:
    return request.param


# -- what is sent -----------------------------------------------------------------------------------------------------


def test_a_request_to_openai() -> None:
    asked = request(
        tools=TOOLS[:1],
        json_schema={"type": "object"},
        max_tokens=7,
        seed=5,
        stop=("END",),
        temperature=0.0,
    )
    with serving(answering(OPENAI)) as server:
        ask(opened("openai", server.url), asked)
        conversation = server.requests[-1]
        assert conversation.line == "POST /v1/chat/completions HTTP/1.1"
        assert conversation.headers["authorization"] == f"Bearer {KEY}"
        assert sent_to(server) == {
            "model": "m",
            "messages": [
                {"role": "system", "content": "You are a desk.\n\nAnswer in JSON."},
                {"role": "user", "content": "hello"},
            ],
            "max_tokens": 7,
            "temperature": 0.0,
            "seed": 5,
            "stop": ["END"],
            "tools": [{"type": "function", "function": {**TOOLS[0], "name": "orders_lookup"}}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": {"type": "object"}, "strict": False},
            },
        }


def test_a_request_to_anthropic() -> None:
    asked = request(
        tools=TOOLS[:1], json_schema={"type": "object"}, max_tokens=7, seed=5, stop=("END",)
    )
    with serving(answering(ANTHROPIC)) as server:
        ask(opened("anthropic", server.url), asked)
        conversation = server.requests[-1]
        assert conversation.line == "POST /v1/messages HTTP/1.1"
        assert conversation.headers["x-api-key"] == KEY
        assert conversation.headers["anthropic-version"] == "2023-06-01"
        assert "authorization" not in conversation.headers
        assert sent_to(server) == {
            "model": "m",
            "system": "You are a desk.\n\nAnswer in JSON.",
            "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": 7,
            "temperature": 0.0,
            "stop_sequences": ["END"],
            "tools": [
                {"name": "orders_lookup", "description": "d", "input_schema": {"type": "object"}}
            ],
        }


def test_a_prompt_of_rules_alone_goes_as_a_question(adapter: str) -> None:
    with serving(answering(WHOLE[adapter])) as server:
        asked = request()._replace(messages=({"role": "developer", "content": "say ok"},))
        ask(opened(adapter, server.url), asked)
        assert sent_to(server)["messages"] == [{"role": "user", "content": "say ok"}]
        assert "system" not in sent_to(server)


def test_names_on_the_wire_are_allowed_there_and_told_apart() -> None:
    names = sent_names(TOOLS)
    assert list(names) == [tool["name"] for tool in TOOLS]
    assert list(names.values()) == ["orders_lookup", "orders_lookup_2", "x" * 64, f"{'x' * 60}_2"]


def test_without_a_key_none_is_sent(adapter: str) -> None:
    with serving(answering(WHOLE[adapter])) as server:
        base = f"{server.url}/v1" if adapter == "openai" else server.url
        environ = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
        ask(model(adapter, "m", base_url=base, environ=environ), request())
        assert KEY.encode() not in server.requests[-1].request


@pytest.mark.parametrize("stream", [False, True])
def test_a_member_that_a_server_refuses_by_name_is_left_out_from_then_on(
    adapter: str, stream: bool
) -> None:
    def answer(conversation: Conversation) -> None:
        body = json.loads(conversation.body)
        for name in ("temperature", "seed", "stream_options"):
            if name in body:
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                conversation.reply(
                    json.dumps({"error": {"message": message}}).encode(), status="400 Bad Request"
                )
                return
        conversation.reply(json.dumps(WHOLE[adapter]).encode())

    with serving(answer) as server:
        asked = opened(adapter, server.url)
        call = streamed if stream else ask
        call(asked, request())
        first = len(server.requests)
        call(asked, request())
        assert first == {"openai": 4 if stream else 3, "anthropic": 2}[adapter]
        assert len(server.requests) == first + 1


def test_a_server_that_takes_no_schema_beside_tools_is_asked_without() -> None:
    def answer(conversation: Conversation) -> None:
        if "response_format" in json.loads(conversation.body):
            body = json.dumps(
                {"error": {"message": "Cannot use custom grammar constraints with tools."}}
            )
            conversation.reply(body.encode(), status="400 Bad Request")
        else:
            conversation.reply(json.dumps(OPENAI).encode())

    with serving(answer) as server:
        asked = request(tools=TOOLS[:1], json_schema={"type": "object"})
        assert ask(opened("openai", server.url), asked).text == "hi"


def test_nothing_else_is_left_out_for_a_refusal(adapter: str) -> None:
    body = {"error": {"message": "max_tokens is too large, exceeded"}}
    with serving(answering(body, status="400 Bad Request")) as server:
        assert failure(opened(adapter, server.url), request()).kind == "bad_request"
        assert len(server.requests) == 1


# -- what comes back --------------------------------------------------------------------------------------------------

STATUSES = {
    "301 Moved": ("bad_request", "call.rejected", False),
    "400 Bad": ("bad_request", "call.rejected", False),
    "401 Who": ("auth", "model.auth", False),
    "403 No": ("auth", "model.auth", False),
    "404 None": ("bad_request", "call.rejected", False),
    "408 Late": ("timeout", "call.timeout", True),
    "413 Large": ("context_too_long", "model.context", False),
    "429 Often": ("rate_limited", "call.overloaded", True),
    "500 Bug": ("protocol", "call.server-error", False),
    "502 Gate": ("overloaded", "call.overloaded", True),
    "503 Busy": ("overloaded", "call.overloaded", True),
    "504 Gate": ("overloaded", "call.overloaded", True),
    "529 Busy": ("overloaded", "call.overloaded", True),
}


@pytest.mark.parametrize("status", STATUSES)
def test_kinds_of_statuses(adapter: str, status: str) -> None:
    body = {"error": {"message": f"no, {KEY}", "type": "whatever"}}
    headers = "Location: http://127.0.0.1:9/\r\nRetry-After: 7"
    with serving(answering(body, status=status, headers=headers)) as server:
        error = failure(opened(adapter, server.url), request())
        assert len(server.requests) == 1
    assert (error.kind, error.code, error.retryable) == STATUSES[status]
    assert error.retry_after == (7 if error.retryable else None)
    assert f"HTTP {status[:3]}" in error.message
    assert KEY not in json.dumps(error.to_payload())
    assert ("redirected to http://127.0.0.1:9/" in error.message) is (status[0] == "3")


@pytest.mark.parametrize(
    "error",
    [
        {"message": "This model's maximum context length is 4096 tokens.", "code": None},
        {"message": "too much", "code": "context_length_exceeded"},
        {
            "type": "invalid_request_error",
            "message": "prompt is too long: 210000 tokens > 200000 maximum",
        },
        {"message": "the request exceeds the available context size, try increasing it"},
    ],
)
def test_a_prompt_that_is_too_long_is_a_kind_of_its_own(
    adapter: str, error: dict[str, Any]
) -> None:
    with serving(answering({"error": error}, status="400 Bad Request")) as server:
        found = failure(opened(adapter, server.url), request())
    assert (found.kind, found.to_error().code) == ("context_too_long", "model.context")


def test_credit_that_is_used_up_is_not_asked_for_again() -> None:
    error = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}
    with serving(answering(error, status="429 Too Many Requests")) as server:
        found = failure(opened("openai", server.url), request())
    assert (found.kind, found.retryable) == ("rate_limited", False)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"text"', b"{}", b"\xff\xfe", b"<html>", b'{"choices": 1}',
             b'{"choices": [null]}', b'{"content": "x"}', b'{"choices": [{"message": "x"}]}', b"[" * 5000],
)  # fmt: skip
def test_an_answer_of_no_known_form_is_a_fault_of_protocol(
    adapter: str, body: bytes, stream: bool
) -> None:
    with serving(answering(body)) as server:
        error = failure(opened(adapter, server.url), request(), stream=stream)
    assert (error.kind, error.retryable) == ("protocol", False)


ODD: Any = [None, 1, "x", [], [None], {}, {"x": 1}, -1, 1.5, True]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_members_of_another_type_count_as_absent(odd: Any) -> None:
    call = {"id": odd, "function": {"name": odd, "arguments": odd}}
    for calls in (odd, [odd], [{"function": odd}], [call]):
        message = {"content": odd, "tool_calls": calls}
        value = {
            "choices": [{"message": message, "finish_reason": odd}],
            "usage": odd,
            "model": odd,
            "id": odd,
        }
        with serving(answering(value)) as server:
            reply = ask(opened("openai", server.url), request())
        assert reply.usage.estimated
        json.dumps(reply.to_payload())
    blocks = [
        odd,
        {"type": "text", "text": odd},
        {"type": "tool_use", "id": odd, "name": odd, "input": odd},
    ]
    value = {
        "content": blocks,
        "usage": {"input_tokens": odd},
        "stop_reason": odd,
        "model": odd,
        "id": odd,
    }
    with serving(answering(value)) as server:
        reply = ask(opened("anthropic", server.url), request())
    assert reply.usage.estimated
    json.dumps(reply.to_payload())


def test_counts_are_the_providers_and_what_it_does_not_count_is_estimated() -> None:
    usage = {"prompt_tokens": 70, "completion_tokens": 9}
    with serving(answering({**OPENAI, "usage": usage})) as server:
        assert ask(opened("openai", server.url), request()).usage == (70, 9, False)
    with serving(answering({**OPENAI, "usage": {"prompt_tokens": 70}})) as server:
        found = ask(opened("openai", server.url), request()).usage
        assert (found.tokens_in, found.tokens_out > 0, found.estimated) == (70, True, True)
    cached = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 10,
        "cache_read_input_tokens": 100,
        "output_tokens": 3,
    }
    with serving(answering({**ANTHROPIC, "usage": cached})) as server:
        assert ask(opened("anthropic", server.url), request()).usage == (115, 3, False)


def test_a_count_beyond_what_json_may_hold_counts_as_none(adapter: str) -> None:
    most = 10**19
    names = (
        ("prompt_tokens", "completion_tokens", "total_tokens")
        if adapter == "openai"
        else ("input_tokens",)
    )
    counts = {**dict.fromkeys(names, most), "output_tokens": 3}
    with serving(answering({**WHOLE[adapter], "usage": counts})) as server:
        reply = ask(opened(adapter, server.url), request())
    assert reply.text == "hi"
    assert reply.usage.estimated
    assert 0 < reply.usage.tokens_in < 1000
    with serving(answering({**WHOLE[adapter], "other": most})) as server:
        error = failure(opened(adapter, server.url), request())
    assert error.kind == "protocol"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "filtered"),
        ("tool_calls", "tool_calls"),
        ("new", "stop"),
    ],
)
def test_how_an_answer_of_openai_ended(reason: str, finish: str) -> None:
    value = {"choices": [{"message": {"content": ""}, "finish_reason": reason}]}
    with serving(answering(value)) as server:
        assert ask(opened("openai", server.url), request()).finish == finish


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"), ("refusal", "filtered"),
     ("tool_use", "tool_calls"), ("pause_turn", "stop"), ("model_context_window_exceeded", "length")],
)  # fmt: skip
def test_how_an_answer_of_anthropic_ended(reason: str, finish: str) -> None:
    with serving(answering({**ANTHROPIC, "stop_reason": reason})) as server:
        assert ask(opened("anthropic", server.url), request()).finish == finish


def test_arguments_that_are_no_json_stay_text() -> None:
    def calls(*arguments: str) -> list[dict[str, Any]]:
        return [{"id": "1", "function": {"name": "t", "arguments": each}} for each in arguments]

    value = {"choices": [{"message": {"tool_calls": calls('{"a": 1}', "{a", "", "[1]")}}]}
    with serving(answering(value)) as server:
        reply = ask(opened("openai", server.url), request())
    assert [call["args"] for call in reply.tool_calls] == [{"a": 1}, "{a", {}, [1]]
    assert reply.finish == "tool_calls"


def test_a_key_that_a_server_gives_back_is_masked_everywhere(adapter: str) -> None:
    text = json.dumps(WHOLE[adapter]).replace("hi", f"your key is {KEY}")
    with serving(
        answering(text.encode(), headers=f"Content-Type: application/json\r\nx-request-id: {KEY}")
    ) as server:
        asked = opened(adapter, server.url)
        reply = ask(asked, request())
        pieces, again = streamed(asked, request())
    assert "your key is" in reply.text
    assert KEY not in json.dumps([reply.to_payload(), again.to_payload(), pieces])


def test_a_key_in_what_is_no_json_or_in_an_unknown_place_is_masked(adapter: str) -> None:
    for body in (f"{{{KEY}".encode(), f'{{"{KEY}": [1}}'.encode(), f'{{"a": {KEY}}}'.encode()):
        for stream in (False, True):
            with serving(answering(body)) as server:
                error = failure(opened(adapter, server.url), request(), stream=stream)
            assert KEY not in json.dumps(error.to_payload())
            assert KEY not in str(error)


@pytest.mark.parametrize("key", ["sk-with\nline", "sk-ünicode-key", "sk-\x00-key"])
def test_a_key_that_no_header_holds_is_refused_without_being_shown(adapter: str, key: str) -> None:
    with pytest.raises(ModelAccessError, match="`MODEL_KEY` gives") as caught:
        model(
            adapter,
            "m",
            base_url="http://127.0.0.1:9",
            auth_ref="MODEL_KEY",
            environ={"MODEL_KEY": key},
        )
    assert key not in str(caught.value)
    assert caught.value.exit_code == 3


def test_content_may_come_in_parts() -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "image"}, {"type": "text", "text": "two"}]
    with serving(answering({"choices": [{"message": {"content": parts}}]})) as server:
        assert ask(opened("openai", server.url), request()).text == "one two"
    with serving(sse(events(chunk({"content": parts}, finish_reason="stop")))) as server:
        assert "".join(streamed(opened("openai", server.url), request())[0]) == "one two"


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_with_status_200_has_its_kind(stream: bool) -> None:
    for error, kind in (
        ({"code": 429, "message": "slow down"}, "rate_limited"),
        ({"code": 502, "message": "away"}, "overloaded"),
        ({"type": "invalid_request_error", "message": "prompt is too long"}, "context_too_long"),
        ({"message": "?"}, "protocol"),
        ("out of memory", "protocol"),
    ):
        answer = (
            sse(events(json.dumps({"error": error}))) if stream else answering({"error": error})
        )
        with serving(answer) as server:
            assert failure(opened("openai", server.url), request(), stream=stream).kind == kind


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_that_is_a_text_is_told(stream: bool) -> None:
    body = {"error": "out of memory"}
    for answer in (sse(events(json.dumps(body))) if stream else answering(body),
                   answering(body, status="500 Oops")):  # fmt: skip
        with serving(answer) as server:
            assert failure(opened("openai", server.url), request(), stream=stream).message.endswith(
                ": out of memory"
            )


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_no_api_leads_to_its_address(adapter: str, stream: bool) -> None:
    for answer in (html_page, answering({}, status="404 Not Found"),
                   answering({}, status="302 Found", headers="location: http://elsewhere.example/")):  # fmt: skip
        with serving(answer) as server:
            error = failure(opened(adapter, server.url), request(), stream=stream)
        assert "base_url" in error.hint
    assert "elsewhere.example" in error.message


def test_an_id_of_the_request_comes_from_the_headers_else_from_the_body(adapter: str) -> None:
    with serving(answering({**WHOLE[adapter], "id": "body"}, headers="request-id: head")) as server:
        assert ask(opened(adapter, server.url), request()).request_id == "head"
    with serving(answering({**WHOLE[adapter], "id": "body"})) as server:
        assert ask(opened(adapter, server.url), request()).request_id == "body"


def test_an_answer_that_is_too_large_is_not_read_to_its_end(adapter: str) -> None:
    def pour(conversation: Conversation) -> None:
        conversation.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        conversation.pour(b'"' + b"x" * 65536)

    with serving(pour) as server:
        error = failure(opened(adapter, server.url), request())
    assert (error.kind, f"{MAX_REPLY:,}" in error.message) == ("protocol", True)


def test_no_server_is_unreachable_and_forbidden_addresses_are_refused(adapter: str) -> None:
    gone = failure(opened(adapter, "http://127.0.0.1:9"), request())
    assert (gone.kind, gone.code, gone.retryable) == ("unreachable", "call.transport", True)
    refused = failure(opened(adapter, "http://169.254.169.254"), request())
    assert (refused.kind, refused.to_error().exit_code) == ("bad_request", 4)


def test_a_proxy_is_used_only_by_its_setting(adapter: str) -> None:
    with serving(answering(WHOLE[adapter])) as proxy:
        environ = {"http_proxy": proxy.url}
        far = {"base_url": "http://far.example.test/v1", "environ": environ}
        assert ask(model(adapter, "m", use_env_proxy=True, **far), request()).text == "hi"
        assert proxy.requests[-1].line.startswith("POST http://far.example.test/v1/")
        assert failure(model(adapter, "m", **far), request()).kind == "unreachable"


# -- streams ----------------------------------------------------------------------------------------------------------


def events(*lines: str) -> bytes:
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def chunk(delta: Any, **members: Any) -> str:
    return json.dumps({"choices": [{"delta": delta, **members}]}, ensure_ascii=False)


def sse(data: bytes, *, cut: bool = False) -> Callable[[Conversation], None]:
    """A stream whose bytes come one by one; `cut`: more was announced than comes."""

    def answer(conversation: Conversation) -> None:
        size = f"Content-Length: {len(data) + (9 if cut else 0)}\r\n"
        conversation.send(
            f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{size}\r\n".encode("latin-1")
        )
        for byte in data:
            conversation.send(bytes([byte]))
        if cut:
            conversation.close()

    return answer


def test_a_stream_byte_by_byte() -> None:
    data = b": hello\n\n" + events(
        chunk({"role": "assistant"}),
        chunk({"content": "ä€"}),
        chunk({"content": "\U0001f600"}),
        chunk(
            {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "two", "arguments": ""}}]}
        ),
        chunk(
            {
                "tool_calls": [
                    {"index": 0, "id": "a", "function": {"name": "one", "arguments": '{"x"'}}
                ]
            }
        ),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}),
        chunk({}, finish_reason="tool_calls"),
        '{"choices": null, "usage": {"prompt_tokens": 3, "completion_tokens": 4}}',
        "[DONE]",
    ).replace(b"\n", b"\r\n")
    with serving(sse(data)) as server:
        pieces, reply = streamed(opened("openai", server.url), request())
        assert sent_to(server)["stream_options"] == {"include_usage": True}
    assert pieces == ["ä€\U0001f600"]
    assert [(call["id"], call["name"], call["args"]) for call in reply.tool_calls] == [
        ("a", "one", {"x": 1}),
        ("b", "two", {}),
    ]
    assert (reply.text, reply.usage) == ("ä€\U0001f600", (3, 4, False))


@pytest.mark.parametrize("end", [(), ("[DONE]",)])
def test_a_stream_is_whole_with_the_reason_for_its_end(end: tuple[str, ...]) -> None:
    with serving(sse(events(chunk({"content": "hi"}, finish_reason="stop"), *end))) as server:
        reply = streamed(opened("openai", server.url), request())[1]
    assert (reply.text, reply.finish, reply.usage.estimated) == ("hi", "stop", True)


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(
    "data",
    [
        events(chunk({"content": "half"})),
        events(chunk({"content": "half"})) + b"data: {",
        events(chunk({"content": "half"}), "{no json"),
        events(chunk({"content": "half"})) + b"data: \xff\n\n",
        events(
            chunk({"content": "half"}),
            '{"error": {"message": "it went wrong", "type": "server_error"}}',
        ),
    ],
)
def test_a_broken_stream_keeps_its_text_and_is_no_answer(data: bytes, cut: bool) -> None:
    with serving(sse(data, cut=cut)) as server:
        error = failure(opened("openai", server.url), request(), stream=True)
    assert (error.kind, error.retryable, error.partial) == ("protocol", False, "half")


def test_the_text_of_a_broken_stream_is_masked() -> None:
    pieces = [chunk({"content": piece}) for piece in ("key: ", KEY[:9], KEY[9:])]
    with serving(sse(events(*pieces))) as server:
        error = failure(opened("openai", server.url), request(), stream=True)
    assert error.partial.startswith("key: ")
    assert KEY not in error.partial


START = {"type": "message_start", "message": {"id": "x"}}
ENDED = {
    "type": "message_delta",
    "delta": {"stop_reason": "end_turn"},
    "usage": {"output_tokens": 1},
}


@pytest.mark.parametrize(
    ("adapter", "data"),
    [
        ("openai", events(chunk({"content": "hi"}), "[DONE]")),
        ("anthropic", events(json.dumps(START), json.dumps(ENDED), '{"type": "message_stop"}')),
    ],
)
def test_after_its_last_event_a_stream_is_not_waited_for(adapter: str, data: bytes) -> None:
    def answer(conversation: Conversation) -> None:
        conversation.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + data)
        conversation.hold()

    with serving(answer) as server:
        assert streamed(opened(adapter, server.url), request())[1].finish == "stop"


def test_a_message_is_whole_with_the_reason_for_its_end() -> None:
    with serving(sse(events(json.dumps(START), json.dumps(ENDED)))) as server:
        assert streamed(opened("anthropic", server.url), request())[1].finish == "stop"
    with serving(sse(events(json.dumps(START)))) as server:
        assert failure(opened("anthropic", server.url), request(), stream=True).kind == "protocol"


def test_a_call_without_pieces_has_the_arguments_that_it_began_with_and_their_number_is_bounded() -> (
    None
):
    def block(index: int) -> str:
        begun = {"type": "tool_use", "id": "t", "name": "n", "input": {"n": index}}
        return json.dumps({"type": "content_block_start", "index": index, "content_block": begun})

    blocks = events(json.dumps(START), *map(block, range(300)), json.dumps(ENDED))
    with serving(answering(blocks, headers="Content-Type: text/event-stream")) as server:
        calls = streamed(opened("anthropic", server.url), request())[1].tool_calls
    assert [call["args"] for call in calls] == [{"n": index} for index in range(256)]
    pieces = [
        chunk(
            {
                "tool_calls": [
                    {"index": index, "id": "t", "function": {"name": "n", "arguments": "{}"}}
                ]
            }
        )
        for index in range(300)
    ]
    with serving(
        answering(events(*pieces, "[DONE]"), headers="Content-Type: text/event-stream")
    ) as server:
        assert len(streamed(opened("openai", server.url), request())[1].tool_calls) == 128


def test_an_error_that_is_no_json_is_quoted(adapter: str) -> None:
    body = b"<html>\n  <b>away</b> for lunch</html>"
    with serving(answering(body, status="503 Away")) as server:
        assert (
            "HTTP 503: <html> <b>away</b> for lunch"
            in failure(opened(adapter, server.url), request()).message
        )


def test_a_connection_lost_before_any_text_may_be_tried_again() -> None:
    with serving(sse(b"", cut=True)) as server:
        error = failure(opened("openai", server.url), request(), stream=True)
    assert (error.kind, error.retryable, error.partial) == ("unreachable", True, "")


def test_an_error_inside_a_stream_has_its_kind() -> None:
    start = json.dumps({"type": "message_start", "message": {"usage": {"input_tokens": 3}}})
    for type, kind in (
        ("overloaded_error", "overloaded"),
        ("rate_limit_error", "rate_limited"),
        ("authentication_error", "auth"),
        ("api_error", "protocol"),
    ):
        said = json.dumps({"type": "error", "error": {"type": type, "message": "no"}})
        with serving(sse(events(start, said))) as server:
            assert failure(opened("anthropic", server.url), request(), stream=True).kind == kind


def test_blocks_of_a_stream_are_told_apart_and_unknown_events_passed_over() -> None:
    def event(type: str, **members: Any) -> str:
        return json.dumps({"type": type, **members})

    def delta(index: Any, type: str, text: str) -> str:
        name = (
            "text"
            if type == "text_delta"
            else "partial_json"
            if type == "input_json_delta"
            else "thinking"
        )
        return event("content_block_delta", index=index, delta={"type": type, name: text})

    data = events(
        event("message_start", message={"id": "msg", "model": "m-1", "usage": {"input_tokens": 9}}),
        event("ping"),
        event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
        delta(0, "thinking_delta", "secretly"),
        event("content_block_start", index=1, content_block={"type": "text", "text": ""}),
        delta(1, "text_delta", "one "),
        event("something_new", x=1),
        delta(7, "text_delta", "of no block"),
        delta(1, "text_delta", "two"),
        event("content_block_start", index=2, content_block={"type": "tool_use", "id": "t", "name": "n", "input": {}}),
        delta(2, "input_json_delta", '{"a":'),
        delta(2, "input_json_delta", " 1}"),
        event("content_block_start", index=3, content_block={"type": "tool_use", "id": "u", "name": "n", "input": {}}),
        event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 5}),
        event("message_stop"),
    )  # fmt: skip
    with serving(sse(data)) as server:
        pieces, reply = streamed(opened("anthropic", server.url), request())
    assert (pieces, reply.text) == (["one ", "two"], "one two")
    assert [call["args"] for call in reply.tool_calls] == [{"a": 1}, {}]
    assert (reply.usage, reply.model, reply.request_id) == ((9, 5, False), "m-1", "msg")


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_chunks_of_any_form_break_nothing(odd: Any) -> None:
    forms: list[Any] = [
        odd, {"choices": odd}, {"choices": [odd]}, {"choices": [{"delta": odd}]}, {"usage": odd},
        {"choices": [{"delta": {"content": odd, "tool_calls": odd}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": odd, "function": odd}]}, "finish_reason": odd}]},
    ]  # fmt: skip
    data = events(*map(json.dumps, forms), chunk({"content": "hi"}, finish_reason="stop"), "[DONE]")
    with serving(sse(data)) as server:
        assert streamed(opened("openai", server.url), request())[1].text.endswith("hi")
    blocks: list[Any] = [
        odd, {"type": odd}, {"type": "message_start", "message": odd},
        {"type": "content_block_start", "index": odd, "content_block": odd},
        {"type": "content_block_delta", "index": odd, "delta": odd},
        {"type": "message_delta", "delta": odd, "usage": odd},
        {"type": "message_start", "message": {"id": "x"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"},
    ]  # fmt: skip
    with serving(sse(events(*map(json.dumps, blocks)))) as server:
        assert streamed(opened("anthropic", server.url), request())[1].finish == "stop"


def test_a_server_that_does_not_stream_is_read_whole(adapter: str) -> None:
    with serving(answering(WHOLE[adapter])) as server:
        pieces, reply = streamed(opened(adapter, server.url), request())
    assert (pieces, reply.text) == (["hi"], "hi")


def test_the_time_of_a_request_is_the_shorter_of_its_own_and_the_settings(
    tiny_model: TinyModel,
) -> None:
    asked = opened("openai", tiny_model.address, "fault:slow", timeout_s=0.05)
    error = failure(asked, request(timeout_ms=600_000))
    assert isinstance(error, ModelError)
    assert (error.kind, error.retryable) == ("timeout", True)


def test_a_key_that_a_stream_brings_in_pieces_is_masked_in_each() -> None:
    text = f"your key is {KEY} I think"
    halves = [text[:15], text[15:18], text[18:]]
    parts = [chunk({"content": half}) for half in halves]
    with serving(sse(events(*parts, chunk({}, finish_reason="stop"), "[DONE]"))) as server:
        pieces, reply = streamed(opened("openai", server.url), request())
    assert pieces[0] == "your key is "
    assert "".join(pieces) == reply.text == "your key is [masked] I think"
