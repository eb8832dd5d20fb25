"""MCP servers over HTTP on loopback: a real one of the SDK, and one that answers whatever a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from cogcli.declarations.service_spec import Service, ServiceMetadata


def service(
    url: str, *, headers: dict[str, str] | None = None, network: str = "private", **more: Any
) -> Service:
    """A server at a URL as a service."""
    return Service(
        id="web", kind="mcp", network=network, metadata=ServiceMetadata(headers=headers or {}),
        settings={"url": url, **more},
        root="/", trusted=True,
    )  # fmt: skip


def add(a: int, b: int) -> dict[str, int]:
    return {"sum": a + b}


def header(name: str, ctx: Context[Any, Any]) -> dict[str, str]:
    request: Any = ctx.request_context.request
    return {"value": request.headers.get(name, "")}


def refuse(text: str) -> str:
    raise ToolError(text)


@contextmanager
def served(*, json_response: bool = False) -> Iterator[str]:
    """The URL of a server of the SDK with the tools `add`, `header`, `refuse`."""
    server = MCPServer("sums")
    for tool in (add, header, refuse):
        server.tool()(tool)
    app = server.streamable_http_app(json_response=json_response)
    runner = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical"))
    thread = threading.Thread(target=runner.run, daemon=True)
    thread.start()
    while not runner.started:
        threading.Event().wait(0.01)
    port = runner.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        runner.should_exit = True
        thread.join(20)


class Reply(NamedTuple):
    """What a scripted server says to one request."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)


def answer(id: Any, result: Any, *headers: tuple[str, str]) -> Reply:
    """A JSON-RPC result."""
    body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
    return Reply(200, body, (("content-type", "application/json"), *headers))


def polite(message: dict[str, Any]) -> Reply:
    """Everything up to the call, by the older protocol."""
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        told = {"name": "scripted", "version": "1"}
        version = message["params"]["protocolVersion"]
        return answer(
            id, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": told}
        )
    if method == "tools/list":
        return answer(id, {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]})
    if id is None:
        return Reply(202)
    error = {"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}}
    return Reply(200, json.dumps(error).encode())


class Scripted(NamedTuple):
    """A running server, and what it was sent."""

    url: str
    seen: list[dict[str, Any]]


@contextmanager
def scripted(reply: Callable[[dict[str, Any]], Reply | None]) -> Iterator[Scripted]:
    """A server that says what `reply` says to a message; for None it stays polite."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            message = {**message, "headers": {k.lower(): v for k, v in self.headers.items()}}
            seen.append(message)
            self._send(reply(message) or polite(message))

        def do_GET(self) -> None:
            self._send(Reply(405))

        def do_DELETE(self) -> None:
            seen.append({"method": "DELETE"})
            self._send(Reply(200))

        def _send(self, said: Reply) -> None:
            self.send_response(said.status)
            for name, value in said.headers:
                self.send_header(name, value)
            self.send_header("content-length", str(len(said.body)))
            self.end_headers()
            self.wfile.write(said.body)

        def log_message(self, *arguments: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield Scripted(f"http://127.0.0.1:{server.server_address[1]}/mcp", seen)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(20)
