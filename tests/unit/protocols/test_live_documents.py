"""What a service says about itself now, and what is not a document (docs/reference/protocols.md#mcp-pins)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes.surroundings import surroundings
from support.raw_server import Conversation, RawServer, serving

from cogcli.base.errors import RuntimeErrorBase
from cogcli.declarations.service_spec import Service
from cogcli.protocols.live_document import fetch_document
from cogcli.protocols.openapi.document import DOCUMENT_PATHS

API: dict[str, Any] = {"openapi": "3.1.0", "paths": {}}


def asked(server: RawServer, kind: str = "openapi", **settings: Any) -> dict[str, Any]:
    service = Service(
        id="svc",
        kind=kind,
        network="private",
        trusted=True,
        settings={"base_url": f"{server.url}/base/v1", **settings},
    )
    return fetch_document(service, surroundings({"LIVE_KEY": "sesame-open"}), 10)


def refused(answer: Any, kind: str = "openapi") -> RuntimeErrorBase:
    with serving(answer) as server, pytest.raises(RuntimeErrorBase) as caught:
        asked(server, kind)
    return caught.value


def only_at(target: str, body: bytes, media: str = "application/json") -> Any:
    """A server that has a document at one place."""

    def answer(conversation: Conversation) -> None:
        if conversation.line.split()[1] == target:
            conversation.reply(body, headers=f"Content-Type: {media}")
        else:
            conversation.reply(b"<p>", status="404 None", headers="Content-Type: text/html")

    return answer


@pytest.mark.parametrize(
    "place", [f"{base}/{name}" for base in ("/base/v1", "") for name in DOCUMENT_PATHS]
)
def test_a_document_is_found_where_servers_serve_it(place: str) -> None:
    with serving(only_at(place, json.dumps(API).encode())) as server:
        assert asked(server, auth_ref="LIVE_KEY") == API
        assert {each.headers["authorization"] for each in server.requests} == {"Bearer sesame-open"}


def test_a_document_may_be_yaml() -> None:
    text = b"openapi: 3.1.0\npaths: {}\n"
    with serving(only_at("/openapi.yaml", text, "application/yaml")) as server:
        assert asked(server) == API


def test_a_page_for_everything_is_no_document() -> None:
    error = refused(lambda c: c.reply(b"<html>", headers="Content-Type: text/html"))
    assert error.code == "call.rejected"
    assert "/base/v1/openapi.json (HTTP 200)" in error.message


@pytest.mark.parametrize(
    ("body", "status", "code", "said"),
    [
        (b"", "404 None", "call.rejected", "no document at"),
        (b"", "302 Found", "call.rejected", "no document at"),
        (b"", "503 Busy", "call.overloaded", "HTTP 503"),
        (b"{", "200 OK", "call.server-error", "svc"),
        (b"[]", "200 OK", "call.server-error", "expected a mapping"),
        (b'{"a": 1, "a": 2}', "200 OK", "call.server-error", "svc"),
        (b'{"a": {"$ref": "https://evil.example/x"}}', "200 OK", "call.server-error", "evil"),
        (b" " * (64 * 1024 * 1024 + 1), "200 OK", "response.size", "more than"),
    ],
)
def test_what_is_no_document_is_told(body: bytes, status: str, code: str, said: str) -> None:
    error = refused(lambda c: c.reply(body, status=status))
    assert (error.code, said in error.message) == (code, True)


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ({"error": {"code": -32601, "message": "none"}}, "call.rejected"),
        ({"result": 3}, "call.server-error"),
        ({"result": {}, "id": 2}, "call.server-error"),
    ],
)
def test_discovery_is_judged_like_any_answer(told: Any, code: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, **told}).encode()
    assert refused(lambda c: c.reply(body), "openrpc").code == code
