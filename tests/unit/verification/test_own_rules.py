"""Lines and rows notice when a rule is broken, and every code of a run stands in a row."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.app import self_checks
from cogcli.bindings import live_runner
from cogcli.core.errors import FAILURES, OverloadedError, RuntimeErrorBase, TransportError
from cogcli.core.redact import Redactor
from cogcli.engine import call, invocation
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.invoker_rule import InvokerRule, InvokerRules, require
from cogcli.protocols.mcp import pins, traffic
from cogcli.protocols.mcp.rules import RULES as MCP
from cogcli.protocols.openapi.rules import RULES as LINES
from cogcli.protocols.openrpc import reply
from cogcli.protocols.openrpc.rules import RULES as RPC
from cogcli.verification import failure_rules
from cogcli.verification.check_result import FAILED, PASSED
from cogcli.verification.harness import EFFECTS, Bench, check_rule

OTHER_ENTRIES = ("command line", "environment", "agent")
"""Categories of what a command refuses before there is a run, and of how a loop ends: tests/unit/cognition."""


def provoked(lines: InvokerRules, id: str) -> Any:
    with Bench() as bench:
        return check_rule(id, lines[id], bench)


def test_every_code_of_a_run_is_provoked() -> None:
    codes = {code for row in FAILURES if row.category not in OTHER_ENTRIES for code in row.codes}
    shown = {id.split()[0] for id in self_checks.list_failure_rules()}
    assert codes <= shown


def test_a_line_that_raises_is_a_failed_line() -> None:
    def wrong(bench: Bench) -> None:
        require(1, 2, "number")

    def bug(bench: Bench) -> None:
        raise AttributeError("x")

    with Bench() as bench:
        assert (
            check_rule("a", InvokerRule("", wrong), bench).reason == "number: found 1, expected 2"
        )
        assert check_rule("b", InvokerRule("", bug), bench).reason == "AttributeError: x"


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
    assert "found call.transport" in provoked(failure_rules.lines(), "call.overloaded 503").reason


def test_a_lost_fallback_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RuntimeErrorBase, "falls_back", property(lambda error: False))
    assert (
        "another binding was tried"
        in provoked(failure_rules.lines(), "call.server-error 500").reason
    )


def test_a_lost_retry_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocation, "_may_retry_step", lambda record, error: False)
    assert (
        "repeated by the step's retry"
        in provoked(failure_rules.lines(), "call.overloaded 429").reason
    )


def test_an_echoed_secret_on_disk_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert provoked(failure_rules.lines(), "call.rejected 400").status == PASSED
    monkeypatch.setattr(Redactor, "mask", lambda self, value: value)
    assert (
        "files that hold the canary" in provoked(failure_rules.lines(), "call.rejected 400").reason
    )


def test_ids_that_are_not_compared_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = reply._fault

    def blind(value: Any, id: int) -> str:
        return real({**value, "id": id} if isinstance(value, dict) else value, id)

    assert provoked(RPC, "id.match").status == PASSED
    monkeypatch.setattr(reply, "_fault", blind)
    assert provoked(RPC, "id.match").status == FAILED


def test_a_lost_session_that_is_not_opened_anew_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert provoked(MCP, "session.lost").status == PASSED
    monkeypatch.setattr(traffic, "names_no_session", lambda words: False)
    assert provoked(MCP, "session.lost").status == FAILED


def test_a_changed_tool_that_is_not_refused_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert provoked(MCP, "pin").status == PASSED
    monkeypatch.setattr(pins.Pins, "require_same", lambda self, service, server, tool: None)
    assert provoked(MCP, "pin").status == FAILED
