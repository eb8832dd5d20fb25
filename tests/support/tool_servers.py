"""Seven tool servers of other projects, and the project that their calls read."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple

from support.foreign_servers import node_package, python_environment
from support.loopback_servers import reply, served
from support.project import Project

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


def command_of(environments: Path, name: str) -> list[str]:
    """Return the program of a server and its arguments; skip the test if it cannot be installed."""
    server = SERVERS[name]
    if server.package.startswith("@"):
        node, programs = node_package(environments, name, server.package)
        return [str(node), str(programs / f"mcp-server-{name}"), *server.arguments]
    folder = python_environment(environments / name, server.package)
    return [str(folder / f"bin/mcp-server-{name}"), *server.arguments]


def fill(value: object, project: Project, url: str) -> Any:
    """Return a value with the folder of the project for `ROOT`, and the address of the page for `URL`."""
    text = json.dumps(value)
    return json.loads(text.replace("ROOT", str(project.root)).replace("URL", url))


@contextmanager
def prepare_world(project: Project) -> Iterator[str]:
    """Give a project a file and a repository, and yield the address of a page."""
    project.write("shared/note.txt", "from a file")
    line = (
        "git init -q repository && git -C repository -c user.name=Ada -c user.email=ada@example.org"
        " commit -q --allow-empty -m 'the first change'"
    )
    subprocess.run(["bash", "-c", line], cwd=project.root, env=project.env, check=True)
    with served(_answer) as url:
        yield url


def _answer(handler: BaseHTTPRequestHandler) -> None:
    pages = {"/": (200, b"<title>Hours</title><p>The harbour opens at six.</p>")}
    status, body = pages.get(handler.path, (404, b""))
    reply(status, body, "text/html")(handler)
