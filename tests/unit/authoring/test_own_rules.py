"""Lines and rows notice when a rule is broken, and every code of a run stands in a row."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.authoring import self_checks
from cogcli.authoring.verification.check_result import FAILED, PASSED, CheckResult
from cogcli.authoring.verification.failure_rules import failure_rules
from cogcli.authoring.verification.harness import Bench, SelfCheck, check_rule, rule_from_invoker
from cogcli.authoring.verification.rule_catalog import EFFECTS
from cogcli.base.errors import FAILURES, OverloadedError, RuntimeErrorBase, TransportError
from cogcli.base.redact import Redactor
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.invoker_rule import (
    ELSEWHERE,
    InvokerRule,
    InvokerRules,
    RuleCall,
    RuleCase,
    RuleRun,
    succeed,
)
from cogcli.protocols.live import runner as live_runner
from cogcli.protocols.mcp import pins, traffic
from cogcli.protocols.mcp.rules import RULES as MCP
from cogcli.protocols.openapi.rules import RULES as LINES
from cogcli.protocols.openrpc import reply
from cogcli.protocols.openrpc.rules import RULES as RPC
from cogcli.run.engine import call, invocation

pytestmark = pytest.mark.sampled(2)

OTHER_ENTRIES = ("command line", "environment", "agent", "batch", "invocation: unfinished")
"""Categories of what a command refuses before there is a run, of how a loop ends (tests/unit/cognition), of what runs
the lines of a batch (tests/scale), and of what a server asks a person (tests/cli/test_input_required.py).
"""


def provoked(rules: InvokerRules | dict[str, SelfCheck], id: str) -> CheckResult:
    rule = rules[id]
    with Bench() as bench:
        return check_rule(
            id, rule_from_invoker(rule) if isinstance(rule, InvokerRule) else rule, bench
        )


def test_every_code_of_a_run_is_provoked() -> None:
    codes = {code for row in FAILURES if row.category not in OTHER_ENTRIES for code in row.codes}
    shown = {id.split()[0] for id in self_checks.list_failure_rules()}
    assert codes <= shown


CALL = RuleCall(service={"auth_ref": "BENCH_KEY"}, environ={"BENCH_KEY": "k"})
"""A call that succeeds: the server answers `{ok: true}`."""
BROKEN: dict[str, tuple[RuleCase, str]] = {
    "error": (RuleCase(call=CALL, error="call.rejected"), "no error, outputs"),
    "other error": (
        RuleCase(call=CALL._replace(network="public"), error="call.rejected"),
        "found safety.scope",
    ),
    "no success": (RuleCase(call=CALL._replace(network="public")), "safety.scope: "),
    "left": (
        RuleCase(call=CALL._replace(network="public"), error="safety.scope", left=True),
        "safety.scope: found left False, expected True",
    ),
    "words": (
        RuleCase(call=CALL._replace(network="public"), error="safety.scope", says="bananas"),
        "`bananas` is not in the message",
    ),
    "outputs": (RuleCase(call=CALL, outputs={"r": 1}), "outputs: found {'r': {'ok': True}}, expected"),
    "requests": (RuleCase(call=CALL, wanted=2), "requests: found 1, expected 2"),
    "time": (RuleCase(call=CALL, within=1e-9), "ended after"),
    "secret": (RuleCase(call=CALL, hidden="run.started"), "files that hold the secret"),
    "fault": (RuleCase(call=CALL, fault=lambda ran: "it is odd"), "it is odd"),
    "elsewhere": (
        RuleCase(call=CALL._replace(service={"base_url": ELSEWHERE}),
                 elsewhere=succeed),
        "requests elsewhere: found 1, expected 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_expectation_of_a_rule_is_noticed(name: str) -> None:
    case, reason = BROKEN[name]
    found = provoked({"rule": InvokerRule("", (RuleCase(call=CALL), case))}, "rule")
    assert (found.status, found.checks) == (FAILED, ())
    assert found.reason.startswith(reason)


def test_a_rule_with_a_bug_is_a_failed_rule() -> None:
    def bug(ran: RuleRun) -> str:
        raise AttributeError("x")

    found = provoked({"rule": InvokerRule("", (RuleCase(call=CALL, fault=bug),))}, "rule")
    assert (found.status, found.code, found.reason) == (FAILED, "internal", "AttributeError: x")


def test_a_broken_timeout_precedence_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert provoked(LINES, "timeout.default").status == PASSED
    monkeypatch.setattr(live_runner, "DEFAULT_TIMEOUT", 60.0)
    assert provoked(LINES, "timeout.default").status == FAILED


def test_a_blind_repeat_of_effects_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert provoked(LINES, "retry.effect").status == PASSED
    monkeypatch.setattr(call, "HARMLESS", frozenset(EFFECTS))
    assert provoked(LINES, "retry.effect").status == FAILED


def test_an_invoker_that_calls_overload_a_broken_wire_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = PROTOCOLS["openapi"].invoker

    class Confused:
        def __init__(self, surroundings: Any) -> None:
            self.inner = real(surroundings)
            self.close = self.inner.close

        def invoke(self, request: Any, context: Any) -> Any:
            try:
                return self.inner.invoke(request, context)
            except OverloadedError as error:
                raise TransportError("call.transport", error.message, left=True) from error

    monkeypatch.setitem(PROTOCOLS, "openapi", PROTOCOLS["openapi"]._replace(invoker=Confused))
    assert "found call.transport" in provoked(failure_rules(), "call.overloaded 503").reason


def test_a_lost_fallback_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RuntimeErrorBase, "falls_back", property(lambda error: False))
    assert "another binding was tried" in provoked(failure_rules(), "call.server-error 500").reason


def test_a_lost_retry_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocation, "_may_retry_step", lambda record, error: False)
    assert "repeated by the step's retry" in provoked(failure_rules(), "call.overloaded 429").reason


def test_an_echoed_secret_on_disk_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert provoked(failure_rules(), "call.rejected 400").status == PASSED
    monkeypatch.setattr(Redactor, "mask", lambda self, value: value)
    assert "files that hold the canary" in provoked(failure_rules(), "call.rejected 400").reason


def test_ids_that_are_not_compared_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = reply._find_fault

    def blind(value: Any, id: int) -> str:
        return real({**value, "id": id} if isinstance(value, dict) else value, id)

    assert provoked(RPC, "id.match").status == PASSED
    monkeypatch.setattr(reply, "_find_fault", blind)
    assert provoked(RPC, "id.match").status == FAILED


def test_a_lost_session_that_is_not_opened_anew_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert provoked(MCP, "session.lost").status == PASSED
    monkeypatch.setattr(traffic, "names_no_session", lambda words: False)
    assert provoked(MCP, "session.lost").status == FAILED


def test_a_changed_tool_that_is_not_refused_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert provoked(MCP, "pin").status == PASSED
    monkeypatch.setattr(pins.Pins, "require_same", lambda self, service, server, tool: None)
    assert provoked(MCP, "pin").status == FAILED
