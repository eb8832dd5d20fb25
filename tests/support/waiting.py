"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 60.0
"""Seconds. A busy machine is slow, but no test hangs."""


def wait_until(so: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Fail if something is not so in time."""
    until = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < until, "it never became so"
        time.sleep(0.005)
