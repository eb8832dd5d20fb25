"""One counterpart per way of calling, each of which behaves as it is asked to.

Every counterpart knows the same behaviours by name: `echo` answers with its text; `silent` never answers and makes
`entered` true; `fails` is a fault of the server; `refuses` is one of the caller; `breaks` ends the connection in the
middle of a call; `usage` answers with counts; `secret` echoes what it knows of the credentials in an error; `deep` and
`nan` answer with what is not JSON for us. What a protocol cannot do is not in its table.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fakes.surroundings import surroundings
from support.mcp_calls import SERVER
from support.raw_server import Conversation, serving
from support.waiting import wait_until

from cogcli.base.calls import Cancellation
from cogcli.base.errors import RuntimeErrorBase
from cogcli.declarations.binding_spec import Binding, BindingMetadata
from cogcli.declarations.service_spec import Service
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.invoker import CallLimits, InvocationRequest, InvocationResponse, Invoker

SECRET = "canary-5e1f0c77-not-to-be-seen"
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/", "CANARY": SECRET}
COUNTS = {"input_tokens": 7, "output_tokens": 2}
_ODD = {"broken_tokens": -1, "odd_tokens": "9", "real_tokens": 1.5, "total": 3}


class Target(NamedTuple):
    """A service that behaves as it is asked to, and the invoker that reaches it."""

    name: str
    invoker: Invoker
    service: Service
    learned: list[str]
    behaviours: frozenset[str]
    entered: Callable[[], bool]
    """Whether `silent` was reached."""

    def call(
        self, behaviour: str, text: str = "hello", *, seconds: float = 60.0, cancel: Cancellation | None = None,
        payload: dict[str, Any] | None = None, effect: str = "none", **metadata: Any,
    ) -> InvocationResponse:  # fmt: skip
        """Make one attempt; the keywords left over are the binding's metadata."""
        binding = Binding(
            id="b",
            capability="c.a",
            service=self.service.id,
            protocol=self.service.kind,
            operation=behaviour,
            request={},
            response={},
            metadata=BindingMetadata.of(metadata),
        )
        given = {"text": text} if payload is None else payload
        request = InvocationRequest(
            self.service, binding, behaviour, given, effect, "key", "c.a", "run_1", "s", 1
        )
        return self.invoker.invoke(
            request, CallLimits(time.monotonic() + seconds, cancel or Cancellation())
        )

    def failure(self, behaviour: str, text: str = "hello", **rest: Any) -> RuntimeErrorBase:
        """The error that an attempt ends with."""
        try:
            answer = self.call(behaviour, text, **rest)
        except RuntimeErrorBase as error:
            return error
        raise AssertionError(f"no error, but {answer}")

    def wait_until_entered(self) -> None:
        """Until `silent` was reached."""
        wait_until(self.entered)


# -- pythoncall -------------------------------------------------------------------------------------------------------

MODULE = f"""
import asyncio, os

async def echo(text): return {{"text": text}}
async def silent(text):
    open({{mark!r}}, "w").close()
    await asyncio.sleep(3600)
def fails(text): raise RuntimeError("out of order: " + text)
def breaks(text): os._exit(3)
def usage(text): return {{"usage": {{**{COUNTS!r}, **{_ODD!r}}}}}
def secret(text): raise RuntimeError(str(dict(os.environ)))
def deep(text):
    value = []
    for _ in range(200): value = [value]
    return {{"text": value}}
def nan(text): return {{"text": float("nan")}}
"""
_FUNCTIONS = frozenset(("echo", "silent", "fails", "usage", "deep", "nan"))


@contextmanager
def _python(folder: Path, isolation: str) -> Iterator[Target]:
    name = f"contract_{isolation}"
    mark = folder / "entered"
    (folder / f"{name}.py").write_text(MODULE.replace("{mark!r}", repr(str(mark))))
    service = Service(
        id="svc",
        kind="pythoncall",
        module=name,
        isolation=isolation,
        root=str(folder),
        trusted=True,
    )
    more = {"breaks", "secret"} if isolation == "process" else set()
    try:
        yield from _target(f"pythoncall-{isolation}", service, _FUNCTIONS | more, mark.exists)
    finally:
        sys.modules.pop(name, None)


# -- HTTP -------------------------------------------------------------------------------------------------------------


def _http_answer(conversation: Conversation) -> None:
    """An HTTP API that takes the behaviour from its path."""
    behaviour = conversation.line.split()[1].strip("/")
    text = json.loads(conversation.body or b"{}").get("text")
    replies: dict[str, tuple[str, bytes]] = {
        "echo": ("200 OK", _json({"text": text})),
        "usage": ("200 OK", _json({"usage": {**COUNTS, **_ODD}})),
        "fails": ("500 Oops", _json({"error": f"out of order: {text}"})),
        "refuses": ("400 No", _json({"error": f"not like that: {text}"})),
        "secret": ("500 Oops", _json({"error": conversation.headers["authorization"]})),
        "deep": ("200 OK", b"[" * 200 + b"]" * 200),
        "nan": ("200 OK", b'{"text":NaN}'),
    }
    _answered(conversation, behaviour, replies)


def _rpc_answer(conversation: Conversation) -> None:
    """A JSON-RPC service that takes the behaviour from the method."""
    asked = json.loads(conversation.body)
    behaviour, text = asked["method"], asked["params"].get("text")

    def told(**member: Any) -> tuple[str, bytes]:
        return "200 OK", _json({"jsonrpc": "2.0", "id": asked["id"], **member})

    start = f'{{"jsonrpc":"2.0","id":{asked["id"]},"result":'.encode()
    replies = {
        "echo": told(result={"text": text}),
        "usage": told(result={"usage": {**COUNTS, **_ODD}}),
        "fails": told(error={"code": -32603, "message": f"out of order: {text}"}),
        "refuses": told(error={"code": -32602, "message": f"not like that: {text}"}),
        "secret": told(error={"code": -32603, "message": conversation.headers["authorization"]}),
        "deep": ("200 OK", start + b"[" * 200 + b"]" * 200 + b"}"),
        "nan": ("200 OK", start + b'{"text":NaN}}'),
    }
    _answered(conversation, behaviour, replies)


def _answered(
    conversation: Conversation, behaviour: str, replies: dict[str, tuple[str, bytes]]
) -> None:
    if behaviour == "silent":
        conversation.hold()
    elif behaviour == "breaks":
        conversation.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
        )
        conversation.close()
    else:
        status, body = replies[behaviour]
        conversation.reply(body, status=status)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


@contextmanager
def _http(folder: Path, protocol: str) -> Iterator[Target]:
    behaviours = _FUNCTIONS | {"refuses", "breaks", "secret"}
    with serving(_http_answer if protocol == "openapi" else _rpc_answer) as server:

        def entered() -> bool:
            return any(b"silent" in request.request for request in server.requests)

        settings = {"base_url": server.url, "auth_ref": "CANARY"}
        service = Service(
            id="svc", kind=protocol, settings=settings, network="private", trusted=True
        )
        yield from _target(protocol, service, behaviours, entered)


# -- MCP --------------------------------------------------------------------------------------------------------------

_TOOLS = {
    "echo": "structured",
    "silent": "hangs",
    "fails": "code",
    "refuses": "fails",
    "breaks": "dies",
    "nan": "not_a_number",
}
"""The test server's names of the behaviours, where they differ."""


class _Renamed:
    """An invoker that calls behaviours by the test server's names."""

    def __init__(self, invoker: Invoker) -> None:
        self._invoker = invoker

    def invoke(self, request: InvocationRequest, context: CallLimits) -> InvocationResponse:
        tool = _TOOLS.get(request.operation, request.operation)
        payload = {"fails": {"text": "-32603"}, "secret": {"text": "TOKEN"}}.get(
            request.operation, request.payload
        )
        body, meta = self._invoker.invoke(
            request._replace(operation=tool, payload=payload), context
        )
        if request.operation == "echo":
            body = {"text": body["said"]}
        return InvocationResponse(body, meta)

    def close(self, grace: float) -> None:
        self._invoker.close(grace)


@contextmanager
def _mcp(folder: Path) -> Iterator[Target]:
    ledger = folder / "ledger"
    settings = {
        "command": sys.executable, "args": ["-S", SERVER, f"--ledger={ledger}"], "env": {"TOKEN": "${CANARY}"},
    }  # fmt: skip
    service = Service(id="svc", kind="mcp", settings=settings, root=str(folder), trusted=True)

    def entered() -> bool:
        return ledger.exists() and "call hangs" in ledger.read_text()

    behaviours = _FUNCTIONS | {"refuses", "breaks", "secret"}
    for target in _target("mcp", service, behaviours, entered):
        yield target._replace(invoker=_Renamed(target.invoker))


def _target(
    name: str, service: Service, behaviours: frozenset[str], entered: Callable[[], bool]
) -> Iterator[Target]:
    learned: list[str] = []
    invoker = PROTOCOLS[service.kind].invoker(surroundings(ENVIRON, learn=learned.append))
    try:
        yield Target(name, invoker, service, learned, behaviours, entered)
    finally:
        invoker.close(1.0)


TARGETS: dict[str, Callable[[Path], Any]] = {
    "pythoncall-thread": lambda folder: _python(folder, "thread"),
    "pythoncall-process": lambda folder: _python(folder, "process"),
    "openapi": lambda folder: _http(folder, "openapi"),
    "openrpc": lambda folder: _http(folder, "openrpc"),
    "mcp": _mcp,
}
