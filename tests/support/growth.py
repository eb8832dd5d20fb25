"""How the cost of work grows with its size.

A bound in seconds fails on a busy machine and says little on a fast one. Two sizes measured in one run compare the work
with itself. Work that would never end needs no bound: `faulthandler_timeout` ends the test that hangs.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

FACTOR = 4
"""How many times larger the large size is."""
MOST = 2.5 * FACTOR
"""How many times longer the large size may take: linear work takes 4 times, quadratic work 16."""
TRIES = 8
LEAST_SECONDS = 0.05
"""A shorter time counts as this long, since noise of the clock would decide otherwise."""


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Assert that the processor time of `work(size)` is at most `MOST` times that of `work(size // FACTOR)`.

    The shortest time of each size counts, over as many tries as the promise needs.
    """
    small = large = float("inf")
    for _ in range(TRIES):
        small = min(small, _processor_seconds(work, size // FACTOR))
        large = min(large, _processor_seconds(work, size))
        if large <= MOST * max(small, LEAST_SECONDS):
            return
    raise AssertionError(
        f"{size // FACTOR}: {small:.3f} s, {size}: {large:.3f} s of the processor's time"
    )


def _processor_seconds(work: Callable[[int], object], size: int) -> float:
    # A collection costs as much as everything that earlier tests left in memory, so none may happen in between, and
    # none is made before each of the many measurements of a test.
    gc.disable()
    try:
        begun = time.process_time()
        work(size)
        return time.process_time() - begun
    finally:
        gc.enable()
