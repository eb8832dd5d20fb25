"""`gateway learn`: a proposal that recorded sessions fit, that holds no value of theirs, and that nothing loads
(docs/reference/gateway.md#learn).
"""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML
from support.gateway_client import events_of

from cogcli.api import Gate
from cogcli.api import Project as Opened

PACK = """
contract_meta: {contract_version: "1.0"}
pack_meta: {pack_id: desk, pack_version: 1.0.0, defaults: {safety_mode: destructive}}
policy_layer:
  permissions: [{role: clerk, allow: [pay.out, tool.look, tool.never]}]
  rules:
    - rule_id: most
      mode: enforce
      applies_to: {capabilities: [pay.out]}
      if: {">": [{var: args.amount}, 1000]}
      then: {verdict: deny}
tooling_layer: {capabilities: {pay.out: {approval_mode: network}}}
decision_layer:
  intents: [{id: help, phrases: [help], risk: destructive, capabilities: [pay.out, tool.look, tool.never]}]
tone_and_comms: {agent: {role: clerk}}
"""
PRIVATE = ("ann", "4111", "bo@example.com", "s3cr3t-b2f1", "183", "737", "20260001", "5551234")


def pay(amount: float, discount: float, phone: int, api_key: str, to: str, big: int) -> str:
    """Pay, with private arguments."""
    return "paid"


@pytest.fixture
def worked(project: Any) -> Any:
    """A project with two sessions, whose arguments are private."""
    project.write("cogcli.toml", "")
    project.write("packs/desk/1.0.0.yaml", PACK)
    opened = Opened(project.root, environ=project.env)
    with Gate("desk@1.0.0", project=opened, intent="help", user="ann") as gate:
        gate.tool(pay, capability="pay.out")
        gate.tool(lambda id, name: {"card": "4111"}, capability="tool.look", read_only=True)
        gate.tool(lambda: "", capability="tool.never")
        for session, amounts in (("one", (183, 20)), ("two", (737, 9, 5000))):
            with gate.session(session):
                for amount in amounts:
                    private = {
                        "phone": 5551234,
                        "api_key": "s3cr3t-b2f1",
                        "to": "bo@example.com",
                        "big": 20260001,
                    }
                    gate.call("pay.out", {"amount": amount, "discount": -3, **private})
                gate.call("tool.look", {"id": 4111, "name": "ann"})
    return project


def test_a_proposal_fits_the_sessions_and_its_tests_hold(worked: Any) -> None:
    made = worked.run(
        "gateway", "learn", ".cogcli/episodes", "-o", "proposals", "--json"
    ).assert_ok()
    assert made.json["created"] == ["proposals/learned.yaml"]
    assert (made.json["sessions"], made.json["calls"]) == (2, 6)
    file = worked.root / "proposals/learned.yaml"
    text = file.read_text()
    assert "Nothing loads this file" in text
    assert not [word for word in PRIVATE if word in text]
    found = YAML(typ="safe").load(text)
    layer = found["policy_layer"]
    assert layer["permissions"] == [{"role": "agent", "allow": ["pay.out", "tool.look"]}]
    assert [(each["applies_to"]["capabilities"], each["max"]) for each in layer["limits"]] == [
        (["pay.out"], 5),
        (["tool.look"], 2),
    ]
    ranges = {each["if"]["or"][0]["<"][0]["var"]: each["if"]["or"] for each in layer["rules"]}
    assert {name: (low["<"][1], high[">"][1]) for name, (low, high) in ranges.items()} == {
        "args.amount": (0, 1000),
        "args.discount": (-5, 1),
    }
    assert found["tooling_layer"]["capabilities"]["tool.look"]["approval_mode"] == "read_only"
    worked.run("policy", "test", "proposals/learned.yaml").assert_ok()
    worked.run("policy", "test", "proposals/learned.yaml", "--coverage").assert_ok()


def test_nothing_loads_a_proposal_and_none_is_replaced(worked: Any) -> None:
    words = ("gateway", "learn", "@last", "-o", "proposals")
    worked.run(*words).assert_ok()
    assert "output.exists" in worked.run(*words).assert_exit(2).err
    refused = worked.run("gateway", "status", "--limit", "1").assert_ok()
    assert refused.out
    ran = worked.run(
        "run", "text.brief", "-p", "text=x", "--pack", "learned@0.1.0", "--intent", "work"
    )
    assert ran.code not in (0, 70)
    worked.run("gateway", "learn", "@last", "-o", "packs/learned").assert_exit(2)
    worked.run("gateway", "learn", "@last", "-o", "proposals", "--id", "../x").assert_exit(2)
    worked.run("gateway", "learn", "@last").assert_exit(2)
    worked.run("gateway", "learn", "-o", "proposals").assert_exit(2)


def test_an_episode_that_is_no_session_gives_nothing(worked: Any) -> None:
    worked.run("run", "text.brief", "-p", "text=The harbour opens at six.").assert_ok()
    assert events_of(worked.episode)[0]["event_type"] == "run.started"
    found = worked.run("gateway", "learn", "@last", "-o", "proposals").assert_exit(1)
    assert "no session" in found.err
    assert not (worked.root / "proposals").exists()
