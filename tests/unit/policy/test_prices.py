"""What the tokens of a model cost (docs/reference/pack.md#budgets)."""

from __future__ import annotations

import pytest

from cogcli.policy.prices import Prices


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
