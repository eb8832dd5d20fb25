"""The commands of the guide to governing an agent that start a gateway, as the page shows them."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fakes.serving import serving
from support.gateway_client import GatewayProcess, server_entry, write_host_file
from support.pages import blocks

pytest.importorskip("mcp")

PAGE = Path(__file__).parents[2] / "docs/how-to/govern-your-agent.md"
LINES = [
    line for block in blocks(PAGE) if block.language == "sh" for line in block.text.splitlines()
]


def line_with(words: str) -> str:
    """The only line of the page with these words."""
    (line,) = [line for line in LINES if words in line]
    return line.partition("  #")[0]


def test_the_gateway_serves_http_as_the_page_says(project: Any) -> None:
    write_host_file(project, test=server_entry())
    subprocess.run(["sh", "-c", line_with("umask 077")], cwd=project.root, check=True)
    serve = shlex.split(line_with("--http 8765").replace("8765", "0"))
    (host,) = [
        block for block in blocks(PAGE) if "X-Session" in block.text and block.language == "json"
    ]
    assert set(json.loads(host.text)["mcpServers"]["cogcli"]["headers"]) == {
        "Authorization",
        "X-Session",
    }
    assert serve[:3] == ["cogcli", "gateway", "serve"]
    with serving(project, *serve[3:], command=("gateway", "serve")) as server:
        assert server.said("listening on").rstrip().endswith("/mcp")
        assert server.stop() == 143
    assert (project.root / "gateway.token").stat().st_mode & 0o077 == 0


@pytest.mark.sampled(6)
def test_the_other_commands_that_the_page_shows_are_taken(project: Any) -> None:
    write_host_file(project, git=server_entry("resources"))
    accept = shlex.split(line_with("resources/read"))
    project.run(*accept[1:]).assert_ok()
    locked = json.loads((project.root / "cogcli.lock.json").read_text())["services"]["git"]["tools"]
    marked = {tool["name"] for tool in locked if tool.get("read_only")}
    assert marked == {"prompts/get", "resources/read"}
    words = shlex.split(line_with("--ask-client"))
    gateway = GatewayProcess(project, *words[5:])
    gateway.close_input()
    assert gateway.process.wait(120) == 0
    gateway.close()
    project.run("gateway", "config", "claude-code", "--server", "--write").assert_ok()
    entry = json.loads((project.root / ".mcp.json").read_text())["mcpServers"]["cogcli"]
    assert entry == {"command": "cogcli", "args": ["gateway", "serve", "--from", ".mcp.json"]}
