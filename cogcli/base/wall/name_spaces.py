"""Name spaces: the process gets its own file system, network and process ids, if the system permits
that (docs/reference/service.md#isolation).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import Final

_NEW: Final = (
    0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
)
"""Mounts, control groups, host name, interprocess communication, users, processes, network."""
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT = 1, 2, 4, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_KEPT: Final = _MS_NOSUID | _MS_NODEV | 8 | 1024 | 2048
"""The flags that a remount must repeat; the last three are noexec, noatime and nodiratime."""
_MNT_DETACH: Final = 2
_INSIDE: Final = 1000
_SIZE: Final = "size=16m,nr_inodes=4096,mode=755"
_ROOT: Final = "/proc"
"""An existing folder without any file that a call may use. The new root is assembled there."""


def leave() -> None:
    """Leave the name spaces of the system. The next child is the first process in the new ones.

    Raise OSError.
    """
    user, group = os.geteuid(), os.getegid()
    _raise_on_error(_load_libc().unshare(_NEW))
    _write_file("/proc/self/setgroups", b"deny")
    _write_file("/proc/self/uid_map", f"{_INSIDE} {user} 1".encode())
    _write_file("/proc/self/gid_map", f"{_INSIDE} {group} 1".encode())


def build_root(read: Iterable[str], scratch: str) -> None:
    """Create a root in memory with these files and folders, read-only, and an empty scratch folder
    of 16 MiB.

    Raise OSError.
    """
    _mount_at("none", "/", None, _MS_REC | _MS_PRIVATE)
    _mount_at("tmpfs", _ROOT, "tmpfs", _MS_NOSUID | _MS_NODEV, _SIZE)
    for path in sorted(set(read), key=len):
        _bind_path(path)
    if scratch:
        os.makedirs(_ROOT + scratch, exist_ok=True)
        _mount_at("tmpfs", _ROOT + scratch, "tmpfs", _MS_NOSUID | _MS_NODEV, _SIZE)
    os.mkdir(f"{_ROOT}/.old")
    _raise_on_error(_load_libc().pivot_root(_ROOT.encode(), f"{_ROOT}/.old".encode()))
    os.chdir(scratch or "/")
    _raise_on_error(_load_libc().umount2(b"/.old", _MNT_DETACH))
    os.rmdir("/.old")
    _mount_at("none", "/", None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def _bind_path(path: str) -> None:
    """Bind one path into the new root. For a link, bind its target as well."""
    inside = _ROOT + path
    if not os.path.exists(path) or os.path.lexists(inside):
        return
    real = os.path.realpath(path)
    if os.path.islink(path):
        os.makedirs(os.path.dirname(inside), exist_ok=True)
        os.symlink(real, inside)
        _bind_path(real)
        return
    if os.path.isdir(path):
        os.makedirs(inside)
    else:
        os.makedirs(os.path.dirname(inside), exist_ok=True)
        _write_file(inside, b"")
    _mount_at(path, inside, None, _MS_BIND | _MS_REC)
    is_device = real.startswith("/dev/")
    if not is_device:
        kept = os.statvfs(path).f_flag & _KEPT
        _mount_at("none", inside, None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | kept)


def _load_libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _mount_at(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    names = (os.fsencode(source), os.fsencode(target), kind.encode() if kind else None)
    _raise_on_error(
        _load_libc().mount(*names, ctypes.c_ulong(flags), data.encode() or None), target
    )


def _raise_on_error(result: int, path: str = "") -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path or None)


def _write_file(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
