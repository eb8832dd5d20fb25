"""What an openapi binding makes of a reply: modes, failures, and what the record tells
(docs/reference/protocols.md#failures, docs/reference/protocols.md#replies)."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
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


def replying(
    body: bytes, status: str = "200 OK", headers: str = "Content-Type: application/json"
) -> Any:
    return lambda conversation: conversation.reply(body, status=status, headers=headers)


def body_of(answer: Any, **metadata: Any) -> Any:
    with serving(answer) as server, calling("openapi", server.url) as call:
        return call("a", **metadata).body


def failure_of(answer: Any, **metadata: Any) -> RuntimeErrorBase:
    with serving(answer) as server, calling("openapi", server.url) as call:
        return call.failure("a", **metadata)


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/problem+json",
        "",
    ],
)
def test_json_is_what_says_so_or_says_nothing(content_type: str) -> None:
    headers = f"Content-Type: {content_type}" if content_type else ""
    assert body_of(replying(b'{"a": [1, null]}', headers=headers)) == {"a": [1, None]}


@pytest.mark.parametrize("value", [[1], "text", 3, None, True])
def test_any_json_value_is_a_body(value: Any) -> None:
    assert body_of(replying(json.dumps(value).encode())) == value


def test_another_media_type_is_no_json_whatever_it_holds() -> None:
    error = failure_of(replying(b"{}", headers="Content-Type: text/html; charset=utf-8"))
    assert isinstance(error, ResponseMappingError)
    assert (error.code, error.message) == ("response.not-json", "non-JSON reply (text/html)")


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": NaN}',
        b'{"a": 1, "a": 2}',
        b"[" * 101 + b"]" * 101,
        b'{"a": "\xff"}',
        b"{} {}",
        b'"\\ud800"',
        b"1e999",
        b"{",
    ],
)
def test_json_that_is_not_strict_is_refused(body: bytes) -> None:
    error = failure_of(replying(body))
    assert (error.code, error.left) == ("response.not-json", True)


@pytest.mark.parametrize("status", ["200 OK", "204 No Content"])
def test_nothing_is_an_empty_object(status: str) -> None:
    def answer(conversation: Conversation) -> None:
        length = "" if status.startswith("204") else "Content-Length: 0\r\n"
        conversation.send(f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\n{length}\r\n".encode())

    assert body_of(answer) == {}
    assert body_of(answer, method="HEAD") == {}


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("grüß".encode(), "text/plain", "grüß"),
        ("grüß".encode("latin-1"), "text/plain; charset=ISO-8859-1", "grüß"),
        (b"", "text/plain", ""),
        (b"<p>", "text/html", "<p>"),
    ],
)
def test_text_is_decoded(body: bytes, content_type: str, text: str) -> None:
    got = body_of(replying(body, headers=f"Content-Type: {content_type}"), response_mode="text")
    assert got == {"text": text}


@pytest.mark.parametrize(
    "content_type", ["text/plain", "text/plain; charset=utf-7", "text/plain; charset=hex"]
)
def test_bytes_that_are_no_text_are_refused(content_type: str) -> None:
    answer = replying(b"\xff\xfe\xfd", headers=f"Content-Type: {content_type}")
    assert failure_of(answer, response_mode="text").code == "response.not-json"


def test_raw_gives_what_came() -> None:
    plain = replying(b"{broken", headers="Content-Type: x/y; z=1")
    assert body_of(plain, response_mode="raw") == {"body": "{broken", "content_type": "x/y; z=1"}
    binary = replying(b"\xff\x00", headers="")
    assert body_of(binary, response_mode="raw") == {
        "body_base64": base64.b64encode(b"\xff\x00").decode(),
        "content_type": "",
    }


# -- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "cls", "code"),
    [
        (301, RejectedError, "call.rejected"),
        (304, RejectedError, "call.rejected"),
        (400, RejectedError, "call.rejected"),
        (401, RejectedError, "call.rejected"),
        (404, RejectedError, "call.rejected"),
        (429, OverloadedError, "call.overloaded"),
        (500, ServerFaultError, "call.server-error"),
        (501, ServerFaultError, "call.server-error"),
        (502, OverloadedError, "call.overloaded"),
        (503, OverloadedError, "call.overloaded"),
        (504, OverloadedError, "call.overloaded"),
        (599, ServerFaultError, "call.server-error"),
    ],
)
def test_a_status_tells_the_class_of_failure(
    status: int, cls: type[RuntimeErrorBase], code: str
) -> None:
    error = failure_of(
        lambda c: c.send(f"HTTP/1.1 {status} Said\r\nContent-Length: 0\r\n\r\n".encode())
    )
    assert type(error) is cls
    assert (error.code, error.left) == (code, True)
    assert f"POST /a: HTTP {status}" in error.message


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "write auth_ref in"),
        ({"auth_ref": "A_KEY"}, "what `auth_ref: A_KEY` in"),
        (
            {"auth_ref": "env:A_KEY", "metadata": {"headers": {"X-Key": "${B_KEY}"}}},
            "what `auth_ref: env:A_KEY` and variable `B_KEY` in",
        ),
    ],
)
def test_credentials_that_are_not_accepted_are_told_by_their_names(
    settings: dict[str, Any], said: str
) -> None:
    environ = {"A_KEY": "sesame-one", "B_KEY": "sesame-two"}
    refusing = replying(b"{}", status="403 Forbidden")
    with (
        serving(refusing) as server,
        calling("openapi", server.url, environ=environ, **settings) as call,
    ):
        error = call.failure("a")
    assert said in error.hint
    assert "sesame" not in error.message + error.hint


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"detail": "no such note"}', "no such note"),
        (b'{"error": {"message": "quota", "code": 3}}', "quota"),
        (
            b'{"title": "Bad", "detail": ["x"], "message": null}',
            '{"title": "Bad", "detail": ["x"], "message": null}',
        ),
        (b"plain\r\nwords \x1b[31m", "plain words \\x1b[31m"),
        (b"\xff\xfe", "��"),
        (b"[1]", "[1]"),
    ],
)
def test_a_failure_quotes_what_the_service_says(body: bytes, said: str) -> None:
    assert failure_of(replying(body, "422 No")).message == f"POST /a: HTTP 422: {said}"


def test_a_quote_is_short_and_masked_before_it_is_cut() -> None:
    body = b"x" * 490 + b"sesame-open-the-door" + b"y" * 5000
    with (
        serving(replying(body, "500 No", "Content-Type: text/plain")) as server,
        calling(
            "openapi", server.url, auth_ref="KEY", environ={"KEY": "sesame-open-the-door"}
        ) as call,
    ):
        message = call.failure("a").message
    assert len(message) < 560
    assert "sesame" not in message


def test_a_redirect_shows_its_target_and_goes_nowhere() -> None:
    with (
        serving(replying(b"", "302 Found", "Location: http://169.254.169.254/x")) as server,
        calling("openapi", server.url) as call,
    ):
        error = call.failure("a", headers={"X-API-Key": "sesame-open"})
        assert "redirected to http://169.254.169.254/x, which is not followed" in error.message
        assert len(server.requests) == 1


def in_seconds(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("7", 7, 7),
        ("99999999", 99999999, 99999999),
        (in_seconds(3600), 1000, 3600),
        (in_seconds(-3600), 0, 0),
    ],
    ids=["seconds", "many", "date", "past"],
)
def test_retry_after_is_read_in_both_forms(value: str, least: float, most: float) -> None:
    error = failure_of(replying(b"", "503 Busy", f"Retry-After: {value}"))
    assert error.retry_after is not None
    assert least <= error.retry_after <= most


@pytest.mark.parametrize("value", ["-5", "soon", "1.5", "", "٣", "Mon, 99 Foo 2020 00:00:00 GMT"])
def test_a_retry_after_nobody_can_read_says_nothing(value: str) -> None:
    def answer(conversation: Conversation) -> None:
        conversation.send(
            f"HTTP/1.1 429 Busy\r\nRetry-After: {value}\r\nContent-Length: 0\r\n\r\n".encode()
        )

    assert failure_of(answer).retry_after is None


# -- content_json -----------------------------------------------------------------------------------------------------


def chat(content: Any, **more: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"content": content, **more}}]}).encode()


ASKED = {"x": "response.choices.0.message.content_json.a"}


@pytest.mark.parametrize(
    "content",
    [
        '{"a": 1}',
        ' {"a": 1}\n',
        '```json\n{"a": 1}\n```',
        '\n```\n{"a": 1}\n```\n',
        '```JSON  \r\n{"a": 1}```',
    ],
)
def test_json_inside_a_message_is_read(content: str) -> None:
    message = body_of(replying(chat(content)), response=ASKED)["choices"][0]["message"]
    assert message == {"content": content, "content_json": {"a": 1}}


@pytest.mark.parametrize(
    "content", ["Sure! {}", '```json\n{"a": 1}\n```\nDone.', '{"a": 1, "a": 2}', "", "```{}```"]
)
def test_a_message_without_json_says_how_it_begins(content: str) -> None:
    error = failure_of(replying(chat(content)), response=ASKED)
    assert error.code == "response.missing"
    assert error.message.endswith(f"holds no JSON: {content[:80]}".replace("\n", "\\n"))


def test_nothing_is_added_unless_it_is_asked_for_and_lacking() -> None:
    assert "content_json" not in body_of(replying(chat("{}")))["choices"][0]["message"]
    kept = body_of(replying(chat("no json", content_json=3)), response=ASKED)
    assert kept["choices"][0]["message"]["content_json"] == 3
    assert body_of(replying(b'{"choices": [3]}'), response=ASKED) == {"choices": [3]}


# -- the record -------------------------------------------------------------------------------------------------------


def test_the_record_tells_the_exchange_with_names_of_headers_only() -> None:
    with (
        serving(replying(b'{"text": "hi"}')) as server,
        calling("openapi", server.url, auth_ref="KEY", environ={"KEY": "sesame-open"}) as call,
    ):
        record = call("say", {"text": "ho"}).meta.to_payload()
    assert record.pop("started_at").endswith("Z")
    assert record.pop("duration_ms") >= 0
    sent = ["accept", "authorization", "content-type", "traceparent", "user-agent"]
    assert record == {
        "method": "POST",
        "url": f"{server.url}/say",
        "status_code": 200,
        "media_type": "application/json",
        "request_bytes": 13,
        "response_bytes": 14,
        "request": {"media_type": "application/json", "headers": sent, "body": {"text": "ho"}},
        "reply": {
            "media_type": "application/json",
            "headers": ["content-length", "content-type"],
            "body": {"text": "hi"},
        },
    }


def test_a_failure_is_recorded_as_well() -> None:
    record = failure_of(replying(b"oh no", "500 No", "Content-Type: text/plain")).record
    assert record is not None
    assert (record["status_code"], record["reply"]["body"]) == (500, "oh no")  # type: ignore[index]
    silent = failure_of(lambda c: c.close()).record
    assert silent is not None
    assert silent["method"] == "POST"
    assert "reply" not in silent


@pytest.mark.parametrize(
    ("usage", "counted", "odd"),
    [
        ({"input_tokens": 3, "output_tokens": 4}, {"input_tokens": 3, "output_tokens": 4}, []),
        (
            {"prompt_tokens": 3, "completion_tokens": -1, "total_tokens": None},
            {"prompt_tokens": 3},
            ["completion_tokens"],
        ),
        (
            {"input_tokens": True, "output_tokens": 1.5, "x_tokens": "4"},
            None,
            ["input_tokens", "output_tokens", "x_tokens"],
        ),
        ("lots", None, []),
    ],
)
def test_usage_is_counted_where_it_can_be_and_told_where_not(
    usage: Any, counted: Any, odd: Any
) -> None:
    body = json.dumps(
        {"usage": usage, "model": "m-1", "choices": [{"finish_reason": "stop"}]}
    ).encode()
    with serving(replying(body)) as server, calling("openapi", server.url) as call:
        meta = call("a").meta
    assert (meta.usage, meta.model, meta.finish_reason) == (counted, "m-1", "stop")
    refused = [notice.split("`")[1] for notice in meta.notices or ()]
    assert refused == odd
