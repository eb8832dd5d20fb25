"""Bodies other than JSON are bound, sent, recorded and verified (docs/reference/protocols.md#openapi)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.asgi import serving_app
from support.message_app import app
from support.project import Project

FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving_app(app) as url:
        yield url


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, warm_cache: Path, address: str) -> Project:
    """A project with a binding for each operation of the service; to make one takes a second."""
    project = Project(tmp_path_factory.mktemp("template"), warm_cache)
    project.run("new", "project", ".").assert_ok()
    project.write("api.json", json.dumps(app.openapi()))
    words = ("new", "binding", "mail", "--from-openapi", "api.json", "--all", "--base-url", address)
    made = project.run(*words).assert_ok()
    assert "4 bound, 0 skipped" in made.err
    project.run("validate", "--strict").assert_ok()
    return project


@pytest.fixture
def bound(template: Project, tmp_path: Path) -> Project:
    return template.copy_to(tmp_path)


def call(project: Project, name: str, inputs: dict[str, Any]) -> Any:
    """Call a capability in a skill with these inputs, and return its outputs."""
    given = json.dumps({key: {"$literal": value} for key, value in inputs.items()})
    (file,) = project.root.glob(f"capabilities/mail.{name}.yaml")
    outputs = {"person": ("result",), "customer": ("result",)}.get(name, ("result",))
    assert file.exists()
    written = ", ".join(f"{each}: outputs.{each}" for each in outputs)
    fields = ", ".join(f"{each}: {{type: any}}" for each in outputs)
    steps = f"- {{id: c, uses: mail.{name}, input: {given}, output: {{{written}}}}}"
    project.skill("demo.call", steps, outputs=f"{{{fields}}}")
    return json.loads(project.run("run", "demo.call").assert_ok().out)["result"]


@pytest.mark.sampled(6)
def test_forms_are_sent_in_their_encoding(bound: Project) -> None:
    sent = {"to": "ana & bo", "body": "1=1\nü", "count": 2, "media": ["a", "b"]}
    assert call(bound, "create", sent) == sent
    customer = {"email": "a@b.example", "address": {"city": "Lund"}, "ids": [1, 2]}
    got = call(bound, "customer", customer)
    assert got == {
        "fields": [["email", "a@b.example"], ["address[city]", "Lund"], ["ids", "1,2"]],
        "type": FORM,
    }


@pytest.mark.sampled(6)
def test_a_multipart_form_has_a_part_for_each_value(bound: Project) -> None:
    person = {"name": "Ana", "tags": ["x", "y"], "address": {"city": "Lund"}}
    assert call(bound, "person", person) == {
        "fields": [["name", "Ana"], ["tags", "x"], ["tags", "y"], ["address", '{"city":"Lund"}']],
        "type": "multipart/form-data",
    }


@pytest.mark.sampled(6)
def test_plain_text_is_sent_unchanged(bound: Project) -> None:
    text = '{"not": "json"}\nå'
    assert call(bound, "note", {"body": text}) == {
        "text": text,
        "type": "text/plain; charset=utf-8",
    }


def test_a_form_is_recorded_with_its_media_type_and_members(bound: Project) -> None:
    call(bound, "create", {"to": "ana", "body": "hello"})
    log = next(bound.root.glob(".cogcli/episodes/ep_*/events.jsonl")).read_text()
    (attempt,) = [
        attempt
        for line in log.splitlines()
        for attempt in json.loads(line)["payload"].get("attempts", [])
    ]
    assert attempt["request"]["media_type"] == FORM
    assert attempt["request"]["body"] == {"to": "ana", "body": "hello"}
    bound.run("verify", "@last").assert_ok()
    bound.run("replay", "@last").assert_ok()


@pytest.mark.sampled(6)
def test_bindings_of_forms_are_verified_by_the_document(bound: Project) -> None:
    for file in sorted(bound.root.glob("bindings/local/*/*.yaml")):
        bound.run("new", "scenario", Path(file).stem).assert_ok()
    verified = bound.run("openapi", "verify-bindings", "--all", "--json").assert_ok()
    assert [each["passed"] for each in verified.json["scenarios"]] == [True] * 4


@pytest.mark.sampled(3)
def test_a_form_without_a_required_member_is_refused(bound: Project) -> None:
    (file,) = bound.root.glob("bindings/local/mail.create/*.yaml")
    file.write_text(file.read_text().replace("body.to: input.to, ", ""))
    refused = bound.run("validate").assert_exit(1)
    assert "operation `create` requires `body.to`, which is not given" in refused.out + refused.err
