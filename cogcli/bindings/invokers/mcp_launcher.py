"""Starts a program that does not outlive its parent (protocols.md 6). Linux only; run by its path, never imported:

    python -I -S mcp_launcher.py PARENT_PID PROGRAM ARGV0 ARGUMENT...

1. The kernel kills the program when the thread that started it ends. A parent that ended before that was arranged is
   noticed by its number.
2. The program adopts what its own children leave behind, so that a daemon of theirs can be found and ended.
3. Signals that the interpreter ignores are set back: an ignored signal would stay ignored in the program.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Become the program; exit 126 where it cannot be started, 127 where the parent is gone."""
    parent, program, *arguments = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    if os.getppid() != int(parent):
        os._exit(127)
    try:
        os.execv(program, arguments)  # noqa: S606  no shell is the point
    except OSError as error:
        os.write(2, f"{program}: {error.strerror}\n".encode())
        os._exit(126)


if __name__ == "__main__":
    main()
