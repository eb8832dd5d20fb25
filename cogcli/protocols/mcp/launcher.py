"""Starts a program of which nothing lives on, whoever ends how (docs/reference/protocols.md#mcp-stdio). Linux
only; run by its path, never imported:

    python -I -S mcp_launcher.py LEASH PROGRAM ARGV0 ARGUMENT...

1. LEASH is a descriptor that ends when whoever started this lets go of it, or dies in whatever way. Then everything
   below is killed.
2. Two guards stand above the program, one above the other. What the program's children leave behind falls to a guard,
   whatever session it went to. Where one guard is killed, the other kills what is below.
3. The end of the program goes to LEASH as a line with its wait status. The guards stay as long as anything is left.
4. The guards hear no gentle signal: those are meant for the rest of their process group. For the program they are set
   back, like those that the interpreter ignores.

What cannot be held: what somebody else starts on the program's behalf (a service manager, a container's daemon), what
runs as another user, and daemons in sessions of their own where both guards are killed at once.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_GENTLE = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_IGNORED = ("SIGPIPE", "SIGXFSZ")
_CANNOT_START = 126


def main() -> None:
    """Be the outer guard. Ends as the program did."""
    leash, program, arguments = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    os.set_inheritable(leash, False)
    for name in _GENTLE:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    upper, held = os.pipe()  # by which the inner guard learns that the outer one is gone
    inner = _below(program)
    if inner:
        os.close(upper)
        os._exit(_guarded(leash, inner))
    os.close(held)
    guard = os.getpid()
    child = _below(program)
    if not child:
        _become(program, arguments, guard)
    os._exit(_guarded(upper, child, leash))


def _below(program: str) -> int:
    """Fork: 0 in the child. From now on what is left behind below falls to this process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        return os.fork()
    except OSError as error:
        _refuse(program, error)


def _become(program: str, arguments: list[str], guard: int) -> NoReturn:
    """Be the program, which ends with its guard."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(_CANNOT_START)
    for name in (*_GENTLE, *_IGNORED):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execv(program, arguments)  # noqa: S606  no shell is the point
    except OSError as error:
        _refuse(program, error)


def _guarded(watched: int, child: int, report: int | None = None) -> int:
    """Wait until nothing is left below; the child's exit status. Once `watched` ends, everything below is killed.

    The end of the child is written to `report`; without one it is the end of everything, too.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # others have to see the end of the program's
        os.dup2(nothing, stream)
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda number, place: None)
    signal.set_wakeup_fd(wake)
    ended, killing = 0, False
    while True:
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == child:
                    ended, killing = found[1], killing or report is None
                    _write(report, b"%d\n" % ended)
        except ChildProcessError:
            return os.waitstatus_to_exitcode(ended) & 255
        if killing:
            _kill_children()
        ready, _, _ = select.select([woken] if killing else [woken, watched], [], [])
        if watched in ready:
            killing = not os.read(watched, 1)
        if woken in ready:
            os.read(woken, 4096)


def _kill_children() -> None:
    """Kill what stands right below; what that leaves behind falls to this process, and its turn comes then."""
    own = b"%d" % os.getpid()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The program's name stands in parentheses and may hold anything, a closing one too.
                parent = file.read().rpartition(b")")[2].split()[1]
            if parent == own:
                os.kill(int(name), signal.SIGKILL)
        except OSError:
            continue  # it ended meanwhile, or is another user's


def _write(to: int | None, data: bytes) -> None:
    if to is not None:
        try:
            os.write(to, data)
        except OSError:
            return  # nobody is there any more, which is told otherwise


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _refuse(program: str, error: OSError) -> NoReturn:
    os.write(2, f"{program}: {error.strerror}\n".encode())
    os._exit(_CANNOT_START)


if __name__ == "__main__":
    main()
