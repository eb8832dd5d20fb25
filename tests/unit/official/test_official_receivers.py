"""Notifications and tasks, for servers on loopback that the host names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from support.loopback_servers import reply, served

from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.host_access import ACCESS, HostAccess
from cogcli.official.delegation import delegate_task
from cogcli.official.message import send_notification
from cogcli.sdk import Refused


class Seen:
    def __init__(self) -> None:
        self.paths: list[str] = []
        self.bodies: list[Any] = []


@contextmanager
def receiver(status: int = 200, value: Any = None, raw: bytes = b"") -> Iterator[Seen]:
    seen = Seen()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        seen.paths.append(handler.path)
        seen.bodies.append(json.loads(handler.rfile.read(int(handler.headers["Content-Length"]))))
        reply(status, raw or json.dumps(value).encode(), "application/json")(handler)

    with served(answer) as url:
        known = json.dumps({"ops": f"{url}/hook/SECRET-TOKEN", "other": "https://example.org"})
        token = ACCESS.set(HostAccess(network="private", secret=lambda: known))
        try:
            yield seen
        finally:
            ACCESS.reset(token)


def test_a_message_is_posted_to_the_address_of_its_receiver() -> None:
    with receiver() as seen:
        assert send_notification("ops", "Quay 3 is closed.") == {"sent": True}
    assert (seen.paths, seen.bodies) == (["/hook/SECRET-TOKEN"], [{"text": "Quay 3 is closed."}])


@pytest.mark.parametrize(
    "name", ["https://example.org/hook", "http://127.0.0.1/", "nobody", "", "OPS"]
)
def test_a_receiver_is_a_configured_name_and_never_an_address(name: str) -> None:
    with receiver() as seen:
        with pytest.raises(Refused, match="is configured") as caught:
            send_notification(name, "text")
        with pytest.raises(Refused, match="is configured"):
            delegate_task({}, name)
    assert "SECRET" not in caught.value.message + caught.value.hint
    assert caught.value.hint == "configured: ops, other"
    assert seen.paths == []


@pytest.mark.parametrize("config", ["", "text", "[]", '{"ops": 1}', "null"])
def test_receivers_are_an_object_of_names_and_addresses(config: str) -> None:
    token = ACCESS.set(HostAccess(secret=lambda: config))
    try:
        with pytest.raises(Refused, match="not a JSON object"):
            send_notification("ops", "text")
    finally:
        ACCESS.reset(token)


@pytest.mark.parametrize(
    ("status", "code"), [(400, "call.rejected"), (302, "call.rejected"), (500, "call.server-error")]
)
def test_a_failure_is_an_error_that_does_not_tell_the_address(status: int, code: str) -> None:
    with receiver(status) as seen, pytest.raises(RuntimeErrorBase) as caught:
        send_notification("ops", "text")
    assert (caught.value.code, caught.value.left, len(seen.paths)) == (code, True, 1)
    assert "SECRET" not in caught.value.message


def test_a_public_service_posts_to_no_private_address() -> None:
    with receiver() as seen:
        ACCESS.set(ACCESS.get()._replace(network="public"))
        with pytest.raises(RuntimeErrorBase) as caught:
            send_notification("ops", "text")
    assert (caught.value.code, caught.value.left, seen.paths) == ("safety.scope", False, [])


def task(state: str, id: str = "t-1") -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": "x",
        "result": {"kind": "task", "id": id, "status": {"state": state}},
    }


def test_a_task_is_handed_over_as_a_message_of_a2a() -> None:
    with receiver(value=task("submitted")) as seen:
        answer = delegate_task({"goal": "count the ships"}, "ops", 30)
    assert answer == {"accepted": True, "delegation_id": "t-1"}
    (body,) = seen.bodies
    assert (body["jsonrpc"], body["method"]) == ("2.0", "message/send")
    message = body["params"]["message"]
    assert message["parts"] == [{"kind": "data", "data": {"goal": "count the ships"}}]
    assert (message["role"], message["metadata"]) == ("user", {"timeout_seconds": 30})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (task("rejected"), "the task is rejected"),
        (task("failed"), "the task is failed"),
        (
            {"jsonrpc": "2.0", "id": "x", "error": {"code": -32602, "message": "no such skill"}},
            "no such skill",
        ),
    ],
)
def test_an_agent_that_does_not_take_a_task_says_why(value: Any, reason: str) -> None:
    with receiver(value=value):
        answer = delegate_task({}, "ops")
    assert (answer["accepted"], answer["reason"]) == (False, reason)


@pytest.mark.parametrize(
    "raw",
    [
        b"<p>ok</p>",
        b"{}",
        b"[]",
        b"null",
        b'{"result": {}}',
        b'{"result": {"id": 1, "status": {"state": "working"}}}',
        b"[" * 5000,
    ],
)
def test_an_answer_that_is_none_of_a2a_accepts_nothing(raw: bytes) -> None:
    with receiver(raw=raw), pytest.raises(Refused, match="A2A"):
        delegate_task({}, "ops")
