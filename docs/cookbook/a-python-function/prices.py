"""Prices."""

from cogcli.sdk import Refused


def with_tax(net: float, percent: float = 19) -> dict:
    if net < 0:
        raise Refused("bad-data", "a price is not below zero", "give the net price of a sale")
    return {"gross": round(net * (100 + percent) / 100, 2)}
