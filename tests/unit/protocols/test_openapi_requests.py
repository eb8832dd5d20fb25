"""What an openapi binding sends: URL, query, headers and body, with a document and without
(docs/reference/protocols.md#openapi)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.invoking import Caller, calling
from support.raw_server import Conversation, RawServer, serving

from cogcli.base.errors import RequestMappingError, ServiceResolutionError


def ok(conversation: Conversation) -> None:
    conversation.reply(b"{}")


@pytest.fixture
def server() -> Iterator[RawServer]:
    with serving(ok) as made:
        yield made


@pytest.fixture
def call(server: RawServer) -> Iterator[Caller]:
    with calling("openapi", f"{server.url}/api/v1") as caller:
        yield caller


def sent(server: RawServer) -> Conversation:
    return server.requests[-1]


# -- without a document -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "payload", "metadata", "line", "body"),
    [
        ("summarize", {"text": "hi"}, {}, "POST /api/v1/summarize", {"text": "hi"}),
        ("/summarize", {}, {}, "POST /api/v1/summarize", {}),
        ("/", {}, {"method": "GET"}, "GET /api/v1/", None),
        ("items/{id}", {"id": 7, "n": None}, {"method": "PUT"}, "PUT /api/v1/items/7", {"n": None}),
        ("items/{id}.json", {"id": True}, {"method": "GET"}, "GET /api/v1/items/true.json", None),
        (
            "a",
            {"q": "x y&z", "n": 1.5, "no": None},
            {"method": "GET"},
            "GET /api/v1/a?q=x%20y%26z&n=1.5",
            None,
        ),
        (
            "a",
            {"tag": ["x", "y"], "é": "ü"},
            {"method": "DELETE"},
            "DELETE /api/v1/a?tag=x&tag=y&%C3%A9=%C3%BC",
            None,
        ),
        ("a", {"q": []}, {"method": "HEAD"}, "HEAD /api/v1/a", None),
        ("a", {"deep": {"x": [1]}}, {"method": "PATCH"}, "PATCH /api/v1/a", {"deep": {"x": [1]}}),
    ],
)
def test_without_a_document_the_operation_is_the_path(
    server: RawServer,
    call: Caller,
    operation: str,
    payload: Any,
    metadata: Any,
    line: str,
    body: Any,
) -> None:
    call(operation, payload, **metadata)
    assert sent(server).line == f"{line} HTTP/1.1"
    assert (json.loads(sent(server).body) if sent(server).body else None) == body


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("a/b", "a%2Fb"),
        ("../../admin", "..%2F..%2Fadmin"),
        ("a?b=c#d", "a%3Fb%3Dc%23d"),
        ("%2e%2e", "%252e%252e"),
        ("...", "..."),
        ("a b\r\nX: y", "a%20b%0D%0AX%3A%20y"),
        ("{id}", "%7Bid%7D"),
        ("日本", "%E6%97%A5%E6%9C%AC"),
        (-3, "-3"),
        (2.0, "2.0"),
    ],
)
def test_path_values_are_encoded_whole(
    server: RawServer, call: Caller, value: Any, path: str
) -> None:
    call("items/{id}", {"id": value}, method="GET")
    assert sent(server).line == f"GET /api/v1/items/{path} HTTP/1.1"


@pytest.mark.parametrize("value", ["", ".", "..", None, [], ["a"], {"a": 1}])
def test_path_values_that_would_be_another_path_never_leave(
    server: RawServer, call: Caller, value: Any
) -> None:
    error = call.failure("items/{id}", {"id": value}, method="DELETE")
    assert isinstance(error, RequestMappingError)
    assert error.left is False
    assert server.requests == []


def test_two_values_cannot_make_dots_together(server: RawServer, call: Caller) -> None:
    error = call.failure("{a}{b}/x", {"a": ".", "b": "."}, method="GET")
    assert error.code == "request.value"
    assert call.failure("{a}.", {"a": "."}).code == "request.value"
    assert server.requests == []


@pytest.mark.parametrize(
    "operation", ["a b", "../x", "a//b", "a/./b", "http://other/", "a?b=1", "a#b", "a/{", "a/"]
)
def test_operations_that_are_no_paths_never_leave(
    server: RawServer, call: Caller, operation: str
) -> None:
    assert call.failure(operation).code == "request.value"
    assert server.requests == []


def test_a_query_takes_no_objects(call: Caller) -> None:
    assert "is object" in call.failure("a", {"q": {"x": 1}}, method="GET").message


def test_the_base_addresss_own_query_stays(server: RawServer) -> None:
    with calling("openapi", f"{server.url}/api/?version=1") as call:
        call("a", {"q": 2}, method="GET")
    assert sent(server).line == "GET /api/a?version=1&q=2 HTTP/1.1"


# -- with a document --------------------------------------------------------------------------------------------------

DOCUMENT = """
openapi: 3.1.0
info: {title: Notes, version: "1"}
servers: [{url: "SERVER/base"}]
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Notes-Key}
    bearer: {type: http, scheme: bearer}
paths:
  /notes/{id}:
    get:
      operationId: getNote
      security: [{key: []}]
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
        - {name: lang, in: query, required: true, schema: {type: string}}
        - {name: tag, in: query, schema: {type: array, items: {type: string}}}
        - {name: field, in: query, explode: false, schema: {type: array, items: {type: string}}}
        - {name: X-Mode, in: header, schema: {type: array, items: {type: string}}}
      responses: {"200": {description: ok}}
    delete:
      security: [{bearer: []}, {key: []}]
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses: {"204": {description: gone}}
  /notes:
    post:
      operationId: addNote
      parameters: [{name: id, in: query, schema: {type: string}}]
      requestBody:
        required: true
        content: {application/vnd.note+json: {schema: {type: object, properties: {id: {}, text: {}}}}}
      responses: {"200": {description: ok}}
  /search:
    post:
      operationId: search
      requestBody: {content: {application/json: {schema: {type: array}}}}
      responses: {"200": {description: ok}}
"""


@pytest.fixture
def notes(server: RawServer, tmp_path: Path) -> Iterator[Caller]:
    text = DOCUMENT.replace("SERVER", server.url)
    with calling(
        "openapi", document=text, folder=tmp_path, auth_ref="KEY", environ={"KEY": "sesame-open"}
    ) as caller:
        yield caller


def test_the_document_decides_method_path_and_places(server: RawServer, notes: Caller) -> None:
    payload = {
        "path.id": "a/b",
        "lang": "de",
        "tag": ["x", "y,z"],
        "field": ["p", "q,r"],
        "header.x-mode": ["1", 2],
    }
    notes("getNote", payload)
    assert (
        sent(server).line == "GET /base/notes/a%2Fb?lang=de&tag=x&tag=y%2Cz&field=p,q%2Cr HTTP/1.1"
    )
    assert sent(server).headers["x-mode"] == "1,2"
    assert sent(server).body == b""


def test_null_drops_an_optional_parameter_but_no_required_one(
    server: RawServer, notes: Caller
) -> None:
    notes("getNote", {"id": "1", "lang": "de", "tag": None})
    assert sent(server).line == "GET /base/notes/1?lang=de HTTP/1.1"
    error = notes.failure("getNote", {"id": "1", "lang": None})
    assert (error.code, error.left) == ("request.missing", False)
    assert "query.lang" in error.message


def test_a_body_is_built_from_its_properties_under_the_documents_media_type(
    server: RawServer, notes: Caller
) -> None:
    notes("addNote", {"body.id": 1, "query.id": "q", "text": None})
    assert sent(server).line == "POST /base/notes?id=q HTTP/1.1"
    assert json.loads(sent(server).body) == {"id": 1, "text": None}
    assert sent(server).headers["content-type"] == "application/vnd.note+json"
    notes("addNote", {})
    assert sent(server).body == b"{}"


def test_a_key_in_two_places_is_not_guessed(server: RawServer, notes: Caller) -> None:
    error = notes.failure("addNote", {"id": 1})
    assert isinstance(error, ServiceResolutionError)
    assert (error.code, error.hint) == ("wire.parameter", "say query.id or body.id")
    assert server.requests == []


def test_a_body_can_be_given_whole_or_not_at_all(server: RawServer, notes: Caller) -> None:
    notes("search", {"body": [1, 2]})
    assert sent(server).body == b"[1,2]"
    notes("search", {})
    assert sent(server).body == b""
    assert "content-type" not in sent(server).headers


def test_the_token_goes_where_the_document_wants_it(server: RawServer, notes: Caller) -> None:
    notes("getNote", {"id": "1", "lang": "de"})
    assert sent(server).headers["x-notes-key"] == "sesame-open"
    assert "authorization" not in sent(server).headers
    notes("/notes/{id}", {"id": "1"}, method="DELETE")
    assert sent(server).headers["authorization"] == "Bearer sesame-open"
    assert notes.learned == ["sesame-open"] * 2


def test_what_the_document_does_not_know_never_leaves(server: RawServer, notes: Caller) -> None:
    assert notes.failure("getNotes").code == "wire.operation"
    assert notes.failure("getNote", {"id": "1", "lang": "x"}, method="POST").code == "wire.method"
    assert server.requests == []


# -- headers ----------------------------------------------------------------------------------------------------------


def test_later_headers_win_without_regard_to_case(server: RawServer) -> None:
    metadata = {
        "headers": {"x-a": "service", "X-B": "service", "X-C": "service", "accept": "service"}
    }
    with calling("openapi", server.url, metadata=metadata) as call:
        call("a", headers={"X-a": "binding", "x-b": "binding"})
    got = sent(server).headers
    assert [got[name] for name in ("x-a", "x-b", "x-c", "accept")] == [
        "binding",
        "binding",
        "service",
        "service",
    ]
    assert sent(server).request.lower().count(b"x-a:") == 1


def test_what_is_sent_besides(server: RawServer, call: Caller) -> None:
    for effect, key in (
        ("none", None),
        ("unknown", None),
        ("idempotent", "run_1:s"),
        ("effect", "run_1:s"),
    ):
        call("a", effect=effect)
        assert sent(server).headers.get("idempotency-key") == key
    headers = sent(server).headers
    assert headers["traceparent"] == "00-a-b-01"
    assert headers["user-agent"].startswith("cogcli/")
    assert (headers["accept"], headers["content-type"]) == ("application/json", "application/json")


def test_variables_are_filled_in_once_and_learned(server: RawServer) -> None:
    environ = {"A_KEY": "${B_KEY}-secret", "B_KEY": "never"}
    with calling(
        "openapi", server.url, environ=environ, metadata={"headers": {"X-Key": "k ${A_KEY}"}}
    ) as call:
        call("a")
        assert sent(server).headers["x-key"] == "k ${B_KEY}-secret"
        assert call.learned == ["${B_KEY}-secret"]


@pytest.mark.parametrize("value", ["two\nlines", "übel", "nul\0"])
def test_a_value_no_header_can_hold_is_not_sent_and_not_shown(
    server: RawServer, value: str
) -> None:
    with calling(
        "openapi", server.url, environ={"A_KEY": value}, metadata={"headers": {"X-Key": "${A_KEY}"}}
    ) as call:
        error = call.failure("a")
    assert (error.code, error.left) == ("request.value", False)
    assert "X-Key" in error.message
    assert "variable `A_KEY`" in error.hint
    assert value not in error.message + error.hint
    assert server.requests == []


def test_a_token_no_header_can_hold_is_told_by_its_auth_ref(server: RawServer) -> None:
    with calling("openapi", server.url, environ={"A_KEY": "übel"}, auth_ref="env:A_KEY") as call:
        error = call.failure("a")
    assert (error.code, "auth_ref `env:A_KEY`" in error.hint) == ("request.value", True)
    assert server.requests == []


@pytest.mark.parametrize(
    "name", ["Host", "content-length", "Cookie", "proxy-authorization", "TE", "a b", "a:b", ""]
)
def test_headers_the_connection_lives_by_cannot_be_set(
    server: RawServer, call: Caller, name: str
) -> None:
    assert call.failure("a", headers={name: "x"}).code == "request.value"
    assert server.requests == []


def test_headers_have_a_cap(server: RawServer, call: Caller) -> None:
    error = call.failure("a", headers={f"X-{n}": "y" * 1000 for n in range(70)})
    assert (error.code, error.left) == ("request.size", False)
    assert server.requests == []


def test_an_untrusted_layer_gets_no_variable_and_no_secret(server: RawServer) -> None:
    environ = {"A_KEY": "sesame-open"}
    with calling("openapi", server.url, environ=environ) as call:
        assert (
            call.failure("a", headers={"X": "${A_KEY}"}, trusted=False).code == "service.untrusted"
        )
    for settings in ({"auth_ref": "A_KEY"}, {"metadata": {"headers": {"X": "${A_KEY}"}}}):
        with calling("openapi", server.url, environ=environ, trusted=False, **settings) as call:
            assert call.failure("a").code == "service.untrusted"
            assert call.learned == []
    assert server.requests == []


def test_an_untrusted_service_does_not_reach_private_addresses(server: RawServer) -> None:
    with calling("openapi", server.url, trusted=False) as call:
        assert call.failure("a").code == "safety.scope"
    assert server.requests == []


def test_a_missing_secret_sends_nothing(server: RawServer) -> None:
    with calling("openapi", server.url, auth_ref="GONE") as call:
        assert call.failure("a").code == "env.missing"
    assert server.requests == []


def test_the_cap_on_requests_holds(server: RawServer, call: Caller) -> None:
    assert call.failure("a", {"t": "x" * 100}, max_request_bytes=100).code == "request.size"
    assert server.requests == []
    call("a", {"t": "x" * 92}, max_request_bytes=100)
    assert len(sent(server).body) == 100


@pytest.mark.parametrize("value", ["\ud800", float("nan"), float("inf"), 2**64])
def test_what_json_cannot_hold_is_not_sent(server: RawServer, call: Caller, value: Any) -> None:
    assert call.failure("a", {"t": value}).code == "request.value"
    if not isinstance(value, int):
        assert call.failure("a", {"t": value}, method="GET").code == "request.value"
    assert server.requests == []
