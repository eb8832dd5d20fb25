"""What the tokens of a model cost (docs/reference/pack.md#budgets). Pure."""

from __future__ import annotations

from math import ceil
from typing import Final

from cogcli.base.named_tuple import NamedTuple

COST: Final = "cost_microusd"
"""The budget for the cost of models, in millionths of a dollar."""
_DIGITS: Final = 6
"""Decimal places that are kept before rounding up, so that 0.1 + 0.2 is not 0.30000000000000004."""


class Prices(NamedTuple):
    """Dollars per million tokens, so millionths of a dollar per token."""

    price_in: float
    price_out: float

    def cost(self, tokens_in: int, tokens_out: int) -> int:
        """Return the cost in millionths of a dollar, rounded up."""
        return ceil(round(tokens_in * self.price_in + tokens_out * self.price_out, _DIGITS))

    @classmethod
    def if_known(cls, price_in: float | None, price_out: float | None) -> Prices | None:
        """Return the prices, or None if one of them is not known."""
        if price_in is None or price_out is None:
            return None
        return cls(price_in, price_out)
