"""The worker of isolated pythoncall services: run as `python -I worker_main.py CHANNEL LEASH WALL IMPORT_PATH...`.

1. Two processes. The guard, a child of the run's process, only waits for the end of the leash: the run ended, ended the
   worker, or died. Then it kills the worker's process group, reaps the worker and ends with its status. It shares no
   interpreter lock with the called function, so no function can block it.
2. The worker has a session of its own, dies with the guard, and is limited in memory, files and core size.
3. It reads requests from the channel one by one, imports, calls, and answers. It ends with the channel.
4. The import paths are those of the run's process, so that both find the same modules, without the working directory.
5. WALL is empty, or JSON with the files and folders that a sandboxed worker reads, and those whose names it sees. It
   goes behind the wall before it imports anything of the service; without a wall it refuses its call.
6. Output goes to descriptors that the run's process reads; the channel is none of them.

A frame is four bytes of length, then that many bytes of JSON. Of a call, a request (`n`, service, module, root,
operation, seconds, cap, reads, write_roots) and its payload go out; `{n, entered}` comes back before the function
is called, then either `{n, reply}` and the body, or `{n, error}`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cogcli.protocols.pythoncall.function_call import PythonFunction

_MEMORY = 2 * 1024**3
_FILES = 256
_KILL = 9
_PR_SET_PDEATHSIG = 1
LENGTH_BYTES = 4


def to_frame(data: bytes) -> bytes:
    """Return the bytes of one frame."""
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def take_frame(buffer: bytearray, cap: int) -> bytes | None:
    """Remove the first frame from a buffer and return it; None while it is incomplete. Raise
    ValueError above `cap` bytes."""
    if len(buffer) < LENGTH_BYTES:
        return None
    size = int.from_bytes(buffer[:LENGTH_BYTES], "big")
    if size > cap:
        raise ValueError(f"a frame of {size:,} bytes, at most {cap:,} are allowed")
    if len(buffer) < LENGTH_BYTES + size:
        return None
    data = bytes(buffer[LENGTH_BYTES : LENGTH_BYTES + size])
    del buffer[: LENGTH_BYTES + size]
    return data


def main(channel: int, leash: int, wall: str, import_paths: list[str]) -> None:
    """Fork: run as the guard, and as the worker in the child."""
    guard = os.getpid()
    worker = os.fork()
    if worker:
        _run_guard(worker, channel, leash)
    os.close(leash)
    os.setsid()
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _KILL, 0, 0, 0)
    if os.getppid() != guard:
        os._exit(1)
    _set_limits()
    sys.path[:] = [*import_paths, *(path for path in sys.path if path not in import_paths)]
    _answer_requests(channel, _enter_sandbox(channel, wall) if wall else "")


def _enter_sandbox(channel: int, wall: str) -> str:
    """Enter the sandbox. Return the reason if there is no sandbox, else an empty string."""
    import json

    from cogcli.base.wall.enter import SandboxUnavailable, enter, python_files

    allowed = json.loads(wall)
    folder = os.getcwd()
    read = [*python_files(), *allowed["read"]]
    try:
        enter(read, listed=allowed["listed"], keep=(0, 1, 2, channel))
    except SandboxUnavailable as error:
        return str(error)
    with contextlib.suppress(
        OSError
    ):  # relative file names start in the run's folder, if it exists
        os.chdir(folder)
    return ""


def _run_guard(worker: int, channel: int, leash: int) -> None:
    """Kill the worker when the leash ends, and exit with the worker's status. The guard closes the worker's streams, so
    that a reader sees their end.
    """
    os.close(channel)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    while os.read(leash, 1):
        pass
    for kill in (os.killpg, os.kill):  # the group may not exist yet
        with contextlib.suppress(ProcessLookupError):
            kill(worker, _KILL)
    _, status = os.waitpid(worker, 0)
    os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def _set_limits() -> None:
    import resource

    limits = {resource.RLIMIT_AS: _MEMORY, resource.RLIMIT_NOFILE: _FILES, resource.RLIMIT_CORE: 0}
    for what, maximum in limits.items():
        _, hard = resource.getrlimit(what)
        maximum = maximum if hard == resource.RLIM_INFINITY else min(maximum, hard)
        try:
            resource.setrlimit(what, (maximum, maximum))
        except (ValueError, OSError):
            if (
                sys.platform == "linux"
            ):  # elsewhere a limit may be below what the process uses already
                raise


def _answer_requests(channel: int, missing_wall: str) -> None:
    """Answer requests until the channel ends. If the required sandbox is missing, refuse each request."""
    import json

    from cogcli.protocols.pythoncall import worker_call

    buffer = bytearray()
    operations: dict[tuple[str, ...], PythonFunction] = {}
    while True:
        request, payload = (
            json.loads(_read_frame(channel, buffer)),
            json.loads(_read_frame(channel, buffer)),
        )
        number = request["n"]
        entered = json.dumps({"n": number, "entered": True}).encode()
        try:
            try:
                if missing_wall:
                    raise worker_call.no_wall_error(request["service"], missing_wall)
                data, files = worker_call.call(
                    request, payload, operations, partial(_send_frames, channel, entered)
                )
            finally:
                for stream in (sys.stdout, sys.stderr):
                    with contextlib.suppress(Exception):
                        stream.flush()
        except BaseException as error:
            _send_frames(
                channel,
                json.dumps({"n": number, "error": worker_call.error_payload(error)}).encode(),
            )
        else:
            head = {"n": number, "reply": True, **({"files": files} if files else {})}
            _send_frames(channel, json.dumps(head).encode(), data)


def _read_frame(channel: int, buffer: bytearray) -> bytes:
    """Return the next frame. End the process at the end of the channel."""
    while (frame := take_frame(buffer, sys.maxsize)) is None:
        data = os.read(channel, 1 << 20)
        if not data:
            os._exit(0)
        buffer += data
    return frame


def _send_frames(channel: int, *frames: bytes) -> None:
    data = memoryview(b"".join(to_frame(frame) for frame in frames))
    while data:
        data = data[os.write(channel, data) :]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
