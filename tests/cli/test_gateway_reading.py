"""Resources and prompts through `gateway serve`: read-only, under rules and recorded
(docs/reference/gateway.md#resources).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.gateway_client import (
    events_of,
    mark,
    server_entry,
    talk_to_gateway,
    text_of,
    write_host_file,
)

pytest.importorskip("mcp")

ONE = "mcp://notes/note://one"


@pytest.mark.sampled(6)
def test_a_read_is_a_governed_call_of_its_server(project: Any) -> None:
    ledger = Path(project.root) / "ledger"
    write_host_file(
        project, notes=server_entry("resources", f"ledger={ledger}"), plain=server_entry()
    )
    mark(project, "notes", "resources/read")
    ledger.unlink()

    async def talk(client: Any) -> None:
        assert not [tool for tool in (await client.list_tools()).tools if "/" in tool.name]
        (one,) = (await client.list_resources()).resources
        assert (one.uri, one.title, one.icons) == (ONE, "The first", None)
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "mcp://notes/note://{name}"
        (prompt,) = (await client.list_prompts()).prompts
        assert (prompt.name, prompt.title) == ("notes__greet", "Greet")
        read = await client.read_resource(ONE)
        assert (read.contents[0].uri, read.contents[0].text) == (ONE, "of note://one")
        assert read.meta["cogcli/step_id"] == "c1"
        bare = await client.read_resource("note://two")
        assert (bare.contents[0].uri, bare.contents[0].text) == ("note://two", "of note://two")
        with pytest.raises(Exception, match="pending: this call waits for a person"):
            await client.get_prompt("notes__greet", {"who": "Ada"})
        with pytest.raises(Exception, match="Unknown resource"):
            await client.read_resource("mcp://plain/note://one")
        with pytest.raises(Exception, match="Unknown prompt"):
            await client.get_prompt("notes__other")
        name = next(
            event["payload"]["tool"]
            for event in events_of(project.episode)
            if event["event_type"] == "call.requested"
        )
        with pytest.raises(Exception, match="Unknown tool"):
            await client.call_tool(name, {"uri": "note://one"})

    talk_to_gateway(project, talk, "--hold", "0")
    seen = [line for line in ledger.read_text().splitlines() if "/list" not in line]
    assert [line for line in seen if line.startswith(("resources", "prompts"))] == [
        "resources/read note://one",
        "resources/read note://two",
    ]
    calls = [
        event["payload"]
        for event in events_of(project.episode)
        if event["event_type"] == "call.requested"
    ]
    assert [(call["capability"], call["input"]) for call in calls] == [
        ("mcp.notes.resources_read", {"uri": "note://one"}),
        ("mcp.notes.resources_read", {"uri": "note://two"}),
        ("mcp.notes.prompts_get", {"name": "greet", "arguments": {"who": "Ada"}}),
    ]
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()


PACK = """
contract_meta: {contract_version: "1.0"}
pack_meta: {pack_id: desk, pack_version: 1.0.0, defaults: {safety_mode: destructive}}
policy_layer:
  permissions: [{role: clerk, allow: [mcp.notes.resources_read, mcp.notes.prompts_get]}]
  rules:
    - rule_id: no_secrets
      mode: enforce
      applies_to: {capabilities: [mcp.notes.resources_read]}
      if: {"==": [{var: args.uri}, "note://secret"]}
      then: {verdict: deny}
      say: it is secret
      rationale: It is secret.
      tests:
        - {data: {args: {uri: "note://secret"}}, expect: match}
        - {data: {args: {uri: "note://one"}}, expect: no_match}
tooling_layer:
  capabilities:
    mcp.notes.resources_read: {approval_mode: network}
    mcp.notes.prompts_get: {approval_mode: network}
decision_layer:
  intents:
    - id: help
      phrases: [help]
      risk: network
      capabilities: [mcp.notes.resources_read, mcp.notes.prompts_get]
tone_and_comms: {agent: {role: clerk}}
"""


@pytest.mark.sampled(6)
def test_rules_of_a_pack_decide_about_reads(project: Any) -> None:
    write_host_file(project, notes=server_entry("resources"))
    project.write("packs/desk/1.0.0.yaml", PACK)

    async def talk(client: Any) -> None:
        got = await client.get_prompt("notes__greet", {"who": "Ada"})
        assert (got.description, got.messages[0].content.text) == ("A greeting.", "Hello Ada")
        assert (await client.read_resource(ONE)).contents[0].text == "of note://one"
        with pytest.raises(Exception, match="by rule `no_secrets`"):
            await client.read_resource("mcp://notes/note://secret")
        refused = await client.call_tool("notes__echo", {"text": "x"})
        assert refused.is_error
        assert "policy" in text_of(refused)

    talk_to_gateway(project, talk, "--pack", "desk@1.0.0", "--intent", "help", "--user", "ada")
    project.run("verify", "@last").assert_ok()


@pytest.mark.sampled(6)
def test_a_method_that_is_not_in_the_lock_is_withheld(project: Any) -> None:
    write_host_file(project, notes=server_entry())
    mark(project, "notes", "echo")
    write_host_file(project, notes=server_entry("resources"))
    found = project.run("gateway", "tools", "--from", ".mcp.json", "--json").assert_ok().json
    assert {each["tool"] for each in found["withheld"]} == {"prompts/get", "resources/read"}

    async def talk(client: Any) -> None:
        assert (await client.list_resources()).resources == []
        with pytest.raises(Exception, match="Unknown resource"):
            await client.read_resource(ONE)

    talk_to_gateway(project, talk)


def test_a_tool_cannot_stand_in_the_place_of_a_method(project: Any) -> None:
    write_host_file(project, notes=server_entry("resources", "named=resources/read"))
    found = project.run("gateway", "tools", "--from", ".mcp.json", "--json").assert_ok().json
    assert "resources/read" not in {tool["tool"] for tool in found["tools"]}
    assert {"resources/read"} == {each["tool"] for each in found["withheld"]}


@pytest.mark.sampled(6)
def test_the_episode_of_a_session_is_a_resource_of_its_client(project: Any) -> None:
    write_host_file(project, test=server_entry())
    mark(project, "test", "echo", "fails")

    async def talk(client: Any) -> None:
        assert (await client.list_resources()).resources == []
        echoed = await client.call_tool("test__echo", {"text": "hi"})
        await client.call_tool("test__fails", {"text": "hi"})
        (own,) = (await client.list_resources()).resources
        assert own.uri == f"cogcli://episodes/{echoed.meta['cogcli/episode_id']}"
        read = json.loads((await client.read_resource(own.uri)).contents[0].text)
        assert read["calls"] == [
            {"step": "c1", "tool": "test__echo", "status": "done"},
            {"step": "c2", "tool": "test__fails", "status": "failed", "code": "call.rejected"},
        ]
        with pytest.raises(Exception, match="only the present episode"):
            await client.read_resource(f"{own.uri[:-1]}_")

    talk_to_gateway(project, talk)
    types = [event["event_type"] for event in events_of(project.episode)]
    assert types.count("call.requested") == 2


@pytest.mark.sampled(6)
def test_the_progress_of_a_server_reaches_the_client(project: Any) -> None:
    write_host_file(project, test=server_entry())
    mark(project, "test", "progresses")
    found: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        found.append((progress, total, message))

    async def talk(client: Any) -> None:
        for number in range(2):
            given = {"text": f"step {number}"}
            done = await client.call_tool("test__progresses", given, progress_callback=note)
            assert text_of(done) == "done"

    talk_to_gateway(project, talk)
    assert found == [(1, 2, "step 0"), (1, 2, "step 1")]
    project.run("replay", "@last").assert_ok()
