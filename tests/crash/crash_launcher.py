"""Runs the command with a bomb: at one of its calls that change something on disk it is killed, or the call fails.

Calls are counted over all threads. `CRASH_AT` is the number of the call, from 1; `CRASH_MODE` is `kill`, the name of
an errno, or one with `+`: from that call on. `CRASH_COUNT` is a file for the number of calls of a whole run.
`CRASH_PACKAGE` is a directory whose package is used instead of the installed one.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

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
_lock = threading.Lock()
_count = 0
_at = int(os.environ.get("CRASH_AT", "0"))
_mode = os.environ.get("CRASH_MODE", "kill")
_errno = 0 if _mode == "kill" else getattr(errno, _mode.rstrip("+"))


def _due(name: str) -> bool:
    """Count a call; whether it is the one."""
    global _count
    with _lock:
        _count += 1
        now = _count
    if not _at or now < _at or (now > _at and not _mode.endswith("+")):
        return False
    if _errno == errno.EMFILE:
        return name == "open"
    return _errno != errno.ENOSPC or name not in ("unlink", "ftruncate")


def _wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        if _is_own(name, arguments) and _due(name):
            if not _errno:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(_errno, os.strerror(_errno))
        return real(*arguments, **options)

    return call


def _is_own(name: str, arguments: tuple[Any, ...]) -> bool:
    """Opening counts where it makes a file, or where files are what is short; answers on the screen do not count."""
    if name == "open":
        return _errno == errno.EMFILE or bool(arguments[1] & os.O_CREAT)
    return name != "write" or arguments[0] > 2


def _remember() -> None:
    if path := os.environ.get("CRASH_COUNT"):
        with open(path, "w", encoding="ascii") as file:
            file.write(str(_count))


def main() -> None:
    """Be the command."""
    for name in (*NAMES, "open"):
        setattr(os, name, _wrapped(name, getattr(os, name)))
    fcntl.flock = _wrapped("flock", fcntl.flock)  # type: ignore[assignment]
    atexit.register(_remember)
    if package := os.environ.get("CRASH_PACKAGE"):
        sys.path.insert(0, package)
    sys.argv[0] = "cogcli"
    from cogcli.__main__ import main as command

    sys.exit(command())


if __name__ == "__main__":
    main()
