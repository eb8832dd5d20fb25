"""Schemas of documents fit the fields that are made from them, and what is not known of them is a
note (docs/reference/command-line.md#new).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.project import Project, Result

TICKETS = Path(__file__).parents[1] / "documents/tickets.yaml"


@pytest.fixture
def begun(project: Project) -> Project:
    project.run("new", "project", ".").assert_ok()
    return project


def bind_all(project: Project, *words: str) -> Result:
    return project.run("new", "binding", "tickets", "--from-openapi", "api.yaml", "--all", *words)


def write_operation(project: Project, schema: Any, *, body: Any = None) -> None:
    """Write a document with one operation that answers with a schema, and takes a body."""
    content = {"application/json": {"schema": schema}}
    operation: dict[str, Any] = {
        "operationId": "change",
        "responses": {"200": {"description": "The result.", "content": content}},
    }
    if body is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": body}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Tickets", "version": "1.0.0"},
        "servers": [{"url": "https://tickets.example"}],
        "paths": {"/tickets": {"post": operation}},
    }
    project.write("api.yaml", json.dumps(document))


@pytest.mark.sampled(6)
def test_nullable_recursive_and_combined_schemas_fit_their_own_fields(begun: Project) -> None:
    begun.write("api.yaml", TICKETS.read_text())
    made = bind_all(begun, "--json").assert_ok()
    assert (made.json["bound"], made.json["skipped"]) == (2, 0)
    assert not [each for each in made.json["warnings"] if "wire." in each["message"]]
    begun.run("validate", "--strict").assert_ok()


def test_a_large_schema_fits_itself(begun: Project) -> None:
    names = [
        f"a-name-of-a-choice-that-is-longer-than-it-would-have-to-be-{number}"
        for number in range(1_000)
    ]
    schema = {"type": ["object"], "properties": {"name": {"type": "string", "enum": names}}}
    part = {"type": "object", "properties": {"part": schema}, "required": ["part"]}
    write_operation(begun, part, body=part)
    made = bind_all(begun).assert_ok()
    assert "1 bound, 0 skipped" in made.err
    assert "wire." not in made.err


@pytest.mark.sampled(6)
def test_what_is_not_known_of_a_schema_is_a_note(begun: Project) -> None:
    many = {f"member_{number}": {"type": "integer"} for number in range(600)}
    body = {"type": "object", "properties": {"part": {"type": "object", "properties": many}}}
    write_operation(begun, {"type": "object"}, body=body)
    made = bind_all(begun).assert_ok()
    assert "whether it fits is not known" in made.err
    assert "(wire.type)" in made.err
    assert "1 bound, 0 skipped" in made.err
    begun.run("validate", "--strict").assert_exit(1)
