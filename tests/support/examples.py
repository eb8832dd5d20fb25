"""How many examples a property is tried with."""

from __future__ import annotations

import os
from typing import Any, Final

from hypothesis import settings

LONG: Final = bool(os.environ.get("COGCLI_LONG_TESTS"))
FEWEST: Final = 25
"""What every property is tried with that asks for nothing else (the profile in `conftest.py`)."""


def examples(most: int, **others: Any) -> settings:
    """Settings of a property that asks for more: all in a long run, else a quarter. The seed draws them."""
    return settings(max_examples=most if LONG else max(FEWEST, most // 4), **others)
