"""Functional state (docs/reference/pack.md#functional-state)."""

from __future__ import annotations

import pytest

from cogcli.governance.budgets import BudgetUsage
from cogcli.governance.pressure import Pressures, budget_pressure, gate_pressure, loop_pressure, share


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


def test_a_limit_of_nothing_is_pressed_once_it_is_passed() -> None:
    assert budget_pressure({"replans": 0}, {"replans": BudgetUsage(0)}, soft=0.5) == 0.0
    assert budget_pressure({"replans": 0}, {"replans": BudgetUsage(1)}, soft=0.5) == 1.0


def test_gates_press_as_they_age() -> None:
    assert gate_pressure([(10, 100), (67, 100)], soft=0.5) == pytest.approx(0.34)
    assert gate_pressure([], soft=0.5) == 0.0


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


def test_shares_of_nothing_are_nothing() -> None:
    assert share(0, 0) == 0.0
    assert share(1, 4) == 0.25


def test_risk_weighs_and_the_sum_is_bounded() -> None:
    assert Pressures(1, 1, 1, 1, 1).escalation("read_only") == pytest.approx(0.75)
    assert Pressures(1, 1, 1, 1, 1).escalation("destructive") == 1.0
