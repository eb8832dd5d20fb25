"""Optional inputs that were not given, inside the texts of a request (docs/reference/binding.md#request)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.raw_server import Conversation, serving
from support.remote_project import RUN, remote

pytestmark = pytest.mark.sampled(8)

INPUTS = "{text: {type: string, required: true}, part: {type: string}}"
DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        "/notes/{id}": {
            "get": {
                "operationId": "getNote",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "q", "in": "query", "schema": {"type": "string"}},
                    {"name": "X-Part", "in": "header", "schema": {"type": "string"}},
                ],
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"type": "object"}}}}
                },
            }
        }
    },
}


def ok(conversation: Conversation) -> None:
    conversation.reply(b'{"text": "found"}')


def test_nothing_stands_in_a_text_where_an_optional_input_was_not_given(project: Any) -> None:
    with serving(ok) as server:
        request = '{id: input.text, q: "tag:${input.part}", X-Part: "[${input.part}]"}'
        project.write("docs/api.json", json.dumps(DOCUMENT))
        spec = "spec_ref: docs/api.json"
        remote(
            project, "openapi", server.url, "getNote", inputs=INPUTS, request=request, service=spec
        )
        seen = project.run(*RUN, "-p", "text=a").assert_ok().json
        assert [each["code"] for each in seen["warnings"]].count("request.optional") == 2
        assert server.requests[-1].line.split()[1] == "/notes/a?q=tag%3A"
        assert server.requests[-1].headers["x-part"] == "[]"
        project.run(*RUN, "-p", "text=a", "-p", "part=b").assert_ok()
        assert server.requests[-1].line.split()[1] == "/notes/a?q=tag%3Ab"
    project.run("replay", "@last").assert_ok()
    project.run("verify", "@last").assert_ok()


@pytest.mark.parametrize(
    ("operation", "spec"), [("getNote", "spec_ref: docs/api.json"), ("notes/{id}", "")]
)
def test_a_path_that_lacks_a_part_is_not_sent(project: Any, operation: str, spec: str) -> None:
    project.write("docs/api.json", json.dumps(DOCUMENT))
    request, metadata = '{id: "n-${input.part}", q: input.text}', "{method: GET}"
    with serving(ok) as server:
        remote(
            project,
            "openapi",
            server.url,
            operation,
            inputs=INPUTS,
            request=request,
            service=spec,
            metadata=metadata,
        )
        warned = project.run("validate", "--json").json["problems"]
        assert [
            each["message"].partition(": ")[2]
            for each in warned
            if each["code"] == "request.optional"
        ] == [
            "`request.id`: optional input `part` inside text: a call without it fails, as that would be another path"
        ]
        failed = project.run(*RUN, "-p", "text=a").assert_exit(1).json["error"]
        assert failed["code"] == "request.missing"
        assert "another path" in failed["message"]
        assert server.requests == []
        project.run(*RUN, "-p", "text=a", "-p", "part=7").assert_ok()
        assert server.requests[-1].line.split()[1] == "/notes/n-7?q=a"


def test_what_a_check_reads_is_an_input(project: Any) -> None:
    remote(project, "openapi", "http://127.0.0.1:9", "ask")
    binding = project.root / "bindings/local/remote.thing.ask/ask.yaml"
    binding.write_text(
        f"{binding.read_text()}checks: [{{path: text, op: verbatim_in, value: 'a ${{input.txt}}'}}]\n"
    )
    (problem,) = project.run("validate", "--json").assert_exit(1).json["problems"]
    assert (problem["code"], problem["line"]) == ("request.input", 9)
