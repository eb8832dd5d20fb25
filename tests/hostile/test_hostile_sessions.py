"""Clients of `serve mcp --http` that open sessions without end."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fakes.serving import INITIALIZE, INITIALIZED, serving

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp")

from mcp.server import Server  # noqa: E402

from cogcli.app.serving import http_transport  # noqa: E402
from cogcli.app.serving.server_socket import Endpoint  # noqa: E402

pytestmark = pytest.mark.sampled(12)

PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def _post(url: str, frame: Any, session: str = "") -> tuple[int, str, bytes]:
    """The status, the session and the body of a request."""
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"Mcp-Session-Id": session} if session else {}
    try:
        connection.request("POST", f"/{path}", json.dumps(frame), headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Mcp-Session-Id", ""), answer.read()
    finally:
        connection.close()


def test_sessions_beyond_the_bound_are_refused_and_the_open_ones_go_on(demo: Any) -> None:
    with serving(demo, "--http", "0") as server:
        url = server.said("serving").split(" on ")[1].split(";")[0].strip()
        opened = [_post(url, INITIALIZE) for _ in range(http_transport.MAX_SESSIONS)]
        assert {status for status, _, _ in opened} == {200}
        sessions = [session for _, session, _ in opened]
        assert len(set(sessions)) == http_transport.MAX_SESSIONS
        for _ in range(20):
            status, session, body = _post(url, INITIALIZE)
            error = json.loads(body)["error"]
            assert (status, session) == (503, "")
            assert (error["code"], error["message"]) == (-32603, "Too many open sessions")
        _post(url, INITIALIZED, sessions[0])
        assert _post(url, PING, sessions[0])[0] == 200
        _end(url, sessions[0])
        assert _post(url, INITIALIZE)[0] == 200

        async def call() -> None:
            async with mcp.Client(url, mode="legacy") as client:
                result = await client.call_tool("demo__greet", {"text": "hi"})
                assert result.structured_content == {"text": "HI"}

        _end(url, sessions[1])
        anyio.run(call)
        assert server.stop() == 143
        assert b"Traceback" not in b"".join(server.err)


def _end(url: str, session: str) -> None:
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    try:
        connection.request("DELETE", f"/{path}", headers={"Mcp-Session-Id": session})
        assert connection.getresponse().status == 200
    finally:
        connection.close()


@contextmanager
def _served() -> Iterator[str]:
    """The web server of an MCP server in a thread of its own; its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    address = listening.getsockname()
    web = http_transport.http_server(Server("idle"), Endpoint(*address[:2]), "")
    thread = threading.Thread(target=lambda: anyio.run(web.serve, [listening]))
    thread.start()
    try:
        yield f"http://127.0.0.1:{address[1]}{http_transport.PATH}"
    finally:
        web.should_exit = True
        thread.join(60)
        listening.close()


def _connected(url: str) -> socket.socket:
    """A connection to the server of an address."""
    return socket.create_connection(("127.0.0.1", int(url.split(":")[2].split("/")[0])), timeout=60)


def test_a_session_without_requests_ends_and_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_transport, "IDLE_SECONDS", 0.3)
    monkeypatch.setattr(http_transport, "MAX_SESSIONS", 2)
    waited = threading.Event()
    with _served() as url:
        first = [_post(url, INITIALIZE) for _ in range(2)]
        assert {status for status, _, _ in first} == {200}
        for _ in range(300):
            if _post(url, INITIALIZE)[0] == 200:
                break
            waited.wait(0.1)
        else:
            pytest.fail("no session ended")
        assert _post(url, PING, first[0][1])[0] == 404


WHOLE = b"GET /mcp HTTP/1.1\r\nHost: other\r\n\r\n"


@pytest.mark.parametrize("sent", [[b""], [WHOLE[:-2]], [WHOLE, b"GET /"]])
def test_a_connection_without_a_whole_request_is_closed(
    monkeypatch: pytest.MonkeyPatch, sent: list[bytes]
) -> None:
    monkeypatch.setattr(http_transport, "HEADER_SECONDS", 0.3)
    with _served() as url, _connected(url) as silent:
        for part in sent[:-1]:
            silent.sendall(part)
            assert silent.recv(65536).startswith(b"HTTP/1.1 421")
        silent.sendall(sent[-1])
        while silent.recv(65536):
            pass
        assert _post(url, INITIALIZE)[0] == 200


def test_headers_without_end_are_refused() -> None:
    header = b"X: " + b"y" * 60_000 + b"\r\n"
    with _served() as url, _connected(url) as sender:
        with pytest.raises(ConnectionError):
            sender.sendall(WHOLE[:-2] + header * 1000)
        assert _post(url, INITIALIZE)[0] == 200


def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_transport, "MAX_CONNECTIONS", 5)
    monkeypatch.setattr(http_transport, "HEADER_SECONDS", 600.0)
    with _served() as url:
        idle = [_connected(url) for _ in range(8)]
        try:
            for each in idle:
                each.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n")
            for _ in range(300):
                if _post(url, INITIALIZE)[0] == 503:
                    break
                threading.Event().wait(0.1)
            else:
                pytest.fail("no connection was refused")
        finally:
            for each in idle:
                each.close()
