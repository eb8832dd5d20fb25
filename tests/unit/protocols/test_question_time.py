"""The time limit of a call while a person answers its server (docs/reference/mcp.md#live)."""

from __future__ import annotations

import asyncio

import pytest

from cogcli.base.calls import Cancellation, Member
from cogcli.protocols.invoker import CallLimits
from cogcli.protocols.mcp.questions import clock_stopped
from cogcli.protocols.mcp.traffic import McpExchange


def test_the_time_of_an_answer_is_added_to_the_limit_and_taken_from_the_time_for_answers() -> None:
    anyio = pytest.importorskip("anyio")

    async def answer() -> None:
        exchange = McpExchange()
        exchange.scope, exchange.answer_seconds = anyio.CancelScope(deadline=1000.0), 300.0
        with clock_stopped(exchange):
            assert exchange.scope.deadline == 1300.0
        assert 0 <= exchange.answer_seconds <= 300
        assert exchange.scope.deadline + exchange.answer_seconds == pytest.approx(1300.0)

    asyncio.run(answer())


def test_without_time_for_answers_the_limit_does_not_move() -> None:
    anyio = pytest.importorskip("anyio")

    async def answer() -> None:
        exchange = McpExchange()
        exchange.scope = anyio.CancelScope(deadline=1000.0)
        with clock_stopped(exchange):
            assert exchange.scope.deadline == 1000.0

    asyncio.run(answer())


def test_the_time_for_answers_extends_the_whole_call_and_nothing_in_it() -> None:
    member = Member("b", "s", "mcp", 30.0, answer_seconds=300.0)
    assert member.limit == 330.0
    assert "answer_seconds" not in member.to_payload()
    limits = CallLimits(1330.0, Cancellation(), 30.0, answer_seconds=300.0)
    assert limits.within(None) == 1030.0
