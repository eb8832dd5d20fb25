"""The run's side of one worker process: start, calls, end (docs/reference/protocols.md#worker).

1. It is killed by closing its leash and shutting down its channel: neither blocks, both may happen
   on any thread.
2. One call at a time. A call that ends without an answer ends the worker.
3. Frames of the worker are parsed strictly and capped: the called function's process writes them.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

import orjson

from cogcli.base.errors import (
    CallTimeoutError,
    RejectedError,
    RequestMappingError,
    ResponseMappingError,
    RuntimeErrorBase,
    SafetyScopeError,
    ServerFaultError,
    ServiceResolutionError,
    TransportError,
)
from cogcli.base.file_roots import Roots
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.search_path import NAME as SEARCH_PATH
from cogcli.base.search_path import relative_folders
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.protocols.invoker import CallLimits, inherited_variables
from cogcli.protocols.pythoncall import worker_main as program
from cogcli.protocols.pythoncall.module_access import Code
from cogcli.protocols.pythoncall.readable_files import ReadableFiles
from cogcli.protocols.pythoncall.sandbox_files import SandboxFiles
from cogcli.protocols.pythoncall.worker_channel import Channel
from cogcli.protocols.pythoncall.worker_main import to_frame

_WORKER_ERRORS: Final[dict[str, type[RuntimeErrorBase]]] = {
    "service.module": ServiceResolutionError,
    "env.extra": ServiceResolutionError,
    "service.untrusted": ServiceResolutionError,
    "safety.scope": SafetyScopeError,
    "request.value": RequestMappingError,
    "response.not-json": ResponseMappingError,
    "response.size": ResponseMappingError,
    "call.timeout": CallTimeoutError,
    "call.rejected": RejectedError,
}
"""The errors that a worker may report besides server faults."""
_MAX_HEAD: Final = 1024 * 1024
ENDING_SECONDS: Final = 2.0
"""Seconds to wait for the end of a worker's guard."""


MAX_FILES: Final = 100
"""The most files that one call records (`cogcli.sdk.artifact`)."""
_HASH: Final = re.compile(r"[0-9a-f]{64}")


class WorkerReply(NamedTuple):
    """The result of a function, and the path, size and hash of each file that it wrote."""

    body: Json
    files: list[Json]


class WorkerRequest(NamedTuple):
    """One call: the function, its payload as JSON, the most bytes of the reply, and the readable
    files, None for all."""

    code: Code
    operation: str
    payload: bytes
    cap: int
    reads: ReadableFiles | None = None
    write_roots: Roots = ()


class WorkerAnswer(Record):
    """The head of a worker's frame, which the process of the called function writes."""

    n: int | None = None
    """The number of the call."""
    entered: bool = False
    """Whether the function is called now; the reply or error follows in another frame."""
    reply: bool = False
    """Whether the reply follows as a frame of its own."""
    files: object = None
    """A list of `{path, size_bytes, sha256}`; absent if the call wrote no files."""
    error: object = None


class WorkerError(Record):
    """The error in a worker's answer."""

    code: str
    message: str
    hint: str
    reason: str
    left: bool = True


class Worker:
    """A process that calls functions of one service. Raise TransportError if it cannot be started.

    `mask_text` removes secrets from its output."""

    def __init__(
        self,
        code: Code,
        environ: Mapping[str, str],
        mask_text: Callable[[str], str] = str,
        sandbox: SandboxFiles | None = None,
    ) -> None:
        self.code = code
        self._mask_text = mask_text
        self._lock = threading.Lock()
        if not hasattr(os, "fork"):
            text = f"{self._label} cannot be started: that takes `fork`, here it is `isolation: thread` that works"
            raise TransportError("call.transport", text, left=False)
        self._killed = False
        self._ended = False
        self._calls = 0
        self._entered = False
        """Whether the function of the current call was entered."""
        channel, theirs = socket.socketpair()
        leash, self._leash = os.pipe()
        printed, out = os.pipe()
        self._channel = Channel(channel, printed)
        try:
            self._process = _start_process(theirs.fileno(), leash, out, environ, sandbox)
        except (OSError, ValueError) as error:
            os.close(self._leash)
            self._channel.close()
            text = f"{self._label} cannot be started: {error}"
            raise TransportError("call.transport", text, left=False) from error
        finally:
            theirs.close()
            os.close(leash)
            os.close(out)

    @property
    def is_quiet(self) -> bool:
        """Whether it is alive and has sent nothing since its last call."""
        return not self._killed and self._channel.is_quiet

    @property
    def is_alive(self) -> bool:
        """Whether the run has not killed it."""
        return not self._killed

    def call(self, request: WorkerRequest, limits: CallLimits) -> WorkerReply:
        """Call a function. Return its result and the files that it wrote. Raise RuntimeErrorBase as an invoker does;
        afterwards the worker may have ended.
        """
        self._calls += 1
        self._entered = False
        with limits.cancel.on_cancel(self.kill):
            try:
                return self._read_reply(request, limits.deadline)
            except TimeoutError:
                self.end()
                raise CallTimeoutError(
                    "call.timeout", "no answer in time", left=self._entered
                ) from None
            except EOFError:
                raise TransportError("call.transport", self.end(), left=self._entered) from None
            except (ValueError, InvalidJson) as error:
                self.end()
                text = f"what the worker wrote is not an answer: {error}"
                raise TransportError("call.transport", text, left=self._entered) from error

    def _read_reply(self, request: WorkerRequest, deadline: float) -> WorkerReply:
        """Return the reply to the current call. Raise the error that the worker reports, or an
        error for a malformed answer."""
        code, reads = request.code, request.reads
        head = {
            "n": self._calls,
            "service": code.service_id,
            "module": code.module,
            "root": code.root,
            "operation": request.operation,
            "seconds": max(0.0, deadline - time.monotonic()),
            "cap": request.cap,
            "reads": reads.to_payload() if reads else None,
            "write_roots": request.write_roots,
        }
        self._channel.queue(to_frame(orjson.dumps(head)) + to_frame(request.payload))
        answer = self._next_answer(deadline)
        if answer.entered:
            self._entered = True
            answer = self._next_answer(deadline)
        if not self._entered or not answer.reply:
            raise _error_of(answer.error, self._entered)
        data = self._channel.read_frame(request.cap, deadline)
        body = loads(data, max_bytes=request.cap, max_nodes=len(data) + 1)
        if type(body) is not dict:
            raise ValueError("the reply is not an object")
        return WorkerReply(body, _files_of(answer))

    def _next_answer(self, deadline: float) -> WorkerAnswer:
        answer = read_record(WorkerAnswer, loads(self._channel.read_frame(_MAX_HEAD, deadline)))
        if answer.n != self._calls:
            raise ValueError("it belongs to no call")
        return answer

    @property
    def printed(self) -> str:
        """Return the output since the last call of this method, at most 64 KiB. Only the calling
        thread may use it."""
        return self._channel.take_printed_lines()

    def kill(self) -> None:
        """Kill the process and its group, without waiting."""
        with self._lock:
            if not self._killed:
                self._killed = True
                os.close(self._leash)
                self._channel.shut_down()

    def end(self) -> str:
        """Kill it, wait, and return a message with its status. It is repeatable, but only for the
        calling thread."""
        self.kill()
        try:
            status = self._process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its guard is stopped; the worker dies with the guard
            status = self._process.wait()
        with self._lock:
            if not self._ended:
                self._ended = True
                self._channel.close()
        # Mask first, then take the last line: one line of a multi-line secret may not be recognized.
        lines = self._mask_text(self._channel.printed).strip().splitlines()
        return f"{self._label} {_status_text(status)}{f': {lines[-1]}' if lines else ''}"

    @property
    def _label(self) -> str:
        return f"the worker of service `{self.code.service_id}`"


def _start_process(
    channel: int, leash: int, out: int, environ: Mapping[str, str], sandbox: SandboxFiles | None
) -> subprocess.Popen[bytes]:
    # `-I` contains `-P`; written out, so that the program's own folder is not an import path if `-I` ever goes.
    flags = ["-I", "-P", "-B"] if sys.dont_write_bytecode else ["-I", "-P"]
    wall = orjson.dumps(sandbox._asdict()).decode() if sandbox else ""
    # Our interpreter, our program, our import paths; of data only the names of files that a sandbox may read.
    return subprocess.Popen(  # noqa: S603
        [
            sys.executable,
            *flags,
            program.__file__,
            str(channel),
            str(leash),
            wall,
            *_import_paths(environ),
        ],
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=out,
        pass_fds=(channel, leash),
        env={} if sandbox else inherited_variables(environ),
        start_new_session=True,
    )


def _import_paths(environ: Mapping[str, str]) -> list[str]:
    """Return the import paths of this process, without the working directory and relative entries
    of `PYTHONPATH`."""
    dropped = relative_folders(environ.get(SEARCH_PATH, ""))
    return [place for place in sys.path if os.path.isabs(place) and place not in dropped]


def _files_of(answer: WorkerAnswer) -> list[Json]:
    """Return the files in a worker's answer. Raise ValueError for a malformed one."""
    if "files" not in answer.json:
        return []
    files = answer.files
    if type(files) is not list or len(files) > MAX_FILES or not all(map(_is_file, files)):
        raise ValueError("it does not say which files were written")
    return files


def _is_file(value: object) -> bool:
    match value:
        case {"path": str(), "size_bytes": size, "sha256": str(digest), **others}:
            is_size = type(size) is int and 0 <= size < 2**53
            return not others and is_size and _HASH.fullmatch(digest) is not None
    return False


def _error_of(answer: object, left: bool) -> RuntimeErrorBase:
    """Return the error in a worker's answer. Raise ValueError for a malformed one."""
    try:
        given = read_record(WorkerError, answer, whole=True)
    except ValueError as wrong:
        raise ValueError("neither reply nor error") from wrong
    left = left and given.left
    if given.code not in _WORKER_ERRORS:
        return ServerFaultError("call.server-error", given.message, left=left)
    error = _WORKER_ERRORS[given.code](given.code, given.message, hint=given.hint, left=left)
    error.reason = given.reason
    return error


def _status_text(status: int) -> str:
    """Return how a process ended, as text. Its guard reports a signal as 128 + number, as shells do."""
    number = status - 128 if status > 128 else -status
    if number <= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(number).name}"
    except ValueError:
        return f"was killed by signal {number}"
