"""Consoles of Windows: colors and cursor movement need VT mode, which makes them interpret codes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_READ_CODES = 0x0004
"""ENABLE_VIRTUAL_TERMINAL_PROCESSING."""


def enable_codes(fd: int) -> bool:
    """Make the console behind a descriptor interpret codes; return False if it cannot."""
    import ctypes
    import msvcrt

    kernel: Any = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    handle = ctypes.c_void_p(msvcrt.get_osfhandle(fd))  # type: ignore[attr-defined,unused-ignore]
    return turn_on(kernel, handle)


def turn_on(kernel: Any, handle: object) -> bool:
    """Add VT mode to the modes of a console. `kernel` has `GetConsoleMode` and `SetConsoleMode`."""
    import ctypes

    mode = ctypes.c_ulong()
    if not kernel.GetConsoleMode(handle, ctypes.byref(mode)):
        return False
    return bool(
        mode.value & _READ_CODES
        or kernel.SetConsoleMode(handle, ctypes.c_ulong(mode.value | _READ_CODES))
    )
