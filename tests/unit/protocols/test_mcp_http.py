"""Tools called over streamable HTTP: the same calls, and the rules of every HTTP edge
(docs/reference/service.md#http, docs/reference/protocols.md#mcp-http)."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from support.mcp_calls import Caller
from support.mcp_http import Reply, answer, scripted, served, service

pytestmark = [pytest.mark.slow, pytest.mark.sampled(4)]


@pytest.fixture
def call() -> Iterator[Caller]:
    caller = Caller({"TOKEN": "sesame-sesame"})
    yield caller
    caller.invoker.close(5)


HTML = (("content-type", "text/html"),)
STREAM = (("content-type", "text/event-stream"),)


def to_call(reply: Reply) -> Any:
    """A script that gives a reply to `tools/call`, and is polite otherwise."""
    return lambda message: reply if message.get("method") == "tools/call" else None


@pytest.mark.parametrize("json_response", [False, True])
def test_a_real_server_is_called_like_any_other(call: Caller, json_response: bool) -> None:
    with served(json_response=json_response) as url:
        sums = service(url, auth_ref="TOKEN", headers={"X-Own": "mine"})
        result = call("add", {"a": 2, "b": 40}, service=sums)
        assert result.body == {"sum": 42}
        assert (result.meta.url, result.meta.status) == (url, 200)
        assert call("header", {"name": "authorization"}, service=sums).body == {
            "value": "Bearer sesame-sesame"
        }
        assert call("header", {"name": "x-own"}, service=sums).body == {"value": "mine"}
        told = call("header", {"name": "x-own"}, service=sums, headers={"x-own": "the binding's"})
        assert told.body == {"value": "the binding's"}
        error = call.refused("refuse", {"text": "not today"}, service=sums)
        assert error.code == "call.rejected"
        assert "not today" in error.message
        call.invoker.close(5)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "call.rejected"),
        (404, "call.rejected"),
        (429, "call.overloaded"),
        (500, "call.server-error"),
        (503, "call.overloaded"),
    ],
)
def test_a_status_that_tells_a_failure_is_told_as_such(
    call: Caller, status: int, code: str
) -> None:
    with scripted(to_call(Reply(status, b"no", (("retry-after", "7"),)))) as server:
        error = call.refused("ask", {}, service=service(server.url))
        wait = 7.0 if code == "call.overloaded" else None
        assert (error.code, error.left, error.retry_after) == (code, True, wait)
        assert error.record
        assert error.record["status_code"] == status
        call.invoker.close(5)


def test_an_rpc_error_counts_whatever_the_status(call: Caller) -> None:
    def reply(message: dict[str, Any]) -> Reply | None:
        if message.get("method") != "tools/call":
            return None
        error = {"code": -32602, "message": "no such argument"}
        return Reply(
            400, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
        )

    with scripted(reply) as server:
        error = call.refused("ask", {}, service=service(server.url))
        assert (error.code, error.message) == ("call.rejected", "no such argument (code -32602)")
        call.invoker.close(5)


def test_a_redirect_is_never_followed(call: Caller) -> None:
    where = ("location", "/elsewhere")
    with scripted(to_call(Reply(307, b"", (where,)))) as server:
        error = call.refused("ask", {}, service=service(server.url))
        assert error.code == "call.rejected"
        assert "not followed" in error.message
        assert sum(message.get("method") == "tools/call" for message in server.seen) == 1
        call.invoker.close(5)


@pytest.mark.parametrize(
    ("body", "headers", "code"),
    [
        (
            b'{"jsonrpc":"2.0","id":1,"result":{"x":"' + b"y" * 9_000_000 + b'"}}',
            (),
            "response.size",
        ),
        (gzip.compress(b" " * 20_000_000), (("content-encoding", "gzip"),), "response.not-json"),
        (b"<html>", (), "response.not-json"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}', (), "response.not-json"),
        (b'{"hello":1}', (), "call.server-error"),
    ],
)
def test_a_body_is_capped_and_never_unpacked(
    call: Caller, body: bytes, headers: tuple[tuple[str, str], ...], code: str
) -> None:
    reply = Reply(200, body, (("content-type", "application/json"), *headers))
    with scripted(to_call(reply)) as server:
        assert call.refused("ask", {}, service=service(server.url)).code == code
        call.invoker.close(5)


@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (Reply(200, b"<html>hello", HTML), "response.not-json", "`text/html`: <html>hello"),
        (Reply(200, b"data: {broken}\n\n", STREAM), "response.not-json", "the reply is refused"),
        (Reply(200, b"data: {}\n\n", STREAM), "call.server-error", "not a JSON-RPC message"),
        (Reply(200, b": nothing\n\n", STREAM), "call.transport", "ended before the reply"),
        (Reply(200, b"data: " + b"x" * 9_000_000, STREAM), "response.size", "more than 8,388,608 bytes"),
        (Reply(202, b"", ()), "call.server-error", "HTTP 202"),
        (Reply(418, b"short and stout", ()), "call.rejected", "HTTP 418: short and stout"),
    ],
)  # fmt: skip
def test_what_the_library_would_say_is_said_in_our_own_words(
    call: Caller, reply: Reply, code: str, said: str
) -> None:
    with scripted(to_call(reply)) as server:
        error = call.refused("ask", {}, service=service(server.url))
        assert (error.code, error.left) == (code, True)
        assert said in error.message
        for word in (
            "SSE",
            "Server returned",
            "Unexpected content",
            "validation error",
            "pydantic",
            "jsonrpc_",
        ):
            assert word not in error.message
        call.invoker.close(5)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"content": 5}, "malformed reply: `content` is not what the protocol has there"),
        ({"isError": False}, "malformed reply: `content` is missing"),
        ({"content": [{"type": "text"}]}, "malformed reply: `content.0.text` is missing"),
    ],
)
def test_a_result_of_another_form_is_told_by_its_place(
    call: Caller, result: dict[str, Any], said: str
) -> None:
    def reply(message: dict[str, Any]) -> Reply | None:
        return answer(message["id"], result) if message.get("method") == "tools/call" else None

    with scripted(reply) as server:
        error = call.refused("ask", {}, service=service(server.url))
        assert (error.code, error.message) == ("call.server-error", said)
        call.invoker.close(5)


def test_numbers_that_are_none_are_refused(call: Caller) -> None:
    def reply(message: dict[str, Any]) -> Reply | None:
        if message.get("method") != "tools/call":
            return None
        result = {"content": [], "structuredContent": {"a": float("nan")}}
        return answer(message["id"], result)

    with scripted(reply) as server:
        assert call.refused("ask", {}, service=service(server.url)).code == "response.not-json"
        call.invoker.close(5)


PROGRESS = (
    b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
)


def streamed(result: bytes, *, before: bytes = b"", end: bytes = b"\n", last: bool = True) -> Any:
    """The reply to a call as events: other lines first, then its result."""

    def reply(message: dict[str, Any]) -> Reply | None:
        if message.get("method") != "tools/call":
            return None
        frame = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (message["id"], result)
        body = before + b"id: 1\nevent: message\ndata: " + frame + (b"\n\n" if last else b"\n")
        return Reply(200, body.replace(b"\n", end), STREAM)

    return reply


GOOD = b'{"content":[],"structuredContent":{"a":1}}'


@pytest.mark.parametrize(
    "result",
    [
        b'{"content":[],"structuredContent":{"a":1,"a":2}}',
        b'{"content":[],"structuredContent":{"a":NaN}}',
        b'{"content":[],"structuredContent":{"a":' + b"[" * 500 + b"]" * 500 + b"}}",
        b'{"content":[],"structuredContent":{"a":"\xff"}}',
        b'{"content":[],"content":[],\ndata: "structuredContent":{"a":1}}',
    ],
    ids=["twice a key", "no number", "deep", "no UTF-8", "two lines of data"],
)
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_an_event_is_read_as_strictly_as_any_other_frame(
    call: Caller, result: bytes, end: bytes
) -> None:
    with scripted(streamed(result, end=end)) as server:
        error = call.refused("ask", {}, service=service(server.url))
        assert (error.code, error.left) == ("response.not-json", True)
        call.invoker.close(5)


@pytest.mark.parametrize("media", ["text/event-stream", "text/event-stream; charset=utf-16"])
def test_what_a_stream_says_about_its_text_lets_nothing_past(call: Caller, media: str) -> None:
    inner = streamed(b'{"content":[],"structuredContent":{"a":1,"a":2}}', last=False)

    def reply(message: dict[str, Any]) -> Reply | None:
        said = inner(message)
        return said and said._replace(headers=(("content-type", media),))

    with scripted(reply) as server:
        assert call.refused("ask", {}, service=service(server.url)).code == "response.not-json"
        call.invoker.close(5)


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize(
    "before",
    [
        b"",
        b"\n\n",
        b": hello\n\n",
        b"id: 0\ndata:\n\n",
        b"data: " + PROGRESS + b"\n\n",
        b"event: other\ndata: {{\n\n",
    ],
)
def test_events_that_are_sound_arrive(call: Caller, before: bytes, end: bytes) -> None:
    with scripted(streamed(GOOD, before=before, end=end)) as server:
        assert call("ask", {}, service=service(server.url)).body == {"a": 1}
        call.invoker.close(5)


def test_the_end_of_a_session_is_told_to_the_server(call: Caller) -> None:
    def reply(message: dict[str, Any]) -> Reply | None:
        if message.get("method") == "initialize":
            told = {"name": "scripted", "version": "1"}
            version = message["params"]["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": told}
            return answer(message["id"], result, ("mcp-session-id", "abc-1"))
        if message.get("method") == "tools/call":
            return answer(message["id"], {"content": [], "structuredContent": {"a": 1}})
        return None

    with scripted(reply) as server:
        assert call("ask", {}, service=service(server.url)).body == {"a": 1}
        call.invoker.close(5)
        assert server.seen[-1] == {"method": "DELETE"}
        calls = [message for message in server.seen if message.get("method") == "tools/call"]
        assert calls[0]["headers"]["mcp-session-id"] == "abc-1"


@pytest.mark.parametrize("handle", ["two words", "h\xe4ndle", "x" * 300])
def test_M23_a_session_handle_that_is_not_plain_is_not_used(call: Caller, handle: str) -> None:
    def reply(message: dict[str, Any]) -> Reply | None:
        return (
            answer(message["id"], {}, ("mcp-session-id", handle))
            if message.get("method") == "initialize"
            else None
        )

    with scripted(reply) as server:
        error = call.refused("ask", {}, service=service(server.url))
        assert (error.code, error.left) == ("call.server-error", False)
        assert "session id" in error.message
        assert not any(message["headers"].get("mcp-session-id") for message in server.seen)
        call.invoker.close(5)


def test_an_address_that_is_not_public_needs_a_word(call: Caller) -> None:
    with scripted(lambda message: None) as server:
        error = call.refused("ask", {}, service=service(server.url, network="public"))
        assert (error.code, error.left) == ("safety.scope", False)
        assert server.seen == []


def test_a_name_that_leads_to_such_an_address_is_refused_too(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.getaddrinfo

    def looked_up(host: Any, port: Any, *arguments: Any, **named: Any) -> Any:
        return real(
            "127.0.0.1" if host in ("rebound.example", b"rebound.example") else host,
            port,
            *arguments,
            **named,
        )

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    error = call.refused(
        "ask", {}, service=service("http://rebound.example:9/mcp", network="public")
    )
    assert (error.code, error.left) == ("safety.scope", False)


def test_nobody_there_is_a_transport_error(call: Caller) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = call.refused("ask", {}, service=service(f"http://127.0.0.1:{port}/mcp"))
    assert (error.code, error.left) == ("call.transport", False)


def test_a_server_that_is_not_there_is_told_by_its_address(call: Caller) -> None:
    with scripted(lambda message: None) as server:
        url = server.url
    error = call.refused("ask", {}, service=service(url))
    address = url.split("/")[2]
    assert (error.code, error.message) == ("call.transport", f"{address}: connection refused")
