"""Each command that runs something says once what it leaves out of a project that is not trusted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.loopback_host import LoopbackHost, loopback_host
from support.project import Project
from support.terminal import Terminal

from cogcli import api

pytestmark = pytest.mark.sampled(12)

ASK = "- {id: make, uses: own.text.ask, input: {text: inputs.text}, output: {text: outputs.text}}"
PAGE = (
    "- {id: make, uses: web.page.fetch, input: {url: inputs.text}, output: {content: outputs.text}}"
)
TEXT = "{text: {type: string, required: true}}"


@pytest.fixture
def clone(tmp_path: Path) -> Project:
    """A clone with settings, and a registry of the user with a skill that waits for an approval."""
    project = Project(tmp_path)
    project.services("def upper(text):\n    return {'text': text.upper()}\n")
    project.write("services/local/demo.yaml", "id: demo\nkind: pythoncall\nmodule: demo_services\n")
    project.capability("own.text.ask", "upper", extra="safety: {requires_confirmation: true}\n")
    project.skill("own.ask", ASK, inputs=TEXT, outputs=TEXT)
    for name in ("services", "bindings", "capabilities", "skills", "demo_services.py"):
        (project.root / name).rename(project.home / name)
    project.env["COGCLI_REGISTRY"] = str(project.home)
    del project.env["COGCLI_TRUST_PROJECT"]
    project.write("cogcli.toml", "max_workers = 2\n")
    return project


def _warned(warnings: Any) -> int:
    return [each["code"] for each in warnings].count("service.untrusted")


def test_run_and_resume_warn(clone: Project) -> None:
    waits = clone.run("run", "own.ask", "-p", "text=hi", "--json").assert_exit(5)
    assert _warned(waits.json["warnings"]) == 1
    resumed = clone.run("resume", "@last", "--approve", "own.text.ask", "--json").assert_ok()
    assert _warned(resumed.json["warnings"]) == 1
    assert resumed.json["outputs"] == {"text": "HI"}
    assert _warned(clone.run("rerun", "@last", "--json").json["warnings"]) == 1


def test_a_project_that_has_changed_is_told_once(clone: Project) -> None:
    clone.run("config", "trust").assert_ok()
    clone.run("run", "own.ask", "-p", "text=hi").assert_exit(5)
    clone.write("cogcli.toml", "max_workers = 3\n")
    resumed = clone.run("resume", "@last", "--approve", "own.text.ask", "--json").assert_ok()
    (warning,) = resumed.json["warnings"]
    assert "changed cogcli.toml" in warning["message"]
    assert _warned(clone.run("test", "text.language", "--json").json["warnings"]) == 1


def test_a_run_from_python_warns(clone: Project) -> None:
    project = api.Project(clone.root, environ=clone.env)
    run = project.run("own.ask", {"text": "hi"})
    assert (run.status, _warned(run.warnings)) == ("pending", 1)
    resumed = project.resume(run.episode, approve=["own.text.ask"])
    assert (resumed.outputs, _warned(resumed.warnings)) == ({"text": "HI"}, 1)
    trusted = api.Project(clone.root, environ={**clone.env, "COGCLI_TRUST_PROJECT": "1"})
    assert _warned(trusted.run("own.ask", {"text": "hi"}).warnings) == 0


def test_an_agent_warns(clone: Project) -> None:
    asked = clone.run("agent", "invoke", "--message", "hello", "--json")
    assert _warned(asked.json["warnings"]) == 1
    chat = Terminal(clone, "agent", "chat")
    chat.until("warning[service.untrusted]: what is shipped runs as in an empty directory")
    chat.leave("›")


@pytest.fixture
def host(clone: Project) -> Iterator[LoopbackHost]:
    with loopback_host(clone.home) as found:
        environ = {
            name: value for name, value in found.environ.items() if name != "COGCLI_TRUST_PROJECT"
        }
        clone.env |= environ
        yield found


def test_a_case_of_the_project_reaches_an_allowed_host(clone: Project, host: LoopbackHost) -> None:
    file = clone.skill("their.page", PAGE, inputs=TEXT, outputs=TEXT)
    (file.parent / "tests").mkdir()
    (file.parent / "tests" / "case.yaml").write_text(
        "inputs: {text: 'http://public.example/page'}\nreal: [web.page.fetch]\n"
    )
    refused = clone.run("test", "their.page", "--json").assert_exit(1)
    assert refused.json["tests"][0]["code"] == "test.effects"
    assert _warned(refused.json["warnings"]) == 1
    clone.run("test", "their.page", "--allow-host", "other.example").assert_exit(1)
    assert host.requests == []
    clone.run("test", "their.page", "--allow-host", "public.example").assert_ok()
    assert host.requests == ["GET http://public.example/page"]


def test_options_of_a_project_do_not_count_for_cases(clone: Project) -> None:
    clone.write("cogcli.toml", "conformance = 'strict'\n")
    assert clone.run("test", "text.language", "--json").assert_ok()
    assert clone.run("test", "text.language", env={"COGCLI_TRUST_PROJECT": "1"}).code == 1


def test_the_hint_names_the_host_that_is_known_and_the_next_command_runs(
    clone: Project, host: LoopbackHost
) -> None:
    clone.skill("their.page", PAGE, inputs=TEXT, outputs=TEXT)
    url = "http://public.example/page"
    error = (
        clone.run("run", "their.page", "-p", f"text={url}", "--json").assert_exit(3).json["error"]
    )
    assert error["hint"].startswith("allow it for one run: --allow-host public.example\n")
    (line,) = error["next"]
    assert line == f"cogcli run their.page -p text={url} --json --allow-host public.example"
    clone.run(*line.split()[1:]).assert_ok()
    assert host.requests == [f"GET {url}"]
    unknown = (
        clone.run("run", "their.page", "-p", "text=nowhere", "--json").assert_exit(3).json["error"]
    )
    assert unknown["hint"].startswith("allow it for one run: --allow-host HOST\n")
    assert "--allow-host" not in unknown["next"][0]
    other = ("-p", f"text={url}:81", "--allow-host", "other.example", "--json")
    called = clone.run("run", "their.page", *other).json["error"]
    assert "--allow-host public.example\n" in called["hint"]


def test_a_private_host_is_not_proposed(clone: Project) -> None:
    clone.skill("their.page", PAGE.replace("inputs.text", "'http://127.0.0.1:9/x'"), outputs=TEXT)
    error = clone.run("run", "their.page", "--json").assert_exit(3).json["error"]
    assert "127.0.0.1" not in error["hint"]
