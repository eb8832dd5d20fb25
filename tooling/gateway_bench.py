"""The gateway: the time of a decision under 100 rules, what a call through it takes, and calls a second.

A client of raw frames talks to a small server, straight and through the gateway, in turns. The log is on disk.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

COGCLI = Path(sys.executable).parent / "cogcli"
CALLS, BURST, WIDTH = 200, 600, 32
_SERVER = """\
import json, sys
TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if id is None:
        continue
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "bench", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"""
_INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Measure(NamedTuple):
    """One figure: its name, value, unit, goal, a note, and whether the goal is the least."""

    name: str
    value: float
    unit: str
    goal: float | None
    note: str = ""
    at_least: bool = False


class Peer:
    """A server on stdio, and the client that talks to it."""

    def __init__(self, command: list[str], tool: str, folder: Path, env: dict[str, str]) -> None:
        self._tool = tool
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._count = 0
        self.send("initialize", _INITIALIZE)
        self.receive()
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _write(self, message: dict[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: dict[str, object]) -> None:
        """Send a request."""
        self._count += 1
        self._write({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})

    def call(self) -> None:
        """Send a call that equals no other."""
        self.send("tools/call", {"name": self._tool, "arguments": {"text": str(self._count)}})

    def receive(self) -> None:
        """Read a reply."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if b'"result"' not in line or b'"isError":true' in line:
            raise RuntimeError(f"no result: {line[:300]!r}")

    def time_call(self) -> float:
        """Return the milliseconds of one call."""
        begun = time.perf_counter()
        self.call()
        self.receive()
        return (time.perf_counter() - begun) * 1000

    def time_burst(self, calls: int, width: int) -> float:
        """Return the seconds of many calls, of which some are on their way at a time."""
        begun = time.perf_counter()
        for number in range(calls + width):
            if number < calls:
                self.call()
            if number >= width:
                self.receive()
        return time.perf_counter() - begun

    @property
    def cpu_seconds(self) -> float:
        """The CPU time of the server's own process."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the stream, and wait for the end of the server."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def measure(folder: Path) -> Iterator[Measure]:
    """Yield the figures of the gateway."""
    yield Measure("gateway: decision, 100 rules", _time_decision(), "ms", 0.1, "median of 2,000")
    (folder / "server.py").write_text(_SERVER)
    (folder / "cogcli.toml").write_text("")
    server = [sys.executable, "-S", str(folder / "server.py")]
    entry = {"command": server[0], "args": server[1:]}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"bench": entry}}))
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "COGCLI_TRUST_PROJECT": "1",
    }
    accept = [str(COGCLI), "gateway", "accept", "bench", "--from", ".mcp.json"]
    subprocess.run(
        [*accept, "--read-only", "echo"], cwd=folder, env=env, check=True, capture_output=True
    )
    gateway = [str(COGCLI), "gateway", "serve", "-q", "--from", ".mcp.json"]
    straight = Peer(server, "echo", folder, env)
    through = Peer(gateway, "bench__echo", folder, env)
    try:
        through.time_call()  # the first call begins the run and starts the server
        before = through.cpu_seconds
        pairs = [(straight.time_call(), through.time_call()) for _ in range(CALLS)]
        cpu = (through.cpu_seconds - before) / CALLS * 1000
        added = statistics.median(each[1] - each[0] for each in pairs)
        yield Measure("gateway: adds to a call on stdio", added, "ms", 3.0, f"median of {CALLS}")
        yield Measure("gateway: its CPU time of a call", cpu, "ms", None)
        seconds = through.time_burst(BURST, WIDTH)
        note = f"{WIDTH} at a time, {os.cpu_count()} cores, the log on disk"
        yield Measure("gateway: calls", BURST / seconds, "1/s", 300, note, at_least=True)
    finally:
        straight.close()
        through.close()


def _time_decision() -> float:
    """Return the milliseconds of a decision about a call under 100 rules that all apply."""
    from cogcli.declarations.pack_spec import PackIntent, PolicyRule
    from cogcli.policy.pack_policy import GovernedCall, Policy

    rules = [
        PolicyRule.of(
            {
                "rule_id": f"r{number}",
                "mode": "enforce",
                "if": {"==": [{"var": "args.text"}, f"word {number}"]},
                "then": {"verdict": "deny"},
            }
        )
        for number in range(100)
    ]
    policy = Policy(
        permissions={"clerk": ["mcp.bench.echo"]},
        intents={"help": PackIntent.of({"id": "help", "capabilities": ["mcp.bench.echo"]})},
        rules=rules,
    )
    call = GovernedCall("mcp.bench.echo", "read_only", "clerk", "network", {"text": "x"})
    data = {"args": {"text": "x"}}
    times = []
    for _ in range(2000):
        begun = time.perf_counter()
        policy.decide("help", call, data)
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)
