"""Attempts to get out from behind the wall, tried from inside: `attempts` returns what each of them got.

It uses the standard library alone, since it is run as a snippet, as a function in a sandbox and as a parser.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

NUMBERS = {
    "x86_64": {"ptrace": 101, "process_vm_readv": 310, "keyctl": 250, "request_key": 249, "shmget": 29, "shmat": 30,
               "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "unshare": 272, "truncate": 76},
    "aarch64": {"ptrace": 117, "process_vm_readv": 270, "keyctl": 219, "request_key": 218, "shmget": 194, "shmat": 196,
                "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "unshare": 97, "truncate": 45},
}[os.uname().machine]  # fmt: skip
NUMBERS |= {"io_uring_setup": 425, "pidfd_open": 434, "clone3": 435, "openat2": 437}


def attempts(target: dict[str, Any]) -> dict[str, str]:
    """By attempt `blocked: WHY`, or `got: WHAT`. The names of files begin with `at:`, so that the call names none."""
    target = {
        key: value.removeprefix("at:") if isinstance(value, str) else value
        for key, value in target.items()
    }
    return {name: _tried(attempt, target) for name, attempt in ATTEMPTS.items()}


def run(target: dict[str, Any]) -> dict[str, Any]:
    """The same as the answer of a function."""
    return {"found": attempts(target)}


def spend(what: str) -> dict[str, Any]:
    """Take more than a process may: memory, time or output."""
    if what == "memory":
        bytearray(64 * 1024**3)
    if what == "output":
        return {"found": {"text": "x" * 300_000_000}}
    while what == "time":
        pass
    return {"found": {}}


def _tried(attempt: Callable[[dict[str, Any]], object], target: dict[str, Any]) -> str:
    try:
        return f"got: {attempt(target)!r:.100}"
    except BaseException as error:
        return f"blocked: {type(error).__name__}: {error}"


def _call(name: str, *arguments: Any) -> int:
    """A system call. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    values = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = int(libc.syscall(ctypes.c_long(NUMBERS[name]), *values))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(200).decode(errors="replace")


def _list_home(target: dict[str, Any]) -> list[str]:
    """The names in the folder; with name spaces there is at most a copy that leads to Python's own files."""
    found = os.listdir(target["home"])
    return found if "victim" in found else _fail("the file is not in it")


def _write(path: str) -> str:
    with open(path, "w") as file:
        file.write("written by the attack")
    return path


def _environment(target: dict[str, Any]) -> str:
    found = [value for value in os.environ.values() if value == target["secret"]]
    return found[0] if found else _fail("no such variable")


def _fail(text: str) -> Any:
    raise OSError(text)


def _own_memory_of_environment(target: dict[str, Any]) -> str:
    text = _read_all("/proc/self/environ")
    return text if target["secret"] in text else _fail("not in it")


def _read_all(path: str) -> str:
    with open(path, "rb") as file:
        return file.read().decode(errors="replace")


def _parents_environment(target: dict[str, Any]) -> str:
    return _read_all(f"/proc/{target['pid']}/environ")


def _connect(target: dict[str, Any]) -> str:
    socket.create_connection(("127.0.0.1", target["port"]), 2).close()
    return "connected"


def _connect_abstract(target: dict[str, Any]) -> str:
    with socket.socket(socket.AF_UNIX) as own:
        own.connect("\0" + target["abstract"])
    return "connected"


def _redirect_pair(target: dict[str, Any]) -> str:
    left, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    left.sendto(b"x", "\0" + target["datagram"])
    return "sent"


def _read_key(target: dict[str, Any]) -> str:
    search, read, session = 10, 11, -3
    key = _call("keyctl", search, session, b"user", target["key"].encode(), 0)
    buffer = ctypes.create_string_buffer(100)
    _call("keyctl", read, key, buffer, 100)
    return buffer.value.decode()


def _request_key(target: dict[str, Any]) -> int:
    return _call("request_key", b"user", target["key"].encode(), None, 0)


def _fork(target: dict[str, Any]) -> str:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return "forked"


def _new_process_by_clone3(target: dict[str, Any]) -> str:
    child = _call("clone3", (ctypes.c_uint64 * 8)(0, 0, 0, 0, 17, 0, 0, 0), 64)
    if not child:
        os._exit(0)
    return "cloned"


def _attach(target: dict[str, Any]) -> int:
    attach = 16
    return _call("ptrace", attach, target["pid"], 0, 0)


def _read_parents_memory(target: dict[str, Any]) -> int:
    buffer = ctypes.create_string_buffer(8)
    here = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 8)
    there = (ctypes.c_uint64 * 2)(target["address"], 8)
    return _call("process_vm_readv", target["pid"], here, 1, there, 1, 0)


def _inherited_descriptors(target: dict[str, Any]) -> str:
    for number in range(512):
        try:
            if os.pread(number, 100, 0).startswith(target["marker"].encode()):
                return "read"
        except OSError:
            continue
    return _fail("none has it")


def _signal(target: dict[str, Any]) -> str:
    os.kill(target["pid"], 0)
    return "a signal can be sent"


def _shared_memory(target: dict[str, Any]) -> int:
    return _call("shmget", target["shm"], 0, 0)


def _empty_by_truncate(target: dict[str, Any]) -> int:
    return _call("truncate", target["victim"].encode(), 0)


def _empty_by_open(target: dict[str, Any]) -> str:
    os.close(os.open(target["victim"], os.O_RDONLY | os.O_TRUNC))
    return "emptied"


def _owned_signals(target: dict[str, Any]) -> str:
    import fcntl

    left, _ = socket.socketpair()
    fcntl.fcntl(left, 8, target["pid"])
    return "signals would go to the parent"


def _system_call(name: str, *arguments: Any) -> Callable[[dict[str, Any]], int]:
    return lambda target: _call(name, *arguments)


ATTEMPTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "/etc/passwd": lambda target: _read("/etc/passwd"),
    "a file of the user": lambda target: _read(target["victim"]),
    "the folder of the user": _list_home,
    "a hidden file of the root": lambda target: _read(target["hidden"]),
    "a variable": _environment,
    "own environ": _own_memory_of_environment,
    "environ of the parent": _parents_environment,
    "loopback": _connect,
    "abstract socket": _connect_abstract,
    "datagram pair": _redirect_pair,
    "session key": _read_key,
    "request of a key": _request_key,
    "fork": _fork,
    "clone3": _new_process_by_clone3,
    "program": lambda target: os.posix_spawn("/bin/true", ["true"], {}),
    "write in the home": lambda target: _write(target["home"] + "/new"),
    "overwrite": lambda target: _write(target["victim"]),
    "write in /tmp": lambda target: _write("/tmp/cogcli-attack"),
    "truncate": _empty_by_truncate,
    "open to empty": _empty_by_open,
    "chmod": lambda target: os.chmod(target["victim"], 0o777),
    "times": lambda target: os.utime(target["victim"], (1, 1)),
    "link": lambda target: os.link(target["victim"], target["home"] + "/linked"),
    "remove": lambda target: os.unlink(target["victim"]),
    "ptrace": _attach,
    "memory of the parent": _read_parents_memory,
    "descriptors": _inherited_descriptors,
    "signal": _signal,
    "owned signals": _owned_signals,
    "shared memory": _shared_memory,
    "limits of the parent": lambda target: _limits(target),
    "bpf": _system_call("bpf", 0, None, 0),
    "perf_event_open": _system_call("perf_event_open", bytes(128), 0, -1, -1, 0),
    "userfaultfd": _system_call("userfaultfd", 1),
    "io_uring_setup": lambda target: _call("io_uring_setup", 1, ctypes.create_string_buffer(256)),
    "pidfd_open": lambda target: _call("pidfd_open", target["pid"], 0),
    "unshare": _system_call("unshare", 0x10000000),
    "new session": lambda target: os.setsid(),
}


def _limits(target: dict[str, Any]) -> object:
    import resource

    return resource.prlimit(target["pid"], resource.RLIMIT_NOFILE)


if __name__ == "__main__":
    import json

    sys.stdout.write(json.dumps(attempts(json.loads(sys.argv[1]))))
