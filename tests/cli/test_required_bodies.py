"""An operation whose required body cannot be sent is never bound and never verified
(docs/reference/protocols.md#openapi)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.project import Project, Result

DOCUMENT = Path(__file__).parents[1] / "documents/messages.yaml"
BY_HAND = """id: messages_create
capability: messages.message.create
service: messages-api
protocol: openapi
operation: CreateMessage
request: {path.account: input.account}
response: {sid: response.sid}
"""


@pytest.fixture
def begun(project: Project) -> Project:
    project.run("new", "project", ".").assert_ok()
    project.write("messages.yaml", DOCUMENT.read_text())
    return project


def new_binding(project: Project, capability: str, operation: str) -> Result:
    return project.run(
        "new", "binding", capability, "--from-openapi", "messages.yaml", "--operation", operation
    )


def test_a_body_with_required_members_that_cannot_be_sent_is_not_bound(begun: Project) -> None:
    refused = new_binding(begun, "messages.message.create", "CreateMessage")
    refused.assert_exit(2)
    assert "its body cannot be sent: it is application/xml" in refused.err
    assert not list(begun.root.glob("bindings/**/*.yaml"))


@pytest.mark.sampled(6)
def test_a_body_without_required_members_is_left_out_and_reported(begun: Project) -> None:
    made = new_binding(begun, "messages.account.ping", "Ping")
    made.assert_ok()
    assert "the body is left out: it is application/xml" in made.err


def test_a_binding_by_hand_without_its_body_is_not_verified(begun: Project) -> None:
    begun.write(
        "services/local/messages-api.yaml",
        "{id: messages-api, kind: openapi, base_url: 'https://messages.example', "
        "spec_ref: messages.yaml}\n",
    )
    begun.write(
        "capabilities/messages.message.create.yaml",
        "id: messages.message.create\nversion: 1.0.0\ndescription: Send a message.\n"
        "inputs: {account: {type: string, required: true}}\n"
        "outputs: {sid: {type: string, required: true}}\n"
        "properties: {deterministic: false, side_effects: true, idempotent: false}\n",
    )
    path = "bindings/local/messages.message.create/messages_create.yaml"
    begun.write(path, BY_HAND)
    begun.write(
        "tooling/openapi_scenarios/messages_create.json",
        '{"id": "create", "capability_id": "messages.message.create", '
        '"binding_id": "messages_create", "input": {"account": "a1"}, '
        '"expected_output": {"sid": "text"}, "match": "shape"}',
    )
    checked = begun.run("validate")
    checked.assert_exit(1)
    assert "the body of operation `CreateMessage` cannot be sent" in checked.out + checked.err
    verified = begun.run("openapi", "verify-bindings", "--all", "--json")
    verified.assert_exit(1)
    assert [each["passed"] for each in verified.json["scenarios"]] == [False]
