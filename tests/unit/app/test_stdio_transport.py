"""The stdio transport of `serve mcp` and `gateway serve`: which frames reach the server, and how many at a time."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import pytest

anyio = pytest.importorskip("anyio")
types = pytest.importorskip("mcp_types")

from mcp.shared.message import SessionMessage  # noqa: E402

from cogcli.app.serving import stdio_transport  # noqa: E402
from cogcli.app.serving.stdio_transport import MAX_UNREAD, FramePipe, open_streams  # noqa: E402


def request(id: Any, method: str) -> dict[str, Any]:
    """The frame of a request."""
    return {"jsonrpc": "2.0", "id": id, "method": method}


class Client:
    """Both ends of the pipes of a client."""

    def __init__(self) -> None:
        self._in, self._sends = os.pipe()
        self._reads, self._out = os.pipe()
        self.wire = FramePipe(self._in, self._out)

    def send_and_close(self, *frames: Any) -> None:
        """Send frames on a thread, and end the stream."""

        def work() -> None:
            with open(self._sends, "wb") as stream:
                stream.write(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))

        threading.Thread(target=work, daemon=True).start()

    def read(self, count: int) -> list[Any]:
        """The next messages from the server. Blocks."""
        with open(self._reads, "rb", closefd=False) as stream:
            return [json.loads(stream.readline()) for _ in range(count)]


def test_a_client_that_does_not_read_is_not_read_either() -> None:
    """Replies without end would fill the memory."""
    client, count, text = Client(), MAX_UNREAD * 3, "x" * 10_000
    waiting: list[int] = []
    read_all = threading.Event()

    def read() -> None:
        read_all.wait(60)
        client.read(count)

    async def main() -> None:
        client.send_and_close(*(request(each, "ping") for each in range(count)))
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        async with open_streams(client.wire, lambda: None) as (incoming, outgoing):

            async def reply(id: Any) -> None:
                answer = types.JSONRPCResponse(jsonrpc="2.0", id=id, result={"text": text})
                await outgoing.send(SessionMessage(answer))

            async with incoming, anyio.create_task_group() as group:
                async for message in incoming:
                    group.start_soon(reply, message.message.id)
                    await anyio.lowlevel.checkpoint()
                    waiting.append(outgoing.statistics().tasks_waiting_send)
                    if waiting[-1] >= MAX_UNREAD:
                        read_all.set()
            await outgoing.aclose()
        reader.join(60)

    anyio.run(main)
    assert len(waiting) == count
    assert max(waiting) <= MAX_UNREAD + 1


def test_a_client_has_a_limited_number_of_open_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio_transport, "MAX_OPEN", 10)
    client = Client()
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": 3}, "jsonrpc": "2.0"}
    odd = {**cancelled, "params": {"requestId": [3]}}
    calls = [request(each, "ping") for each in range(40)]
    most = 0

    async def main() -> None:
        nonlocal most
        client.send_and_close(*calls[:9], cancelled, odd, *calls[9:])
        async with open_streams(client.wire, lambda: None) as (incoming, outgoing):
            waiting: list[Any] = []
            async with incoming:
                async for message in incoming:
                    if not isinstance(message.message, types.JSONRPCRequest):
                        continue
                    waiting.append(message.message.id)
                    most = max(most, len(waiting))
                    limit = 11 if 3 in waiting else 10
                    if len(waiting) < limit and message.message.id < 39:
                        continue
                    for id in waiting:
                        answer = types.JSONRPCResponse(jsonrpc="2.0", id=id, result={})
                        await outgoing.send(SessionMessage(answer))
                    waiting.clear()
            await outgoing.aclose()

    async def with_limit() -> None:
        with anyio.fail_after(60):
            await main()

    anyio.run(with_limit)
    assert most == 11, "ten open requests, and one that was cancelled"
    assert len(client.read(40)) == 40


def test_an_error_of_the_client_reaches_the_server_and_is_not_sent_back() -> None:
    client = Client()
    error = {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "no"}}
    early = [request(1, "tools/list"), request(2, "resources/list"), request(3, "x/y")]
    got: list[Any] = []

    async def main() -> None:
        client.send_and_close(*early, request(4, "ping"), error)
        async with open_streams(client.wire, lambda: None) as (incoming, outgoing):
            async with incoming:
                got.extend([message.message async for message in incoming])
            await outgoing.aclose()

    anyio.run(main)
    assert [(type(each).__name__, each.id) for each in got] == [
        ("JSONRPCRequest", 4),
        ("JSONRPCError", 7),
    ]
    replies = client.read(len(early))
    assert [each["id"] for each in replies] == [1, 2, 3]
    for each, frame in zip(replies, early, strict=True):
        assert each["error"]["message"].startswith(f"{frame['method']}: `initialize` comes first")
