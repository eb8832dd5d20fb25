"""The program that puts a piece of Python behind walls and runs it; started by `snippet`, never imported.

Arguments: its seconds, the Python to run, and the files and directories it needs. Standard input is the code. Ends with
the exit code of the piece, by SIGALRM where its time is over, or with 77 and one line on standard error where a wall
cannot be built.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
from functools import cache
from typing import NoReturn

_NO_WALLS = 77
_NEW = 0x00020000 | 0x08000000 | 0x04000000 | 0x10000000 | 0x20000000 | 0x40000000
"""Name spaces of their own: mounts, interprocess communication, host name, users, processes, network."""
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT = 1, 2, 4, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_KEPT = _MS_NOSUID | _MS_NODEV | 8 | 1024 | 2048
"""What a mount that is not ours must keep; the numbers are those of not executing and of times of access."""
_MNT_DETACH = 2
_DEATH_SIGNAL, _NO_NEW_RIGHTS = 1, 38
_NOBODY, _INSIDE = 65534, 1000
_LIMITS = {"AS": 512 * 1024 * 1024, "CPU": 8, "FSIZE": 256 * 1024, "NOFILE": 64, "NPROC": 32, "CORE": 0}


def main() -> None:
    """Build the walls, run the piece, end with its exit code."""
    seconds, python, needed = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    code = sys.stdin.buffer.read()
    try:
        _enter_users()
        if inside := os.fork():
            _wait(inside, seconds)
        _die_with_parent()
        _build_root(needed)
        _write("/snippet.py", code)
        _shut()
        os.execve(python, [python, "-I", "/snippet.py"], {"PATH": "/nowhere", "LANG": "C.UTF-8"})  # noqa: S606
    except OSError as error:
        sys.stderr.write(
            f"no wall: {error.strerror or error} ({error.filename or 'a name space of its own'})\n"
        )
        sys.stderr.flush()
        os._exit(_NO_WALLS)


def _wait(inside: int, seconds: int) -> NoReturn:
    """End with the exit code of the first process inside; by SIGALRM where it took longer. The kernel has ended all
    others by the time that it is gone."""
    late = []

    def end(*_: object) -> None:
        late.append(inside)
        os.kill(inside, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    code = os.waitstatus_to_exitcode(os.waitpid(inside, 0)[1])
    if late:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGALRM)
    os._exit(code if code >= 0 else 128 - code)


def _enter_users() -> None:
    """Leave the name spaces of the system. A helper outside says who we are inside; root also gets somebody to become,
    as limits do not bind root."""
    ready = os.pipe()
    user, group, me = os.geteuid(), os.getegid(), os.getpid()
    helper = os.fork()
    if not helper:
        os.close(ready[1])
        os.read(ready[0], 1)
        try:
            _write(f"/proc/{me}/setgroups", b"deny")
            _write(f"/proc/{me}/uid_map", _as_seen(user))
            _write(f"/proc/{me}/gid_map", _as_seen(group))
            os._exit(0)
        except OSError:
            os._exit(1)
    _check(_libc().unshare(_NEW))
    os.write(ready[1], b"x")
    _, status = os.waitpid(helper, 0)
    for end in ready:
        os.close(end)
    if status:
        raise OSError(errno.EPERM, "who runs it cannot be hidden")


def _as_seen(number: int) -> bytes:
    return f"{_INSIDE} {number} 1".encode() if number else f"0 0 1\n{_INSIDE} {_NOBODY} 1".encode()


def _build_root(needed: list[str]) -> None:
    """A file system in memory that has what Python needs, readable only, and one empty directory."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    root = "/tmp"  # noqa: S108
    _mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=16m,nr_inodes=4096,mode=755")
    for path in needed:
        _show(path, root)
    for path in ("/dev/null", "/dev/zero", "/dev/urandom"):
        _show(path, root, writable=True)
    os.mkdir(f"{root}/work")
    os.chown(f"{root}/work", _INSIDE, _INSIDE)
    os.mkdir(f"{root}/old")
    _check(_libc().pivot_root(root.encode(), f"{root}/old".encode()))
    os.chdir("/work")
    _check(_libc().umount2(b"/old", _MNT_DETACH))
    os.rmdir("/old")


def _show(path: str, root: str, *, writable: bool = False) -> None:
    if os.path.islink(path):
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        if not os.path.lexists(root + path):
            os.symlink(os.readlink(path), root + path)
        return
    if not os.path.exists(path) or os.path.exists(root + path):
        return
    if os.path.isdir(path):
        os.makedirs(root + path)
    else:
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        _write(root + path, b"")
    _mount(path, root + path, None, _MS_BIND | _MS_REC)
    if not writable:
        kept = os.statvfs(path).f_flag & _KEPT
        _mount("none", root + path, None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | kept)


def _shut() -> None:
    """No further rights, bounded time, memory, output and processes."""
    import resource

    os.setresgid(_INSIDE, _INSIDE, _INSIDE)
    os.setresuid(_INSIDE, _INSIDE, _INSIDE)
    _check(_libc().prctl(_NO_NEW_RIGHTS, 1, 0, 0, 0))
    _die_with_parent()  # becoming another user forgets it
    for name, most in _LIMITS.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    empty = os.open("/dev/null", os.O_RDONLY)
    os.dup2(empty, 0)
    os.closerange(3, 64)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _die_with_parent() -> None:
    _check(_libc().prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0))


def _mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    given = (source.encode(), target.encode(), kind.encode() if kind else None)
    _check(_libc().mount(*given, ctypes.c_ulong(flags), data.encode() or None), target)


def _check(result: int, path: str = "") -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path or None)


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


if __name__ == "__main__":
    main()
