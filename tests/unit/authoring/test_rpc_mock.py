"""The JSON-RPC server that follows an OpenRPC document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cogcli.protocols.exchange import ReceivedRequest, ServerReply
from cogcli.protocols.openrpc.document import RpcMock

DOCUMENT = Path(__file__).parents[3] / "tooling/openrpc_scenarios/registry/documents/tides.json"


@pytest.fixture
def mock() -> RpcMock:
    return RpcMock(json.loads(DOCUMENT.read_text()))


def asked(mock: RpcMock, call: Any, method: str = "POST") -> ServerReply:
    body = call if isinstance(call, bytes) else json.dumps(call).encode()
    return mock(ReceivedRequest(method, "/rpc", "", {}, body))


def answered(mock: RpcMock, call: Any) -> Any:
    return json.loads(b"".join(asked(mock, call).chunks))


def call(method: str, params: Any, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": 1, **more}


def test_it_answers_by_example_or_with_the_smallest_value(mock: RpcMock) -> None:
    assert answered(mock, call("tides.predict", {"harbour": "x"}))["result"] == [1.5, 2.25]
    window = answered(mock, call("tides.between", [1, 2]))
    assert window == {"jsonrpc": "2.0", "id": 1, "result": {"open": False, "hours": 0}}


WRONG: list[tuple[Any, int, str]] = [
    (call("tides.nope", {}), -32601, "no method `tides.nope`"),
    (call("tides.predict", {}), -32602, "/params/harbour: required, not sent"),
    (call("tides.predict", {"harbour": ""}), -32602, "/params/harbour: "),
    (call("tides.predict", {"harbour": "x", "day": 1}), -32602, "/params/day: not declared"),
    (call("tides.between", [1, 2, 3]), -32602, "/params: 3 are too many"),
    (call("tides.between", "x"), -32602, "/params: "),
    ({"id": 1}, -32600, "this is not a call"),
    ([call("tides.between", [1, 2])], -32600, "this is not a call"),
    (b"{", -32700, ""),
]


@pytest.mark.parametrize(("sent", "code", "message"), WRONG)
def test_what_is_wrong_is_an_rpc_error(mock: RpcMock, sent: Any, code: int, message: str) -> None:
    error = answered(mock, sent)["error"]
    assert error["code"] == code
    assert error["message"].startswith(message)


def test_notifications_are_not_answered(mock: RpcMock) -> None:
    told = {"jsonrpc": "2.0", "method": "tides.report", "params": {"height": 1}}
    assert asked(mock, told).status == 204


def test_another_method_than_post_is_refused(mock: RpcMock) -> None:
    assert asked(mock, b"", "GET").status == 405
