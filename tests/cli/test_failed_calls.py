"""What a run says of a call over HTTP that failed, and of a variable that a call needs."""

from __future__ import annotations

import json
import shlex
import socket
from typing import Any

import pytest

FIELDS = "inputs: {text: {type: string, required: true}}\noutputs: {text: {type: string, required: true}}\n"
HEAD = 'version: "1.0.0"\ndescription: Asks.\nproperties: {side_effects: false, idempotent: true}\n'


@pytest.fixture
def away(project: Any) -> Any:
    """A project whose one service is on a port where nothing listens; beside it a function of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        project.port = free.getsockname()[1]
    project.services('def say(text: str) -> dict[str, object]:\n    return {"text": text}\n')
    project.capability("demo.text.say", "say")
    project.write("capabilities/demo.text.ask.yaml", f"id: demo.text.ask\n{HEAD}{FIELDS}")
    for name, service, protocol, operation, more in (
        ("far", "far", "openapi", "/ask", "metadata: {retry_count: 2, retry_backoff_base: 0.01}\n"),
        ("near", "demo", "pythoncall", "say", ""),
    ):
        project.write(
            f"bindings/local/demo.text.ask/{name}.yaml",
            f"id: {name}\ncapability: demo.text.ask\nservice: {service}\nprotocol: {protocol}\noperation: {operation}\n"
            f"request: {{text: input.text}}\nresponse: {{text: response.text}}\n{more}",
        )
    project.write(
        "services/far.yaml",
        f"id: far\nkind: openapi\nbase_url: http://127.0.0.1:{project.port}\nnetwork: private\nauth_ref: FAR_TOKEN\n",
    )
    project.write("policies/official_default_selection.yaml", "defaults: {demo.text.ask: far}\n")
    project.env["FAR_TOKEN"] = "a-secret-of-the-far-one"
    project.skill(
        "demo.asks",
        "- {id: ask, uses: demo.text.ask, input: {text: inputs.text}, output: {text: outputs.text}}",
        inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string, required: true}}",
    )
    return project


def test_it_says_what_was_tried_for_how_long_and_what_needs_no_network(away: Any) -> None:
    result = away.run("run", "demo.asks", "-p", "text=it's", "--json").assert_exit(6)
    error = result.json["error"]
    assert error["code"] == "call.transport"
    (tried,) = error["tried"]
    assert tried.startswith(f"POST http://127.0.0.1:{away.port}/ask, 3 times, ")
    assert error["hint"] == "without the network: --bind demo.text.ask=near"
    values = away.run("trace", "@last", "--step", "ask", "--io").assert_ok().out
    assert values.count(f"  sent     POST http://127.0.0.1:{away.port}/ask\n") == 3, "each attempt"
    words = shlex.split(error["curl"])
    assert words[:2] == ["curl", f"http://127.0.0.1:{away.port}/ask"]
    assert "authorization: Bearer $FAR_TOKEN" in words
    assert json.loads(words[words.index("-d") + 1]) == {"text": "it's"}
    screen = away.run("run", "demo.asks", "-p", "text=x").assert_exit(6).err
    assert screen.partition("error[call.transport]")[2].count("connection refused") == 1
    for row in ("  tried", "  help", "  curl"):
        assert row in screen
    assert "a-secret" not in screen + result.out
    away.run("run", "demo.asks", "-p", "text=x", "--bind", "demo.text.ask=near").assert_ok()
    (away.root / "bindings/local/demo.text.ask/near.yaml").unlink()
    alone = away.run("run", "demo.asks", "-p", "text=x", "--json").assert_exit(6).json["error"]
    assert alone["hint"] == "is `far` running? its address is `base_url` in services/far.yaml"


@pytest.mark.sampled(6)
@pytest.mark.parametrize("how", ["not set", "empty"])
def test_a_variable_that_is_not_set_or_is_empty_is_told_with_its_place(away: Any, how: str) -> None:
    if how == "empty":
        away.env["FAR_TOKEN"] = ""
    else:
        del away.env["FAR_TOKEN"]
    error = away.run("run", "demo.asks", "-p", "text=x", "--json").assert_exit(3).json["error"]
    assert error["code"] == "env.missing"
    assert error["message"].endswith(f"environment variable `FAR_TOKEN` is {how}")
    assert error["hint"].splitlines() == [
        "export FAR_TOKEN=...",
        "named in services/far.yaml:5:11",
        "or use `near`:",
        "cogcli bindings activate demo.text.ask near",
        "for one run: --bind demo.text.ask=near",
    ]
    assert away.episodes == []
    assert f"is {how}" in away.run("doctor").out + away.run("doctor").err


def test_the_next_commands_of_an_unreachable_service_are_a_rerun_and_one_with_the_other_binding(
    away: Any,
) -> None:
    error = away.run("run", "demo.asks", "-p", "text=x", "--json").assert_exit(6).json["error"]
    trace, again, other = error["next"]
    assert trace.endswith(" --step ask --io")
    assert again == f"cogcli rerun {away.episode.name[:15]}"
    assert other == f"{again} --bind demo.text.ask=near"
    away.run(*shlex.split(again)[1:]).assert_exit(6)
    away.run(*shlex.split(other)[1:]).assert_ok()


def test_a_missing_variable_is_answered_with_the_command_that_needs_none(away: Any) -> None:
    del away.env["FAR_TOKEN"]
    error = away.run("run", "demo.asks", "-p", "text=x", "--json").assert_exit(3).json["error"]
    assert error["next"][0] == "cogcli run demo.asks -p text=x --json --bind demo.text.ask=near"
    away.run(*shlex.split(error["next"][0])[1:]).assert_ok()
    forced = away.run(
        "run", "demo.asks", "-p", "text=x", "--bind", "demo.text.ask=far"
    ).assert_exit(3)
    assert "next: cogcli run demo.asks -p text=x --bind demo.text.ask=near\n" in forced.err


def test_a_binding_that_cannot_be_called_either_is_not_proposed(away: Any) -> None:
    near = away.root / "bindings/local/demo.text.ask/near.yaml"
    near.write_text(near.read_text() + "metadata: {extra: nothing-of-this-name}\n")
    error = away.run("run", "demo.asks", "-p", "text=x", "--json").assert_exit(6).json["error"]
    assert "instead" not in error
    assert len(error["next"]) == 2


@pytest.mark.parametrize("kept", [False, True])
def test_trace_ends_with_the_commands_that_the_run_ended_with(away: Any, kept: bool) -> None:
    if kept:
        away.skill(
            "demo.asks",
            """
            - {id: say, uses: demo.text.say, input: {text: inputs.text}, output: {text: vars.text}}
            - {id: ask, uses: demo.text.ask, input: {text: vars.text}, output: {text: outputs.text}}
            """,
            inputs="{text: {type: string, required: true}}",
            outputs="{text: {type: string, required: true}}",
        )
    flags = ("--trust-level", "elevated", "--confirm", "demo.text.ask")
    failed = away.run("run", "demo.asks", "-p", "text=x", *flags, "--no-fallback").assert_exit(6)
    expected = [line for line in failed.err.splitlines() if "cogcli " in line][-3:]
    traced = away.run("trace", "@last").assert_ok()
    assert traced.err.splitlines() == expected
    assert expected[2].endswith("--bind demo.text.ask=near")
    assert ("--from ask" in expected[1]) is kept
    assert "--trust-level elevated --confirm demo.text.ask" in expected[1]
    closer = away.run("trace", "@last", "--step", "ask", "--io").assert_ok()
    assert closer.err.split() == ["next:", *expected[1].split(), *expected[2].split()]
    assert away.run("trace", "@last", "--json").json["trace"]["next"] == [
        line.removeprefix("next:").strip() for line in expected
    ]
