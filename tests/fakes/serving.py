"""A server that the installed command runs, for tests that talk to it as raw frames or over HTTP."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COGCLI = str(Path(sys.executable).parent / "cogcli")
_PATIENCE = 120.0

INITIALIZE = {
    "jsonrpc": "2.0", "id": "first", "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def calling(id: Any, tool: str, arguments: dict[str, Any], **meta: Any) -> dict[str, Any]:
    """The frame of a call."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    if meta:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


class Server:
    """A running `serve mcp`; what it writes is read by threads, so that it never blocks."""

    def __init__(
        self, project: Any, *arguments: str, command: tuple[str, str] = ("serve", "mcp")
    ) -> None:
        self.process = subprocess.Popen(
            [COGCLI, *command, *arguments], cwd=project.root, env=project.env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.out: list[bytes] = []
        self.err: list[bytes] = []
        self._frames: queue.Queue[bytes] = queue.Queue()
        self._said: queue.Queue[bytes] = queue.Queue()
        for stream, kept, told in (
            (self.process.stdout, self.out, self._frames), (self.process.stderr, self.err, self._said),
        ):  # fmt: skip
            threading.Thread(target=self._read, args=(stream, kept, told), daemon=True).start()

    def send(self, *frames: Any) -> None:
        """Bytes as they are, everything else as JSON."""
        assert self.process.stdin is not None
        for frame in frames:
            data = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
            self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def frame(self, id: Any = ..., *, method: str = "") -> dict[str, Any]:
        """The next frame; with `id` the answer of that request, with `method` the next such notification."""
        while True:
            found: dict[str, Any] = json.loads(self._frames.get(timeout=_PATIENCE))
            if (id is ... or found.get("id") == id) and (
                not method or found.get("method") == method
            ):
                return found

    def start(self) -> None:
        """The handshake."""
        self.send(INITIALIZE)
        assert self.frame("first")["result"]["serverInfo"]["name"] == "cogcli"
        self.send(INITIALIZED)

    def said(self, word: str) -> str:
        """The next line of standard error that holds a word."""
        while True:
            line = self._said.get(timeout=_PATIENCE).decode()
            if word in line:
                return line

    def leave(self) -> int:
        """Send nothing more; the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(_PATIENCE)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(_PATIENCE)

    @staticmethod
    def _read(stream: Any, kept: list[bytes], told: queue.Queue[bytes]) -> None:
        for line in stream:
            kept.append(line)
            told.put(line)


@contextmanager
def serving(
    project: Any, *arguments: str, command: tuple[str, str] = ("serve", "mcp")
) -> Iterator[Server]:
    """A server that is gone afterwards, whatever happened."""
    server = Server(project, *arguments, command=command)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait(_PATIENCE)
        for stream in (server.process.stdin, server.process.stdout, server.process.stderr):
            if stream is not None and not (stream is server.process.stdin and stream.closed):
                stream.close()
