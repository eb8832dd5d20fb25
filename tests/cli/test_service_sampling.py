"""A server that asks the model of the project inside an open call (docs/reference/mcp.md#sampling)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.project import COGCLI
from support.tinymodel import TinyModel
from support.waiting import wait_until

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


@pytest.mark.sampled(3)
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


def use_sdk_server(desk: Any, effects: str = "false") -> None:
    """Make the service of `desk.ask` a server of the official SDK, which asks by an unfinished result."""
    words = json.dumps([str(SUPPORT / "asking_server.py"), "--asks=sampling"])
    desk.write(
        "services/local/desk.yaml",
        f"id: desk\nkind: mcp\nsampling: allow\ncommand: {sys.executable}\nargs: {words}\n",
    )
    desk.write(
        "bindings/local/desk.name.ask/asks.yaml",
        "id: desk_asks\ncapability: desk.name.ask\nservice: desk\nprotocol: mcp\noperation: asks\n"
        "request: {text: input.text}\nresponse: {answers: response.content}\n",
    )
    capability = Path(desk.root, "capabilities/desk.name.ask.yaml")
    text = capability.read_text().replace("declared: {type: boolean}, ", "")
    capability.write_text(f"{text}properties: {{side_effects: {effects}, idempotent: false}}\n")
    desk.skill(
        "desk.ask",
        "- {id: ask, uses: desk.name.ask, input: {text: inputs.text}, output: {answers: outputs.answers}}",
        inputs="{text: {type: string, required: true}}",
        outputs="{answers: {type: array}}",
    )


def use_model(desk: Any, name: str) -> None:
    """Make this the model that the server asks."""
    table = Path(desk.root, "cogcli.toml")
    table.write_text(re.sub(r'name = "[^"]*"', f'name = "{name}"', table.read_text()))


@pytest.mark.sampled(3)
def test_a_server_of_the_newest_protocol_asks_by_an_unfinished_result(
    desk: Any, model: TinyModel
) -> None:
    use_sdk_server(desk)
    outputs = ask(desk)
    assert outputs["answers"][0]["text"] == "Good morning."
    assert len(model.requests) == len(sampled(desk)) == 1


def test_a_gate_may_not_ask_the_model(desk: Any, model: TinyModel) -> None:
    for folder in ("capabilities", "bindings/local/desk.name.ask"):
        for path in Path(desk.root, folder).glob("*.yaml"):
            text = path.read_text().replace("name.ask", "name.guard").replace("desk_asks", "guards")
            text = text.replace("declared: {type: boolean}", "allowed: {type: boolean}")
            text = text.replace("declared: response.declared", "allowed: response.declared")
            name = path.relative_to(desk.root).as_posix().replace("name.ask", "name.guard")
            desk.write(name, text)
    capability = Path(desk.root, "capabilities/desk.name.ask.yaml")
    gates = "{mandatory_pre_gates: [{capability: desk.name.guard}]}"
    capability.write_text(f"{capability.read_text()}safety: {gates}\n")
    desk.run("run", "desk.ask", "-p", "text={}", "--json")
    refused = [each for each in sampled(desk) if "@" in each["step_id"]]
    assert [each["code"] for each in refused] == ["call.rejected"]
    assert "a gate or a probe" in refused[0]["message"]
    allowed = [each for each in sampled(desk) if "@" not in each["step_id"]]
    assert len(model.requests) == len(allowed)
    desk.run("verify", "@last").assert_ok()


def test_secrets_reach_neither_the_model_nor_the_server_nor_the_log(
    desk: Any, model: TinyModel
) -> None:
    secret = "sesame-7f3b9d21c4"
    desk.env["DESK_TOKEN"] = secret
    write_service(desk, "sampling: allow\nenv: {DESK_TOKEN: '${DESK_TOKEN}'}\n")
    model.scripts = {"says": [f"It is {secret}."]}
    message = {"role": "user", "content": {"type": "text", "text": f"Is it {secret}?"}}
    outputs = ask(desk, messages=[message], systemPrompt=f"Keep {secret}.")
    (seen,) = model.requests
    assert secret not in json.dumps(seen.body)
    assert "Is it " in json.dumps(seen.body)
    assert secret not in json.dumps(outputs["answers"])
    (event,) = sampled(desk)
    assert event["text"].startswith("It is ")
    (done,) = events_named(desk, "step.completed")
    assert secret not in json.dumps([event, done])


def test_a_limit_of_costs_without_a_price_refuses_before_the_model_is_asked(
    desk: Any, model: TinyModel
) -> None:
    table = Path(desk.root, "cogcli.toml")
    table.write_text(re.sub(r"price_\w+ = .*\n", "", table.read_text()))
    limits = PACK.replace(
        "budget: {tokens: {workflow: 40, output: 15}}", "budget: {cost_microusd: 1000}"
    )
    desk.write("packs/desk/1.0.0.yaml", limits)
    (answer,) = ask(desk, "--pack", "desk@1.0.0", "--intent", "help", "--user", "ada")["answers"]
    assert answer["error"]["data"] == {"code": "budget.exceeded"}
    assert model.requests == []
    (event,) = sampled(desk)
    assert (event["code"], event.get("cost_microusd")) == ("budget.exceeded", None)


def test_the_limit_of_the_call_cancels_a_request_to_the_model(desk: Any, model: TinyModel) -> None:
    binding = Path(desk.root, "bindings/local/desk.name.ask/asks.yaml")
    binding.write_text(f"{binding.read_text()}metadata: {{timeout_seconds: 15}}\n")
    use_model(desk, "fault:slow")
    done = desk.run("run", "desk.ask", "-p", "text={}", "--json")
    assert done.code != 0
    assert len(model.requests) == len(sampled(desk)) == 1
    (event,) = sampled(desk)
    assert event["code"] in ("call.timeout", "call.transport"), (
        event
    )  # as the model or the call says it
    assert not event.get("text")
    desk.run("verify", "@last").assert_ok()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("effects", ["false", "true"])
def test_a_run_that_was_killed_while_the_model_answers_resumes(
    desk: Any, model: TinyModel, effects: str
) -> None:
    use_sdk_server(desk, effects=effects)
    use_model(desk, "fault:slow")
    words = [COGCLI, "run", "desk.ask", "-p", "text=a", "-q"]
    process = subprocess.Popen(
        words, cwd=desk.root, env=desk.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: bool(model.requests))
    finally:
        process.kill()
        process.wait(60)
    assert len(events_named(desk, "step.started")) == 1, "the call is on record before its request"
    use_model(desk, "script:says")
    resumed = desk.run("resume", "@last", "--json")
    if effects == "true":
        resumed.assert_exit(5)
        assert len(model.requests) == 1, "a call in doubt is not made again"
    else:
        resumed.assert_ok()
        assert len(model.requests) == 2
        assert [each["text"] for each in sampled(desk)] == ["Good morning."]
    desk.run("verify", "@last").assert_ok()
