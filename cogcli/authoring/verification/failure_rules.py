"""A cause for every row of the failure model (docs/reference/execution.md#errors,
docs/reference/protocols.md#failures).

`base.errors.FAILURES` holds the expected behaviour of a code; this module holds a cause for it.
Each row runs three times: alone, with a step that retries, and with a fallback binding. The results
are compared with the table. A canary is among the secrets of every call and echoed by every server;
no file may hold it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Final

from cogcli.authoring.verification.case import Case, Outcome, expect_no_fault
from cogcli.authoring.verification.harness import (
    Bench,
    RuleAnswers,
    SelfCheck,
    call_case,
    error_faults,
    mismatch,
)
from cogcli.authoring.verification.loopback_server import ClosedPort, Loopback
from cogcli.authoring.verification.rule_catalog import CAPABILITY, SKILL, STEP
from cogcli.base.calls import Answer, Attempt
from cogcli.base.errors import FAILURE_OF, BindingResolutionError, FailureRow
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.value_types import Json
from cogcli.policy.approvals import ApprovalAnswer, RequestedAction
from cogcli.policy.budgets import Budgets
from cogcli.policy.pack_policy import Policy
from cogcli.policy.run_policy import LimitsPolicy, Requester, RunPolicy
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.exchange import ReceivedRequest, Responder, ServerReply, json_reply
from cogcli.protocols.invoker_rule import UNIQUE, RuleCall, succeed
from cogcli.protocols.mcp.rules import tool_call
from cogcli.run.engine.ports import CallPolicy

CANARY: Final = "canary-4f9d1c7e2b"
UNSPOKEN: Final = "morse"
"""A protocol without an invoker."""
_NAME: Final = "BENCH_CANARY"
_AGAIN: Final = {"retry": {"max_attempts": 2, "backoff_seconds": 0}}
_SHORT: Final = 0.15
_JSON: Final = "application/json"


def _echo_reply(
    status: int, request: ReceivedRequest, headers: Mapping[str, str] | None = None
) -> ServerReply:
    """Return a reply that echoes the secrets in the request."""
    body = {"ok": True, "echo": request.headers.get("authorization"), "message": f"no, {CANARY}"}
    return json_reply(body, status, headers)


def _respond_status(status: int, headers: Mapping[str, str] | None = None) -> Responder:
    return lambda seen: _echo_reply(status, seen, headers)


class FailureRule(NamedTuple):
    """The cause of a code: a call and the answers to it. The server's reply always contains the
    canary.
    """

    code: str
    rule: str
    call: RuleCall
    answering: Responder = _respond_status(200)
    server: Callable[[Responder], Loopback] = Loopback
    gate: Responder | None = None
    second: bool = False
    """Whether a fallback binding exists from the start."""
    approved: ApprovalAnswer | None = None
    policy: Callable[[], CallPolicy] | None = None
    broken: bool = False
    """Whether the runner raises an unexpected exception."""
    surroundings: Callable[[], AbstractContextManager[object]] = nullcontext

    @property
    def id(self) -> str:
        """The code, with the name of the cause if other rows have the same code."""
        return f"{self.code} {self.rule}".rstrip()

    def answers(self, *, second: bool) -> RuleAnswers:
        """Return the answers for one run of the call."""
        return RuleAnswers(
            self.server(self.answering),
            second=Loopback(succeed) if second else None,
            gate=Loopback(self.gate) if self.gate else None,
            approved=self.approved,
            policy=self.policy,
            intercept=_raise_bug if self.broken else None,
            surroundings=self.surroundings,
        )


def _raise_bug(attempt: Attempt, send: Callable[[Attempt], Answer]) -> Answer:
    raise KeyError("a bug in the runner")


def failure_rules() -> dict[str, SelfCheck]:
    """Return a rule for each row of the supported protocols."""
    spoken = (row for row in _ROWS if row.call.protocol in {*PROTOCOLS, UNSPOKEN})
    return {row.id: _rule_from(row) for row in spoken}


def _rule_from(row: FailureRule) -> SelfCheck:
    failure = FAILURE_OF[row.code]
    behaviors = {"retried": failure.retryable, "falls back": failure.falls_back}
    promised = "".join(f", {name}" for name, is_on in behaviors.items() if is_on)
    text = f"{failure.cls.__name__}, exit {failure.exit}{promised}"
    return SelfCheck(text, lambda bench: _rule_cases(bench, row, failure))


def _rule_cases(bench: Bench, row: FailureRule, failure: FailureRow) -> Iterator[Case]:
    """Yield the call alone, with a step that retries, and with a fallback binding."""
    again = row.call._replace(config={**row.call.config, **_AGAIN})
    runs = (
        (row.call, row.second, partial(_find_faults, row, failure)),
        (again, row.second, partial(_retry_faults, row, failure)),
        (row.call, True, partial(_fallback_faults, failure)),
    )
    for call, second, find_faults in runs:
        expectation = [expect_no_fault(find_faults), expect_no_fault(_canary_faults)]
        yield call_case(bench, call, row.answers(second=second), expectation)


def _find_faults(row: FailureRule, failure: FailureRow, outcome: Outcome) -> Iterator[str]:
    yield from error_faults(outcome, (row.code,))
    allowed = [failure.cls.__name__]
    if failure.exit == 3:  # selection raises a single reason under that reason's own code
        allowed.append(BindingResolutionError.__name__)
    if (found := type(outcome.error).__name__) not in allowed:
        yield f"found {found}, expected {failure.cls.__name__}"
    if outcome.error:
        yield from mismatch("exit code", outcome.error.exit_code, failure.exit)


def _retry_faults(row: FailureRule, failure: FailureRow, outcome: Outcome) -> Iterator[str]:
    """Yield the faults of a run whose step retries. A failure before the first attempt is not
    retried.
    """
    yield from error_faults(outcome, (row.code,))
    wanted = failure.retryable and bool(outcome.attempts)
    yield from mismatch("repeated by the step's retry", outcome.was_retried, wanted)


def _fallback_faults(failure: FailureRow, outcome: Outcome) -> Iterator[str]:
    """Yield the faults of a run with a fallback binding. A failure before the first attempt has no
    fallback.
    """
    tried = {one.attempt.member.binding_id for one in outcome.attempts}
    wanted = failure.falls_back and "first" in tried
    yield from mismatch("another binding was tried", "second" in tried, wanted)
    if wanted and outcome.error is not None:
        yield f"the other binding answered, and yet: {outcome.failure}"


def _canary_faults(outcome: Outcome) -> Iterator[str]:
    yield from mismatch("files that hold the canary", outcome.files_with(CANARY), [])


# -- causes -----------------------------------------------------------------------------------------------------------


def _reply_with(media_type: str, body: bytes) -> Responder:
    return lambda seen: ServerReply(200, {"Content-Type": media_type}, (body,))


def _respond_bytes(data: bytes) -> Responder:
    """Return a server function that sends these bytes and closes the connection."""
    return lambda seen: ServerReply(raw=data)


_CUT: Final = _respond_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")


class _PlainServer(Loopback):
    """A server with an `https` address that does not use TLS."""

    @property
    def url(self) -> str:
        """The address: `https://host:port`."""
        return super().url.replace("http:", "https:")


def _slow_reply(request: ReceivedRequest) -> ServerReply:
    return _echo_reply(200, request)._replace(delay=30.0)


def _respond_rpc_error(code: int, status: int = 200) -> Responder:
    """Return a server function that replies with a JSON-RPC error."""

    def answering(seen: ReceivedRequest) -> ServerReply:
        error = {"code": code, "message": f"no, {CANARY}"}
        id = json.loads(seen.body)["id"]
        return json_reply({"jsonrpc": "2.0", "id": id, "error": error}, status)

    return answering


def _gate_server(answer: object) -> Responder:
    """Return a server function of a gate with this answer."""
    return lambda seen: json_reply({"allowed": answer})


@contextmanager
def _without_keyring() -> Iterator[None]:
    """Block the import of keyring within the block, as on a machine without that extra."""
    before = sys.modules.get("keyring")
    sys.modules["keyring"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if before is None:
            del sys.modules["keyring"]
        else:
            sys.modules["keyring"] = before


_SECRET: Final = {"auth_ref": _NAME}
_COMMON: Final = RuleCall(service=_SECRET, environ={_NAME: CANARY}, response={"r": "response.ok"})
_call: Final = _COMMON._replace
_FUNCTIONS: Final = """
import os

def fails(text): raise ValueError("no luck")
def leaves(text): raise SystemExit(3)
def dies(text): os._exit(3)
def odd(text): return {"r": object()}
"""


def _shipped_call(module: str = "cogcli.official.text", operation: str = "normalize") -> RuleCall:
    """Return a call of this shipped function."""
    return _call(
        url="",
        protocol="pythoncall",
        service={"module": module, "isolation": "thread"},
        operation=operation,
        request={"text": "input.a"},
        response={"r": "response.text"},
    )


def _function_call(name: str, isolation: str) -> RuleCall:
    """Return a call of a function in a module outside the package.

    The module name is unique, because this process may have loaded the module of an earlier row.
    """
    module = f"functions_of_{UNIQUE}"
    return _shipped_call(operation=name)._replace(
        service={"module": module, "isolation": isolation}, files={f"{module}.py": _FUNCTIONS}
    )


def _tool_call(name: str, *options: str, **settings: str) -> RuleCall:
    """Return a call of a tool of the mock server."""
    return tool_call(name, *options, **settings)._replace(response=_COMMON.response)


def _approval_answer(*, granted: bool) -> ApprovalAnswer:
    other, until = "sha256:other", "2999-01-01T00:00:00Z"
    request = RequestedAction("ap_verify", CAPABILITY, STEP, other, other, until)
    return ApprovalAnswer(request, granted, "verify", "", "2000-01-01T00:00:00Z")


_RPC: Final = _call(protocol="openrpc")
_CONFIRMED: Final = _call(capability={"safety": {"requires_confirmation": True}})


def _output_fields(**types: str) -> Json:
    return {name: {"type": kind, "required": True} for name, kind in types.items()}


def _writing_to(target: str, **config: object) -> RuleCall:
    """Return a call that writes its output to a target, in a skill without outputs."""
    return _call(step={"output": {"r": target}, "config": config}, outputs={})


def _make_policy(verdict: str) -> Callable[[], CallPolicy]:
    """Return a function that makes a policy with this verdict on every call."""
    rule = {"rule_id": "always", "mode": "enforce", "if": True, "then": {"verdict": verdict}}
    pack = Pack.of(
        {
            "pack_meta": {"pack_id": "verify", "pack_version": "1.0.0"},
            "policy_layer": {
                "permissions": [{"role": "agent", "allow": [CAPABILITY]}],
                "rules": [rule],
            },
            "tooling_layer": {},
            "decision_layer": {"intents": [{"id": "verify", "capabilities": [CAPABILITY]}]},
        }
    )
    rules, requester = Policy.of(pack), Requester("verify", "somebody", role="agent")
    return lambda: RunPolicy(pack, rules, Budgets({}), requester, safety_mode="destructive")


_ROWS: Final[tuple[FailureRule, ...]] = (
    # specs
    FailureRule("skill.depth", "", _call(step={"uses": f"skill:{SKILL}", "input": {}, "output": {}})),
    # input mapping
    FailureRule("input.reference", "", _call(step={"input": {"a": "vars.nope"}})),
    FailureRule("input.contract", "", _call(capability={"inputs": {"a": {"type": "boolean"}}})),
    # control
    FailureRule("expr.missing", "", _call(config={"condition": "vars.nope == 1 and vars.nope"})),
    FailureRule("expr.type", "", _call(config={"condition": "1 < 'a'"})),
    FailureRule("expr.limit", "", _call(config={"condition": "sum([9007199254740991, 1]) > 0"})),
    FailureRule("router.no-case", "", _call(config={"router": {"on": "'b'", "cases": {"a": CAPABILITY}}})),
    FailureRule("foreach.items", "", _call(config={"foreach": {"items": "'abc'"}})),
    FailureRule("foreach.limit", "", _call(config={"foreach": {"items": [1, 2, 3], "max_items": 2}})),
    FailureRule(
        "scatter.failed",
        "",
        _call(step={"uses": "_scatter"}, config={"scatter": {
            "capabilities": [{"name": "x", "uses": CAPABILITY}, {"name": "y", "uses": CAPABILITY}],
            "merge": "first_success"}}),
        _respond_status(400),
    ),
    # binding and service resolution
    FailureRule("binding.none", "", _call(without=("bindings",), rule=False)),
    FailureRule("binding.ambiguous", "", _call(rule=False), second=True),
    FailureRule("binding.ineligible", "",
                _call(capability={"metadata": {"required_conformance_profile": "strict"}})),
    FailureRule("service.unknown", "", _call(without=("services",))),
    FailureRule("service.module", "",
                _shipped_call("no_such_module_of_the_bench")),
    FailureRule("service.module", "function", _shipped_call(operation="no_such_function")),
    FailureRule("service.forbidden", "",
                _shipped_call("cogcli.base.files")),
    FailureRule("service.untrusted", "", _call(trusted=False)),
    FailureRule("service.login", "", _call(service={"login": {}}, protocol="mcp", operation="note")),
    FailureRule("env.missing", "", _call(service={"auth_ref": "BENCH_UNSET"})),
    FailureRule("env.missing", "header", _call(service_metadata={"headers": {"X-Key": "${BENCH_UNSET}"}})),
    FailureRule("env.missing", "file", _call(service={"auth_ref": "file:/no/such/file"})),
    FailureRule("env.extra", "", _call(service={"auth_ref": "keyring:cogcli/verify"}),
                surroundings=_without_keyring),
    # request mapping
    FailureRule("request.missing", "", _call(request={"a": "x ${input.a.b} y"}, input={"a": "x"})),
    FailureRule("request.value", "path", _call(operation="notes/{a}", input={"a": ".."})),
    FailureRule("request.value", "header", _call(service_metadata={"headers": {"X-A": "${BENCH_A}"}},
                                    environ={_NAME: CANARY, "BENCH_A": "a\r\nX-B: c"})),
    FailureRule("request.size", "", _call(metadata={"max_request_bytes": 10}, input={"a": "x" * 100})),
    # response mapping
    FailureRule("response.missing", "",
                _call(response={"r": "response.no"}, capability={"outputs": _output_fields(r="any")})),
    FailureRule("response.type", "",
                _call(capability={"outputs": _output_fields(r="boolean")}), _reply_with(_JSON, b'{"ok": 1}')),
    FailureRule("response.not-json", "type", _COMMON, _reply_with("text/html", b"<p>")),
    FailureRule("response.not-json", "NaN", _COMMON, _reply_with(_JSON, b'{"ok": NaN}')),
    FailureRule("response.not-json", "key twice", _COMMON, _reply_with(_JSON, b'{"ok": 1, "ok": 2}')),
    FailureRule("response.not-json", "depth", _COMMON, _reply_with(_JSON, b"[" * 200 + b"]" * 200)),
    FailureRule("response.not-json", "encoding", _COMMON, _reply_with(_JSON, b'"\xff"')),
    FailureRule("response.not-json", "function", _function_call("odd", "thread")),
    FailureRule("response.pages", "", _call(page={"items": "r", "link": "response.next"}),
                _reply_with(_JSON, b'{"ok": [1], "next": "https://elsewhere.example/rows"}')),
    FailureRule("response.size", "frame", _tool_call("huge")),
    FailureRule("response.size", "", _call(metadata={"max_response_bytes": 20})),
    # protocol routing
    FailureRule("protocol.unsupported", "", _call(protocol=UNSPOKEN)),
    # unreachable
    FailureRule("call.transport", "refused", _COMMON, server=ClosedPort),
    FailureRule("call.transport", "reset", _COMMON, _respond_bytes(b"")),
    FailureRule("call.transport", "malformed", _COMMON, _respond_bytes(b"HELLO THERE\r\n\r\n")),
    FailureRule("call.transport", "cut", _COMMON, _CUT),
    FailureRule("call.transport", "TLS", _COMMON, server=_PlainServer),
    FailureRule("call.transport", "worker died", _function_call("dies", "process")),
    FailureRule("call.transport", "program",
                _tool_call("echo", command="no-such-program-of-the-bench")),
    FailureRule("call.transport", "server died", _tool_call("dies")),
    FailureRule(
        "call.timeout", "silent server",
        _tool_call("echo", "silent")._replace(service_metadata={"timeout_seconds": _SHORT}),
    ),
    FailureRule(
        "call.circuit-open", "",
        _call(metadata={"retry_count": 6, "retry_backoff_base": 0}), _respond_status(503, {"Retry-After": "0"}),
    ),
    # late
    FailureRule("call.timeout", "", _call(metadata={"timeout_seconds": _SHORT}), _slow_reply),
    # A step's limit covers its own retries, too: only an outer step retries after it.
    FailureRule("step.timeout", "", _call(nested={"timeout_seconds": _SHORT}), _slow_reply),
    FailureRule("run.timeout", "", _call(options={"timeout": _SHORT}), _slow_reply),
    # refused or failed by the service
    *(
        FailureRule("call.overloaded", str(n), _COMMON, _respond_status(n, {"Retry-After": "0"}))
        for n in (429, 502, 503, 504)
    ),
    FailureRule("call.server-error", "500", _COMMON, _respond_status(500)),
    FailureRule("call.server-error", "exception", _function_call("fails", "thread")),
    FailureRule("call.server-error", "SystemExit", _function_call("leaves", "thread")),
    FailureRule("call.server-error", "RPC -32603", _RPC, _respond_rpc_error(-32603)),
    FailureRule("call.server-error", "RPC -32000", _RPC, _respond_rpc_error(-32000, 500)),
    FailureRule("call.server-error", "RPC malformed", _RPC, _reply_with(_JSON, b"[]")),
    FailureRule("call.server-error", "tool", _tool_call("refuses")),
    *(FailureRule("call.rejected", str(n), _COMMON, _respond_status(n)) for n in (400, 401, 404, 409, 422)),
    FailureRule("call.rejected", "RPC -32602", _RPC, _respond_rpc_error(-32602, 503)),
    FailureRule("call.rejected", "tool", _tool_call("fails")),
    FailureRule("call.rejected", "unknown tool", _tool_call("no_such_tool")),
    FailureRule("call.rejected", "redirect", _COMMON, _respond_status(302, {"Location": "http://127.0.0.1:9/"})),
    # A limit could pass before the request is sent, which leaves no doubt: the server cuts its reply.
    FailureRule("effect.in-doubt", "", _call(effect="effect"), _CUT),
    # output mapping
    FailureRule("output.missing", "",
                _call(response={"r": "response"}, step={"output": {"r.no": "vars.r"}}, outputs={})),
    FailureRule("output.path", "", _call(response={"r": "response.ok", "s": "response.ok"}, outputs={},
                            step={"output": {"r": "extensions.a", "s": "extensions.a.b"}})),
    FailureRule("output.slot-type", "", _writing_to("working.risks")),
    FailureRule("output.merge", "", _writing_to("vars.r", merge_strategy="append")),
    # final outputs
    FailureRule("outputs.missing", "", _call(step={"output": {}}, outputs=_output_fields(r="any"))),
    FailureRule("outputs.type", "", _call(outputs=_output_fields(r="array"))),
    # safety and approvals
    FailureRule("safety.trust", "", _call(capability={"safety": {"trust_level": "privileged"}})),
    FailureRule("safety.gate", "", _COMMON, gate=_gate_server(False)),
    FailureRule("safety.gate-error", "", _COMMON, gate=_gate_server("yes")),
    FailureRule("safety.rejected", "", _CONFIRMED, approved=_approval_answer(granted=False)),
    FailureRule("safety.scope", "", _call(network="public")),
    FailureRule("safety.confirmation", "", _CONFIRMED),
    FailureRule("policy.approval", "", _CONFIRMED, approved=_approval_answer(granted=True)),
    # policy
    FailureRule("policy.denied", "", _COMMON, policy=_make_policy("deny")),
    FailureRule("policy.refused", "", _COMMON, policy=_make_policy("refuse")),
    FailureRule("policy.escalated", "", _COMMON, policy=_make_policy("escalate")),
    FailureRule("budget.exceeded", "", _COMMON,
                policy=lambda: LimitsPolicy(Budgets({"tool_calls.per_workflow": 0}))),
    # else
    FailureRule("internal", "", _COMMON, broken=True),
)  # fmt: skip
