"""Runs the command with a bomb: at one of its calls that change something on disk it is killed, or the call fails.

Calls are counted over all threads. `CRASH_AT` is the number of the call, from 1; 0 is none. `CRASH_MODE` says what
happens there: `kill`; `torn` (half of what is written is, then the process is killed); `short` (half of what is written
is, which the call says); or the name of an errno. With `+` it happens from that call on. `CRASH_HIT` is a file that is
made when the call is reached, with `plain` in it on the fast path of plain steps. `CRASH_NAMES` is one for the names of
all calls of a whole run. `CRASH_PACKAGE` is a directory whose package is used instead of the installed one.

With `--serve` it stays and runs a command for every line of JSON on its standard input, each in a process of its own
that is forked after all imports: a run takes a tenth of the time.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import functools
import gc
import importlib
import json
import os
import pkgutil
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

NAMES = (
    "write",
    "fsync",
    "fdatasync",
    "rename",
    "replace",
    "mkdir",
    "ftruncate",
    "unlink",
    "posix_fallocate",
)
STATEMENT = "execute"
"""A statement of a store counts, too: SQLite's own calls are none of Python's."""
NEVER_FULL = ("unlink", "ftruncate")
"""Calls that need no room."""
_real_write, _real_open, _real_close = os.write, os.open, os.close


def concerns(mode: str, name: str) -> bool:
    """Whether something of this kind can happen to a call."""
    mode = mode.rstrip("+")
    if name == STATEMENT:
        return mode == "kill"
    if mode in ("torn", "short"):
        return name == "write"
    if mode == "EMFILE":
        return name == "open"
    return mode != "ENOSPC" or name not in NEVER_FULL


class Bomb:
    """Which call is the one, and what happens there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.names: list[str] = []
        self.at = 0
        self.mode = "kill"
        self.errno = 0

    def arm(self) -> None:
        """Set it as the environment says."""
        self.at = int(os.environ.get("CRASH_AT", "0"))
        self.mode = os.environ.get("CRASH_MODE", "kill")
        self.errno = getattr(errno, self.mode.rstrip("+"), 0)
        atexit.register(self._remember)

    def _remember(self) -> None:
        if path := os.environ.get("CRASH_NAMES"):
            with open(path, "w", encoding="ascii") as file:
                file.write("\n".join(self.names))

    def reached(self, name: str) -> bool:
        """Count a call; whether it is the one."""
        with self._lock:
            self.names.append(name)
            now = len(self.names)
        if not self.at or now < self.at or (now > self.at and not self.mode.endswith("+")):
            return False
        return concerns(self.mode, name)

    def counts(self, name: str, arguments: tuple[Any, ...]) -> bool:
        """Opening counts where it makes a file, or where files are what is short; the screen does not count."""
        if name == "open":
            return self.errno == errno.EMFILE or bool(arguments[1] & os.O_CREAT)
        return name != "write" or arguments[0] > 2

    def go_off(self, arguments: tuple[Any, ...]) -> Any:
        """What happens instead of the call."""
        if hit := os.environ.get("CRASH_HIT"):
            handle = _real_open(hit, os.O_WRONLY | os.O_CREAT, 0o600)
            _real_write(handle, b"plain" if _is_plain_step() else b"")
            _real_close(handle)
        if self.mode.startswith(("torn", "short")):
            written = _real_write(arguments[0], bytes(arguments[1])[: (len(arguments[1]) + 1) // 2])
            if self.mode.startswith("short"):
                return written
        if self.errno:
            raise OSError(self.errno, os.strerror(self.errno))
        os.kill(os.getpid(), signal.SIGKILL)
        return None


def _is_plain_step() -> bool:
    """Whether the fast path of plain steps makes the call."""
    frame = sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        if frame.f_code.co_name == "append_line":
            return True
    return False


bomb = Bomb()


def _wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        if bomb.counts(name, arguments) and bomb.reached(name):
            return bomb.go_off(arguments)
        return real(*arguments, **options)

    return call


class Connection(sqlite3.Connection):
    """A store whose every statement may be the last thing that happens."""

    execute = _wrapped(STATEMENT, sqlite3.Connection.execute)  # type: ignore[assignment]


def plant() -> None:
    """Put the bomb around the calls, before anybody takes a reference to one."""
    for name in (*NAMES, "open"):
        setattr(os, name, _wrapped(name, getattr(os, name)))
    fcntl.flock = _wrapped("flock", fcntl.flock)  # type: ignore[assignment]
    sqlite3.connect = functools.partial(sqlite3.connect, factory=Connection)  # type: ignore[assignment]
    if package := os.environ.get("CRASH_PACKAGE"):
        sys.path.insert(0, package)
    sys.argv[0] = "cogcli"


def command() -> int:
    """Be the command."""
    from cogcli.__main__ import main

    bomb.arm()
    return main() or 0


# -- many commands out of one process ----------------------------------------------------------------------------------


def serve() -> int:
    """A process for every request; the answer is its id, then how it ended. At the end of the input it is over."""
    _import_all()
    gc.freeze()
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w", buffering=1)
    for line in requests:
        request = json.loads(line)
        child = os.fork()
        if not child:
            _end(_be(request))
        answers.write(f"{child}\n")
        status = os.waitpid(child, 0)[1]
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
    return 0


ROOMS = ("base", "policy", "protocols.live", "run", "specs", "state")
NOT_NEEDED = ("cogcli.base.schema.", "cogcli.base.api_documents.")
COMMANDS = ("run", "resume", "replay", "rerun")
PROTOCOLS = ("pythoncall", "openapi")


def _import_all() -> None:
    """The modules that a run needs, so that children need not; each library more would make each fork dearer. What the
    runs of a test need besides is named by `CRASH_IMPORTS`."""
    import cogcli

    names = [f"cogcli.cli.commands.{name}" for name in COMMANDS]
    names += [
        f"cogcli.protocols.{name}.{part}" for name in PROTOCOLS for part in ("invoker", "checks")
    ]
    rooms = tuple(f"cogcli.{room}." for room in ROOMS)
    names += [
        each.name
        for each in pkgutil.walk_packages(cogcli.__path__, "cogcli.")
        if each.name.startswith(rooms) and not each.name.startswith(NOT_NEEDED)
    ]
    names += ["cogcli.cli.main", "cogcli.cli.typer_app", "cogcli.app.settings.trust"]
    names += ["cogcli.protocols.service_contract", "sqlite3"]
    for name in names:
        importlib.import_module(name)
    assert "mcp" not in sys.modules, "no run needs it"
    for name in os.environ.get("CRASH_IMPORTS", "").split():
        importlib.import_module(name)


def _be(request: dict[str, Any]) -> int:
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        flags = os.O_RDONLY if not number else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        handle = os.open(request[name], flags, 0o600)
        os.dup2(handle, number)
        os.close(handle)
    bomb.names.clear()
    sys.argv[1:] = request["arguments"]
    return command()


def _end(code: int) -> NoReturn:
    """What the interpreter does at its end, but for taking itself apart."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    plant()
    sys.exit(serve() if sys.argv[1:] == ["--serve"] else command())
