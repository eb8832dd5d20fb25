"""The worker of isolated pythoncall services: run as `python -I worker.py CHANNEL LEASH PLACE...`, never imported.

1. Two processes. The guard, our child, only waits for the end of the leash: the run ended, gave the worker up, or died
   in whatever way. Then it kills the worker's process group, reaps the worker and ends with its status. It shares no
   interpreter lock with what is called, so nothing a function does keeps it from that.
2. The worker has a session of its own, dies with the guard, and is limited in memory, files and core size.
3. It reads orders from the channel one by one, imports what they name, calls, and answers. It ends with the channel.
4. The places are where we ourselves import from, so that both find the same; the working directory is not among them.
5. What is printed goes to descriptors that somebody else reads; the channel is none of them.
"""

from __future__ import annotations

import contextlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cogcli.protocols.pythoncall.function_call import PythonFunction

_MEMORY = 2 * 1024**3
_FILES = 256
_KILL = 9
_PR_SET_PDEATHSIG = 1


def main(channel: int, leash: int, places: list[str]) -> None:
    """Be the guard; its child is the worker."""
    guard = os.getpid()
    worker = os.fork()
    if worker:
        _guard(worker, channel, leash)
    os.close(leash)
    _cut_loose(guard)
    _limit()
    sys.path[:] = [*places, *(place for place in sys.path if place not in places)]
    _serve(channel)


def _guard(worker: int, channel: int, leash: int) -> None:
    """Hold no stream of the worker, so that others see its end; end it when the leash ends."""
    os.close(channel)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    while os.read(leash, 1):
        pass
    for kill in (os.killpg, os.kill):  # the group may not be there yet
        with contextlib.suppress(ProcessLookupError):
            kill(worker, _KILL)
    _, status = os.waitpid(worker, 0)
    os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def _cut_loose(guard: int) -> None:
    """A session of its own; the end of the guard is the end of the worker."""
    os.setsid()
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _KILL, 0, 0, 0)
    if os.getppid() != guard:
        os._exit(1)


def _limit() -> None:
    import resource

    for what, most in (
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_NOFILE, _FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(what, (most, most))
        except (ValueError, OSError):
            if sys.platform == "linux":  # elsewhere a limit may be below what a process has already
                raise


def _serve(channel: int) -> None:
    import json

    buffer = bytearray()
    operations: dict[tuple[str, ...], PythonFunction] = {}
    while True:
        order, payload = json.loads(_received(channel, buffer)), json.loads(_received(channel, buffer))
        number = order["n"]
        try:
            try:
                data = _called(channel, order, payload, operations)
            finally:
                _flush()
        except BaseException as error:
            _send(channel, json.dumps({"n": number, "error": _told(error)}).encode())
        else:
            _send(channel, json.dumps({"n": number, "reply": True}).encode(), data)


def _flush() -> None:
    """What was printed belongs to this call. A stream that was closed or replaced has nothing to say."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _called(
    channel: int,
    order: dict[str, Any],
    payload: dict[str, Any],
    operations: dict[tuple[str, ...], PythonFunction],
) -> bytes:
    import json
    import time

    from cogcli.core.errors import ResponseMappingError
    from cogcli.protocols.pythoncall import function_call
    from cogcli.protocols.pythoncall.module_access import Code
    from cogcli.protocols.pythoncall.readable_files import Reads

    deadline = time.monotonic() + order["seconds"]
    code = Code(order["service"], order["module"], order["root"], trusted=True)
    key = (*code[:3], order["operation"])
    operation = operations.get(key)
    if operation is None:
        operation = operations[key] = function_call.resolve_function(code, order["operation"])
    function_call.require_arguments(operation, payload)
    _send(channel, json.dumps({"n": order["n"], "entered": True}).encode())
    reads = Reads(order["reads"][0], frozenset(order["reads"][1])) if order["reads"] else None
    body = function_call.call_function(operation, payload, deadline, reads)
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    problem = function_call.size_problem(operation.name, "reply", len(data), order["cap"])
    if problem:
        raise ResponseMappingError("response.size", problem, left=True)
    return data


def _told(error: BaseException) -> dict[str, Any]:
    """An error as a frame's member; anything but our own is one of the function's, come out late."""
    from cogcli.core.errors import RuntimeErrorBase
    from cogcli.protocols.pythoncall.function_call import words

    if isinstance(error, RuntimeErrorBase):
        return {
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "left": error.left is not False,
        }
    return {"code": "call.server-error", "message": words(error), "hint": "", "left": True}


def _received(channel: int, buffer: bytearray) -> bytes:
    """The next frame. Ends the process where the channel ends."""
    from cogcli.protocols.pythoncall.pipe_frames import take_frame

    while (frame := take_frame(buffer, sys.maxsize)) is None:
        data = os.read(channel, 1 << 20)
        if not data:
            os._exit(0)
        buffer += data
    return frame


def _send(channel: int, *frames: bytes) -> None:
    from cogcli.protocols.pythoncall.pipe_frames import to_frame

    data = memoryview(b"".join(to_frame(frame) for frame in frames))
    while data:
        data = data[os.write(channel, data) :]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
