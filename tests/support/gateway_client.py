"""A client of `gateway serve`: the SDK's, over stdio, through the installed command."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

COGCLI = str(Path(sys.executable).parent / "cogcli")
SERVER = str(Path(__file__).with_name("mcp_server.py"))
Talk = Callable[[Any], Awaitable[None]]


def server_entry(*options: str) -> dict[str, Any]:
    """An entry of `mcpServers` for the server of the tests."""
    return {"command": sys.executable, "args": [SERVER, *(f"--{option}" for option in options)]}


def write_host_file(project: Any, **servers: Any) -> None:
    """A host's `.mcp.json` in a project."""
    project.write("cogcli.toml", "")
    project.write(".mcp.json", json.dumps({"mcpServers": servers}))


def mark(project: Any, server: str, *tools: str) -> None:
    """Lock the tools of a server, and mark some as read-only."""
    flags = [word for tool in tools for word in ("--read-only", tool)]
    project.run("gateway", "accept", server, "--from", ".mcp.json", *flags).assert_ok()


def talk_to_gateway(project: Any, talk: Talk, *arguments: str, seconds: float = 90) -> None:
    """Have the SDK's client start a gateway over the servers of `.mcp.json`, and talk to it."""
    import anyio
    import mcp
    from mcp.client.stdio import StdioServerParameters

    async def main() -> None:
        command = StdioServerParameters(
            command=COGCLI,
            args=["gateway", "serve", "-q", "--from", ".mcp.json", *arguments],
            env=project.env,
            cwd=project.root,
        )
        with anyio.fail_after(seconds):
            async with mcp.Client(command) as client:
                await talk(client)

    anyio.run(main)


def text_of(result: Any) -> str:
    """The first block of text of a result."""
    text: str = result.content[0].text
    return text


def events_of(episode: Path) -> list[dict[str, Any]]:
    """The events of an episode."""
    lines = (episode / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
