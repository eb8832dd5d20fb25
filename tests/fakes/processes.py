"""Looking at processes from outside, for tests about what is left of them."""

from __future__ import annotations

import gc
import os
import time
from contextlib import suppress
from pathlib import Path

from support.waiting import PATIENCE


def is_there(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped by a stranger does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_gone(pid: int) -> bool:
    """Whether a process ends, waiting for it."""
    until = time.monotonic() + PATIENCE
    while is_there(pid):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def children() -> set[int]:
    """The processes that this one started and that are still there, those to be reaped among them."""
    found = set()
    for thread in os.listdir("/proc/self/task"):
        with suppress(
            FileNotFoundError, ProcessLookupError
        ):  # it ended meanwhile, and its children are another's
            found |= {
                int(pid) for pid in Path(f"/proc/self/task/{thread}/children").read_text().split()
            }
    return found


def descriptors() -> int:
    """How many files this process has open, those of garbage not among them."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))
