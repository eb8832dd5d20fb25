"""A server program: what it gets, where it is found, and who belongs to it when it has to end
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
from typing import Final, NamedTuple

from cogcli.core.errors import TransportError
from cogcli.protocols.child_environment import inherited_variables

_LAUNCHER: Final = str(Path(__file__).with_name("launcher.py"))


IS_GUARDED: Final = sys.platform == "linux" and bool(sys.executable)
"""Whether programs are started below guards."""


class Leash:
    """Our end of what holds a program's guards: they end everything below them when it is let go of."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._said = b""

    def started(self) -> None:
        """The guards have their end."""
        self.theirs.close()

    @property
    def exit_code(self) -> int | None:
        """How the program ended, a signal as its negative number; None while that is not told."""
        with suppress(OSError):
            while data := self._ours.recv(64):
                self._said += data
        line, newline, _ = self._said.partition(b"\n")
        return os.waitstatus_to_exitcode(int(line)) if newline else None

    def let_go(self) -> None:
        """Have everything killed; does not wait. May be called twice."""
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Let go for good."""
        self._ours.close()
        self.theirs.close()


class Program(NamedTuple):
    """One program without a shell, as a service file describes it."""

    command: str
    args: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]

    def argv(self, leash: int) -> list[str]:
        """What to start: on Linux the guards of the program, held by `leash`; else itself. Raises TransportError where
        it is not found."""
        path = self._found()
        given = [self.command, *self.args]
        if IS_GUARDED:
            return [sys.executable, "-I", "-S", _LAUNCHER, str(leash), path, *given]
        return [path, *given[1:]]

    def _found(self) -> str:
        named = os.path.join(self.cwd, self.command) if os.path.dirname(self.command) else self.command
        path = shutil.which(named, path=self.env.get("PATH", os.defpath))
        if path is None:
            text = f"program `{self.command}` is not found, or may not be started"
            raise TransportError("call.transport", text, hint="install it, or correct `command`", left=False)
        return os.path.abspath(path)


def environment(environ: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server: the few names passed on, and those of its service file."""
    return {**inherited_variables(environ), **own}


def relatives(started: int) -> set[int]:
    """The living processes that came from the one we started, wherever they went, without it and its inner guard."""
    rows = list(_table())
    family = {started}
    while more := {pid for pid, parent, _ in rows if parent in family} - family:
        family |= more
    guards = {started, *(pid for pid, parent, _ in rows if IS_GUARDED and parent == started)}
    return {pid for pid, _, session in rows if session == started or pid in family} - guards


def signal_group(server: int, number: signal.Signals) -> None:
    """Send a signal to all of a server's process group; nobody there is fine."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(server, number)


def kill(found: set[int]) -> None:
    """End processes at once."""
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _table() -> Iterator[tuple[int, int, int]]:
    """Number, parent and session of every process that is no zombie; empty where there is no /proc."""
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
        # The program's name stands in parentheses and may hold anything, a closing one too.
        fields = stat.rpartition(b")")[2].split()
        if fields[0] not in (b"Z", b"X"):
            yield int(name), int(fields[1]), int(fields[3])
