"""Every row of the failure model, provoked (docs/reference/execution.md#errors, docs/reference/protocols.md#failures).

`core.errors.FAILURES` holds the expected behaviour of a code; this module holds a cause for it. Each row runs three
times: alone, with a step that retries, and with a fallback binding. The results are compared with the table. A canary
is among the secrets of every call and echoed by every server; no file may hold it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, Final, NamedTuple

from cogcli.core.errors import FAILURE_OF, BindingResolutionError, FailureRow
from cogcli.engine.ports import CallPolicy
from cogcli.governance.approvals import Answered, Asked
from cogcli.governance.budgets import Budgets
from cogcli.governance.policy import Policy
from cogcli.governance.run_policy import LimitsPolicy, Requester, RunPolicy
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.exchange import Answering, Reply, Seen, json_reply
from cogcli.protocols.invoker_rule import (
    InvokerRule,
    InvokerRules,
    RuleBroken,
    require,
    require_error,
)
from cogcli.protocols.mcp.rules import tool_members
from cogcli.specs.pack import DecisionLayer, Pack, PackIntent, PolicyLayer, PolicyRule, ToolingLayer
from cogcli.verification.harness import CAPABILITY, SKILL, STEP, Bench, HarnessCall, Ran
from cogcli.verification.loopback_server import Loopback

CANARY: Final = "canary-4f9d1c7e2b"
UNSPOKEN: Final = "morse"
"""A protocol without an invoker."""
_NAME: Final = "BENCH_CANARY"
_AGAIN: Final = {"retry": {"max_attempts": 2, "backoff_seconds": 0}}
_SHORT: Final = 0.15
_JSON: Final = "application/json"


class FailureRule(NamedTuple):
    """The cause of a code: members of the call, and the server's answer, which always holds the canary.

    `setting` is entered around each run; it may add members to the call.
    """

    code: str
    rule: str
    wire: Mapping[str, Any] = {}
    answering: Answering | None = None
    setting: Callable[[Bench], Any] | None = None


def lines() -> InvokerRules:
    """A rule for each row of the supported protocols; rows of one code differ by the name of their cause."""
    spoken = (row for row in _ROWS if row.wire.get("protocol", "openapi") in {*PROTOCOLS, UNSPOKEN})
    return {f"{row.code} {row.rule}".rstrip(): _rule_of(row) for row in spoken}


def _rule_of(row: FailureRule) -> InvokerRule:
    failure = FAILURE_OF[row.code]
    promised = [
        name
        for name, on in (("retried", failure.retryable), ("falls back", failure.falls_back))
        if on
    ]
    said = f"{failure.cls.__name__}, exit {failure.exit}{''.join(f', {word}' for word in promised)}"
    return InvokerRule(said, lambda bench: _check_rule(bench, row, failure))


def _check_rule(bench: Bench, row: FailureRule, failure: FailureRow) -> None:
    plain = _run(bench, row)
    error = require_error(plain, row.code)
    allowed = {failure.cls.__name__}
    if failure.exit == 3:  # selection raises a single reason under that reason's own code
        allowed.add(BindingResolutionError.__name__)
    if type(error).__name__ not in allowed:
        raise RuleBroken(f"found {type(error).__name__}, expected {failure.cls.__name__}")
    require(error.exit_code, failure.exit, "exit code")
    reached = bool(plain.attempts)  # before the call there is no retry and no fallback
    repeated = _run(bench, row, config={**row.wire.get("config", {}), **_AGAIN})
    require_error(repeated, row.code)
    again = [e for e in repeated.of_type("call.retried") if e.payload.get("reason") == "retry"]
    require(bool(again), failure.retryable and reached, "repeated by the step's retry")
    _check_fallback(bench, row, failure, reached=reached)
    for ran in (plain, repeated):
        _require_no_canary(ran)


def _check_fallback(bench: Bench, row: FailureRule, failure: FailureRow, *, reached: bool) -> None:
    with Loopback(lambda seen: json_reply({"ok": True})) as other:
        ran = _run(bench, row, second=other.url)
        used = any(attempt.member.binding_id == "second" for attempt in ran.attempts)
        wanted = failure.falls_back and reached
        require(used, wanted, "another binding was tried")
        if wanted and ran.error is not None:
            raise RuleBroken(
                f"the other binding answered, and yet: {ran.error.code}: {ran.error.message}"
            )
        _require_no_canary(ran)


def _require_no_canary(ran: Ran) -> None:
    held = [name for name, data in ran.files.items() if CANARY.encode() in data]
    require(held, [], "files that hold the canary")


def _run(bench: Bench, row: FailureRule, **more: Any) -> Ran:
    with ExitStack() as stack:
        given: dict[str, Any] = {**_COMMON, **row.wire, **more}
        if row.setting is not None:
            given |= stack.enter_context(row.setting(bench)) or {}
        if "url" not in given:
            given["url"] = stack.enter_context(Loopback(row.answering or _status(200))).url
        return bench.run(HarnessCall(**given))


def _echo_reply(status: int, seen: Seen, headers: Mapping[str, str] | None = None) -> Reply:
    """A reply that echoes the secrets in the request."""
    told = {"ok": True, "echo": seen.headers.get("authorization"), "message": f"no, {CANARY}"}
    return json_reply(told, status, headers)


def _status(status: int, headers: Mapping[str, str] | None = None) -> Answering:
    return lambda seen: _echo_reply(status, seen, headers)


def _reply_with(media_type: str, body: bytes) -> Answering:
    return lambda seen: Reply(200, {"Content-Type": media_type}, (body,))


def _slow(seen: Seen) -> Reply:
    return _echo_reply(200, seen)._replace(delay=30.0)


_COMMON: Final[dict[str, Any]] = {
    "service": {"auth_ref": _NAME},
    "environ": {_NAME: CANARY},
    "response": {"r": "response.ok"},
}


# -- settings ---------------------------------------------------------------------------------------------------------


@contextmanager
def _refusing_port(bench: Bench) -> Iterator[dict[str, Any]]:
    """A port without a listener."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield {"url": f"http://127.0.0.1:{held.getsockname()[1]}"}


@contextmanager
def _raw_server(answer: bytes) -> Iterator[dict[str, Any]]:
    """A server that sends these bytes to every client, then closes the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    if connection.recv(65536) and answer:
                        connection.sendall(answer)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield {"url": f"http://127.0.0.1:{listener.getsockname()[1]}"}
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@contextmanager
def _plain_for_tls(bench: Bench) -> Iterator[dict[str, Any]]:
    with Loopback(_status(200)) as server:
        yield {"url": server.url.replace("http:", "https:")}


@contextmanager
def _without_keyring(bench: Bench) -> Iterator[None]:
    """Block the import of keyring, as on a machine without that extra."""
    before = sys.modules.get("keyring")
    sys.modules["keyring"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if before is None:
            del sys.modules["keyring"]
        else:
            sys.modules["keyring"] = before


_FUNCTIONS: Final = """
import os

def fails(text): raise ValueError("no luck")
def leaves(text): raise SystemExit(3)
def dies(text): os._exit(3)
def odd(text): return {"r": object()}
"""


def _function(name: str, isolation: str) -> Callable[[Bench], Any]:
    """A call of a function in a module outside the package."""

    def setting(bench: Bench) -> Any:
        # A name of its own: the module of an earlier row may be loaded in this process.
        module = f"functions_of_{os.path.basename(bench.directory).replace('-', '_')}"
        path = os.path.join(bench.directory, f"{module}.py")
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(_FUNCTIONS)
        service = {"module": module, "isolation": isolation}
        return nullcontext(
            {**_PYTHON, "operation": name, "root": bench.directory, "service": service}
        )

    return setting


def _tool(
    name: str, *options: str, command: str = sys.executable, **wire: Any
) -> Callable[[Bench], Any]:
    """A call of a tool of the mock server."""

    settings = {"command": command}
    return lambda bench: nullcontext(
        {**tool_members(bench, name, *options, settings=settings), "url": "", **wire}
    )


def _rpc(code: int, status: int = 200) -> Answering:
    """A JSON-RPC error."""

    def answering(seen: Seen) -> Reply:
        error = {"code": code, "message": f"no, {CANARY}"}
        return json_reply(
            {"jsonrpc": "2.0", "id": json.loads(seen.body)["id"], "error": error}, status
        )

    return answering


def _approval(*, granted: bool) -> Answered:
    asked = Asked(
        "ap_verify", CAPABILITY, STEP, "sha256:other", "sha256:other", "2999-01-01T00:00:00Z"
    )
    return Answered(asked, granted, "verify", "", "2000-01-01T00:00:00Z")


_RPC: Final = {"protocol": "openrpc"}
_MCP: Final = {"protocol": "mcp"}
_PYTHON: Final[dict[str, Any]] = {
    "url": "",
    "protocol": "pythoncall",
    "service": {"module": "cogcli.official.text", "isolation": "thread"},
    "operation": "normalize",
    "request": {"text": "input.a"},
    "response": {"r": "response.text"},
}


def _gate(answer: dict[str, Any]) -> Callable[[Bench], Any]:
    """A gate with this answer."""

    @contextmanager
    def setting(bench: Bench) -> Iterator[dict[str, Any]]:
        with Loopback(lambda seen: json_reply(answer)) as server:
            yield {"gate": server.url}

    return setting


def _outputs(**types: str) -> dict[str, Any]:
    return {name: {"type": kind, "required": True} for name, kind in types.items()}


def _to(target: str, **config: Any) -> dict[str, Any]:
    """Members of a call whose output is written to a target, in a skill without outputs."""
    return {"step": {"output": {"r": target}, "config": config}, "outputs": {}}


def _policy(verdict: str) -> Callable[[], CallPolicy]:
    """A policy that says this of every call."""
    rule = PolicyRule("always", "enforce", {"==": [1, 1]}, verdict)
    layer = PolicyLayer({"agent": (CAPABILITY,)}, rules=(rule,))
    intents = {"verify": PackIntent("verify", capabilities=(CAPABILITY,))}
    pack = Pack("verify", "1.0.0", layer, ToolingLayer(), DecisionLayer(intents))
    rules = Policy(permissions=layer.permissions, intents=intents, rules=layer.rules)
    requester = Requester("verify", "somebody", role="agent")
    return lambda: RunPolicy(pack, rules, Budgets({}), requester, safety_mode="destructive")


_ROWS: Final[tuple[FailureRule, ...]] = (
    # specs
    FailureRule("skill.depth", "", {"step": {"uses": f"skill:{SKILL}", "input": {}, "output": {}}}),
    # input mapping
    FailureRule("input.reference", "", {"step": {"input": {"a": "vars.nope"}}}),
    FailureRule("input.contract", "", {"capability": {"inputs": {"a": {"type": "boolean"}}}}),
    # control
    FailureRule("expr.missing", "", {"config": {"condition": "vars.nope == 1 and vars.nope"}}),
    FailureRule("expr.type", "", {"config": {"condition": "1 < 'a'"}}),
    FailureRule("expr.limit", "", {"config": {"condition": "sum([9007199254740991, 1]) > 0"}}),
    FailureRule("router.no-case", "", {"config": {"router": {"on": "'b'", "cases": {"a": CAPABILITY}}}}),
    FailureRule("foreach.items", "", {"config": {"foreach": {"items": "'abc'"}}}),
    FailureRule("foreach.limit", "", {"config": {"foreach": {"items": [1, 2, 3], "max_items": 2}}}),
    FailureRule(
        "scatter.failed",
        "",
        {"step": {"uses": "_scatter"}, "config": {"scatter": {
            "capabilities": [{"name": "x", "uses": CAPABILITY}, {"name": "y", "uses": CAPABILITY}],
            "merge": "first_success"}}},
        _status(400),
    ),
    # binding and service resolution
    FailureRule("binding.none", "", {"without": ("bindings",), "rule": False}),
    FailureRule("binding.ambiguous", "", {"rule": False, "second": "http://127.0.0.1:9"}),
    FailureRule("binding.ineligible", "",
                {"capability": {"metadata": {"required_conformance_profile": "strict"}}}),
    FailureRule("service.unknown", "", {"without": ("services",)}),
    FailureRule("service.module", "",
                {**_PYTHON, "service": {"module": "no_such_module_of_the_bench", "isolation": "thread"}}),
    FailureRule("service.module", "function", {**_PYTHON, "operation": "no_such_function"}),
    FailureRule("service.forbidden", "",
                {**_PYTHON, "service": {"module": "cogcli.core.files", "isolation": "thread"}}),
    FailureRule("service.untrusted", "", {"trusted": False}),
    FailureRule("env.missing", "", {"service": {"auth_ref": "BENCH_UNSET"}}),
    FailureRule("env.missing", "header", {"service_metadata": {"headers": {"X-Key": "${BENCH_UNSET}"}}}),
    FailureRule("env.missing", "file", {"service": {"auth_ref": "file:/no/such/file"}}),
    FailureRule("env.extra", "", {"service": {"auth_ref": "keyring:cogcli/verify"}}, None, _without_keyring),
    # request mapping
    FailureRule("request.missing", "", {"request": {"a": "x ${input.a.b} y"}, "input": {"a": "x"}}),
    FailureRule("request.value", "path", {"operation": "notes/{a}", "input": {"a": ".."}}),
    FailureRule("request.value", "header", {"service_metadata": {"headers": {"X-A": "${BENCH_A}"}},
                                    "environ": {_NAME: CANARY, "BENCH_A": "a\r\nX-B: c"}}),
    FailureRule("request.size", "", {"metadata": {"max_request_bytes": 10}, "input": {"a": "x" * 100}}),
    # response mapping
    FailureRule("response.missing", "",
                {"response": {"r": "response.no"}, "capability": {"outputs": _outputs(r="any")}}),
    FailureRule("response.type", "",
                {"capability": {"outputs": _outputs(r="boolean")}}, _reply_with(_JSON, b'{"ok": 1}')),
    FailureRule("response.not-json", "type", {}, _reply_with("text/html", b"<p>")),
    FailureRule("response.not-json", "NaN", {}, _reply_with(_JSON, b'{"ok": NaN}')),
    FailureRule("response.not-json", "key twice", {}, _reply_with(_JSON, b'{"ok": 1, "ok": 2}')),
    FailureRule("response.not-json", "depth", {}, _reply_with(_JSON, b"[" * 200 + b"]" * 200)),
    FailureRule("response.not-json", "encoding", {}, _reply_with(_JSON, b'"\xff"')),
    FailureRule("response.not-json", "function", _PYTHON, None, _function("odd", "thread")),
    FailureRule("response.size", "frame", _MCP, None, _tool("huge")),
    FailureRule("response.size", "", {"metadata": {"max_response_bytes": 20}}),
    # protocol routing
    FailureRule("protocol.unsupported", "", {"protocol": UNSPOKEN}),
    # unreachable
    FailureRule("call.transport", "refused", {}, None, _refusing_port),
    FailureRule("call.transport", "reset", {}, None, lambda bench: _raw_server(b"")),
    FailureRule("call.transport", "malformed", {}, None, lambda bench: _raw_server(b"HELLO THERE\r\n\r\n")),
    FailureRule("call.transport", "cut",
                {}, None, lambda bench: _raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")),
    FailureRule("call.transport", "TLS", {}, None, _plain_for_tls),
    FailureRule("call.transport", "worker died", _PYTHON, None, _function("dies", "process")),
    FailureRule("call.transport", "program",
                _MCP, None, _tool("echo", command="no-such-program-of-the-bench")),
    FailureRule("call.transport", "server died", _MCP, None, _tool("dies")),
    FailureRule(
        "call.timeout", "silent server", _MCP, None,
        _tool("echo", "silent", service_metadata={"timeout_seconds": _SHORT}),
    ),
    FailureRule(
        "call.circuit-open", "",
        {"metadata": {"retry_count": 6, "retry_backoff_base": 0}}, _status(503, {"Retry-After": "0"}),
    ),
    # late
    FailureRule("call.timeout", "", {"metadata": {"timeout_seconds": _SHORT}}, _slow),
    # A step's limit bounds its own retries, too: who retries after it is the step around.
    FailureRule("step.timeout", "", {"nested": {"timeout_seconds": _SHORT}}, _slow),
    FailureRule("run.timeout", "", {"options": {"timeout": _SHORT}}, _slow),
    # refused or failed by the service
    *(FailureRule("call.overloaded", str(n), {}, _status(n, {"Retry-After": "0"})) for n in (429, 502, 503, 504)),
    FailureRule("call.server-error", "500", {}, _status(500)),
    FailureRule("call.server-error", "exception", _PYTHON, None, _function("fails", "thread")),
    FailureRule("call.server-error", "SystemExit", _PYTHON, None, _function("leaves", "thread")),
    FailureRule("call.server-error", "RPC -32603", _RPC, _rpc(-32603)),
    FailureRule("call.server-error", "RPC -32000", _RPC, _rpc(-32000, 500)),
    FailureRule("call.server-error", "RPC malformed", _RPC, _reply_with(_JSON, b"[]")),
    FailureRule("call.server-error", "tool", _MCP, None, _tool("refuses")),
    *(FailureRule("call.rejected", str(n), {}, _status(n)) for n in (400, 401, 404, 409, 422)),
    FailureRule("call.rejected", "RPC -32602", _RPC, _rpc(-32602, 503)),
    FailureRule("call.rejected", "tool", _MCP, None, _tool("fails")),
    FailureRule("call.rejected", "unknown tool", _MCP, None, _tool("no_such_tool")),
    FailureRule("call.rejected", "redirect", {}, _status(302, {"Location": "http://127.0.0.1:9/"})),
    FailureRule("effect.in-doubt", "", {"effect": "effect", "metadata": {"timeout_seconds": _SHORT}}, _slow),
    # output mapping
    FailureRule("output.missing", "",
                {"response": {"r": "response"}, "step": {"output": {"r.no": "vars.r"}}, "outputs": {}}),
    FailureRule("output.path", "", {"response": {"r": "response.ok", "s": "response.ok"}, "outputs": {},
                            "step": {"output": {"r": "extensions.a", "s": "extensions.a.b"}}}),
    FailureRule("output.slot-type", "", _to("working.risks")),
    FailureRule("output.merge", "", _to("vars.r", merge_strategy="append")),
    # final outputs
    FailureRule("outputs.missing", "", {"step": {"output": {}}, "outputs": _outputs(r="any")}),
    FailureRule("outputs.type", "", {"outputs": _outputs(r="array")}),
    # safety and approvals
    FailureRule("safety.trust", "", {"capability": {"safety": {"trust_level": "privileged"}}}),
    FailureRule("safety.gate", "", {}, None, _gate({"allowed": False})),
    FailureRule("safety.gate-error", "", {}, None, _gate({"allowed": "yes"})),
    FailureRule("safety.rejected", "", {"capability": {"safety": {"requires_confirmation": True}},
                                "approved": _approval(granted=False)}),
    FailureRule("safety.scope", "", {"network": "public"}),
    FailureRule("safety.confirmation", "", {"capability": {"safety": {"requires_confirmation": True}}}),
    FailureRule("policy.approval", "", {"capability": {"safety": {"requires_confirmation": True}},
                                "approved": _approval(granted=True)}),
    # policy
    FailureRule("policy.denied", "", {"policy": _policy("deny")}),
    FailureRule("policy.refused", "", {"policy": _policy("refuse")}),
    FailureRule("policy.escalated", "", {"policy": _policy("escalate")}),
    FailureRule("budget.exceeded", "", {"policy": lambda: LimitsPolicy(Budgets({"tool_calls.per_workflow": 0}))}),
    # else
    FailureRule("internal", "", {"broken": True}),
)  # fmt: skip
