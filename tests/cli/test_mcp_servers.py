"""Skills over real MCP servers from the package index, through the installed command
(docs/reference/protocols.md#counterparts)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.mcp_http import served

pytestmark = pytest.mark.sampled(12)

BIN = str(Path(sys.executable).parent)
"""Where the servers of the development extra are installed."""


@pytest.fixture
def servers(project: Any) -> Any:
    """A project whose commands find the servers."""
    project.env["PATH"] = f"{BIN}{os.pathsep}{project.env['PATH']}"
    project.env["GIT_CONFIG_GLOBAL"] = os.devnull
    return project


def tool(
    project: Any, id: str, service: str, operation: str, inputs: str, outputs: str, request: str, response: str,
    metadata: str = "{}",
) -> None:  # fmt: skip
    """A capability bound to one tool of one service."""
    project.write(
        f"capabilities/{id}.yaml",
        f'id: {id}\nversion: "1.0.0"\ndescription: Calls {operation}.\ninputs: {inputs}\noutputs: {outputs}\n'
        "properties: {side_effects: false}\n",
    )
    name = id.replace(".", "_")
    project.write(
        f"bindings/local/{id}/{name}.yaml",
        f"id: {name}\ncapability: {id}\nservice: {service}\nprotocol: mcp\noperation: {operation}\n"
        f"request: {request}\nresponse: {response}\nmetadata: {metadata}\n",
    )


def clock(project: Any) -> None:
    """The time server and a skill that asks it twice."""
    project.write(
        "services/local/clock.yaml",
        "id: clock\nkind: mcp\ncommand: mcp-server-time\nargs: [--local-timezone, UTC]\n",
    )
    tool(
        project,
        "time.zone.convert",
        "clock",
        "convert_time",
        "{time: {type: string, required: true}, to: {type: string, required: true}}",
        "{difference: {type: string, required: true}, there: {type: string, required: true}}",
        "{source_timezone: Etc/UTC, time: input.time, target_timezone: input.to}",
        "{difference: response.time_difference, there: response.target.timezone}",
    )
    project.skill(
        "time.convert",
        """
        - id: tokyo
          uses: time.zone.convert
          input: {time: inputs.time, to: Asia/Tokyo}
          output: {difference: outputs.tokyo}
        - id: nowhere
          uses: time.zone.convert
          depends_on: []
          input: {time: inputs.time, to: Asia/Kathmandu}
          output: {difference: outputs.kathmandu}
        """,
        inputs="{time: {type: string, required: true}}",
        outputs="{tokyo: {type: string, required: true}, kathmandu: {type: string, required: true}}",
    )


@pytest.mark.sampled(24)
def test_the_time_server_gives_structured_content(servers: Any) -> None:
    clock(servers)
    servers.run("validate", "-C", ".").assert_ok()
    result = servers.run("run", "time.convert", "-p", "time=12:00", "--json").assert_ok()
    assert result.json["outputs"] == {"tokyo": "+9.0h", "kathmandu": "+5.75h"}
    servers.run("verify", "@last").assert_ok()
    pins = list((servers.home / ".local/state/cogcli/pins/mcp").rglob("*.json"))
    assert len(pins) == 1


@pytest.mark.sampled(24)
def test_a_recorded_run_replays_without_any_server(servers: Any) -> None:
    clock(servers)
    servers.run("run", "time.convert", "-p", "time=12:00").assert_ok()
    servers.env["PATH"] = "/nowhere"
    servers.run("replay", "@last").assert_ok()
    log = (servers.episode / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in log]
    found = [
        (e["event_type"], e.get("step_id"), e["payload"]["service"])
        for e in events
        if e["event_type"].startswith("service.")
    ]
    kinds = [e["event_type"] for e in events]
    steps = {e["step_id"] for e in events if e["event_type"] == "step.started"}
    (began, causing, _), ended = found
    assert (began, causing in steps) == ("service.started", True)
    assert ended == ("service.stopped", None, "clock")
    assert kinds.index("service.started") < kinds.index("step.completed")
    assert kinds.index("service.stopped") > kinds.index("run.terminated")


@pytest.mark.sampled(24)
def test_a_refusal_of_the_tool_is_told_in_its_words(servers: Any) -> None:
    clock(servers)
    result = servers.run("run", "time.convert", "-p", "time=nonsense", "--json").assert_exit(1)
    assert result.json["error"]["code"] == "call.rejected"
    assert "Invalid time format" in result.json["error"]["message"]
    servers.run("verify", "@last").assert_ok()


def test_the_git_server_gives_text(servers: Any, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    git = ["git", "-C", str(repository), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first words"], check=True)
    servers.write(
        "services/local/git.yaml",
        f"id: git\nkind: mcp\ncommand: mcp-server-git\nargs: [--repository, {repository}]\n",
    )
    tool(
        servers,
        "code.history.read",
        "git",
        "git_log",
        "{path: {type: string, required: true}}",
        "{text: {type: string, required: true}}",
        "{repo_path: input.path, max_count: 1}",
        "{text: response.text}",
        "{response_mode: text}",
    )
    servers.skill(
        "code.history",
        "- {id: read, uses: code.history.read, input: {path: inputs.path}, output: {text: outputs.text}}",
        inputs="{path: {type: string, required: true}}",
        outputs="{text: {type: string, required: true}}",
    )
    result = servers.run("run", "code.history", "-p", f"path={repository}", "--json").assert_ok()
    assert "first words" in result.json["outputs"]["text"]
    servers.run("verify", "@last").assert_ok()


def test_a_server_over_http_is_called_and_replayed_without_it(project: Any) -> None:
    with served() as url:
        project.write(
            "services/local/sums.yaml",
            f"id: sums\nkind: mcp\nurl: {url}\nnetwork: private\nauth_ref: SUMS_TOKEN\n",
        )
        numbers = "{a: {type: integer, required: true}, b: {type: integer, required: true}}"
        tool(
            project,
            "math.number.add",
            "sums",
            "add",
            numbers,
            "{sum: {type: integer, required: true}}",
            "{a: input.a, b: input.b}",
            "{sum: response.sum}",
        )
        project.skill(
            "math.add",
            "- {id: add, uses: math.number.add, input: {a: inputs.a, b: inputs.b}, output: {sum: outputs.sum}}",
            inputs=numbers,
            outputs="{sum: {type: integer, required: true}}",
        )
        project.env["SUMS_TOKEN"] = "sesame-sesame"
        result = project.run("run", "math.add", "-p", "a=2", "-p", "b=40", "--json").assert_ok()
        assert result.json["outputs"] == {"sum": 42}
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()
    assert all(
        b"sesame" not in file.read_bytes() for file in project.episode.rglob("*") if file.is_file()
    )


def test_a_shipped_tool_table_needs_no_server_and_no_extra(project: Any) -> None:
    project.write(
        "services/local/words.yaml", "id: words\nkind: mcp\nserver: official_text_tools\n"
    )
    tool(
        project,
        "text.words.clean",
        "words",
        "normalize",
        "{text: {type: string, required: true}}",
        "{text: {type: string, required: true}}",
        "{text: input.text}",
        "{text: response.text}",
    )
    project.skill(
        "text.clean",
        "- {id: clean, uses: text.words.clean, input: {text: inputs.text}, output: {text: outputs.text}}",
        inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string, required: true}}",
    )
    result = project.run("run", "text.clean", "-p", "text=a   b", "--json").assert_ok()
    assert result.json["outputs"] == {"text": "a b"}


@pytest.mark.parametrize(
    ("limit", "flags", "code"),
    [
        ("attempt", [], "call.timeout"),
        ("binding", [], "call.timeout"),
        ("step", [], "step.timeout"),
        ("run", ["--timeout", "1"], "run.timeout"),
    ],
)
def test_an_effect_of_a_service_that_never_started_is_in_no_doubt(
    project: Any, limit: str, flags: list[str], code: str
) -> None:
    seconds = 0.5 if limit == "attempt" else 3000
    project.write(
        "services/local/deaf.yaml",
        f'id: deaf\nkind: mcp\ncommand: sleep\nargs: ["60"]\nmetadata: {{timeout_seconds: {seconds}}}\n',
    )
    tool(
        project, "mail.send", "deaf", "send", "{}", "{sent: {type: any}}", "{}", "{sent: response}",
        "{timeout_seconds: 0.5}" if limit == "binding" else "{}",
    )  # fmt: skip
    file = project.root / "capabilities/mail.send.yaml"
    file.write_text(file.read_text().replace("side_effects: false", "side_effects: true"))
    config = "{timeout_seconds: 0.5}" if limit == "step" else "{}"
    project.skill("mail.out", f"- {{id: send, uses: mail.send, config: {config}}}")
    answer = project.run("run", "mail.out", "--json", *flags).assert_exit(6).json
    assert answer["error"]["code"] == code
    project.run("replay", "@last").assert_ok()
    assert project.run("resume", "@last").code == 2
