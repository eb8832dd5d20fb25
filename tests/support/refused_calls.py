"""Run a command on a machine that refuses some system calls: `python refused_calls.py NUMBER,... COMMAND...`.

A real filter of the kernel answers them with ENOSYS, so that what is run meets a machine without Landlock or without
name spaces, as in many containers.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

LANDLOCK = (444, 445, 446)
UNSHARE = {"x86_64": 272, "aarch64": 97}.get(os.uname().machine, 0) if hasattr(os, "uname") else 0
_ENOSYS = 0x00050000 | 38
_ALLOW = 0x7FFF0000


def main() -> None:
    """Set the filter and become the command."""
    numbers = [int(each) for each in sys.argv[1].split(",") if each]
    lines = [(0x20, 0, 0, 0)]
    for number in numbers:
        lines += [(0x15, 0, 1, number), (0x06, 0, 0, _ENOSYS)]
    lines.append((0x06, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    libc = ctypes.CDLL(None, use_errno=True)
    program = struct.pack("@HP", len(lines), ctypes.addressof(code))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), "the filter cannot be set")
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
