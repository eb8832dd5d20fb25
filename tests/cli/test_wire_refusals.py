"""A binding that its service contradicts keeps a run from starting; doubts are told and stop nothing."""

from __future__ import annotations

from typing import Any

import pytest

DOCUMENT = """
openapi: 3.1.0
info: {title: Notes, version: "1"}
paths:
  /notes/{id}:
    get:
      operationId: getNote
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses:
        "200":
          content:
            application/json:
              schema: {type: object, required: [text], properties: {text: {type: string}}}
"""
SERVICE = "id: notes\nkind: openapi\nbase_url: http://127.0.0.1:9\nnetwork: private\nspec_ref: docs/notes.yaml\n"
CAPABILITY = """
id: note.item.read
version: "1.0.0"
description: Read.
inputs: {id: {type: string, required: true}}
outputs: {text: {type: string, required: true}}
properties: {side_effects: false}
"""
BINDING = """id: notes_read
capability: note.item.read
service: notes
protocol: openapi
operation: getNote
request: {path.id: input.id}
response: {text: response.text}
"""


@pytest.fixture
def notes(demo: Any) -> Any:
    project = demo
    project.write("docs/notes.yaml", DOCUMENT)
    project.write("services/local/notes.yaml", SERVICE)
    project.write("capabilities/note.item.read.yaml", CAPABILITY)
    project.write("bindings/local/note.item.read/notes.yaml", BINDING)
    project.skill(
        "note.read",
        "- {id: read, uses: note.item.read, input: {id: inputs.id}, output: {text: outputs.text}}",
        inputs="{id: {type: string, required: true}}",
        outputs="{text: {type: string, required: true}}",
    )
    return project


def rewrite(project: Any, file: str, old: str, new: str) -> None:
    path = project.root / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new", "code", "place"),
    [
        (
            "bindings/local/note.item.read/notes.yaml",
            "getNote",
            "getNotes",
            "wire.operation",
            "notes.yaml:5:12",
        ),
        (
            "bindings/local/note.item.read/notes.yaml",
            "path.id: input.id",
            "",
            "wire.parameter",
            "notes.yaml:6:1",
        ),
        (
            "docs/notes.yaml",
            "openapi: 3.1.0",
            "openapi: 2.0.0",
            "wire.document",
            "docs/notes.yaml:1:10",
        ),
    ],
)
def test_a_contradicted_binding_starts_no_run(
    notes: Any, file: str, old: str, new: str, code: str, place: str
) -> None:
    rewrite(notes, file, old, new)
    refused = notes.run("run", "note.read", "-p", "id=1", "--json").assert_exit(3).json
    assert [problem["code"] for problem in refused["problems"]] == [code]
    problem = refused["problems"][0]
    assert f"{problem['file']}:{problem['line']}:{problem['column']}".endswith(place)
    assert not list(notes.root.glob(".cogcli/episodes/*"))


def test_a_doubt_stops_nothing(notes: Any) -> None:
    rewrite(
        notes, "docs/notes.yaml", "schema: {type: string}}", "schema: {type: string, minLength: 1}}"
    )
    checked = notes.run("validate", "--json").assert_ok().json
    found = {problem["code"]: problem["message"] for problem in checked["problems"]}
    assert 'may be ""' in found["wire.type"]
    # Nobody listens on the discard port: the call went out.
    assert (
        notes.run("run", "note.read", "-p", "id=1", "--json").assert_exit(6).json["error"]["code"]
        == "call.transport"
    )


def test_bindings_that_a_skill_does_not_need_do_not_stop_it(notes: Any) -> None:
    rewrite(notes, "bindings/local/note.item.read/notes.yaml", "getNote", "getNotes")
    notes.run("run", "demo.greet", "-p", "text=hi").assert_ok()


@pytest.mark.parametrize("warm", [False, True])
def test_an_unknown_schema_engine_is_told_before_anything_runs(notes: Any, warm: bool) -> None:
    if warm:
        notes.run("validate").assert_ok()
    notes.env["COGCLI_SCHEMA_ENGINE"] = "fastest"
    for command in (
        ("validate",),
        ("run", "note.read", "-p", "id=1"),
        ("run", "demo.greet", "-p", "text=hi"),
    ):
        assert notes.run(*command, "--json").assert_exit(3).json["error"]["code"] == "config.key"
    assert not list(notes.root.glob(".cogcli/episodes/*"))
