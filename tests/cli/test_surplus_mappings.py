"""What a binding maps and nothing asks for, and replies that no document describes (docs/reference/binding.md#response,
docs/reference/protocols.md#wire-checks)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.raw_server import Conversation, serving
from support.remote_project import RUN, remote

GIVEN = {
    "content": {
        "application/json": {
            "schema": {"type": "object", "properties": {"word": {"type": "string"}}}
        }
    }
}
CLOSED = {
    "content": {"application/json": {"schema": {"type": "object", "additionalProperties": False}}}
}


def ok(conversation: Conversation) -> None:
    conversation.reply(b'{"text": "found", "more": 1}')


def project_with(
    project: Any, url: str, responses: dict[str, Any], response: str
) -> tuple[str, ...]:
    document = {
        "openapi": "3.1.0",
        "paths": {"/ask": {"post": {"operationId": "ask", "responses": responses}}},
    }
    project.write("docs/api.json", json.dumps(document))
    spec = "spec_ref: docs/api.json"
    return remote(project, "openapi", url, "ask", request="{}", response=response, service=spec)


@pytest.mark.parametrize("responses", [{"200": {"description": "ok"}}, {"201": {}, "204": {}}, {}])
def test_a_reply_that_the_document_does_not_describe_is_read_with_a_warning(
    project: Any, responses: dict[str, Any]
) -> None:
    with serving(ok) as server:
        project_with(project, server.url, responses, "{text: response.text, more: response.more}")
        seen = project.run(*RUN).assert_ok().json
    assert seen["outputs"] == {"text": "found"}
    codes = {each["code"] for each in seen["warnings"]}
    assert codes & {"response.field", "wire.response"} == {"response.field", "wire.response"}


@pytest.mark.parametrize(
    "responses", [{"204": {}}, {"200": CLOSED}, {"200": {"content": {"text/html": {}}}}]
)
def test_a_path_that_no_reply_can_hold_is_an_error(project: Any, responses: dict[str, Any]) -> None:
    project_with(project, "http://127.0.0.1:9", responses, "{text: response.text}")
    (problem,) = project.run(*RUN).assert_exit(3).json["problems"]
    assert (problem["code"], problem["severity"]) == ("wire.response", "E")
