"""The rates that were kept yesterday."""

KEPT = {"EUR": 1.08, "GBP": 1.27}


def kept(currency: str) -> dict:
    return {"rate": KEPT[currency], "day": "yesterday"}
