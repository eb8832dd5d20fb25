"""Starts a program so that none of its processes outlives the run, however either ends
(docs/reference/protocols.md#mcp-stdio). Linux only; run by its path, never imported:

    python -I -S launcher.py LEASH PROGRAM ARGV0 ARGUMENT...

1. LEASH is a descriptor that reaches its end when the starting process closes it or dies. Then every process below is
   killed.
2. Two guards are ancestors of the program, one the parent of the other. Orphans of the program's children become
   children of a guard, whatever session they are in. Where one guard is killed, the other kills what is below.
3. At the program's end its wait status is written to LEASH as a line. The guards stay while any process is left.
4. The guards ignore SIGTERM and the like: those are meant for the rest of their process group. For the program they
   are reset, as are those that the interpreter ignores.

Out of reach: processes that others start for the program (a service manager, a container's daemon), processes of
another user, and daemons in sessions of their own where both guards are killed at once.
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
_HANDLED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_IGNORED = ("SIGPIPE", "SIGXFSZ")
_CANNOT_START = 126


def main() -> None:
    """Run as the outer guard, and end with the program's exit status."""
    leash, program, arguments = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    os.set_inheritable(leash, False)
    for name in _HANDLED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    upper, held = os.pipe()  # reaches its end in the inner guard when the outer one dies
    inner = _fork_child(program)
    if inner:
        os.close(upper)
        os._exit(_guard_descendants(leash, inner))
    os.close(held)
    guard = os.getpid()
    child = _fork_child(program)
    if not child:
        _exec_program(program, arguments, guard)
    os._exit(_guard_descendants(upper, child, leash))


def _fork_child(program: str) -> int:
    """Fork, and return 0 in the child. From then on, orphaned descendants become children of this process."""
    _call_prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        return os.fork()
    except OSError as error:
        _exit_unstartable(program, error)


def _exec_program(program: str, arguments: list[str], guard: int) -> NoReturn:
    """Replace this process by the program, which dies with its guard."""
    _call_prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(_CANNOT_START)
    for name in (*_HANDLED, *_IGNORED):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execv(program, arguments)  # noqa: S606  no shell is the point
    except OSError as error:
        _exit_unstartable(program, error)


def _guard_descendants(watched: int, child: int, report: int | None = None) -> int:
    """Wait until no descendant is left, and return the child's exit status.

    Once `watched` ends, all descendants are killed. The child's wait status is written to `report`. Without `report`,
    the end of the child also kills all descendants.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # release the program's streams, so that their reader sees the end
        os.dup2(null, stream)
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
                    _write_all(report, b"%d\n" % ended)
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
    """Kill the child processes; their orphans become children of this process and are killed next."""
    own = b"%d" % os.getpid()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The program's name is in parentheses and may contain any character, `)` too.
                parent = file.read().rpartition(b")")[2].split()[1]
            if parent == own:
                os.kill(int(name), signal.SIGKILL)
        except OSError:
            continue  # it ended meanwhile, or is another user's


def _write_all(to: int | None, data: bytes) -> None:
    if to is not None:
        try:
            os.write(to, data)
        except OSError:
            return  # the reader has ended: its closed end of the leash ends this guard


def _call_prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _exit_unstartable(program: str, error: OSError) -> NoReturn:
    os.write(2, f"{program}: {error.strerror}\n".encode())
    os._exit(_CANNOT_START)


if __name__ == "__main__":
    main()
