"""The services of the support desk: a table of orders, and payments that only give a receipt."""

from __future__ import annotations

from typing import Any

ORDERS = {
    "ord_881": {"age_days": 12, "total": 240.0},
    "ord_440": {"age_days": 3, "total": 35.5},
    "ord_100": {"age_days": 45, "total": 80.0},
}


def lookup_order(order_id: str) -> dict[str, Any]:
    """Age and total of an order; an order that is not in the table raises KeyError."""
    return ORDERS[order_id]


def is_in_time(days: int) -> dict[str, bool]:
    """Whether an order is young enough for a refund."""
    return {"ok": days <= 30}


def refund(order_id: str, amount: float) -> dict[str, Any]:
    """A receipt; nothing is paid here."""
    return {"receipt": {"id": f"rc_{order_id}", "status": "done", "amount": amount}}
