"""The till."""


def pay(amount: float) -> dict:
    return {"receipt": f"paid {amount:g}"}
