"""A process in which what only POSIX systems have is gone. `python without_posix.py COGCLI_ARGUMENTS...`, `--each` for
commands from stdin, or `--import-all`. Python's own modules keep what they took at their import; `msvcrt` is a stand-in
over `flock`.

It shows that nothing of ours needs these names. What Windows itself does is shown there (test_on_windows.py).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import fcntl
import importlib
import logging.handlers
import multiprocessing.connection
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import types
from typing import Any

PRELOADED = (
    asyncio,
    concurrent.futures,
    logging.handlers,
    multiprocessing.connection,
    socket,
    subprocess,
    tempfile,
)
MODULES = ("fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "syslog")
OS_NAMES = """O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK O_NOCTTY O_SYNC O_DSYNC O_ASYNC O_PATH O_TMPFILE
geteuid getuid getegid getgid getpgid getpgrp getsid getgroups killpg setsid setpgid setuid setgid fork forkpty fchmod
fchown chown lchown uname pread pwrite preadv pwritev readv writev posix_fallocate posix_fadvise posix_spawn fdatasync
sysconf set_blocking get_blocking mkfifo mknod openpty getloadavg register_at_fork WNOHANG WIFSIGNALED WTERMSIG
WEXITSTATUS WIFEXITED statvfs sched_getaffinity nice sync wait wait3 wait4 fchdir scandir_fd chroot""".split()
SIGNALS = "SIGHUP SIGQUIT SIGKILL SIGCHLD SIGUSR1 SIGUSR2 SIGPIPE SIGALRM SIGTSTP SIGWINCH pthread_sigmask".split()


def main(arguments: list[str]) -> int:
    """Take POSIX away, then run the command; the result is its exit code."""
    if arguments == ["--import-all"]:
        importlib.import_module("mcp.server.stdio")  # it asks for the platform, and takes `fcntl`
    _remove_posix()
    if arguments == ["--import-all"]:
        return _import_all()
    from cogcli.__main__ import main as run

    for line in sys.stdin.read().splitlines() if arguments == ["--each"] else []:
        sys.argv = ["cogcli", *line.split()]
        told = os.dup(1)  # a run closes its own copy, and leads descriptor 1 away
        code = run()
        os.dup2(told, 1)
        os.close(told)
        print(f"{line} -> {code}", file=sys.stderr, flush=True)
    if arguments == ["--each"]:
        return 0
    sys.argv = ["cogcli", *arguments]
    return run()


def _remove_posix() -> None:
    sys.modules["msvcrt"] = _msvcrt()
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # so `import` raises ImportError
    for names, module in (
        (OS_NAMES, os),
        (SIGNALS, signal),
        (("poll", "POLLIN", "POLLOUT"), select),
    ):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    for of in (os.supports_dir_fd, os.supports_fd):
        of.clear()
    for name in (
        "open",
        "stat",
        "mkdir",
        "unlink",
        "rmdir",
        "rename",
        "listdir",
        "scandir",
        "fsync",
    ):
        setattr(os, name, _as_on_windows(name, getattr(os, name)))
    sys.platform = (
        "win32"  # for who asks at its import: other libraries would look for what only Windows has
    )
    importlib.import_module("cogcli.base.file_lock")
    sys.platform = "linux"


def _as_on_windows(name: str, function: Any) -> Any:
    """No `dir_fd`, no descriptor of a directory, no renaming onto what is there."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if any(kwargs.pop(key, None) is not None for key in ("dir_fd", "src_dir_fd", "dst_dir_fd")):
            raise NotImplementedError(f"{name}: dir_fd unavailable on this platform")
        if name in ("listdir", "scandir") and args and isinstance(args[0], int):
            raise TypeError(f"{name}: path should be string, bytes or os.PathLike, not int")
        if name == "open" and os.path.isdir(args[0]):
            raise PermissionError(13, "Permission denied", args[0])
        if name == "rename" and os.path.isfile(args[1]):
            raise FileExistsError(17, "File exists", args[1])
        return function(*args, **kwargs)

    return call


def _msvcrt() -> types.ModuleType:
    """`locking` as `flock`: one holder at a time, whichever process or descriptor."""
    module: Any = types.ModuleType("msvcrt")
    module.LK_LOCK, module.LK_NBLCK, module.LK_UNLCK = 1, 2, 0
    how = {1: fcntl.LOCK_EX, 2: fcntl.LOCK_EX | fcntl.LOCK_NB, 0: fcntl.LOCK_UN}
    flock = fcntl.flock

    def locking(fd: int, mode: int, size: int) -> None:
        try:
            flock(fd, how[mode])
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error

    module.locking = locking
    return module


def _import_all() -> int:
    import cogcli

    failed = []
    for found in pkgutil.walk_packages(cogcli.__path__, "cogcli."):
        if found.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(found.name)
        except Exception as error:
            failed.append(f"{found.name}: {type(error).__name__}: {error}")
    print("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
