"""A call that its MCP server leaves unfinished: the run waits for a person's answer, and continues with it
(docs/reference/execution.md#input).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cogcli.api import CogcliError, Project

pytest.importorskip("mcp")

ASKING = str(Path(__file__).parents[1] / "support/asking_server.py")
ANSWER = '{"name":"Ada"}'
STEP = "- {id: ask, uses: desk.name.ask, input: {text: inputs.text}, output: {text: outputs.text}}"

TWO = "s.%s}, config: {depends_on: []}}"
"""The end of a step that starts at once."""


def write_asking(project: Any, *flags: str, effects: str = "false") -> None:
    """A skill whose only call asks for a name. The server writes each call into the file `calls`."""
    words = json.dumps([ASKING, f"--ledger={project.root / 'calls'}", *flags])
    project.write(
        "services/local/desk.yaml",
        f"id: desk\nkind: mcp\ncommand: {sys.executable}\nargs: {words}\n",
    )
    project.write(
        "capabilities/desk.name.ask.yaml",
        "id: desk.name.ask\nversion: 1.0.0\ndescription: Asks for a name.\n"
        "inputs: {text: {type: string, required: true}}\n"
        "outputs: {text: {type: string, required: true}}\n"
        f"properties: {{side_effects: {effects}}}\n",
    )
    project.write(
        "bindings/local/desk.name.ask/asks.yaml",
        "id: desk_asks\ncapability: desk.name.ask\nservice: desk\nprotocol: mcp\noperation: asks\n"
        "request: {text: input.text}\nresponse: {text: response.text}\n"
        "metadata: {response_mode: text}\n",
    )
    project.skill(
        "desk.ask",
        STEP,
        inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string, required: true}}",
    )


def calls_of(project: Any) -> list[str]:
    """The calls that the server saw."""
    return (project.root / "calls").read_text().splitlines()


def events_named(project: Any, kind: str) -> list[dict[str, Any]]:
    """The payloads of the events of a type in the newest episode."""
    lines = (project.episode / "events.jsonl").read_text().splitlines()
    return [event["payload"] for event in map(json.loads, lines) if event["event_type"] == kind]


def ask(project: Any, *flags: str) -> Any:
    """The result of a run that waits."""
    result = project.run("run", "desk.ask", "-p", "text=Who are you?", "--json", *flags)
    result.assert_exit(5)
    assert result.json["error"]["code"] == "input.required"
    return result


@pytest.mark.sampled(6)
@pytest.mark.parametrize("effects", ["false", "true"])
def test_the_run_waits_for_the_answer_and_continues_the_call(project: Any, effects: str) -> None:
    write_asking(project, effects=effects)
    waiting = ask(project)
    (form,) = waiting.json["input_requests"][0]["forms"]
    assert (form["message"], form["fields"][0]["name"]) == ("Who are you?", "name")
    answer, decline = waiting.json["error"]["next"]
    assert '--answer \'{"name":"TEXT"}\'' in answer
    assert decline.endswith("--answer decline")
    (row,) = project.run("ls", "--outcome", "pending", "--json").json["episodes"]
    assert (row["status"], row["waits_for"], row["approvals"]) == ("pending", "input for ask", [])
    assert row["input_requests"][0]["forms"] == [form]
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()
    traced = project.run("trace", "@last").assert_ok().out
    assert "Who are you?" in traced
    assert "in doubt" not in traced
    shown = project.run("trace", "@last", "--step", "ask", "--io").assert_ok().out
    assert "field    name: string" in shown

    project.run("resume", "@last", "--answer", '{"name": 5}').assert_exit(2)
    assert events_named(project, "input.given") == []
    done = project.run("resume", "@last", "--answer", ANSWER, "--json").assert_ok()
    assert done.json["outputs"] == {"text": "accept {'name': 'Ada'} state-1"}
    assert calls_of(project) == ["asked", "answered"]
    (given,) = events_named(project, "input.given")
    assert given["answers"] == {"who": {"name": "Ada"}}
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()


@pytest.mark.sampled(6)
def test_a_declined_form_is_passed_to_the_server(project: Any) -> None:
    write_asking(project)
    ask(project)
    done = project.run("resume", "@last", "--answer", "ask=decline", "--json").assert_ok()
    assert done.json["outputs"]["text"].startswith("decline None")
    (given,) = events_named(project, "input.given")
    assert (given["action"], given["answers"]) == ("decline", {"who": {}})


@pytest.mark.sampled(6)
def test_a_resume_without_an_answer_asks_for_nothing_twice(project: Any) -> None:
    write_asking(project, effects="true")
    ask(project)
    project.run("resume", "@last").assert_exit(5)
    assert len(events_named(project, "input.requested")) == 1
    assert calls_of(project) == ["asked"]
    project.run("resume", "@last", "--answer", "other={}").assert_exit(2)
    project.run("resume", "@last", "--abort").assert_ok()
    assert calls_of(project) == ["asked"]
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()


@pytest.mark.sampled(6)
def test_a_secret_answer_is_masked_in_the_log_and_sent_whole(project: Any) -> None:
    write_asking(project, "--field=password")
    ask(project)
    answer = '{"password": "correct horse battery"}'
    done = project.run("resume", "@last", "--answer", answer, "--json").assert_ok()
    assert calls_of(project) == ["asked", "answered"]
    (given,) = events_named(project, "input.given")
    assert given["answers"] == {"who": {"password": "[masked]"}}
    assert done.json["status"] == "ok"
    project.run("replay", "@last").assert_ok()


@pytest.mark.sampled(6)
def test_items_of_a_loop_wait_each_for_its_own_answer(project: Any) -> None:
    write_asking(project, effects="true")
    project.skill(
        "desk.ask",
        "- {id: ask, uses: desk.name.ask, input: {text: item}, output: {text: outputs.texts},"
        " config: {foreach: {items: inputs.texts, as: item}}}",
        inputs="{texts: {type: array, required: true}}",
        outputs="{texts: {type: array, required: true}}",
    )
    run = ("run", "desk.ask", "-p", 'texts:=["one?","two?"]', "--json")
    waiting = project.run(*run).assert_exit(5)
    assert [each["step_id"] for each in waiting.json["input_requests"]] == ["ask#0"]
    waiting = project.run("resume", "@last", "--answer", ANSWER, "--json").assert_exit(5)
    assert [each["step_id"] for each in waiting.json["input_requests"]] == ["ask#1"]
    project.run("replay", "@last").assert_ok()
    done = project.run("resume", "@last", "--answer", "ask#1=decline", "--json").assert_ok()
    first, second = done.json["outputs"]["texts"]
    assert first == "accept {'name': 'Ada'} state-1"
    assert second.startswith("decline None")
    assert calls_of(project) == ["asked", "answered", "asked", "answered"]
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()


@pytest.mark.sampled(6)
def test_of_two_open_requests_each_needs_its_own_answer(project: Any) -> None:
    write_asking(project, effects="true")
    steps = [STEP.replace("id: ask", f"id: {id}").replace("s.text}}", TWO % id) for id in "ab"]
    project.skill(
        "desk.ask",
        "\n".join(steps),
        inputs="{text: {type: string, required: true}}",
        outputs="{a: {type: string, required: true}, b: {type: string, required: true}}",
    )
    waiting = ask(project, "--keep-going")
    assert sorted(each["step_id"] for each in waiting.json["input_requests"]) == ["a", "b"]
    ambiguous = project.run("resume", "@last", "--answer", ANSWER, "--json").assert_exit(2)
    assert "STEP=JSON for each" in ambiguous.json["error"]["expected"]
    words = ("--answer", f"b={ANSWER}", "--answer", "a=decline")
    done = project.run("resume", "@last", *words, "--json").assert_ok()
    assert done.json["outputs"]["b"] == "accept {'name': 'Ada'} state-1"
    assert sorted(calls_of(project)) == ["answered", "answered", "asked", "asked"]
    project.run("replay", "@last").assert_ok()


@pytest.mark.sampled(6)
def test_a_continuation_that_was_cut_off_is_in_doubt(project: Any) -> None:
    write_asking(project, "--dies", effects="true")
    ask(project)
    project.run("resume", "@last", "--answer", ANSWER).assert_exit(5)
    assert calls_of(project) == ["asked", "answered"]
    write_asking(project, effects="true")
    project.run("resume", "@last", "--in-doubt", "rerun", "--allow-changed-specs").assert_ok()
    assert calls_of(project) == ["asked", "answered", "answered"]
    project.run("verify", "@last").assert_ok()


@pytest.mark.sampled(6)
def test_a_gate_waits_for_no_one(project: Any) -> None:
    write_asking(project)
    guard = "{mandatory_pre_gates: [{capability: desk.name.guard}]}"
    asking = (project.root / "capabilities/desk.name.ask.yaml").read_text()
    project.write(
        "capabilities/desk.name.guard.yaml",
        asking.replace("name.ask", "name.guard").replace(
            "outputs: {text: {type: string", "outputs: {allowed: {type: boolean"
        ),
    )
    binding = (project.root / "bindings/local/desk.name.ask/asks.yaml").read_text()
    project.write(
        "bindings/local/desk.name.guard/guards.yaml",
        binding.replace("name.ask", "name.guard")
        .replace("id: desk_asks", "id: desk_guards")
        .replace("text: response.text", "allowed: response.allowed")
        .replace("metadata: {response_mode: text}\n", ""),
    )
    project.write("capabilities/desk.name.ask.yaml", f"{asking}safety: {guard}\n")
    result = project.run("run", "desk.ask", "-p", "text=a", "--json").assert_exit(4)
    assert "a gate or a probe gets no answer" in result.json["error"]["message"]
    assert events_named(project, "input.requested") == []


@pytest.mark.sampled(6)
def test_a_terminal_asks_for_each_field(project: Any) -> None:
    pytest.importorskip("pexpect")
    from support.terminal import Terminal

    write_asking(project)
    terminal = Terminal(project, "run", "desk.ask", "-p", "text=Who are you?")
    terminal.until("decline")
    terminal.process.send("y\r")
    terminal.until("name (string)")
    terminal.process.send("Ada\r")
    screen = terminal.finish()
    assert terminal.process.exitstatus == 0, screen
    assert "Who are you?" in screen
    (given,) = events_named(project, "input.given")
    assert (given["action"], given["answers"]) == ("accept", {"who": {"name": "Ada"}})
    project.run("replay", "@last").assert_ok()


@pytest.mark.sampled(3)
def test_a_rerun_of_a_run_that_waits_says_that_the_call_waits(project: Any) -> None:
    write_asking(project, effects="true")
    ask(project)
    refused = project.run("rerun", "@last", "--json").assert_exit(2)
    assert refused.json["error"]["code"] == "rerun.effects"
    assert "ask (desk.name.ask, waiting for input)" in refused.json["error"]["message"]
    assert "in doubt" not in refused.json["error"]["message"]
    project.run("rerun", "@last", "--effects", "ask=repeat").assert_exit(5)
    assert calls_of(project) == ["asked", "asked"]
    done = project.run("resume", "@last", "--answer", ANSWER, "--json").assert_ok()
    assert done.json["outputs"] == {"text": "accept {'name': 'Ada'} state-1"}


@pytest.mark.sampled(3)
def test_a_rerun_at_a_terminal_asks_for_each_field(project: Any) -> None:
    pytest.importorskip("pexpect")
    from support.terminal import Terminal

    write_asking(project)
    ask(project)
    terminal = Terminal(project, "rerun", "@last")
    terminal.until("decline")
    terminal.process.send("y\r")
    terminal.until("name (string)")
    terminal.process.send("Ada\r")
    screen = terminal.finish()
    assert terminal.process.exitstatus == 0, screen
    (given,) = events_named(project, "input.given")
    assert given["answers"] == {"who": {"name": "Ada"}}


@pytest.mark.sampled(3)
def test_the_inbox_names_the_run_and_the_command_that_answers(project: Any) -> None:
    write_asking(project)
    ask(project)
    listed = project.run("approvals", "ls").assert_ok()
    assert "waits for input, step ask: `asks` asks: Who are you?" in listed.err
    assert "--answer decline" in listed.err
    found = project.run("approvals", "ls", "--json").assert_ok().json
    assert found["approvals"] == []
    (form,) = found["input_requests"]
    assert (form["episode_id"], form["step_id"]) == (project.episode.name, "ask")
    project.run("resume", "@last", "--abort").assert_ok()
    assert project.run("approvals", "ls", "--json").json["input_requests"] == []


@pytest.mark.sampled(3)
def test_a_hook_is_called_for_a_form_once(project: Any) -> None:
    write_asking(project)
    script = project.root.parent / "hook.py"
    script.write_text(
        "import sys\nopen(sys.argv[1], 'a').write(sys.stdin.read().strip() + '\\n')\n"
    )
    command = [sys.executable, str(script), str(script.with_name("messages"))]
    settings = project.home / ".config/cogcli/config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f"[hooks]\non_pause = {json.dumps(command)}\n")
    ask(project)
    project.run("resume", "@last").assert_exit(5)
    (message,) = map(json.loads, script.with_name("messages").read_text().splitlines())
    assert (message["hook"], message["status"], message["requests"]) == ("on_pause", "pending", [])
    assert message["input_requests"] == [
        {"step": "ask", "service": "desk", "message": "`asks` asks: Who are you?"}
    ]


@pytest.mark.sampled(3)
def test_a_program_answers_the_form(project: Any) -> None:
    write_asking(project)
    opened = Project(project.root, environ=project.env)
    waiting = opened.run("desk.ask", {"text": "Who are you?"})
    assert waiting.status == "pending"
    (asked,) = waiting.episode.input_requests
    assert (asked.step_id, asked.forms[0].message) == ("ask", "Who are you?")
    assert list(asked.forms[0].schema["properties"]) == ["name"]
    with pytest.raises(CogcliError) as refused:
        opened.resume(waiting.episode, answers={"ask": {"name": 5}})
    assert refused.value.code == "usage.value"
    done = opened.resume(waiting.episode, answers={"ask": {"name": "Ada"}})
    assert done.require() == {"text": "accept {'name': 'Ada'} state-1"}
    assert done.episode.input_requests == []
