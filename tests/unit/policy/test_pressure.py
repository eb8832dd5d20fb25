"""Functional state (docs/reference/pack.md#functional-state)."""

from __future__ import annotations

import pytest

from cogcli.policy.budgets import BudgetUsage
from cogcli.policy.pressure import (
    GateWait,
    Pressures,
    budget_pressure,
    gate_pressure,
    loop_pressure,
    share,
)


def test_the_example_comes_out_as_forty_one_hundredths() -> None:
    pressures = Pressures(budget=0.62, loop=0.10, evidence=0.0, gate=0.34, conflict=0.0)
    assert pressures.to_payload("destructive", "2026-05-04T09:31:18Z") == {
        "captured_at": "2026-05-04T09:31:18Z",
        "budget_pressure": 0.62,
        "loop_pressure": 0.10,
        "evidence_pressure": 0.0,
        "gate_pressure": 0.34,
        "conflict_pressure": 0.0,
        "escalation_propensity": 0.41,
    }


@pytest.mark.parametrize(
    ("used", "elapsed", "expected"),
    [(0, 0, 0.0), (4, 0, 0.0), (6, 0, 0.5), (8, 0, 1.0), (9, 0, 1.0), (4, 750, 0.5)],
)
def test_budget_pressure_begins_at_the_soft_share(used: int, elapsed: int, expected: float) -> None:
    limits = {"tool_calls.per_turn": 8, "wall_clock_ms": 1000, "heartbeat_ms": 10}
    usage = {"tool_calls.per_turn": BudgetUsage(used, 3)}
    assert budget_pressure(limits, usage, soft=0.5, elapsed_ms=elapsed) == expected


@pytest.mark.parametrize(
    ("limit", "soft", "used", "expected"),
    [
        (0, 0.5, 0, 0.0),  # a limit of nothing is pressed once it is passed
        (0, 0.5, 1, 1.0),
        (8, 1.0, 7, 0.0),  # with all of the limit as the soft share, at the limit
        (8, 1.0, 8, 1.0),
        (8, 0.0, 2, 0.25),
    ],
)
def test_limits_and_soft_shares_at_their_ends(
    limit: int, soft: float, used: int, expected: float
) -> None:
    usage = {"replans": BudgetUsage(used)}
    assert budget_pressure({"replans": limit}, usage, soft=soft, elapsed_ms=0) == expected
    assert budget_pressure({}, usage, soft=soft, elapsed_ms=0) == 0.0


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        ([], 0.0),
        ([(50, 100)], 0.0),
        ([(75, 100)], 0.5),
        ([(10, 100), (75, 100)], 0.5),
        ([(100, 100)], 1.0),
        ([(500, 100)], 1.0),
    ],
)
def test_a_gate_presses_from_the_soft_share_of_its_time_on(
    gates: list[tuple[int, int]], expected: float
) -> None:
    assert gate_pressure((GateWait(*each) for each in gates), soft=0.5) == expected


@pytest.mark.parametrize(
    ("identical", "replans", "idle", "expected"),
    [
        (0, 0, 0, 0.0),
        (1, 0, 0, 0.0),
        (2, 0, 0, 0.5),
        (3, 0, 0, 1.0),
        (5, 0, 0, 1.0),
        (0, 1, 0, 1 / 3),
        (0, 0, 1, 0.5),
    ],
)
def test_loop_pressure_is_the_nearest_way_to_a_trip(
    identical: int, replans: int, idle: int, expected: float
) -> None:
    assert loop_pressure(identical, replans, 3, idle) == pytest.approx(expected)


@pytest.mark.parametrize("replans", [0, 1])
def test_where_no_replan_is_allowed_one_presses_whole(replans: int) -> None:
    assert loop_pressure(0, replans, 0, 0) == replans


def test_shares_of_nothing_are_nothing() -> None:
    assert share(0, 0) == 0.0
    assert share(1, 4) == 0.25


def test_risk_weighs_and_the_sum_is_bounded() -> None:
    weights = {
        "read_only": 0.75,
        "local_write": 0.9,
        "network": 1.0,
        "delegated": 1.1,
        "destructive": 1.25,
    }
    half, whole = Pressures(*[0.5] * 5), Pressures(*[1.0] * 5)
    for risk, weight in weights.items():
        assert half.escalation(risk) == pytest.approx(weight / 2)
        assert whole.escalation(risk) == pytest.approx(min(1, weight))
    payload = half._replace(loop=0.126).to_payload("network", "")
    assert (payload["loop_pressure"], payload["escalation_propensity"]) == (0.13, 0.44)
