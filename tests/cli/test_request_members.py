"""What a request says of its tenant, its agent and its files, and what ends it (docs/reference/agent-run.md#invoke)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from support.agent_desk import events_of, payloads
from support.project import Project, Result

pytestmark = pytest.mark.sampled(8)

REQUEST = {
    "message": "Where is order ord_881?",
    "user": {"user_id": "cust_7"},
    "pack_refs": ["support-desk@4.0.0"],
}
AGENT = {"agent_id": "desk-7", "role": "support_agent", "voice": "neutral_concise"}


def invoke(desk: Project, *flags: str, **members: Any) -> Result:
    desk.write("r.json", json.dumps({**REQUEST, **members}).encode())
    return desk.run("agent", "invoke", "r.json", *flags, "--json")


def test_tenant_and_agent_that_the_pack_has_are_recorded_and_replay(desk: Project) -> None:
    invoke(desk, tenant_id="acme", agent=AGENT).assert_ok()
    (started,) = payloads(desk.episode, "run.started")
    request = started["agent"]["request"]
    assert (request["tenant_id"], request["agent"]) == ("acme", AGENT)
    cells = desk.run("trace", "@last", "--view", "layers", "--json").assert_ok().json
    assert cells["trace"]["layers"][0]["identity"]["agent_id"] == "desk-7"
    desk.run("replay", "@last").assert_ok()
    desk.run("verify", "@last").assert_ok()


@pytest.mark.parametrize(
    "wrong",
    [
        {"tenant_id": "globex"},
        {"tenant_id": 5},
        {"agent": {"role": "admin"}},
        {"agent": {"voice": "loud"}},
        {"agent": {"agent_id": "a b"}},
        {"agent": {"role": 1}},
        {"agent": {"id": "x"}},
        {"agent": "desk"},
    ],
    ids=str,
)
def test_another_tenant_or_agent_than_the_packs_is_a_usage_error(
    desk: Project, wrong: dict[str, Any]
) -> None:
    result = invoke(desk, **wrong).assert_exit(2)
    assert next(iter(wrong)) in result.json["error"]["message"]
    assert not list(desk.root.rglob("events.jsonl"))


def test_the_named_agent_approves_nothing_that_it_asks_for(desk: Project) -> None:
    invoke(desk, message="Refund order ord_881", agent={"agent_id": "desk-7"}).assert_exit(5)
    approve = ("resume", "@last", "--approve", "GATE_FINANCE_APPROVAL", "--by")
    refused = desk.run(*approve, "Desk-7:finance", "--json").assert_exit(5)
    assert refused.json["error"]["code"] == "policy.approval"
    desk.run(*approve, "ann:finance").assert_ok()


@pytest.mark.parametrize(
    "attachment", [{}, {"name": 5}, {"name": "a.pdf", "uri": ["x"]}, {"name": ""}], ids=str
)
def test_the_members_of_an_attachment_are_texts(desk: Project, attachment: dict[str, Any]) -> None:
    result = invoke(desk, attachments=[{"name": "b.pdf"}, attachment]).assert_exit(2)
    assert "`attachments.1` of the request" in result.json["error"]["message"]
    assert not list(desk.root.rglob("events.jsonl"))


def test_the_error_of_a_refused_request_says_why_the_pack_refuses_it(desk: Project) -> None:
    wide = "".join(chr(0xFF10 + int(digit)) for digit in "4111111111111111")
    result = invoke(desk, message=f"Refund order ord_881 to {wide}").assert_exit(4)
    assert result.json["error"]["message"] == "refused: must_refuse:card: No card numbers."
    desk.run("replay", "@last").assert_ok()


def test_a_disguised_word_still_asks_a_person(desk: Project) -> None:
    result = invoke(desk, message="Where is order ord_881? I call my law\u200byer.").assert_exit(5)
    assert "must_escalate:legal" in result.json["error"]["message"]


def test_a_lost_prompt_is_not_guessed(desk: Project) -> None:
    pack = (desk.root / "packs/support-desk/4.0.0.yaml").read_text()
    desk.write("packs/support-desk/4.0.0.yaml", pack.replace("context: 6000", "context: 60000"))
    script = {"replies": [{"json": {"response": "In the post."}}]}
    desk.write("models/says.yaml", json.dumps(script).encode())
    model = ("--model", "scripted:models/says.yaml")
    invoke(desk, *model, message=REQUEST["message"] + " word" * 20_000).assert_ok()
    episode = desk.episode
    lines = (episode / "events.jsonl").read_text().splitlines()
    (line,) = (line for line in lines if '"model.requested"' in line)
    prompt = re.findall(r'"\$blob":"sha256:([0-9a-f]{64})"', line)
    desk.run("replay", "@last").assert_ok()
    (episode / "blobs" / prompt[-1]).unlink()
    result = desk.run("replay", "@last", "--json").assert_exit(3)
    assert result.json["error"]["code"] == "episode.unreadable"
    assert "model.requested" in result.json["error"]["message"]


def test_the_view_of_the_layers_has_every_layer(desk: Project) -> None:
    invoke(desk, focus="deep").assert_ok()
    layers = [
        each.payload["layer"]
        for each in events_of(desk.episode)
        if each.event_type == "layer.completed"
    ]
    view = ("trace", "@last", "--view", "layers")
    (cells,) = desk.run(*view, "--json").assert_ok().json["trace"]["layers"]
    assert len(layers) == 11
    assert set(layers) <= cells.keys()
    assert all(cells[layer] is not None for layer in layers)
    shown = desk.run(*view).assert_ok().out
    for word in ("budget_gate", "focus", "identity", "reflection"):
        assert word in shown
