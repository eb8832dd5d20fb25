"""The limit on the address space of this process (`ulimit -v`), and the room that remains below it.

CPython 3.11 can loop forever, without its lock, if no byte remains: unwinding an exception needs
memory, too. A run under a limit therefore ends while there is room. Its threads share one arena of
malloc, because each separate arena reserves up to 128 MiB of addresses.
"""

from __future__ import annotations

import os
import sys
from typing import Final

ROOM: Final = 32 * 1024 * 1024
"""Bytes that a call may need before it returns: a thread's stack, and the libraries of its
protocol."""
ROOM_OF_A_CALL: Final = 8 * 1024 * 1024
"""Bytes that each call in flight may still need to parse, check and log its response."""
_LIMITS: Final = "/proc/self/limits"
_SIZE: Final = "/proc/self/statm"
_ARENA_MAX: Final = -8
"""The number of `M_ARENA_MAX` in glibc."""


def find_limit() -> int | None:
    """Return the memory limit in bytes; None without a limit, or if the system does not report one."""
    try:
        with open(_LIMITS, encoding="utf-8") as file:
            line = next((line for line in file if line.startswith("Max address space")), "")
    except OSError:
        return None
    words = line.removeprefix("Max address space").split()
    return int(words[0]) if words and words[0].isdigit() else None


def share_arena() -> None:
    """Make all threads of the process share one arena, if malloc supports it."""
    if sys.platform == "linux":
        import ctypes

        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_ARENA_MAX, 1)


def require_room(limit: int, calls: int = 0) -> None:
    """Raise MemoryError if too little address space remains below the limit.

    `ROOM` must remain, plus the possible needs of the calls in flight. The JSON encoder crashes the process if malloc
    fails, so this check comes first.
    """
    try:
        with open(_SIZE, encoding="utf-8") as file:
            pages = int(file.read().split()[0])
    except OSError:
        return
    left = limit - pages * os.sysconf("SC_PAGE_SIZE")
    if left < ROOM + calls * ROOM_OF_A_CALL:
        raise MemoryError(f"{max(left, 0) >> 20} MiB are left of {limit >> 20} MiB")
