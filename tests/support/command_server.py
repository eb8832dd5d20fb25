"""Commands as processes of their own, forked out of one that has imported the package already.

A start of the installed command costs a quarter of a second, nearly all of it imports. A process made here is the same
from there on: it has its own arguments, variables, directory and standard streams, it may be killed, start threads and
children, and end as it likes. What an interpreter reads at its start it cannot have; `can_serve` says so.

One server belongs to a process of the tests. A request comes over a socket, with the three streams. A keeper waits for
the command and sends how it ended.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

COGCLI: Final = str(Path(sys.executable).parent / "cogcli")
SECONDS: Final = 180.0
_LONGEST_REQUEST: Final = 1 << 20
_NOT_IMPORTED: Final = ("cogcli.official", "cogcli.protocols.mcp", "cogcli.__main__")
"""What few commands need, and what would make each fork dearer."""
_OF_THE_START: Final = ("PYTHON", "LD_", "LC_", "MALLOC_")
_SAME_FOR_BOTH: Final = ("PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE")


class CommandServer:
    """The tests' end of a server, which starts with the first command."""

    def __init__(self) -> None:
        self._requests: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()

    def can_serve(self, env: Mapping[str, str]) -> bool:
        """Whether a command with these variables is the same as one that an interpreter was started for."""
        read_at_start = [name for name in env if name.startswith(_OF_THE_START)]
        differing = [name for name in read_at_start if name not in _SAME_FOR_BOTH]
        return hasattr(os, "memfd_create") and not differing

    def run(
        self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], data: bytes
    ) -> tuple[int, bytes, bytes]:
        """Return the exit code of a command, minus the number of a signal that ended it, and its two streams.

        Raises TimeoutExpired after `SECONDS`, when the command has been killed.
        """
        request = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(_file_in_memory(given)) for given in (data, b"", b"")]
            ours, theirs = socket.socketpair()
            with ours:
                with theirs:
                    self._send([theirs.fileno(), *streams])
                ours.sendall(json.dumps(request).encode() + b"\n")
                code = _receive_end(ours, arguments)
            return code, *(_content_of(stream) for stream in streams[1:])

    def _send(self, descriptors: list[int]) -> None:
        with self._starting:
            if self._requests is None:
                self._start()
        assert self._requests is not None
        socket.send_fds(self._requests, [b"."], descriptors)

    def _start(self) -> None:
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd="/",
                env={**os.environ, "LANG": "C.UTF-8"},
            )

    def close(self) -> None:
        """End the server; it takes no further request."""
        if self._requests is not None and self._process is not None:
            self._requests.close()
            self._process.wait()
            self._requests = None


def _receive_end(ours: socket.socket, arguments: Sequence[str]) -> int:
    """Return how the command ended. Its keeper sends the number of its process, then its exit code."""
    ours.settimeout(SECONDS)
    answers = ours.makefile("r", encoding="ascii")
    pid = int(answers.readline())
    try:
        return int(answers.readline())
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        raise subprocess.TimeoutExpired([COGCLI, *arguments], SECONDS) from None


@contextlib.contextmanager
def _file_in_memory(data: bytes) -> Iterator[int]:
    handle = os.memfd_create("cogcli", os.MFD_CLOEXEC)
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(handle, 0, os.SEEK_SET)
        yield handle
    finally:
        os.close(handle)


def _content_of(handle: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    with open(handle, "rb", closefd=False) as file:
        return file.read()


# -- the server -------------------------------------------------------------------------------------------------------


def _serve(requests: socket.socket) -> None:
    path = [entry for entry in sys.path if entry != str(Path(__file__).parent)]
    _import_package()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    while True:
        _, descriptors, _, _ = socket.recv_fds(requests, 1, 4)
        if not descriptors:
            return
        if not os.fork():
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _keep(socket.socket(fileno=descriptors[0]), descriptors[1:], path)
        for descriptor in descriptors:
            os.close(descriptor)


def _import_package() -> None:
    import importlib
    import pkgutil

    import cogcli

    for module in pkgutil.walk_packages(cogcli.__path__, "cogcli."):
        if not module.name.startswith(_NOT_IMPORTED):
            importlib.import_module(module.name)


def _keep(client: socket.socket, streams: list[int], path: list[str]) -> NoReturn:
    """Start the command of one request, wait for it and say how it ended."""
    with client.makefile("rb") as lines:
        request = json.loads(lines.readline(_LONGEST_REQUEST))
    child = os.fork()
    if not child:
        client.close()
        _become(request, streams, path)
    for stream in streams:
        os.close(stream)
    client.sendall(f"{child}\n".encode())
    status = os.waitpid(child, 0)[1]
    client.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(request: dict[str, Any], streams: list[int], path: list[str]) -> NoReturn:
    """Be the installed command."""
    import cogcli.__main__ as command

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.argv = [COGCLI, *request["arguments"]]
    sys.path[:] = path
    try:
        sys.exit(command.start())
    except SystemExit as ended:
        _end(ended.code)


def _end(code: object) -> NoReturn:
    """Do what an interpreter does at its end, for a command that left threads or a stream that could not be written."""
    import atexit

    status = code if isinstance(code, int) else 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = 120
    os._exit(status & 0xFF)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
