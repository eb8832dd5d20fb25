"""A server program: its command line and environment, and the processes that belong to it
(docs/reference/protocols.md#mcp-stdio)."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from cogcli.base.errors import TransportError
from cogcli.base.named_tuple import NamedTuple

_LAUNCHER: Final = str(Path(__file__).with_name("launcher.py"))
IS_GUARDED: Final = sys.platform == "linux" and bool(sys.executable)
"""Whether programs run below guards (`launcher`)."""
KILL: Final[signal.Signals] = getattr(signal, "SIGKILL", signal.SIGTERM)
"""The signal that ends a process at once."""


class GuardSocket:
    """Our end of the socket to a program's guards. Once it is closed, they kill everything below
    them."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._received = b""

    @property
    def exit_code(self) -> int | None:
        """Return the program's exit status, a signal as its negative number; None while it is
        unknown."""
        with suppress(OSError):
            while data := self._ours.recv(64):
                self._received += data
        line, newline, _ = self._received.partition(b"\n")
        return os.waitstatus_to_exitcode(int(line)) if newline else None

    def release(self) -> None:
        """Make the guards kill everything, without waiting. It may be called twice."""
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close both ends."""
        self._ours.close()
        self.theirs.close()


class Program(NamedTuple):
    """One program of a service file, started without a shell."""

    command: str
    args: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]

    def argv(self, leash: int) -> list[str]:
        """Return the command line. On Linux it starts the guards, which watch the descriptor `leash`; else only the
        program. Raise TransportError if the program is not found.
        """
        named = (
            os.path.join(self.cwd, self.command) if os.path.dirname(self.command) else self.command
        )
        path = shutil.which(named, path=self.env.get("PATH", os.defpath))
        if path is None:
            text = f"program `{self.command}` is not found, or may not be started"
            raise TransportError(
                "call.transport", text, hint="install it, or correct `command`", left=False
            )
        path = os.path.abspath(path)
        given = [self.command, *self.args]
        if IS_GUARDED:
            return [sys.executable, "-I", "-S", _LAUNCHER, str(leash), path, *given]
        return [path, *given[1:]]


def descendants(started: int) -> set[int]:
    """Return the living descendants of the started process, in any session, without its inner
    guard."""
    rows = list(_list_processes())
    family = {started}
    while more := {pid for pid, parent, _ in rows if parent in family} - family:
        family |= more
    guards = {started, *(pid for pid, parent, _ in rows if IS_GUARDED and parent == started)}
    return {pid for pid, _, session in rows if session == started or pid in family} - guards


def signal_group(server: int, number: signal.Signals) -> None:
    """Send a signal to a server's process group; an empty group is not an error."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(server, number)
        else:
            os.kill(server, number)  # Windows ends the process, whatever the number


def kill(found: set[int]) -> None:
    """Kill processes. A process that has ended is not an error."""
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, KILL)


def _list_processes() -> Iterator[tuple[int, int, int]]:
    """Yield (pid, parent, session) of every process that is not a zombie; empty without /proc."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if not name.isdecimal():
            continue
        try:
            stat = Path("/proc", name, "stat").read_bytes()
        except OSError:
            continue  # it ended meanwhile
        # The program's name is in parentheses and may contain any character, `)` too.
        fields = stat.rpartition(b")")[2].split()
        if fields[0] not in (b"Z", b"X"):
            yield int(name), int(fields[1]), int(fields[3])
