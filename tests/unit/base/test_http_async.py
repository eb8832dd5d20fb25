"""The asynchronous client that the MCP library is handed: the same rules as for every other request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.raw_server import Conversation, serving

from cogcli.base.errors import SafetyScopeError, TransportError
from cogcli.base.http import async_client

httpx2 = pytest.importorskip("httpx2")


def fetched(url: str, *, network: str = "private", times: int = 1, **more: Any) -> list[Any]:
    async def fetch() -> list[Any]:
        async with async_client(network, more.pop("headers", {}), 5.0, **more) as client:
            return [await client.get(url) for _ in range(times)]

    return asyncio.run(fetch())


def ok(conversation: Conversation) -> None:
    conversation.reply(b"{}")


def test_it_is_the_client_the_mcp_library_takes() -> None:
    client = async_client("public", {}, httpx2.Timeout(1))
    assert isinstance(client, httpx2.AsyncClient)


def test_headers_go_out_and_no_encoding_is_asked_for() -> None:
    with serving(ok) as server:
        fetched(server.url, headers={"X-One": "1"})
        sent = server.requests[0].headers
    assert (sent["x-one"], sent["accept-encoding"]) == ("1", "identity")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "localhost", "[::ffff:127.0.0.1]"])
def test_addresses_are_judged(host: str) -> None:
    with serving(ok) as server:
        with pytest.raises(SafetyScopeError):
            fetched(f"http://{host}:{server.port}/", network="public")
        assert server.connections == 0


def test_redirects_are_not_followed_and_cookies_are_forgotten() -> None:
    def answer(conversation: Conversation) -> None:
        conversation.reply(b"", status="302 Found", headers="Location: /other\r\nSet-Cookie: a=b")

    with serving(answer) as server:
        replies = fetched(server.url, times=2)
        assert [reply.status_code for reply in replies] == [302, 302]
        assert ["cookie" in request.headers for request in server.requests] == [False, False]


def test_the_environment_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving(ok) as server:
        assert fetched(server.url)[0].status_code == 200


def test_a_proxy_that_is_handed_in_is_used() -> None:
    with serving(ok) as proxy:
        assert (
            fetched("http://nobody.example/x", network="public", proxy=proxy.url)[0].status_code
            == 200
        )
        assert proxy.requests[0].line == "GET http://nobody.example/x HTTP/1.1"


def test_a_proxy_that_cannot_be_reached_is_named_as_the_proxy() -> None:
    for proxy in ("http://127.0.0.1:1", "http://localhost:1"):
        with pytest.raises(TransportError) as caught:
            fetched("http://nobody.example/x", network="public", proxy=proxy)
        assert (
            caught.value.message == f"the proxy {proxy.removeprefix('http://')} cannot be reached"
        )
        assert "HTTP_PROXY" in caught.value.hint
