"""A server program: what it gets, where it is found, and who belongs to it when it has to end (protocols.md 6)."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from cogcli.bindings.invokers.environment import passed_on
from cogcli.core.errors import TransportError

_LAUNCHER: Final = str(Path(__file__).with_name("mcp_launcher.py"))


class Program(NamedTuple):
    """One program without a shell, as a service file describes it."""

    command: str
    args: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]

    @property
    def argv(self) -> list[str]:
        """What to start: the program itself, on Linux by way of the launcher. Raises TransportError if not found."""
        path = self._found()
        given = [self.command, *self.args]
        if sys.platform == "linux" and sys.executable:
            return [sys.executable, "-I", "-S", _LAUNCHER, str(os.getpid()), path, *given]
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
    return {**passed_on(environ), **own}


class Relative(NamedTuple):
    """A process that came from a server; the time it started tells it from a later one of the same number."""

    pid: int
    started: bytes
    session: int


def relatives(server: int) -> set[Relative]:
    """The living processes of a server's session, and its descendants wherever they went, without itself."""
    rows = list(_table())
    family = {server}
    while more := {pid for pid, parent, _, _ in rows if parent in family} - family:
        family |= more
    return {
        Relative(pid, started, session)
        for pid, _, session, started in rows
        if pid != server and (session == server or pid in family)
    }


def alive(found: set[Relative]) -> set[Relative]:
    """Those that still run."""
    now = {(pid, started) for pid, _, _, started in _table()} if found else set()
    return {one for one in found if (one.pid, one.started) in now}


def signal_group(server: int, number: signal.Signals) -> None:
    """Send a signal to all of a server's process group; nobody there is fine."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(server, number)


def kill(found: set[Relative]) -> None:
    """End processes at once."""
    for one in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(one.pid, signal.SIGKILL)


def _table() -> Iterator[tuple[int, int, int, bytes]]:
    """Number, parent, session and start time of every process that is no zombie; empty where there is no /proc."""
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
            yield int(name), int(fields[1]), int(fields[3]), fields[19]
