"""Windows consoles, which interpret codes for colors and cursor movement only in VT mode."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_READ_CODES = 0x0004
"""ENABLE_VIRTUAL_TERMINAL_PROCESSING."""


def enable_codes(fd: int) -> bool:
    """Enable the codes in the console behind a descriptor. Return whether that succeeded."""
    import ctypes
    import msvcrt

    kernel: Any = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    handle = ctypes.c_void_p(msvcrt.get_osfhandle(fd))  # type: ignore[attr-defined,unused-ignore]
    return enable_vt_mode(kernel, handle)


def enable_vt_mode(kernel: Any, handle: object) -> bool:
    """Add VT mode to the modes of a console, and return whether it is on.

    `kernel` has `GetConsoleMode` and `SetConsoleMode`.
    """
    import ctypes

    mode = ctypes.c_ulong()
    if not kernel.GetConsoleMode(handle, ctypes.byref(mode)):
        return False
    return bool(
        mode.value & _READ_CODES
        or kernel.SetConsoleMode(handle, ctypes.c_ulong(mode.value | _READ_CODES))
    )
