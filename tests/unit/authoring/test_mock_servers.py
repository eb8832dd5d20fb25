"""The servers that stand in for services, asked over real sockets."""

from __future__ import annotations

import json
import socket
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from ruamel.yaml import YAML

from cogcli.authoring.verification.loopback_server import Loopback
from cogcli.authoring.verification.named_mocks import STAND_INS, canned_replies, named_mock
from cogcli.base.api_documents.openapi import OpenApiDocument
from cogcli.declarations.scenario_spec import CannedReply
from cogcli.protocols.exchange import (
    ReceivedRequest,
    Responder,
    ServerReply,
    exchange_from_mock,
    json_reply,
)
from cogcli.protocols.openapi.document import DocumentMock
from cogcli.protocols.openapi.judge import judge_exchange

DOCUMENTS = Path(__file__).parents[3] / "tooling/openapi_scenarios/registry/documents"
CLIENT = {"X-Notes-Client": "test"}


class Got(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    server: Loopback,
    method: str,
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> Got:
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=20)
    given = dict(headers or {})
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    if data is not None:
        given.setdefault("Content-Type", "application/json")
    try:
        connection.request(method, path, data, given)
        reply = connection.getresponse()
        return Got(reply.status, {k.lower(): v for k, v in reply.headers.items()}, reply.read())
    finally:
        connection.close()


def document(name: str) -> Any:
    return YAML(typ="safe", pure=True).load((DOCUMENTS / name).read_text())


@pytest.fixture(scope="module")
def notes() -> Any:
    with Loopback(DocumentMock(document("notes.yaml"), "/api/")) as server:
        yield server


def test_the_example_of_the_document_is_answered(notes: Loopback) -> None:
    got = ask(notes, "GET", "/api/notes/n-1?lang=en", headers=CLIENT)
    assert (got.status, got.headers["content-type"]) == (200, "application/json")
    assert got.json == {"id": "harbour/1", "text": "The harbour opens at six.", "lang": "en"}
    assert ask(notes, "GET", "/api/notes?tag=a&tag=b&limit=2").json[0]["id"] == "n-1"


def test_without_an_example_the_smallest_value_is_answered(notes: Loopback) -> None:
    got = ask(notes, "POST", "/api/notes", {"text": "x"})
    assert (got.status, got.json) == (201, {"id": "n-1", "text": "The harbour opens at six."})


@pytest.mark.parametrize(
    ("sent", "pattern"),
    [("%2525", "^%25$"), ("%25", "^%$"), ("a%2Fb", "^a/b$"), ("%252F", "^%2F$")],
)
def test_a_path_value_is_decoded_once_by_the_mock_and_by_the_judge(sent: str, pattern: str) -> None:
    schema = {"type": "string", "pattern": pattern}
    parameter = {"name": "id", "in": "path", "required": True, "schema": schema}
    operation = {
        "operationId": "get",
        "parameters": [parameter],
        "responses": {"204": {"description": "done"}},
    }
    info = {"title": "t", "version": "1"}
    value = {"openapi": "3.1.0", "info": info, "paths": {"/things/{id}": {"get": operation}}}
    seen = ReceivedRequest("GET", f"/things/{sent}", "", {}, b"")
    reply = DocumentMock(value)(seen)
    assert reply.status == 204
    document = OpenApiDocument(value)
    checks = judge_exchange(
        exchange_from_mock(seen, reply), document, document.operation("get", None), ""
    )
    assert [check for check in checks if not check.passed] == []


def test_text_and_nothing_are_answered_too(notes: Loopback) -> None:
    got = ask(notes, "GET", "/api/notes/n-1/text")
    assert (got.body, got.headers["content-type"]) == (b"The harbour opens at six.", "text/plain")
    gone = ask(notes, "DELETE", "/api/notes/n-1")
    assert (gone.status, gone.body) == (204, b"")


REFUSED: dict[str, tuple[int, str, tuple[Any, ...]]] = {
    "unknown path": (404, "", ("GET", "/api/note")),
    "outside the base": (404, "", ("GET", "/notes")),
    "method": (405, "", ("PUT", "/api/notes")),
    "header missing": (422, "/header/X-Notes-Client", ("GET", "/api/notes/n-1")),
    "query value": (422, "/query/lang", ("GET", "/api/notes/n-1?lang=fr", None, CLIENT)),
    "query type": (422, "/query/limit", ("GET", "/api/notes?limit=many")),
    "query bound": (422, "/query/limit", ("GET", "/api/notes?limit=0")),
    "query unknown": (422, "/query/tags", ("GET", "/api/notes?tags=a")),
    "body missing": (422, "/body", ("POST", "/api/notes")),
    "body type": (422, "/body/text", ("POST", "/api/notes", {"text": 1})),
    "body member": (422, "/body", ("POST", "/api/notes", {})),
    "body no JSON": (422, "/body", ("POST", "/api/notes", b"{")),
    "body media type": (422, "/header/content-type", ("POST", "/api/notes", b"{}", {"Content-Type": "text/plain"})),
    "body unasked": (422, "/body", ("DELETE", "/api/notes/n-1", {})),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_requests_that_break_the_document_are_refused(notes: Loopback, name: str) -> None:
    status, pointer, asked = REFUSED[name]
    got = ask(notes, *asked)
    assert got.status == status, got.body
    if pointer:
        assert got.json["errors"][0]["pointer"] == pointer
    if status == 405:
        assert got.headers["allow"] == "GET, POST"


def test_a_status_can_be_preferred(notes: Loopback) -> None:
    assert (
        ask(notes, "GET", "/api/notes/n-1", headers={**CLIENT, "Prefer": "code=404"}).status == 404
    )
    assert ask(notes, "GET", "/api/notes", headers={"Prefer": "code=418"}).json["message"] == (
        "status 418 is not declared"
    )


def test_a_reply_that_cannot_be_made_is_500() -> None:
    value = {
        "openapi": "3.1.0",
        "paths": {
            "/x": {
                "get": {"responses": {"200": {"content": {"application/json": {"schema": False}}}}}
            }
        },
    }
    with Loopback(DocumentMock(value)) as server:
        assert ask(server, "GET", "/x").status == 500


STOOD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "data_schema_validate": ({"data": {}, "schema": {}}, {"valid": True, "errors": []}),
    "text_summarize": ({"text": "a b"}, {"summary": "a b"}),
    "code_execute": ({"code": "1 + 1"}, {"result": None}),
    "web_fetch": (
        {"url": "https://example.org/"},
        {"content": "mock content of https://example.org/"},
    ),
    "pdf_read": ({"path": "a.pdf"}, {"text": "mock text of a.pdf"}),
    "fs_read": ({"path": "a.txt"}, {"content": "mock content of a.txt"}),
    "audio_transcribe": ({"audio": "a.wav"}, {"transcript": "mock transcript of a.wav"}),
    "agent_route": ({"agents": ["first", "second"]}, {"route": "first", "confidence": 0.95}),
    "model_research": ({"query": "tides"}, {"summary": "mock research on tides"}),
}


@pytest.mark.parametrize("type", STAND_INS)
def test_a_stand_in_makes_its_reply_from_the_request(type: str) -> None:
    asked, wanted = STOOD[type]
    with Loopback(named_mock(type)) as server:
        got = ask(server, "POST", "/whatever", asked)
        assert got.status == 200
        assert got.json.items() >= wanted.items()
        assert ask(server, "GET", "/whatever").status == 405
        assert ask(server, "POST", "/whatever", b"[]").status == 400


def test_stand_ins_refuse_what_their_service_would() -> None:
    with Loopback(named_mock("text_summarize")) as server:
        assert ask(server, "POST", "/", {"text": 1}).status == 422
        long = ask(server, "POST", "/", {"text": " ".join(map(str, range(30)))}).json["summary"]
        assert long.split()[-2:] == ["19", "..."]
    with Loopback(named_mock("data_schema_validate")) as server:
        assert ask(server, "POST", "/", {"data": [], "schema": {}}).json["valid"] is False


def test_canned_replies_come_in_turn_and_the_last_repeats() -> None:
    replies = (
        CannedReply(status=503, headers={"Retry-After": "1"}),
        CannedReply(body={"a": 1}),
    )
    with Loopback(canned_replies(replies)) as server:
        first, second, third = (ask(server, "GET", "/") for _ in range(3))
    assert (first.status, first.headers["retry-after"], first.body) == (503, "1", b"")
    assert second.json == third.json == {"a": 1}
    assert [seen.method for seen in server.seen] == ["GET"] * 3


def test_a_taken_port_is_replaced_by_a_free_one() -> None:
    answering: Responder = lambda seen: json_reply({})  # noqa: E731
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with Loopback(answering, port=port) as server:
            assert urlsplit(server.url).port != port
            assert ask(server, "GET", "/").status == 200


def test_a_server_that_fails_answers_500_and_ends_with_its_block() -> None:
    def answering(seen: Any) -> ServerReply:
        raise ValueError("no")

    with Loopback(answering) as server:
        assert ask(server, "GET", "/").status == 500
        assert len(server.faults) == 1
    with pytest.raises(OSError, match="refused"):
        ask(server, "GET", "/")
