"""Sessions over HTTP: one that is lost is opened again, one that is refused tells the way in
(docs/reference/protocols.md#mcp-http)."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mcp.types import CallToolResult
from pydantic import ValidationError
from support.mcp_calls import Caller
from support.mcp_http import Reply, Scripted, answer, polite, scripted, service

from cogcli.protocols.mcp.errors import translate_error

pytestmark = [pytest.mark.slow, pytest.mark.sampled(4)]

CALLED = {"content": [], "structuredContent": {"a": 1}}


@pytest.fixture
def call() -> Iterator[Caller]:
    caller = Caller({"TOKEN": "sesame-sesame"})
    yield caller
    caller.invoker.close(5)


def rpc_error(id: Any, code: int, message: str) -> bytes:
    return json.dumps(
        {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}
    ).encode()


JSON = (("content-type", "application/json"),)
LOST = {
    "no words": lambda id: Reply(404, b"", ()),
    "this library's words": lambda id: Reply(404, rpc_error("server-error", -32600, "Session not found"), JSON),
    "another library's words": lambda id: Reply(404, rpc_error(None, -32001, "Session not found"), JSON),
    "a bad request": lambda id: Reply(400, rpc_error(id, -32000, "Bad Request: No valid session ID provided"), JSON),
    "a good answer": lambda id: Reply(200, rpc_error(id, -32001, "unknown session"), JSON),
}  # fmt: skip


class Sessions:
    """A server with sessions, as a script; the session it gave last is the only one it knows, unless `forgetful`."""

    def __init__(self, lost: Callable[[Any], Reply]) -> None:
        self.opened = 0
        self.known = ""
        self.ran = 0
        self.forgetful = False
        self._lost = lost
        self._lock = threading.Lock()

    def forget(self) -> None:
        self.known = ""

    def __call__(self, message: dict[str, Any]) -> Reply | None:
        with self._lock:
            return self._reply(message)

    def _reply(self, message: dict[str, Any]) -> Reply | None:
        method = message.get("method")
        if method == "initialize":
            self.opened += 1
            self.known = f"session-{self.opened}"
            told = {"name": "scripted", "version": "1"}
            version = message["params"]["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": told}
            return answer(message["id"], result, ("mcp-session-id", self.known))
        if method != "tools/call":
            return None
        if self.forgetful or message["headers"].get("mcp-session-id") != self.known:
            return self._lost(message["id"])
        self.ran += 1
        return answer(message["id"], CALLED)


@pytest.mark.parametrize("words", list(LOST))
def test_a_lost_session_is_opened_anew_and_the_call_made_once(call: Caller, words: str) -> None:
    sessions = Sessions(LOST[words])
    with scripted(sessions) as server:
        web = service(server.url)
        for _ in range(4):  # more often than a broken connection is opened again
            result = call("ask", {}, service=web, effect="effect")
            assert result.body == {"a": 1}
            sessions.forget()
        assert (sessions.opened, sessions.ran) == (4, 4)
        assert result.meta.notices == [
            "the server does not know the session any more: opened again"
        ]
        call.invoker.close(5)


def test_an_unknown_protocol_version_is_named(call: Caller) -> None:
    def reply(message: dict[str, Any]) -> Reply | None:
        if message.get("method") != "initialize":
            return None
        server = {"name": "scripted", "version": "1"}
        result = {"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": server}
        return answer(message["id"], result)

    with scripted(reply) as server:
        error = call.refused("ask", {}, service=service(server.url))
        call.invoker.close(5)
    assert error.code == "call.server-error"
    assert "protocol version `1999-01-01`, which this client does not support" in error.message


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"type": "hologram"}, "`content.0` has the unknown type `hologram`; known types: text, "),
        ({"type": "text"}, "`content.0.text` is missing"),
    ],
)
def test_a_malformed_content_block_is_named(block: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        CallToolResult.model_validate({"content": [block]})
    assert words in translate_error(caught.value, left=True).message


def test_a_session_that_is_lost_again_and_again_is_told_and_nothing_is_in_doubt(
    call: Caller,
) -> None:
    sessions = Sessions(LOST["no words"])
    sessions.forgetful = True
    with scripted(sessions) as server:
        error = call.refused("ask", {}, service=service(server.url), effect="effect")
        assert (error.code, error.left) == ("call.transport", False)
        assert "does not know the session" in error.message
        assert sessions.opened == 2
        call.invoker.close(5)


def test_calls_that_lose_one_session_together_open_one(call: Caller) -> None:
    sessions = Sessions(LOST["another library's words"])
    with scripted(sessions) as server:
        web = service(server.url)
        call("ask", {}, service=web)
        sessions.forget()
        bodies: list[Any] = []

        def ask() -> None:
            bodies.append(call("ask", {}, service=web).body)

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert bodies == [{"a": 1}] * 6
        assert sessions.opened == 2
        call.invoker.close(5)


@pytest.mark.parametrize(
    ("reply", "code", "left"),
    [
        (Reply(404, rpc_error(1, -32601, "no method of that name"), JSON), "call.rejected", True),
        (Reply(200, rpc_error(1, -32001, "Request timed out"), JSON), "call.timeout", True),
        (Reply(500, rpc_error(1, -32603, "Session terminated before it ended"), JSON), "call.server-error", True),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_lost_session_is_not_called_again(
    call: Caller, reply: Reply, code: str, left: bool
) -> None:
    sessions = Sessions(
        lambda id: Reply(reply.status, reply.body.replace(b'"id": 1', b'"id": %d' % id), JSON)
    )
    sessions.forgetful = True
    with scripted(sessions) as server:
        error = call.refused("ask", {}, service=service(server.url))
        assert (error.code, error.left) == (code, left)
        assert sessions.opened == 1
        call.invoker.close(5)


def test_a_call_that_could_not_be_sent_has_not_left(call: Caller) -> None:
    def reply(message: dict[str, Any]) -> Reply:
        """Every answer on a connection of its own, so that nothing of the server is left once it ended."""
        is_call = message.get("method") == "tools/call"
        said = answer(message["id"], CALLED) if is_call else polite(message)
        return said._replace(headers=(*said.headers, ("connection", "close")))

    with scripted(reply) as server:
        web = service(server.url)
        call("ask", {}, service=web)
    error = call.refused("ask", {}, service=web, effect="effect")
    assert (error.code, error.left) == ("call.transport", False)


def test_a_connection_that_fails_ends_no_other_call_and_no_session(call: Caller) -> None:
    entered, released = threading.Event(), threading.Event()

    def reply(message: dict[str, Any]) -> Reply:
        said = polite(message)
        if message.get("method") == "tools/call":
            if message["params"]["arguments"].get("wait"):
                entered.set()
                assert released.wait(60)
            said = answer(message["id"], CALLED)
        return said._replace(headers=(*said.headers, ("connection", "close")))

    bodies: list[Any] = []
    with scripted(reply) as server:
        web = service(server.url)
        thread = threading.Thread(
            target=lambda: bodies.append(
                call("ask", {"wait": True}, service=web, effect="effect").body
            )
        )
        thread.start()
        assert entered.wait(60)
    for _ in range(3):  # more often than a broken connection is opened again
        error = call.refused("ask", {}, service=web, effect="effect")
        assert (error.code, error.left) == ("call.transport", False)
        assert error.message == f"{server.url.split('/')[2]}: connection refused"
    released.set()
    thread.join(60)
    assert bodies == [{"a": 1}]


# -- refusals ---------------------------------------------------------------------------------------------------------

ASKS = ("www-authenticate", 'Bearer realm="notes", error="invalid_token"')


def during(method: str, reply: Reply) -> Callable[[dict[str, Any]], Reply | None]:
    """A script that gives a reply to everything, or to calls alone."""
    return lambda message: reply if method in ("any", message.get("method")) else None


@pytest.mark.parametrize("method", ["any", "tools/call"])
@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("body", [b"no", rpc_error(None, -32600, "a bearer token is needed")])
def test_401_and_403_name_the_way_in(call: Caller, method: str, status: int, body: bytes) -> None:
    media = JSON if body.startswith(b"{") else ()
    with scripted(during(method, Reply(status, body, (*media, ASKS)))) as server:
        error = call.refused("ask", {}, service=service(server.url))
        assert error.code == "call.rejected"
        assert f"HTTP {status}" in error.message
        assert 'realm="notes"' in error.message
        assert "write auth_ref in" in error.hint
        call.invoker.close(5)
        other = Caller({"TOKEN": "sesame-sesame"})
        known = other.refused("ask", {}, service=service(server.url, auth_ref="TOKEN"))
        assert "`auth_ref: TOKEN`" in known.hint
        assert "sesame" not in known.message + known.hint
        other.invoker.close(5)


@pytest.mark.parametrize("method", ["any", "tools/call"])
@pytest.mark.parametrize("status", [404, 405])
def test_404_and_405_name_the_address_and_the_old_transport(
    call: Caller, method: str, status: int
) -> None:
    with scripted(during(method, Reply(status, b"nothing here", ()))) as server:
        error = call.refused("ask", {}, service=service(server.url))
        assert (error.code, error.left) == ("call.rejected", method == "tools/call")
        assert f"{server.url}: HTTP {status}: nothing here" in error.message
        assert "older transport" in error.hint
        assert "/mcp" in error.hint
        call.invoker.close(5)


# -- the newest protocol ----------------------------------------------------------------------------------------------


def newest(
    call_reply: Callable[[dict[str, Any]], Reply],
) -> Callable[[dict[str, Any]], Reply | None]:
    """A server without a handshake whose results say nothing of their type."""

    def reply(message: dict[str, Any]) -> Reply | None:
        method, id = message.get("method"), message.get("id")
        if method == "server/discover":
            return answer(id, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        if method == "tools/list":
            return answer(id, {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]})
        return call_reply(message) if method == "tools/call" else None

    return reply


def spoken(server: Scripted) -> set[Any]:
    return {message.get("method") for message in server.seen}


def test_a_result_without_a_type_is_read(call: Caller) -> None:
    with scripted(newest(lambda message: answer(message["id"], CALLED))) as server:
        assert call("ask", {}, service=service(server.url)).body == {"a": 1}
        assert "initialize" not in spoken(server)
        call.invoker.close(5)


def test_a_result_that_asks_back_is_a_rejection_and_noted(call: Caller) -> None:
    form = {
        "mode": "form",
        "message": "pw?",
        "requestedSchema": {"type": "object", "properties": {}},
    }
    wanted = {"a": {"method": "elicitation/create", "params": form}, "b": {"method": "roots/list"}}
    result = {"resultType": "input_required", "inputRequests": wanted}
    with scripted(newest(lambda message: answer(message["id"], result))) as server:
        error = call.refused("ask", {}, service=service(server.url))
        assert (error.code, error.left) == ("call.rejected", True)
        record = error.record or {}
        assert "asks for `elicitation/create`, `roots/list`" in error.message
        assert record["notices"] == [
            "the server asked for `elicitation/create`: refused",
            "the server asked for `roots/list`: refused",
        ]
        call.invoker.close(5)


@pytest.mark.parametrize(
    ("code", "data", "hint"),
    [
        (-32021, {"requiredCapabilities": {"sampling": {}, "roots": {}}}, "roots, sampling"),
        (-32021, None, ""),
        (-32020, None, ""),
        (-32022, {"supported": ["2099-01-01"]}, ""),
        (-32042, None, ""),
    ],
)
def test_what_a_client_lacks_is_a_rejection(call: Caller, code: int, data: Any, hint: str) -> None:
    error = {"code": code, "message": "not with you", **({"data": data} if data else {})}

    def reply(message: dict[str, Any]) -> Reply:
        body = {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return Reply(200, json.dumps(body).encode(), JSON)

    with scripted(newest(reply)) as server:
        found = call.refused("ask", {}, service=service(server.url))
        assert (found.code, found.left) == ("call.rejected", True)
        assert hint in found.hint
        call.invoker.close(5)


def test_a_session_over_tls_tells_why_a_certificate_is_not_accepted(call: Caller) -> None:
    """Nobody answers in TLS here at all: the words are ours, whatever the libraries say."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def hang_up() -> None:
            connection, _ = listening.accept()
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        error = call.refused("ask", {}, service=service(f"https://127.0.0.1:{port}/mcp"))
        thread.join()
    assert (error.code, error.left) == ("call.transport", False)
    assert error.message.startswith(f"127.0.0.1:{port}: ")
    assert "Error" not in error.message
