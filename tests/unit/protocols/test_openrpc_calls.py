"""JSON-RPC calls: what goes out, and which answers count (docs/reference/protocols.md#openrpc)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.invoking import calling
from support.raw_server import Conversation, serving

from cogcli.base.errors import (
    OverloadedError,
    RejectedError,
    ResponseMappingError,
    RuntimeErrorBase,
    ServerFaultError,
)

DOCUMENT = """
openrpc: "1.3.2"
info: {title: Sums, version: "1"}
methods:
  - name: sum
    paramStructure: by-position
    params:
      - {name: a, required: true, schema: {type: number}}
      - {name: b, schema: {type: number}}
      - {name: c, schema: {type: number}}
    result: {name: total, schema: {type: number}}
  - name: log
    params: [{name: text, schema: {type: string}}]
"""


def answering(**members: Any) -> Any:
    """A server that answers with these members besides version and the id asked for."""

    def answer(conversation: Conversation) -> None:
        asked = json.loads(conversation.body)
        told = {"jsonrpc": "2.0", "id": asked.get("id"), **members}
        conversation.reply(json.dumps({k: v for k, v in told.items() if v != "ABSENT"}).encode())

    return answer


def failure_of(answer: Any, **rest: Any) -> RuntimeErrorBase:
    with serving(answer) as server, calling("openrpc", server.url) as call:
        return call.failure("m", **rest)


def test_calls_are_posted_with_ids_from_one() -> None:
    with (
        serving(answering(result={"x": [1]})) as server,
        calling("openrpc", f"{server.url}/rpc?v=1") as call,
    ):
        assert call("a.b", {"n": None}).body == {"x": [1]}
        assert call("a/c:d-e").body == {"x": [1]}
        assert [request.line for request in server.requests] == ["POST /rpc?v=1 HTTP/1.1"] * 2
        assert [json.loads(request.body) for request in server.requests] == [
            {"jsonrpc": "2.0", "method": "a.b", "params": {"n": None}, "id": 1},
            {"jsonrpc": "2.0", "method": "a/c:d-e", "params": {}, "id": 2},
        ]
        assert server.requests[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize("result", [None, 0, "", [], "text", {"a": 1}, False])
def test_the_result_is_the_body_whatever_its_type(result: Any) -> None:
    with serving(answering(result=result)) as server, calling("openrpc", server.url) as call:
        assert call("m").body == result


@pytest.mark.parametrize(
    ("payload", "params"),
    [({"a": 1}, [1]), ({"c": 3, "a": 1}, [1, None, 3]), ({"b": 2, "a": 1}, [1, 2]), ({}, [])],
)
def test_the_document_may_ask_for_parameters_by_position(
    tmp_path: Path, payload: Any, params: Any
) -> None:
    with (
        serving(answering(result=1)) as server,
        calling("openrpc", server.url, document=DOCUMENT, folder=tmp_path) as call,
    ):
        call("sum", payload)
        assert json.loads(server.requests[0].body)["params"] == params


def test_what_the_document_does_not_know_never_leaves(tmp_path: Path) -> None:
    with (
        serving(answering(result=1)) as server,
        calling("openrpc", server.url, document=DOCUMENT, folder=tmp_path) as call,
    ):
        assert call.failure("sums").code == "wire.operation"
        assert call.failure("sum", {"a": 1, "z": 1}).code == "request.value"
        assert server.requests == []


def said_empty(conversation: Conversation) -> None:
    conversation.send(b"HTTP/1.1 204 No Content\r\n\r\n")


@pytest.mark.parametrize(
    "answer", [said_empty, lambda c: c.reply(b"<p>", headers="Content-Type: text/html")]
)
def test_a_method_without_result_is_a_notification(tmp_path: Path, answer: Any) -> None:
    with (
        serving(answer) as server,
        calling("openrpc", server.url, document=DOCUMENT, folder=tmp_path) as call,
    ):
        assert call("log", {"text": "hi"}).body == {}
        assert json.loads(server.requests[0].body) == {
            "jsonrpc": "2.0",
            "method": "log",
            "params": {"text": "hi"},
        }


def test_a_notification_can_fail_by_status(tmp_path: Path) -> None:
    with (
        serving(lambda c: c.reply(b"", status="503 Busy")) as server,
        calling("openrpc", server.url, document=DOCUMENT, folder=tmp_path) as call,
    ):
        assert isinstance(call.failure("log"), OverloadedError)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"result": 1, "id": "1"}, 'its id is text "1", expected 1'),
        ({"result": 1, "id": 2}, "its id is number 2, expected 1"),
        ({"result": 1, "id": 1.0}, "its id is number 1.0, expected 1"),
        ({"result": 1, "id": True}, "its id is boolean true, expected 1"),
        ({"result": 1, "id": "ABSENT"}, "its id is null, expected 1"),
        ({"result": 1, "error": None}, "both `result` and `error`"),
        ({"result": None, "error": {"code": 1, "message": "x"}}, "both `result` and `error`"),
        ({}, "neither `result` nor `error`"),
        ({"result": 1, "jsonrpc": "1.0"}, 'no `jsonrpc: "2.0"`'),
        ({"result": 1, "jsonrpc": 2.0}, 'no `jsonrpc: "2.0"`'),
        ({"error": "no"}, "its `error` has no whole number"),
        ({"error": {"code": "1", "message": None}}, "its `error` has no whole number"),
        ({"error": {"code": 1.5, "message": "x"}}, "its `error` has no whole number"),
        ({"error": {"code": True, "message": "x"}}, "its `error` has no whole number"),
        ({"error": {"code": 1}}, "its `error` has no whole number"),
        ({"error": {"code": 1, "message": "x"}, "id": None}, "its id is null, expected 1"),
    ],
)
def test_a_malformed_answer_is_a_server_fault(members: Any, said: str) -> None:
    error = failure_of(answering(**members))
    assert isinstance(error, ServerFaultError)
    assert (error.code, error.left) == ("call.server-error", True)
    assert f"malformed answer: {said}" in error.message


@pytest.mark.parametrize("value", [[], [{"jsonrpc": "2.0", "id": 1, "result": 1}], "x", None, 3])
def test_an_answer_is_an_object(value: Any) -> None:
    assert "expected an object" in failure_of(lambda c: c.reply(json.dumps(value).encode())).message


@pytest.mark.parametrize(
    ("code", "cls"),
    [
        (-32603, ServerFaultError),
        (-32000, ServerFaultError),
        (-32099, ServerFaultError),
        (-32100, RejectedError),
        (-31999, RejectedError),
        (-32600, RejectedError),
        (-32601, RejectedError),
        (-32602, RejectedError),
        (-32700, RejectedError),
        (0, RejectedError),
        (7, RejectedError),
        (-(2**52), RejectedError),
    ],
)
@pytest.mark.parametrize("status", ["200 OK", "400 Bad", "500 Worse", "503 Busy"])
def test_an_errors_code_tells_the_class_whatever_the_status(
    code: int, cls: type[RuntimeErrorBase], status: str
) -> None:
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "why\x1b", "data": [1]}}
    )
    error = failure_of(lambda c: c.reply(body.encode(), status=status))
    assert type(error) is cls
    assert error.message == f"`m`: RPC error {code}: why\\x1b"
    assert error.hint == ("cogcli services refresh svc" if code == -32601 else "")
    assert error.record is not None


def test_an_error_about_an_unreadable_request_has_no_id() -> None:
    error = failure_of(answering(id=None, error={"code": -32700, "message": "Parse error"}))
    assert isinstance(error, RejectedError)


@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        (
            b"<html>\n<b>Hello",
            "Content-Type: text/html",
            "HTTP 200 with a non-JSON body (text/html): <html> <b>Hello",
        ),
        (b"", "Content-Type: application/json", "HTTP 200 with an empty body: "),
        (b"\xff\xfe", "", "HTTP 200 with a body that is not JSON"),
        (b'{"id": NaN}', "", "HTTP 200 with a body that is not JSON"),
        (b'{"id": 1, "id": 1}', "", "HTTP 200 with a body that is not JSON"),
    ],
)
def test_a_body_that_is_no_json_is_told_with_status_and_first_bytes(
    body: bytes, headers: str, said: str
) -> None:
    error = failure_of(lambda c: c.reply(body, headers=headers))
    assert isinstance(error, ResponseMappingError)
    assert error.code == "response.not-json"
    assert said in error.message


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("302 Found", "call.rejected"),
        ("404 No", "call.rejected"),
        ("500 No", "call.server-error"),
        ("429 No", "call.overloaded"),
    ],
)
def test_without_an_rpc_error_the_status_decides(status: str, code: str) -> None:
    result = json.dumps({"jsonrpc": "2.0", "id": 1, "result": 1}).encode()
    assert failure_of(lambda c: c.reply(result, status=status)).code == code
    assert failure_of(lambda c: c.reply(b"gone", status=status, headers="")).code == code


@pytest.mark.parametrize("method", ["rpc.discover", "a b", "m\nX", "", "m" * 129, "ä"])
def test_names_that_are_no_methods_never_leave(method: str) -> None:
    with serving(answering(result=1)) as server, calling("openrpc", server.url) as call:
        error = call.failure(method)
        assert (error.code, error.left) == ("request.value", False)
        assert server.requests == []


def test_headers_and_the_token_go_along() -> None:
    with (
        serving(answering(result=1)) as server,
        calling(
            "openrpc",
            server.url,
            auth_ref="KEY",
            environ={"KEY": "sesame-open"},
            metadata={"headers": {"X-A": "1"}},
        ) as call,
    ):
        call("m", headers={"X-B": "2"})
        got = server.requests[0].headers
    assert [got[name] for name in ("authorization", "x-a", "x-b", "traceparent")] == [
        "Bearer sesame-open", "1", "2", "00-a-b-01",
    ]  # fmt: skip
