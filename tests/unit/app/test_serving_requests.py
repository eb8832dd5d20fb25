"""What a client of `serve mcp` gets for a request that is wrong (docs/how-to/serve-mcp.md)."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mcp")
anyio = pytest.importorskip("anyio")

from cogcli.app.serving.handlers import ServerListener, ToolHandlers  # noqa: E402
from cogcli.app.serving.http_transport import Guard  # noqa: E402
from cogcli.app.serving.request_checks import VERSION_KEY, find_request_fault  # noqa: E402
from cogcli.app.serving.server_socket import Endpoint  # noqa: E402
from cogcli.app.serving.stdio_transport import parse_frame  # noqa: E402
from cogcli.base.errors import SafetyConfirmationRequiredError  # noqa: E402

MODERN = {VERSION_KEY: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
BEGUN = {"capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
HOLOGRAM = {"a": {"role": "user", "model": "x", "content": [{"type": "hologram"}]}}


def request(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def called(**members: Any) -> dict[str, Any]:
    return request("tools/call", {"name": "text__brief", "arguments": {"text": "x"}, **members})


@pytest.mark.parametrize(
    ("message", "header", "code", "text"),
    [
        (request("tools/list", {}), "1999-01-01", -32022, "version `1999-01-01` is unknown: this server speaks"),
        (request("tools/list", {"_meta": {VERSION_KEY: "2000"}}), "", -32022, "protocol version `2000` is unknown"),
        (called(arguments=[1]), "", -32602, "tools/call: `params.arguments`: expected an object, found list"),
        (request("tools/call", {}), "", -32602, "tools/call: `params.name`: expected a value, found nothing"),
        (request("tools/call", [1]), "", -32602, "tools/call: `params`: expected an object, found list"),
        (request("initialize", {"protocolVersion": 17}), "", -32602,
         "`params.protocolVersion`: expected text, found number"),
        (called(inputResponses=HOLOGRAM, _meta=MODERN), "", -32602,
         "`params.inputResponses.a.content.0.type`: expected `text` or `image` or `audio`"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_answered_with_place_and_expectation(
    message: dict[str, Any], header: str, code: int, text: str
) -> None:
    fault = find_request_fault(message, header)
    assert fault is not None
    assert fault.code == code
    assert text in fault.message
    assert fault.data


@pytest.mark.parametrize(
    "message",
    [
        called(),
        called(_meta=MODERN),
        request("initialize", {**BEGUN, "protocolVersion": "1999"}),
        request("nosuch/method", {}),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        [called()],
    ],
)  # fmt: skip
def test_any_other_message_is_left_to_the_sdk(message: Any) -> None:
    assert find_request_fault(message) is None


def test_an_unknown_block_is_named_with_the_known_ones() -> None:
    frame = parse_frame(json.dumps(called(inputResponses=HOLOGRAM, _meta=MODERN)).encode())
    reply = frame.reply
    assert reply.id == 7
    assert reply.error.message.endswith("or `tool_use` or `tool_result`, found `hologram`")


def test_over_http_an_unknown_version_is_named() -> None:
    sent: list[dict[str, Any]] = []
    body = json.dumps(request("tools/list", {})).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def app(*_: Any) -> None:
        raise AssertionError("the request must not reach the server")

    headers = [(b"host", b"localhost:1"), (b"mcp-protocol-version", b"1999-01-01")]
    scope: Any = {"type": "http", "method": "POST", "headers": headers}
    guard = Guard(app, Endpoint("127.0.0.1", 1), "")
    anyio.run(guard, scope, receive, send)
    reply = json.loads(sent[1]["body"])
    assert (sent[0]["status"], reply["id"], reply["error"]["code"]) == (400, 7, -32022)
    assert reply["error"]["data"]["requested"] == "1999-01-01"


def test_a_hint_names_no_flag_that_a_client_could_not_give() -> None:
    def refuse(given: Any) -> Any:
        hint = "run again with --confirm a.b if you mean to allow it"
        raise SafetyConfirmationRequiredError(
            "safety.confirmation", "`a.b` needs a person", hint=hint
        )

    offer: Any = SimpleNamespace(tools={"t": SimpleNamespace(with_inputs=refuse)})
    listener = ServerListener(
        lambda name, report: None, lambda bug: None, lambda result: None, lambda warning: None
    )
    handlers = ToolHandlers(offer, SimpleNamespace(), listener)  # type: ignore[arg-type]
    given: Any = SimpleNamespace(name="t", arguments={})
    reply = anyio.run(handlers.call, SimpleNamespace(meta=None, request=None), given)
    (text,) = [block.text for block in reply.content]
    assert "run again with" not in text
    assert "`cogcli serve mcp --confirm a.b`" in text
