"""Seven tool servers of other projects, from `services refresh` to `verify`, by the installed command
(docs/how-to/connect-services.md).

A long job: it downloads the servers, each into an environment of its own, so it runs with
`COGCLI_LONG_TESTS=1` (`check.py --long`) alone. `COGCLI_SERVERS_DIR` names a directory that keeps the
environments.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.foreign_servers import keep_environments, node_package, python_environment
from support.loopback_servers import reply, served
from support.project import Project, Result

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
pytestmark = pytest.mark.skipif(
    not LONG, reason="servers: not asked for (COGCLI_LONG_TESTS=1, or check.py --long)"
)
NPM_VERSION = "2026.8.31"


class Server(NamedTuple):
    """A server and a call of one of its tools. `ROOT` and `URL` in the texts are replaced."""

    package: str
    arguments: list[str]
    tool: str
    inputs: dict[str, Any]
    answer: str
    """A text in the outputs of the call."""
    tools: int
    """The least number of its tools."""
    env: dict[str, str] | None = None


SERVERS = {
    "everything": Server(
        f"@modelcontextprotocol/server-everything@{NPM_VERSION}",
        ["stdio"], "get-sum", {"a": 1, "b": 2}, "The sum of 1 and 2 is 3.", 10,
    ),
    "filesystem": Server(
        f"@modelcontextprotocol/server-filesystem@{NPM_VERSION}",
        ["shared"], "read-text-file", {"path": "ROOT/shared/note.txt"}, "from a file", 10,
    ),
    "memory": Server(
        f"@modelcontextprotocol/server-memory@{NPM_VERSION}",
        [], "create-entities",
        {"entities": [{"name": "Ada", "entityType": "person", "observations": ["sails"]}]},
        "sails", 9, {"MEMORY_FILE_PATH": "ROOT/memory.json"},
    ),
    "sequential-thinking": Server(
        f"@modelcontextprotocol/server-sequential-thinking@{NPM_VERSION}",
        [], "sequentialthinking",
        {"thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
        '"thoughtHistoryLength": 1', 1,
    ),
    "time": Server(
        "mcp-server-time==2026.10.19", ["--local-timezone", "UTC"], "convert-time",
        {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
        "T21:00:00+09:00", 2,
    ),
    "git": Server(
        "mcp-server-git==2026.10.19", ["--repository", "repository"], "git-log",
        {"repo_path": "repository"}, "the first change", 10,
    ),
    "fetch": Server(
        "mcp-server-fetch==2026.10.24", ["--allow-private-ips"], "fetch", {"url": "URL/"},
        "The harbour opens at six.", 1,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the environments, which a variable may keep."""
    return keep_environments(tmp_path_factory.mktemp("servers"))


def command_of(environments: Path, name: str) -> list[str]:
    """Return the program of a server and its arguments; skip the test if it cannot be installed."""
    server = SERVERS[name]
    if server.package.startswith("@"):
        node, programs = node_package(environments, name, server.package)
        return [str(node), str(programs / f"mcp-server-{name}"), *server.arguments]
    folder = python_environment(environments / name, server.package)
    return [str(folder / f"bin/mcp-server-{name}"), *server.arguments]


def _answer(handler: BaseHTTPRequestHandler) -> None:
    pages = {"/": (200, b"<title>Hours</title><p>The harbour opens at six.</p>")}
    status, body = pages.get(handler.path, (404, b""))
    reply(status, body, "text/html")(handler)


@pytest.fixture
def prepared(project: Project) -> Iterator[tuple[Project, str]]:
    """A project with a file, a repository and the address of a page."""
    project.run("new", "project", ".").assert_ok()
    project.write("shared/note.txt", "from a file")
    line = (
        "git init -q repository && git -C repository -c user.name=Ada -c user.email=ada@example.org"
        " commit -q --allow-empty -m 'the first change'"
    )
    subprocess.run(["bash", "-c", line], cwd=project.root, env=project.env, check=True)
    with served(_answer) as url:
        yield project, url


@pytest.mark.parametrize("name", SERVERS)
def test_all_tools_of_a_server_are_bound_and_one_is_called(
    prepared: tuple[Project, str], environments: Path, name: str
) -> None:
    project, url = prepared
    server = SERVERS[name]

    def fill(value: object) -> Any:
        text = json.dumps(value)
        return json.loads(text.replace("ROOT", str(project.root)).replace("URL", url))

    program, *arguments = command_of(environments, name)
    service = {"id": name, "kind": "mcp", "command": program, "args": arguments}
    project.write(
        f"services/local/{name}.yaml", json.dumps({**service, "env": fill(server.env or {})})
    )
    project.run("services", "refresh", name, "--accept").assert_ok()
    shown = project.run("services", "show", name, "--json").assert_ok().json["spec"]["tools"]
    assert len(shown) >= server.tools
    words = ("new", "binding", f"lab.{name}", "--from-mcp", name, "--all", "--keep-going")
    made = project.run(*words).assert_ok()
    assert f"{len(shown)} bound, 0 skipped" in made.err
    project.run("validate", "--strict").assert_ok()
    called = call_tool(project, f"lab.{name}.{server.tool}", fill(server.inputs))
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
