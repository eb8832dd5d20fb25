"""A client of `gateway serve`: the SDK's, over stdio, through the installed command."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
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
    from mcp.client import stdio
    from mcp.client.stdio import StdioServerParameters

    stdio.PROCESS_TERMINATION_TIMEOUT = 60.0  # a busy machine seals an episode slowly

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


class GatewayProcess:
    """A gateway whose client sends raw frames, so that either may be killed."""

    def __init__(self, project: Any, *arguments: str) -> None:
        self._project = project
        self._answers: dict[str, Any] = {}
        self.process = subprocess.Popen(
            [COGCLI, "gateway", "serve", "-q", "--from", ".mcp.json", *arguments],
            cwd=project.root,
            env=project.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def close(self) -> None:
        """Kill it, if it is still alive."""
        self.process.kill()
        self.process.wait(30)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(OSError):
                stream.close()

    def send(self, *frames: Any) -> None:
        """Send messages, one a line."""
        assert self.process.stdin is not None
        for frame in frames:
            self.process.stdin.write(json.dumps(frame).encode() + b"\n")
        self.process.stdin.flush()

    def close_input(self) -> None:
        """End the stream, as a client that disconnects."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait_for_answer(self, id: str) -> Any:
        """The answer of the request with this id. Those of others are kept until they are waited for."""
        assert self.process.stdout is not None
        while id not in self._answers:
            line = self.process.stdout.readline()
            assert line, "the gateway ended"
            message = json.loads(line)
            if "method" not in message:
                self._answers[message.get("id")] = message
        return self._answers.pop(id)

    def wait_for_event(self, event_type: str, times: int = 1) -> None:
        """Wait until the log has this many events of a type."""
        for _ in range(600):
            found = [event["event_type"] for event in events_of(self._project.episode)]
            if found.count(event_type) >= times:
                return
            time.sleep(0.05)
        raise AssertionError(f"no {event_type}")
