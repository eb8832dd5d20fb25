"""Puts this process behind the wall (docs/reference/service.md#isolation). This cannot be undone.

The wall is a seccomp filter together with Landlock, or with name spaces, or with both if the
machine has both.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.wall import landlock, name_spaces, system_calls

NO_WALL: Final = 77
"""The exit code of a process that could not be put behind a wall."""
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER, _DEATH_SIGNAL, _DROP_BOUND = 38, 22, 2, 1, 24
_JOIN_SESSION_KEYRING: Final = 1
_ENTERED: Final = "entered"
_SET_CAPABILITIES: Final = {"x86_64": 126, "aarch64": 91}
_CAPABILITIES_VERSION: Final = 0x20080522
_MAX_CAPABILITIES: Final = 64
_DEVICES: Final = ("/dev/zero", "/dev/urandom", "/dev/random")
_SYSTEM: Final = (
    "/lib", "/lib64", "/lib32", "/usr/lib", "/usr/lib64", "/usr/lib32", "/etc/ld.so.cache", "/etc/localtime",
    "/usr/share/zoneinfo", "/etc/mime.types", "/etc/ssl/openssl.cnf",
)  # fmt: skip
"""System files that programs and libraries read. None of them belongs to a user."""


class SandboxUnavailable(Exception):
    """Raised on a machine without a sandbox. The text names the missing part."""


class Wall(NamedTuple):
    """The parts of the wall.

    `landlock` is the version of Landlock, 0 without it.
    """

    landlock: int
    name_spaces: bool

    @property
    def text(self) -> str:
        """Return the parts as text."""
        parts = ["seccomp"]
        parts += [f"Landlock {self.landlock}"] if self.landlock else []
        parts += ["name spaces"] if self.name_spaces else []
        return ", ".join(parts)

    @property
    def absent(self) -> str:
        """Return the part that this machine lacks; empty if it has all parts."""
        return (
            ""
            if self.landlock and self.name_spaces
            else "name spaces"
            if self.landlock
            else "Landlock"
        )


def enter(
    read: Sequence[str] = (),
    *,
    listed: Sequence[str] = (),
    scratch: str = "",
    programs: bool = False,
    keep: Sequence[int] = (0, 1, 2),
) -> Wall:
    """Put this process behind the wall and return the parts of the wall.

    From then on, the process can read the files and folders in `read` and the files that Python
    needs. It can write only in the folder `scratch`. It has no variables, network, keys or new
    processes, and only the descriptors `keep`. The names in the folders `listed` are visible, but
    their files cannot be read.

    With name spaces the caller continues in a child; this process waits for the child and ends the
    same way. `programs`: whether the process may replace itself by a program. Raise SandboxUnavailable; by
    then, the process may have lost rights.
    """
    machine = _find_machine()
    _close_others(keep)
    os.environ.clear()
    _join_new_keyring()
    version = landlock.kernel_version()
    visible = [*_SYSTEM, *_DEVICES, *map(os.path.abspath, read)]
    has_spaces, missing = _enter_name_spaces(visible, scratch)
    os.chdir(scratch or "/")
    _drop_privileges()
    if version:
        try:
            write = ["/dev/null", *([scratch] if scratch else [])]
            landlock.restrict(version, visible, write, listed, programs=programs)
        except OSError as error:
            version, missing = 0, f"{missing}; Landlock: {error.strerror}"
    else:
        missing += "; Landlock: the kernel does not have it, or refuses it"
    if not version and not has_spaces:
        raise SandboxUnavailable(missing)
    _set_filter(machine, signals=landlock.keeps_signals(version), programs=programs)
    return Wall(version, has_spaces)


def die_with_parent() -> None:
    """Let the kernel end this process when the thread that started it ends."""
    _load_libc().prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def package_folder() -> str:
    """Return the folder of cogcli's own code."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def python_files() -> list[str]:
    """Return the files and folders that Python imports from: its library, installed packages and this package.

    A folder of the import path is excluded if it is the working directory, or the user's home or above it. A checkout
    of cogcli is excluded, too. The installation folder of cogcli is included, because it contains the other packages.
    """
    import sysconfig

    package = package_folder()
    closed = {os.path.realpath(os.path.expanduser("~")), os.getcwd()}
    if not os.path.isdir(os.path.join(package, "registry")):
        closed.add(os.path.dirname(package))
    paths = [package, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), *sys.path]
    library = sysconfig.get_config_var("LIBDIR")
    shared = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    if library and os.path.isfile(os.path.join(library, shared)):
        paths.append(library)
    kept = [path for path in paths if os.path.isabs(path) and os.path.exists(path)]
    return sorted({path for path in kept if not any(_is_below(path, place) for place in closed)})


def _is_below(folder: str, path: str) -> bool:
    """Return whether a path is this folder, or below it."""
    real = os.path.realpath(folder)
    return path == real or path.startswith(real.rstrip(os.sep) + os.sep)


def _find_machine() -> system_calls.Machine:
    """Return the kind of processor. Raise SandboxUnavailable if the wall does not support it."""
    machine = system_calls.MACHINES.get(platform.machine()) if sys.platform == "linux" else None
    if machine is None or struct.calcsize("P") != 8:
        raise SandboxUnavailable(
            f"{sys.platform} on {platform.machine() or 'an unknown machine'} has no wall that is used"
        )
    return machine


def _close_others(keep: Sequence[int]) -> None:
    lowest = 0
    for each in sorted(set(keep)):
        if lowest < each:  # an empty range would be taken for one without end
            os.closerange(lowest, each)
        lowest = each + 1
    maximum = os.sysconf("SC_OPEN_MAX")
    os.closerange(lowest, maximum if 0 < maximum <= 1 << 20 else 1 << 20)


def _join_new_keyring() -> None:
    """Replace the session's keyring with a new one, if the kernel has keyrings."""
    number = system_calls.KEYCTL[platform.machine()]
    _load_libc().syscall(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None)


def _enter_name_spaces(visible: Sequence[str], scratch: str) -> tuple[bool, str]:
    """Return whether this process is now in new name spaces, and if not, the reason.

    Two children are forked. The first child leaves the name spaces of the system. The second child is the first process
    in the new name spaces and continues. If either fails, the caller continues in the system's name spaces.
    """
    read, write = os.pipe()
    outer = os.fork()
    if outer:
        os.close(write)
        answer = _read_to_end(read)
        if answer == _ENTERED:
            _wait_for(outer)
        os.waitpid(outer, 0)
        return False, f"name spaces: {answer or 'the system ended the process'}"
    try:
        os.close(read)
        die_with_parent()
        name_spaces.leave()
        if inside := os.fork():
            os.close(write)
            _wait_for(inside)
        die_with_parent()
        name_spaces.build_root([*visible, "/dev/null"], scratch)
    except OSError as error:
        os.write(write, str(error.strerror or error).encode())
        os._exit(NO_WALL)
    os.write(write, _ENTERED.encode())
    os.close(write)
    return True, ""


def _read_to_end(descriptor: int) -> str:
    parts = []
    while part := os.read(descriptor, 4096):
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts).decode(errors="replace")


def _wait_for(child: int) -> NoReturn:
    """Wait for a child and end this process with the child's exit code or signal."""
    os.closerange(0, 4096)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (
            signal.SIGKILL,
            signal.SIGSTOP,
        ) else None
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def _drop_privileges() -> None:
    """Give up all capabilities permanently, even those of root."""
    libc = _load_libc()
    for number in range(_MAX_CAPABILITIES):
        libc.prctl(_DROP_BOUND, number, 0, 0, 0)
    head = struct.pack("=Ii", _CAPABILITIES_VERSION, 0)
    libc.syscall(ctypes.c_long(_SET_CAPABILITIES[platform.machine()]), head, bytes(24))
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise SandboxUnavailable("the kernel does not let a process give up privileges")


def _set_filter(machine: system_calls.Machine, *, signals: bool, programs: bool) -> None:
    code = system_calls.filter_program(machine, signals=signals, programs=programs)
    lines = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(lines))
    if _load_libc().prctl(_SECCOMP, _FILTER, program, 0, 0):
        number = ctypes.get_errno()
        raise SandboxUnavailable(f"seccomp: {os.strerror(number)}")


def _load_libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
