"""A server that asks the model of the project inside an open call (docs/reference/mcp.md#sampling)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.tinymodel import TinyModel

pytest.importorskip("mcp")

SUPPORT = Path(__file__).parents[1] / "support"
SCRIPTS: Any = {"says": ["Good morning."]}
pytestmark = pytest.mark.slow


@pytest.fixture
def model() -> Iterator[TinyModel]:
    with TinyModel(seed=1, scripts=SCRIPTS) as server:
        yield server


@pytest.fixture
def desk(project: Any, model: TinyModel) -> Any:
    """A project with a model, and the skill `desk.ask`, whose only call passes its text to a server that asks it."""
    table = f'[model]\nadapter = "openai"\nname = "script:says"\nbase_url = "{model.base_url}"\n'
    project.write("cogcli.toml", f"{table}price_in = 1.0\nprice_out = 2.0\n")
    write_service(project, "sampling: allow\n")
    project.write(
        "capabilities/desk.name.ask.yaml",
        "id: desk.name.ask\nversion: 1.0.0\ndescription: Asks a model.\n"
        "inputs: {text: {type: string, required: true}}\n"
        "outputs: {declared: {type: boolean}, answers: {type: array}}\n",
    )
    project.write(
        "bindings/local/desk.name.ask/asks.yaml",
        "id: desk_asks\ncapability: desk.name.ask\nservice: desk\nprotocol: mcp\noperation: samples\n"
        "request: {text: input.text}\n"
        "response: {declared: response.declared, answers: response.answers}\n",
    )
    project.skill(
        "desk.ask",
        "- {id: ask, uses: desk.name.ask, input: {text: inputs.text},"
        " output: {answers: outputs.answers, declared: outputs.declared}}",
        inputs="{text: {type: string, required: true}}",
        outputs="{answers: {type: array}, declared: {type: boolean}}",
    )
    return project


def write_service(project: Any, more: str) -> None:
    project.write(
        "services/local/desk.yaml",
        f"id: desk\nkind: mcp\ncommand: {sys.executable}\n"
        f"args: [{SUPPORT / 'mcp_server.py'}, --named=samples]\n{more}",
    )


def ask(project: Any, *flags: str, **params: Any) -> dict[str, Any]:
    """The outputs of a run whose server asks with these parameters."""
    done = project.run("run", "desk.ask", "-p", f"text={json.dumps(params)}", "--json", *flags)
    outputs: dict[str, Any] = done.assert_ok().json["outputs"]
    project.run("verify", "@last").assert_ok()
    return outputs


def sampled(project: Any) -> list[dict[str, Any]]:
    """What the newest episode has of requests to the model."""
    return events_named(project, "call.sampled")


def events_named(project: Any, kind: str) -> list[dict[str, Any]]:
    """The payloads of the events of a type in the newest episode."""
    lines = (project.episode / "events.jsonl").read_text().splitlines()
    events = map(json.loads, lines)
    return [each["payload"] for each in events if each["event_type"] == kind]


def test_the_model_answers_and_the_run_is_charged(desk: Any, model: TinyModel) -> None:
    outputs = ask(desk, systemPrompt="Be kind.", maxTokens=7)
    (answer,) = outputs["answers"]
    assert outputs["declared"] is True
    assert answer["result"]["content"] == {"type": "text", "text": "Good morning."}
    (seen,) = model.requests
    assert [each["content"] for each in seen.body["messages"]] == ["Be kind.", "Hello?"]
    (event,) = sampled(desk)
    assert (event["step_id"], event["service"], event["number"]) == ("ask", "desk", 1)
    assert (event["text"], event["max_tokens"]) == ("Good morning.", 7)
    (done,) = events_named(desk, "step.completed")
    assert done["usage"]["tokens_in"] == event["tokens_in"] > 0
    assert event["cost_microusd"] == event["tokens_in"] + 2 * event["tokens_out"]
    desk.run("replay", "@last").assert_ok()
    assert len(model.requests) == 1, "a replay asked the model"


@pytest.mark.parametrize("declared", ["", "sampling: deny\n"])
def test_a_service_that_is_not_allowed_to_is_refused(
    desk: Any, model: TinyModel, declared: str
) -> None:
    write_service(desk, declared)
    outputs = ask(desk)
    assert (outputs["declared"], outputs["answers"][0]["error"]["code"]) == (False, -32601)
    assert (sampled(desk), model.requests) == ([], [])


def test_without_a_model_no_server_is_told_that_it_may_ask(desk: Any) -> None:
    desk.write("cogcli.toml", "")
    outputs = ask(desk)
    assert (outputs["declared"], outputs["answers"][0]["error"]["code"]) == (False, -32601)


def test_each_limit_refuses_with_its_code(desk: Any, model: TinyModel) -> None:
    picture = {"role": "user", "content": {"type": "image", "data": "", "mimeType": "image/png"}}
    long = {"role": "user", "content": {"type": "text", "text": "a" * 70_000}}
    for params, code, ours in (
        ({"messages": [picture]}, -1, "call.rejected"),
        ({"messages": [long]}, -32602, "request.size"),
        ({"messages": []}, -32602, "request.size"),
        ({"maxTokens": 0}, -32602, "request.size"),
    ):
        error = ask(desk, **params)["answers"][0]["error"]
        assert (error["code"], error["data"]) == (code, {"code": ours})
        assert [each["code"] for each in sampled(desk)] == [ours]
    assert model.requests == []
    answers = ask(desk, times=12)["answers"]
    assert [each["error"] is None for each in answers] == [True] * 10 + [False] * 2
    assert len(model.requests) == 10


PACK = """
contract_meta: {contract_version: "1.0"}
pack_meta:
  pack_id: desk
  pack_version: 1.0.0
  defaults:
    safety_mode: destructive
    budget: {tokens: {workflow: 40, output: 15}}
policy_layer: {permissions: [{role: clerk, allow: [desk.name.ask]}]}
tooling_layer: {capabilities: {desk.name.ask: {approval_mode: network}}}
decision_layer:
  intents: [{id: help, phrases: [help], risk: network, capabilities: [desk.name.ask]}]
tone_and_comms: {agent: {role: clerk}}
"""


def test_a_budget_of_the_pack_refuses_what_it_has_no_room_for(desk: Any, model: TinyModel) -> None:
    desk.write("packs/desk/1.0.0.yaml", PACK)
    flags = ("--pack", "desk@1.0.0", "--intent", "help", "--user", "ada")
    answers = ask(desk, *flags, maxTokens=4000, times=6)["answers"]
    refused = [each["error"]["data"]["code"] for each in answers if each["error"]]
    assert refused, "the budget refused nothing"
    assert set(refused) == {"budget.exceeded"}
    events = sampled(desk)
    assert sum(each.get("tokens_in", 0) + each.get("tokens_out", 0) for each in events) <= 40


def test_a_model_that_fails_is_reported_to_the_server(desk: Any, model: TinyModel) -> None:
    table = Path(desk.root, "cogcli.toml")
    table.write_text(table.read_text().replace("script:says", "fault:500"))
    (answer,) = ask(desk)["answers"]
    assert answer["error"]["code"] == -32603
    (event,) = sampled(desk)
    assert event["code"] == answer["error"]["data"]["code"]
    assert event["tokens_in"] > 0


def test_a_server_of_the_newest_protocol_asks_by_an_unfinished_result(
    desk: Any, model: TinyModel
) -> None:
    desk.write(
        "services/local/desk.yaml",
        f"id: desk\nkind: mcp\nsampling: allow\ncommand: {sys.executable}\n"
        f"args: [{SUPPORT / 'asking_server.py'}, --asks=sampling]\n",
    )
    desk.write(
        "bindings/local/desk.name.ask/asks.yaml",
        "id: desk_asks\ncapability: desk.name.ask\nservice: desk\nprotocol: mcp\noperation: asks\n"
        "request: {text: input.text}\nresponse: {answers: response.content}\n",
    )
    capability = Path(desk.root, "capabilities/desk.name.ask.yaml")
    capability.write_text(capability.read_text().replace("declared: {type: boolean}, ", ""))
    desk.skill(
        "desk.ask",
        "- {id: ask, uses: desk.name.ask, input: {text: inputs.text}, output: {answers: outputs.answers}}",
        inputs="{text: {type: string, required: true}}",
        outputs="{answers: {type: array}}",
    )
    outputs = ask(desk)
    assert outputs["answers"][0]["text"] == "Good morning."
    assert len(model.requests) == len(sampled(desk)) == 1
