"""Servers that misbehave, through the installed command. Names follow the list of hostile cases, area mcp."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from attack import Outcome, attack, hold_all_episodes
from support.mcp_calls import SERVER, is_alive, pids
from support.project import Project
from support.waiting import wait_until

pytestmark = pytest.mark.sampled(8)

COGCLI = str(Path(sys.executable).parent / "cogcli")
SECONDS = 300.0
"""Importing the SDK, starting a server and ending it, on a busy machine."""
LIMITS = "{timeout_seconds: 30}"


class Tools:
    """A project with one skill per tool of the test server, and a place for what servers tell."""

    def __init__(self, folder: Path, *options: str, env: str = "{}") -> None:
        (folder / "around").mkdir()
        self.project = Project(folder / "around")
        self.files = folder
        self.service("tools", *options, env=env)

    def service(self, id: str, *options: str, env: str = "{}") -> None:
        """The test server under an id."""
        kept = [f"--pid={self.files / 'pids'}", f"--ledger={self.files / id}"]
        arguments = json.dumps(["-S", SERVER, *kept, *options])
        self.project.write(
            f"services/local/{id}.yaml",
            f"id: {id}\nkind: mcp\ncommand: {sys.executable}\nargs: {arguments}\nenv: {env}\n",
        )

    def tool(
        self,
        tool: str,
        *,
        service: str = "tools",
        effects: str = "{side_effects: false}",
        safety: str = "",
    ) -> None:
        """A skill `tools.NAME` that calls a tool."""
        name = tool.replace("_", "-")
        id = f"tools.{name}.call"
        self.project.write(
            f"capabilities/{id}.yaml",
            f'id: {id}\nversion: "1.0.0"\ndescription: Calls {tool}.\n'
            "inputs: {text: {type: string, required: true}}\noutputs: {body: {type: any, required: true}}\n"
            f"properties: {effects}\n{safety}",
        )
        self.project.write(
            f"bindings/local/{id}/{tool}.yaml",
            f"id: {tool}\ncapability: {id}\nservice: {service}\nprotocol: mcp\noperation: {tool}\n"
            f"request: {{text: input.text}}\nresponse: {{body: response}}\nmetadata: {LIMITS}\n",
        )
        self.project.skill(
            f"tools.{name}",
            f"- {{id: call, uses: {id}, input: {{text: inputs.text}}, output: {{body: outputs.body}}}}",
            inputs="{text: {type: string, default: hello}}",
            outputs="{body: {type: any, required: true}}",
        )

    def run(self, tool: str, *arguments: str, **more: Any) -> Outcome:
        """Run a tool's skill, defined if it is not yet; whatever was created verifies."""
        name = tool.replace("_", "-")
        if not (self.project.root / f"skills/local/tools/{name}/skill.yaml").exists():
            self.tool(tool)
        outcome = attack(
            self.project, "run", f"tools.{name}", *arguments, "--json", seconds=SECONDS, **more
        )
        hold_all_episodes(self.project)
        return outcome

    def body(self, tool: str) -> Any:
        """What a tool gives to a run that succeeds."""
        outcome = self.run(tool)
        assert outcome.code == 0, outcome.envelope
        return outcome.envelope["outputs"]["body"]

    def attempt(self, step: str = "call") -> dict[str, Any]:
        """The only attempt of a step of the last run, as it was recorded."""
        lines = (self.project.episode / "events.jsonl").read_text().splitlines()
        events = [event for event in map(json.loads, lines) if event.get("step_id") == step]
        return next(
            event["payload"]["attempts"][0] for event in events if event["payload"].get("attempts")
        )

    @property
    def alive(self) -> list[int]:
        """Processes of servers that still run."""
        return [pid for pid in pids(self.files / "pids") if is_alive(pid)]


Make = Callable[..., Tools]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Builds the project of a test, with the options of its server."""
    return lambda *options, env="{}": Tools(tmp_path, *options, env=env)


TOUR = (
    "floods_stderr foreign_id answers_twice noisy fails notifies surroundings slow_pattern not_a_number twice_a_key"
    " deep demands echo"
).split()


class Tour(NamedTuple):
    """One run over one server that did all that a server should survive, call after call."""

    tools: Tools
    outcome: Outcome

    def body(self, tool: str) -> Any:
        """What a tool gave."""
        return self.outcome.envelope["outputs"][tool]

    def attempt(self, tool: str) -> dict[str, Any]:
        """How a tool's call is recorded."""
        return self.tools.attempt(tool)


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Tour:
    tools = Tools(tmp_path_factory.mktemp("tour"))
    steps, outputs = [], []
    for tool in TOUR:
        tools.tool(tool)
        call = f"uses: tools.{tool.replace('_', '-')}.call, input: {{text: inputs.text}}"
        steps.append(f"- {{id: {tool}, depends_on: [], {call}, output: {{body: outputs.{tool}}}}}")
        outputs.append(f"{tool}: {{type: any}}")
    tools.project.skill(
        "tools.tour",
        "\n".join(steps),
        inputs="{text: {type: string, default: hello}}",
        outputs=f"{{{', '.join(outputs)}}}",
    )
    tools.project.env["MY_SECRET"] = "sesame-sesame"
    # One at a time: what is noted goes to the records of all calls under way.
    outcome = tools.run("tour", "--keep-going", "--max-workers", "1")
    assert outcome.code == 1
    return Tour(tools, outcome)


def test_M02_a_flood_of_stderr_is_drained(tour: Tour) -> None:
    assert tour.body("floods_stderr")["text"] == "fine"


def test_M03_answers_to_other_requests_are_dropped_and_noted(tour: Tour) -> None:
    assert tour.body("foreign_id")["text"] == "own"
    assert any(
        "to no request of ours" in notice for notice in tour.attempt("foreign_id")["notices"]
    )


def test_M03_only_the_first_answer_counts(tour: Tour) -> None:
    assert tour.body("answers_twice")["text"] == "first"


def test_M05_noise_on_stdout_is_counted_and_passed_over(tour: Tour) -> None:
    assert tour.body("noisy")["text"] == "fine"
    assert "6 lines on stdout were no messages" in tour.attempt("noisy")["notices"]


def test_M06_a_tool_that_fails_fails_the_step_and_its_words_are_kept(tour: Tour) -> None:
    attempt = tour.attempt("fails")
    assert (attempt["status"], attempt["code"]) == ("failed", "call.rejected")
    assert attempt["reply"]["body"]["content"] == [{"type": "text", "text": "no: hello"}]


def test_M07_notifications_before_the_answer_do_no_harm(tour: Tour) -> None:
    assert tour.body("notifies")["text"] == "after"


def test_M08_a_server_sees_only_what_it_was_given(tour: Tour) -> None:
    names = set(tour.body("surroundings")["names"])
    assert "PATH" in names
    assert names <= set("HOME LANG LC_ALL LC_CTYPE LOGNAME PATH SHELL TERM TMPDIR TZ USER".split())


def test_M15_a_pattern_that_could_take_for_ever_is_applied_in_no_time(tour: Tour) -> None:
    attempt = tour.attempt("slow_pattern")
    assert attempt["code"] == "call.server-error"
    assert "output schema" in attempt["message"]


@pytest.mark.parametrize("tool", ["not_a_number", "twice_a_key", "deep"])
def test_M16_answers_that_are_no_strict_json_are_refused(tour: Tour, tool: str) -> None:
    assert tour.attempt(tool)["code"] == "response.not-json"


def test_M17_demands_of_a_server_are_refused_and_recorded(tour: Tour) -> None:
    refused = {"sampling/createMessage": -32601, "roots/list": -32601, "elicitation/create": None}
    assert tour.body("demands") == {**refused, "ping": {}}
    assert tour.attempt("demands")["notices"] == [
        f"the server asked for `{method}`: refused" for method in refused
    ]


def test_M17_what_was_refused_shows_wherever_the_run_is_looked_at(tour: Tour) -> None:
    project = tour.tools.project
    refused = tour.attempt("demands")["notices"]
    steps = {
        step["step_id"]: step
        for step in project.run("trace", "@last", "--json").json["trace"]["steps"]
    }
    assert steps["demands"]["notices"] == refused
    assert "notices" not in steps["echo"]
    for flags in ((), ("--io", "--step", "demands")):
        shown = project.run("trace", "@last", *flags).assert_ok().out
        assert all(notice in shown for notice in refused), flags


def test_after_all_that_the_same_server_still_serves_and_then_ends(tour: Tour) -> None:
    assert tour.body("echo")["text"] == "hello"
    assert len(pids(tour.tools.files / "pids")) == 1
    assert tour.tools.alive == []


PEAK = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.sampled(16)
def test_M04_a_frame_beyond_the_cap_fails_the_call_and_ends_the_server(make: Make) -> None:
    tools = make()
    wrap = (sys.executable, "-S", "-c", PEAK)
    peaks = []
    for tool, error in (("echo", None), ("huge", "response.size")):
        outcome = tools.run(tool, wrap=wrap)
        assert outcome.error == error
        peaks.append(int(outcome.err.split()[-1]))
    assert peaks[1] - peaks[0] < 40 * 1024, "kilobytes above a call that is small"
    assert tools.alive == []


def test_M11_equal_tools_of_two_servers_are_told_apart_by_service(make: Make) -> None:
    tools = make()
    tools.service("others")
    tools.tool("echo", service="others")
    assert tools.body("echo")["text"] == "hello"
    assert "call echo" in (tools.files / "others").read_text()
    assert not (tools.files / "tools").exists()


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        ("--pages=endless", "response.size", "more than 50 pages"),
        ("--pages=circle", "call.server-error", "same page again"),
        ("--tools=2001", "response.size", "more than 2,000 tools"),
    ],
)
def test_M12_a_list_of_tools_without_end_is_given_up(
    make: Make, option: str, code: str, said: str
) -> None:
    tools = make(option)
    outcome = tools.run("echo")
    assert (outcome.code, outcome.error) == (1, code)
    assert said in outcome.envelope["error"]["message"]
    assert tools.alive == []


@pytest.mark.sampled(2)
def test_M19_a_server_that_ignores_all_gentler_ways_is_killed(make: Make) -> None:
    tools = make("--deaf")
    assert tools.body("echo")["text"] == "hello"
    assert len(pids(tools.files / "pids")) == 1
    assert tools.alive == []


def test_M20_what_a_server_left_running_is_killed_with_it(make: Make) -> None:
    tools = make()
    outcome = tools.run("breeds")
    assert outcome.code == 0
    assert len(pids(tools.files / "pids")) == 4
    assert tools.alive == []
    [warning] = [one for one in outcome.envelope["warnings"] if one["code"] == "service.leftover"]
    assert "left 3 of its processes running" in warning["message"]


@pytest.mark.sampled(16)
@pytest.mark.skipif(sys.platform != "linux", reason="guards need Linux")
def test_M20_nothing_of_a_server_lives_on_when_the_command_is_killed(make: Make) -> None:
    tools = make("--deaf")
    steps = []
    for tool in ("breeds", "hangs"):
        tools.tool(tool)
        steps.append(f"- {{id: {tool}, uses: tools.{tool}.call, input: {{text: inputs.text}}}}")
    tools.project.skill(
        "tools.both", "\n".join(steps), inputs="{text: {type: string, default: hello}}"
    )
    command = [COGCLI, "run", "tools.both", "-q"]
    project, ledger = tools.project, tools.files / "tools"
    with subprocess.Popen(
        command, cwd=project.root, env=project.env, stdout=subprocess.DEVNULL
    ) as process:
        wait_until(lambda: ledger.exists() and "call hangs" in ledger.read_text())
        process.kill()
    assert len(pids(tools.files / "pids")) == 4
    wait_until(lambda: tools.alive == [])


def test_M22_annotations_lower_nothing(make: Make) -> None:
    tools = make("--readonly")
    tools.tool(
        "echo",
        effects="{side_effects: true, idempotent: false}",
        safety="safety: {trust_level: standard, requires_confirmation: true, reversible: true}\n",
    )
    outcome = tools.run("echo")
    assert (outcome.code, outcome.error) == (5, "safety.confirmation")
    assert pids(tools.files / "pids") == []


def test_S07_an_untrusted_project_starts_no_server(make: Make) -> None:
    tools = make()
    tools.project.env["COGCLI_TRUST_PROJECT"] = "0"
    outcome = tools.run("echo")
    assert (outcome.code, outcome.error) == (3, "service.untrusted")
    assert pids(tools.files / "pids") == []


def test_S04_a_secret_in_pieces_on_stderr_is_masked_everywhere(make: Make) -> None:
    token = "tok-5be1f0c2d3a4e5f6"
    tools = make(env='{KEY: "${MY_TOKEN}"}')
    tools.project.env["MY_TOKEN"] = token
    outcome = tools.run("secret", "-p", "text=KEY")
    assert (outcome.code, outcome.error) == (6, "call.transport")
    assert (
        "the server ended with exit status 3: key [masked]" in outcome.envelope["error"]["message"]
    )
    assert token.encode() not in outcome.out + outcome.err
    for file in tools.project.episode.rglob("*"):
        assert not file.is_file() or token.encode() not in file.read_bytes(), file
