"""What the tokens of a model cost (docs/reference/pack.md#budgets)."""

from __future__ import annotations

import pytest

from cogcli.policy.budgets import Budgets, BudgetUsage
from cogcli.policy.prices import COST, Prices


@pytest.mark.parametrize(
    ("price_in", "price_out", "expected"),
    [(2.5, 10, 65), (0, 0, 0), (0.1, 0.2, 2), (0.3, 0, 3), (0.31, 0, 4)],
)
def test_costs_are_millionths_of_a_dollar_rounded_up(
    price_in: float, price_out: float, expected: int
) -> None:
    prices = Prices.if_known(price_in, price_out)
    assert prices is not None
    assert prices.cost(10, 4) == expected


@pytest.mark.parametrize("one", [(None, 1.0), (1.0, None), (None, None)])
def test_one_price_is_no_price(one: tuple[float | None, float | None]) -> None:
    assert Prices.if_known(*one) is None


def test_the_cost_is_spent_from_the_budget_of_a_pack() -> None:
    budgets = Budgets({"cost_microusd": 100})
    held = budgets.reserve({COST: 65})
    assert held.overrun is None
    held.commit({COST: 60})
    assert budgets.usage() == {"cost_microusd": BudgetUsage(60, 0)}
    assert budgets.remaining() == {"cost_microusd": 40}
