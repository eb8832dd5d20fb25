"""Seven tool servers of other projects, from `services refresh` to `verify`, by the installed command
(docs/how-to/connect-services.md).

A long job: it downloads the servers, each into an environment of its own, so it runs with
`COGCLI_LONG_TESTS=1` (`check.py --long`) alone. `COGCLI_SERVERS_DIR` names a directory that keeps the
environments.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.foreign_servers import keep_environments
from support.project import Project, Result
from support.tool_servers import SERVERS, command_of, fill, prepare_world

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
pytestmark = pytest.mark.skipif(
    not LONG, reason="servers: not asked for (COGCLI_LONG_TESTS=1, or check.py --long)"
)


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the environments, which a variable may keep."""
    return keep_environments(tmp_path_factory.mktemp("servers"))


@pytest.fixture
def prepared(project: Project) -> Iterator[tuple[Project, str]]:
    """A project with a file, a repository and the address of a page."""
    project.run("new", "project", ".").assert_ok()
    with prepare_world(project) as url:
        yield project, url


@pytest.mark.parametrize("name", SERVERS)
def test_all_tools_of_a_server_are_bound_and_one_is_called(
    prepared: tuple[Project, str], environments: Path, name: str
) -> None:
    project, url = prepared
    server = SERVERS[name]

    program, *arguments = command_of(environments, name)
    service = {"id": name, "kind": "mcp", "command": program, "args": arguments}
    project.write(
        f"services/local/{name}.yaml",
        json.dumps({**service, "env": fill(server.env or {}, project, url)}),
    )
    project.run("services", "refresh", name, "--accept").assert_ok()
    shown = project.run("services", "show", name, "--json").assert_ok().json["spec"]["tools"]
    assert len(shown) >= server.tools
    words = ("new", "binding", f"lab.{name}", "--from-mcp", name, "--all", "--keep-going")
    made = project.run(*words).assert_ok()
    assert f"{len(shown)} bound, 0 skipped" in made.err
    project.run("validate", "--strict").assert_ok()
    called = call_tool(project, f"lab.{name}.{server.tool}", fill(server.inputs, project, url))
    assert server.answer in json.dumps(called.assert_ok().json)
    trace = project.run("trace", "@last", "--json").assert_ok().json["trace"]
    assert [step["status"] for step in trace["steps"]] == ["done"]
    project.run("verify", "@last").assert_ok()


def call_tool(project: Project, capability: str, inputs: dict[str, Any]) -> Result:
    """Run a skill of one step, which passes the outputs of the capability on."""
    names = list(project.run("capabilities", "show", capability, "--json").json["spec"]["outputs"])
    step = {
        "id": "call",
        "uses": capability,
        "input": inputs,
        "output": {name: f"outputs.{name}" for name in names},
    }
    outputs = json.dumps({name: {"type": "any"} for name in names})
    project.skill("lab.call", f"- {json.dumps(step)}", outputs=outputs)
    return project.run("run", "lab.call", "-q")
