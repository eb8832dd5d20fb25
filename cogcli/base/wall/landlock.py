"""Landlock: the kernel lets this process open only the named files
(docs/reference/service.md#isolation).
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from typing import Final

from cogcli.base.wall.system_calls import LANDLOCK

_CREATE, _ADD, _RESTRICT = LANDLOCK
_VERSION_OF_KERNEL: Final = 1
_PATH_BENEATH: Final = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_FILE, _MAKE_REG = 1, 2, 4, 8, 32, 256
_TRUNCATE: Final = 1 << 14
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_FILE_RIGHTS: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All file rights that a version knows. Rights of these that are not granted are refused."""
_NETWORK_SINCE, _SCOPES_SINCE = 4, 6
_BIND_AND_CONNECT: Final = 3
_SOCKETS_AND_SIGNALS: Final = 3


def kernel_version() -> int:
    """Return the Landlock version of this kernel; 0 if it has none."""
    return max(0, _system_call(_CREATE, None, 0, _VERSION_OF_KERNEL))


def keeps_signals(version: int) -> bool:
    """Return whether this version confines signals and abstract sockets."""
    return version >= _SCOPES_SINCE


def restrict(
    version: int,
    read: Iterable[str],
    write: Iterable[str],
    listed: Iterable[str],
    *,
    programs: bool,
) -> None:
    """Restrict this process to reading and writing these files and folders.

    It can read `read`, write in `write`, and see the names in `listed`. This cannot be undone.
    Raise OSError.
    """
    handled = max(rights for since, rights in _FILE_RIGHTS.items() if since <= version)
    network = _BIND_AND_CONNECT if version >= _NETWORK_SINCE else 0
    scopes = _SOCKETS_AND_SIGNALS if keeps_signals(version) else 0
    attributes = struct.pack("=QQQ", handled, network, scopes)
    size = 24 if scopes else 16 if network else 8
    rules = _raise_on_error(_system_call(_CREATE, attributes, size, 0))
    try:
        granted = _READ_FILE | _READ_DIR | (_EXECUTE if programs else 0)
        for path in read:
            _grant_path(rules, path, granted & handled)
        for path in listed:
            _grant_path(rules, path, _READ_DIR & handled)
        for path in write:
            own = granted | _WRITE_FILE | _REMOVE_FILE | _MAKE_REG | _TRUNCATE
            _grant_path(rules, path, own & handled)
        _raise_on_error(_system_call(_RESTRICT, rules, 0))
    finally:
        os.close(rules)


def _grant_path(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a file that does not exist needs no right
    try:
        rights &= -1 if stat.S_ISDIR(os.fstat(place).st_mode) else _OF_FILES
        _raise_on_error(
            _system_call(_ADD, rules, _PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
        )
    finally:
        os.close(place)


def _system_call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    values = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return int(libc.syscall(ctypes.c_long(number), *values))


def _raise_on_error(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
