"""A server that asks a person inside an open call: answered at the terminal, and declined without one
(docs/reference/mcp.md#live).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

SERVER = str(Path(__file__).parents[1] / "support/mcp_server.py")
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "age": {"type": "integer", "default": 36},
        "password": {"type": "string", "minLength": 8},
    },
    "required": ["name", "age"],
}


@pytest.fixture
def desk(project: Any) -> Any:
    """A project with the skill `desk.ask`, whose only call passes its text to the server's tool `elicits`."""
    project.write(
        "services/local/desk.yaml",
        f"id: desk\nkind: mcp\ncommand: {sys.executable}\nargs: [{SERVER}, --named=elicits]\n",
    )
    project.write(
        "capabilities/desk.name.ask.yaml",
        "id: desk.name.ask\nversion: 1.0.0\ndescription: Asks for a name.\n"
        "inputs: {text: {type: string, required: true}}\n"
        "outputs: {declared: {type: boolean}, answer: {type: object}}\n",
    )
    project.write(
        "bindings/local/desk.name.ask/asks.yaml",
        "id: desk_asks\ncapability: desk.name.ask\nservice: desk\nprotocol: mcp\noperation: elicits\n"
        "request: {text: input.text}\n"
        "response: {declared: response.declared, answer: response.answer}\n",
    )
    project.skill(
        "desk.ask",
        "- {id: ask, uses: desk.name.ask, input: {text: inputs.text},"
        " output: {answer: outputs.answer, declared: outputs.declared}}",
        inputs="{text: {type: string, required: true}}",
        outputs="{answer: {type: object}, declared: {type: boolean}}",
    )
    return project


def question(**params: Any) -> str:
    """The input of a run whose server asks with these parameters."""
    return f"text={json.dumps({'message': 'Who are you?', **params})}"


def events_named(project: Any, kind: str) -> list[dict[str, Any]]:
    """The payloads of the events of a type in the newest episode."""
    lines = (project.episode / "events.jsonl").read_text().splitlines()
    return [event["payload"] for event in map(json.loads, lines) if event["event_type"] == kind]


def answer_at_terminal(project: Any, text: str, *lines: tuple[str, str]) -> dict[str, Any]:
    """The outputs of a run at a terminal, where these lines are typed at these prompts."""
    pytest.importorskip("pexpect")
    from support.terminal import Terminal

    terminal = Terminal(project, "run", "desk.ask", "-p", text, rows=40, columns=120)
    for prompt, line in lines:
        terminal.until(prompt)
        terminal.process.send(f"{line}\r")
    screen = terminal.finish()
    assert terminal.process.exitstatus == 0, screen
    outputs = {**events_named(project, "run.terminated")[0]["outputs"], "screen": screen}
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()
    return outputs


@pytest.mark.sampled(3)
def test_a_person_at_the_terminal_fills_in_the_form(desk: Any) -> None:
    done = answer_at_terminal(
        desk,
        question(requestedSchema=FORM),
        ("[y] answer", "y"),
        ("name (string)", "Ada"),
        ("age (integer)", ""),
        ("password (string)", "correct horse"),
    )
    content = {"name": "Ada", "age": 36, "password": "correct horse"}
    assert done["answer"] == {"action": "accept", "content": {**content, "password": "[masked]"}}
    assert done["declared"] is True
    for shown in ("service  desk", "Who are you?", "name: string, Your name", "default 36"):
        assert shown in done["screen"]
    (asked,), (given,) = (events_named(desk, f"input.{word}") for word in ("requested", "given"))
    assert (asked["step_id"], asked["service"], asked["attempt"]) == ("ask", "desk", 1)
    assert [field["name"] for field in asked["forms"][0]["fields"]] == list(content)
    assert given["input_id"] == asked["input_id"]
    assert given["action"] == "accept"
    assert given["answers"] == {"question": {**content, "password": "[masked]"}}
    traced = desk.run("trace", "@last", "--io").assert_ok().out
    assert "input given by" in traced
    assert "Who are you?" in traced
    assert "needs your input" not in traced


@pytest.mark.sampled(3)
def test_an_answer_that_does_not_fit_is_asked_for_again_and_may_be_declined(desk: Any) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}}
    done = answer_at_terminal(
        desk,
        question(requestedSchema=schema),
        ("[y] answer", "y"),
        ("age (integer)", "old"),
        ("does not fit", "n"),
    )
    assert done["answer"] == {"action": "decline"}
    (given,) = events_named(desk, "input.given")
    assert (given["action"], given["answers"]) == ("decline", {"question": {}})


@pytest.mark.sampled(3)
def test_an_address_is_shown_and_counts_once_the_person_is_done(desk: Any) -> None:
    page = {"mode": "url", "url": "https://desk.example/login", "elicitationId": "e1"}
    done = answer_at_terminal(desk, question(**page), ("[y] done", "y"))
    assert done["answer"] == {"action": "accept"}
    assert "address  https://desk.example/login" in done["screen"]
    (asked,) = events_named(desk, "input.requested")
    assert asked["forms"][0]["url"] == page["url"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "params",
    [
        {"mode": "url", "url": "file:///etc/passwd", "elicitationId": "e1"},
        {"requestedSchema": {"type": "object", "properties": {"a": {"type": 5}}}},
        {"message": "a" * 4001, "requestedSchema": FORM},
    ],
)
def test_what_cannot_be_shown_is_declined_without_a_prompt(
    desk: Any, params: dict[str, Any]
) -> None:
    done = answer_at_terminal(desk, question(**params))
    assert done["answer"] == {"action": "decline"}
    assert events_named(desk, "input.requested") == []


@pytest.mark.sampled(3)
def test_a_signal_at_the_prompt_ends_the_run(desk: Any) -> None:
    pytest.importorskip("pexpect")
    from support.terminal import Terminal

    terminal = Terminal(desk, "run", "desk.ask", "-p", question(requestedSchema=FORM), rows=40)
    terminal.until("[y] answer")
    terminal.process.send("\x03")
    screen = terminal.finish()
    assert terminal.process.exitstatus == 130, screen
    assert events_named(desk, "input.given") == []
    desk.run("verify", "@last").assert_ok()


def test_without_a_terminal_a_question_is_declined(desk: Any) -> None:
    done = desk.run("run", "desk.ask", "-p", question(requestedSchema=FORM), "--json").assert_ok()
    assert done.json["outputs"] == {"declared": False, "answer": {"action": "decline"}}
    assert events_named(desk, "input.requested") == []
    (step,) = desk.run("trace", "@last", "--json").json["trace"]["steps"]
    assert step["notices"] == ["the server asked for `elicitation/create`: refused"]
