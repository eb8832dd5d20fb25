"""Sessions of three clients with seven servers of other projects, straight and through `gateway serve`: equal but for
what the gateway changes on purpose (docs/reference/gateway.md#changes).

A long job: it downloads the servers and the clients, so it runs with `COGCLI_LONG_TESTS=1` (`check.py --long`) alone.
`COGCLI_SERVERS_DIR` names a directory that keeps the environments. A client that cannot be had is skipped.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.foreign_servers import keep_environments, node_package, python_environment
from support.gateway_client import mark, write_host_file
from support.project import COGCLI, Project
from support.tool_servers import SERVERS, command_of, fill, prepare_world

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
long_test = pytest.mark.skipif(
    not LONG, reason="servers: not asked for (COGCLI_LONG_TESTS=1, or check.py --long)"
)
Json = dict[str, Any]
Sessions = dict[str, list[tuple[Json, Json, Json]]]
"""By server, each request with the reply of the server and of the gateway."""

SCRIPT = Path(__file__).with_name("session_client.py")
FASTMCP = "fastmcp==4.2.3"
INSPECTORS = ("1.0.3", "2.12.0")
CLIENTS = ("sdk", "fastmcp", *(f"inspector-{version}" for version in INSPECTORS))
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


def call(tool: str, **arguments: Any) -> Json:
    """A call of a tool."""
    return {"method": "tools/call", "name": tool, "arguments": arguments}


def read(uri: str) -> Json:
    """A read of a resource."""
    return {"method": "resources/read", "uri": uri}


def prompt(name: str, **arguments: str) -> Json:
    """A prompt."""
    return {"method": "prompts/get", "name": name, "arguments": arguments}


NOTE = "ROOT/shared/note.txt"
ADA = {"name": "Ada", "entityType": "person", "observations": ["sails"]}
SESSIONS: dict[str, list[Json]] = {
    "everything": [
        call("echo", message="hi"),
        call("get-sum", a=1, b=2),
        call("get-tiny-image"),
        call("get-annotated-message", messageType="error", includeImage=True),
        call("get-structured-content", location="Chicago"),
        call("get-resource-links", count=2),
        call("get-resource-reference", resourceType="Text", resourceId=1),
        call("trigger-long-running-operation", duration=0.1, steps=2),
        call("get-sum", a="one", b=2),
        call("no-such-tool"),
        read("demo://resource/static/document/features.md"),
        read("demo://resource/dynamic/blob/1"),
        read("demo://resource/no-such"),
        prompt("simple-prompt"),
        prompt("args-prompt", city="Bergen", state="N"),
        prompt("resource-prompt", resourceType="Text", resourceId="1"),
        prompt("args-prompt"),
        prompt("no-such-prompt"),
    ],
    "filesystem": [
        call("read_text_file", path=NOTE),
        call("read_text_file", path=NOTE, head=1),
        call("list_directory", path="ROOT/shared"),
        call("directory_tree", path="ROOT/shared"),
        call("write_file", path="ROOT/shared/new.txt", content="one\ntwo\n"),
        call("edit_file", path="ROOT/shared/new.txt", edits=[{"oldText": "two", "newText": "2"}]),
        call("search_files", path="ROOT/shared", pattern="*.txt"),
        call("read_multiple_files", paths=[NOTE, "ROOT/shared/new.txt"]),
        call("read_text_file", path="/etc/hostname"),
        call("read_text_file", path="ROOT/shared/none.txt"),
    ],
    "memory": [
        call("create_entities", entities=[ADA]),
        call("add_observations", observations=[{"entityName": "Ada", "contents": ["reads"]}]),
        call("read_graph"),
        call("search_nodes", query="sails"),
        call("delete_observations", deletions=[{"entityName": "Ada", "observations": ["reads"]}]),
        call("open_nodes", names=["Ada"]),
        read("memory://knowledge-graph"),
    ],
    "sequential-thinking": [
        call("sequentialthinking", thought="x", nextThoughtNeeded=True, thoughtNumber=1, totalThoughts=2),
        call("sequentialthinking", thought="y", nextThoughtNeeded=False, thoughtNumber=2, totalThoughts=2),
    ],
    "time": [
        call("convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"),
        call("convert_time", source_timezone="UTC", time="25:00", target_timezone="Asia/Tokyo"),
        call("get_current_time", timezone="Nowhere/None"),
    ],
    "git": [
        call("git_log", repo_path="repository"),
        call("git_status", repo_path="repository"),
        call("git_branch", repo_path="repository", branch_type="local"),
        call("git_show", repo_path="repository", revision="HEAD"),
        call("git_status", repo_path="none"),
    ],
    "fetch": [
        call("fetch", url="URL/"),
        call("fetch", url="URL/", max_length=10),
        call("fetch", url="URL/none"),
        prompt("fetch", url="URL/"),
    ],
}  # fmt: skip
"""By server, the calls and reads of a session."""
ONLY_WITH_ROOTS = ("get-roots-list",)
"""Tools that a server offers only to a client with roots. The gateway declares none to it."""
LIST_OF = {
    "tools/call": "tools/list",
    "resources/read": "resources/list",
    "prompts/get": "prompts/list",
}


# -- clients -----------------------------------------------------------------------------------------------------------

Ask = Callable[[Json, list[Json]], list[Json]]
"""Starts a server, sends requests and returns the replies. A refused request is `error`."""


def ask_by_script(python: str, client: str) -> Ask:
    """Return a client in Python, of the packages of an interpreter."""

    def ask(server: Json, requests: list[Json]) -> list[Json]:
        done = subprocess.run(
            [python, str(SCRIPT), client],
            input=json.dumps({"server": server, "requests": requests}),
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        replies: list[Json] = json.loads(done.stdout)
        return replies

    return ask


def ask_by_inspector(node: Path, program: Path, folder: Path) -> Ask:
    """Return the Inspector, which starts the server for each request."""

    def ask(server: Json, requests: list[Json]) -> list[Json]:
        own = {name: server[name] for name in ("command", "args", "env")}
        config = folder / "inspector.json"
        config.write_text(json.dumps({"mcpServers": {"one": own}}))
        words = [str(node), str(program), "--cli", "--config", str(config), "--server", "one"]
        env = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ['PATH']}"}
        env |= {"HOME": str(folder), "MCP_INSPECTOR_SECRET_STORE": "memory"}
        replies: list[Json] = []
        for request in requests:
            done = subprocess.run(
                [*words, *inspector_flags(request)], cwd=server["cwd"], env=env,
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            replies.append(read_reply(done))
        return replies

    return ask


def inspector_flags(request: Json) -> list[str]:
    """Return the flags of the Inspector for a request."""
    flags = ["--method", request["method"]]
    pairs = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in request.get("arguments", {}).items()
    ]
    match request["method"]:
        case "tools/call":
            return [*flags, "--tool-name", request["name"], *prefixed("--tool-arg", pairs)]
        case "prompts/get":
            return [*flags, "--prompt-name", request["name"], *prefixed("--prompt-args", pairs)]
        case "resources/read":
            return [*flags, "--uri", request["uri"]]
    return flags


def prefixed(flag: str, pairs: list[str]) -> list[str]:
    return [flag, *pairs] if pairs else []


def read_reply(done: subprocess.CompletedProcess[str]) -> Json:
    """Return what the Inspector printed; `error` if it printed no result."""
    start = done.stdout.find("{")
    if start < 0:
        assert done.returncode, done.stderr[-2000:]
        return {"error": done.stderr.strip()[-300:]}
    reply: Json = json.loads(done.stdout[start:])
    return reply


def open_client(client: str, environments: Path, folder: Path) -> Ask:
    """Return a client; skip the test if it cannot be installed."""
    if client == "sdk":
        return ask_by_script(sys.executable, client)
    if client == "fastmcp":
        home = python_environment(environments / "fastmcp", FASTMCP)
        return ask_by_script(str(home / "bin/python"), client)
    version = client.removeprefix("inspector-")
    package = f"@modelcontextprotocol/inspector@{version}"
    node, programs = node_package(environments, client, package)
    return ask_by_inspector(node, programs / "mcp-inspector", folder)


# -- sessions ----------------------------------------------------------------------------------------------------------


def requests_of(client: str, server: str) -> list[Json]:
    """Return the requests of a client to a server. The Inspector makes one of each kind: it starts the server anew."""
    session = SESSIONS[server]
    if not client.startswith("inspector"):
        return [*({"method": method} for method in ("initialize", *LISTS)), *session]
    first = {request["method"]: request for request in reversed(session)}
    return [
        each for method, request in first.items() for each in ({"method": LIST_OF[method]}, request)
    ]


def through_gateway(server: str, request: Json) -> Json:
    """Return a request with the names that the gateway gives to tools, prompts and resources."""
    if "name" in request:
        return {**request, "name": f"{server}__{request['name']}"}
    if "uri" in request:
        return {**request, "uri": f"mcp://{server}/{request['uri']}"}
    return request


def without_roots(reply: Json) -> Json:
    """Return a reply without the tools that a client has for its roots."""
    if "tools" in reply:
        reply["tools"] = [each for each in reply["tools"] if each["name"] not in ONLY_WITH_ROOTS]
    return reply


def reset(project: Project) -> None:
    """Remove what an earlier session has written."""
    (project.root / "memory.json").unlink(missing_ok=True)
    (project.root / "shared/new.txt").unlink(missing_ok=True)


def run_sessions(
    client: str, ask: Ask, project: Project, entries: dict[str, Json], url: str
) -> Sessions:
    """Return the requests and both replies of each session. The gateway offers the server of the session alone to the
    Inspector, and all of them to others.
    """
    found: Sessions = {}
    reads = {
        "resources/read": ("resources/list", "resources"),
        "prompts/get": ("prompts/list", "prompts"),
    }
    environ = {name: project.env[name] for name in ("PATH", "HOME")}
    for name, entry in entries.items():
        reset(project)
        requests = fill(requests_of(client, name), project, url)
        server = {**entry, "cwd": str(project.root), "env": {**environ, **entry["env"]}}
        straight = [without_roots(reply) for reply in ask(server, requests)]
        lists = {
            request["method"]: reply for request, reply in zip(requests, straight, strict=True)
        }
        tools = [tool["name"] for tool in lists["tools/list"]["tools"]]
        tools += [
            method for method, (listed, key) in reads.items() if lists.get(listed, {}).get(key)
        ]
        write_host_file(project, **{name: entry})
        mark(project, name, *tools)
        found[name] = [
            (request, reply, {}) for request, reply in zip(requests, straight, strict=True)
        ]
    reset(project)
    gateway = {
        "command": COGCLI,
        "args": ["gateway", "serve", "-q", "--from", ".mcp.json", "--hold", "0"],
        "cwd": str(project.root),
        "env": project.env,
    }
    groups = [[name] for name in found] if client.startswith("inspector") else [list(found)]
    for group in groups:
        write_host_file(project, **{name: entries[name] for name in group})
        sent = [through_gateway(name, request) for name in group for request, _, _ in found[name]]
        replies = iter(ask(gateway, sent))
        for name in group:
            found[name] = [(request, reply, next(replies)) for request, reply, _ in found[name]]
    return found


# -- what the gateway changes ------------------------------------------------------------------------------------------


def with_names(server: str, request: Json, reply: Json) -> Json:
    for key in ("tools", "prompts"):
        for entry in reply.get(key, ()):
            entry["name"] = f"{server}__{entry['name']}"
    return reply


def with_uris(server: str, request: Json, reply: Json) -> Json:
    for key, member in (
        ("resources", "uri"),
        ("resourceTemplates", "uriTemplate"),
        ("contents", "uri"),
    ):
        for entry in reply.get(key, ()):
            entry[member] = f"mcp://{server}/{entry[member]}"
    return reply


def without_tasks(server: str, request: Json, reply: Json) -> Json:
    if "tools" in reply:
        reply["tools"] = [
            tool
            for tool in reply["tools"]
            if tool.get("execution", {}).get("taskSupport") != "required"
        ]
    return reply


def without_unlocked(server: str, request: Json, reply: Json) -> Json:
    for tool in reply.get("tools", ()):
        tool.pop("title", None)
        tool.pop("execution", None)
    return reply


def with_own_instructions(server: str, request: Json, reply: Json) -> Json:
    return {"instructions": "of the gateway"} if request["method"] == "initialize" else reply


def with_empty_list(server: str, request: Json, reply: Json) -> Json:
    keys = dict(zip(LISTS, ("tools", "resources", "resourceTemplates", "prompts"), strict=True))
    key = keys.get(request["method"])
    return {key: []} if key is not None and "error" in reply else reply


def with_own_meta(server: str, request: Json, reply: Json) -> Json:
    reply.pop("_meta", None)
    return reply


def with_own_schema_text(server: str, request: Json, reply: Json) -> Json:
    texts = [block.get("text", "") for block in reply.get("content", ())]
    if reply.get("isError") and any("Input validation error" in text for text in texts):
        reply["content"] = [{"type": "text", "text": "error[request.value]"}]
    return reply


def with_own_error(server: str, request: Json, reply: Json) -> Json:
    texts = [block.get("text", "") for block in reply.get("content", ())]
    unknown = any(text.endswith(f"Tool {request.get('name')} not found") for text in texts)
    return {"error": "of the gateway"} if "error" in reply or unknown else reply


CHANGES: dict[str, Callable[[str, Json, Json], Json]] = {
    "names of tools and prompts": with_names,
    "addresses of resources": with_uris,
    "tools that run only as a task": without_tasks,
    "titles and `execution` of tools": without_unlocked,
    "instructions": with_own_instructions,
    "lists that a server does not have": with_empty_list,
    "`_meta`": with_own_meta,
    "arguments that do not fit": with_own_schema_text,
    "errors of the protocol": with_own_error,
}
"""By its name in docs/reference/gateway.md#changes: what makes the gateway's reply of the server's."""
CLOCK = re.compile(r"\d{1,2}:\d\d:\d\d [AP]M")


def normalize(request: Json, reply: Json) -> Json:
    """Return a reply without what no client depends on: the order of tools, defaults, times, our own texts."""
    reply = json.loads(CLOCK.sub("TIME", json.dumps(reply)))
    for content in reply.get("contents", ()):
        if "blob" in content:
            content["blob"] = CLOCK.sub("TIME", b64decode(content["blob"]).decode())
    for name in ("resultType", "ttlMs", "cacheScope", "_meta"):
        reply.pop(name, None)
    if reply.get("isError") is False:
        del reply["isError"]
    if "tools" in reply:
        reply["tools"].sort(key=lambda tool: tool["name"])
    return reply


def normalize_own(server: str, request: Json, reply: Json) -> Json:
    """Return a reply of the gateway, with a mark for each text of its own, and the entries of one server."""
    if request["method"] == "initialize":
        assert reply["instructions"].startswith("Each call is decided by rules")
        return {"instructions": "of the gateway"}
    if "error" in reply:
        return {"error": "of the gateway"}
    for key, member, prefix in (
        ("tools", "name", f"{server}__"),
        ("prompts", "name", f"{server}__"),
        ("resources", "uri", f"mcp://{server}/"),
        ("resourceTemplates", "uriTemplate", f"mcp://{server}/"),
    ):
        if key in reply:
            reply[key] = [entry for entry in reply[key] if entry[member].startswith(prefix)]
    text = reply.get("content", [{}])[:1] and reply.get("content", [{}])[0].get("text", "")
    if text and text.startswith("error[request.value]"):
        reply["content"] = [{"type": "text", "text": "error[request.value]"}]
    return normalize(request, reply)


def change(server: str, request: Json, reply: Json, used: set[str]) -> Json:
    """Return the reply of a server as the gateway should give it, and add the changes that apply to `used`."""
    for name, apply in CHANGES.items():
        before = json.dumps(reply, sort_keys=True)
        reply = apply(server, request, reply)
        if json.dumps(reply, sort_keys=True) != before:
            used.add(name)
    return normalize(request, reply)


# -- tests -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the environments, which a variable may keep."""
    return keep_environments(tmp_path_factory.mktemp("servers"))


def install_servers(environments: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the command of each server that can be installed, and why the others cannot."""
    commands, faults = {}, {}
    for name in SERVERS:
        try:
            commands[name] = command_of(environments, name)
        except pytest.skip.Exception as skipped:
            faults[name] = str(skipped)
    return commands, faults


@long_test
@pytest.mark.parametrize("client", CLIENTS)
def test_a_session_through_the_gateway_equals_the_straight_one(
    client: str, project: Project, environments: Path
) -> None:
    ask = open_client(client, environments, project.home)
    commands, faults = install_servers(environments)
    with prepare_world(project) as url:
        entries = {
            name: {
                "command": program,
                "args": arguments,
                "env": fill(SERVERS[name].env or {}, project, url),
            }
            for name, (program, *arguments) in commands.items()
        }
        sessions = run_sessions(client, ask, project, entries, url)
    used: set[str] = set()
    for server, session in sessions.items():
        for request, straight, through in session:
            expected = change(server, request, straight, used)
            found = normalize_own(server, request, through)
            assert found == expected, (server, request)
    if not client.startswith("inspector"):
        assert used == set(CHANGES), "a change of the table that no server shows"
        project.run("verify", "@last").assert_ok()
        project.run("replay", "@last").assert_ok()
    if faults:
        pytest.skip(f"equal for {len(sessions)} servers; others: {faults}")


def test_the_page_names_each_change() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/gateway.md").read_text(encoding="utf-8")
    table = page.partition('<a id="changes"></a>')[2].partition("<a id=")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert rows[1:] == list(CHANGES)
