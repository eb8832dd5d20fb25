"""One worker process from our side: started, called, ended (docs/reference/protocols.md#worker).

1. It is killed by letting go of its leash and cutting its channel: neither blocks, both may happen on any thread.
2. One call at a time. A call that ends in any other way than by an answer ends the worker.
3. What comes over the channel is read strictly and capped: it is the function's process that writes there.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from cogcli.core.errors import (
    CallTimeoutError,
    RequestMappingError,
    ResponseMappingError,
    RuntimeErrorBase,
    ServerFaultError,
    ServiceResolutionError,
    TransportError,
)
from cogcli.core.strict_json import JsonRefused, loads
from cogcli.protocols.child_environment import inherited_variables
from cogcli.protocols.invoker import CallLimits
from cogcli.protocols.pythoncall import worker_main as program
from cogcli.protocols.pythoncall.module_access import Code
from cogcli.protocols.pythoncall.pipe_frames import to_frame
from cogcli.protocols.pythoncall.readable_files import Reads
from cogcli.protocols.pythoncall.worker_channel import Channel

_TOLD: Final[dict[str, type[RuntimeErrorBase]]] = {
    "service.module": ServiceResolutionError,
    "env.extra": ServiceResolutionError,
    "service.untrusted": ServiceResolutionError,
    "request.value": RequestMappingError,
    "response.not-json": ResponseMappingError,
    "response.size": ResponseMappingError,
    "call.timeout": CallTimeoutError,
}
"""The errors a worker may tell besides server faults."""
_HEAD: Final = 64 * 1024
_TEXT: Final = 500
ENDING_SECONDS: Final = 2.0
"""How long the end of a worker's guard is waited for."""


class WorkerRequest(NamedTuple):
    """One call: where the function is, its payload as JSON, how large the reply may be, and which files it may read
    where that is bounded."""

    code: Code
    operation: str
    payload: bytes
    cap: int
    reads: Reads | None = None


class Worker:
    """A process that calls functions of one service. Raises TransportError where it cannot be started."""

    def __init__(self, code: Code, environ: Mapping[str, str]) -> None:
        self.code = code
        self._lock = threading.Lock()
        self._killed = False
        self._ended = False
        self._calls = 0
        channel, theirs = socket.socketpair()
        leash, self._leash = os.pipe()
        printed, out = os.pipe()
        self._channel = Channel(channel, printed)
        try:
            self._process = _started(theirs.fileno(), leash, out, environ)
        except (OSError, ValueError) as error:
            os.close(self._leash)
            self._channel.close()
            raise TransportError(
                "call.transport", f"{self._name} cannot be started: {error}", left=False
            ) from error
        finally:
            theirs.close()
            os.close(leash)
            os.close(out)

    @property
    def is_quiet(self) -> bool:
        """Whether it is there and says nothing, as it should between two calls."""
        return not self._killed and self._channel.is_quiet

    @property
    def is_alive(self) -> bool:
        """Whether nobody has ended it yet."""
        return not self._killed

    def call(self, order: WorkerRequest, context: CallLimits) -> dict[str, Any]:
        """What the function gave. Raises RuntimeErrorBase as the invoker contract says; the worker may have ended."""
        self._calls += 1
        with context.cancel.told(self.kill):
            return _Call(self, self._channel, order, context, self._calls).answer()

    @property
    def printed(self) -> str:
        """What was printed since this was last asked, at most its last 64 KiB. For its caller alone."""
        return self._channel.printed()

    def kill(self) -> None:
        """End the process and all of its group; does not wait for it."""
        with self._lock:
            if not self._killed:
                self._killed = True
                os.close(self._leash)
                self._channel.cut()

    def end(self) -> str:
        """Kill it, wait until nothing of it is left, and tell how it ended. For its caller alone; repeatable."""
        self.kill()
        try:
            status = self._process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()  # somebody stopped its guard; once that is dead, so is the worker
            status = self._process.wait()
        with self._lock:
            if not self._ended:
                self._ended = True
                self._channel.close()
        line = self._channel.last_line
        return f"{self._name} {_ending(status)}{f': {line}' if line else ''}"[:_TEXT]

    @property
    def _name(self) -> str:
        return f"the worker of service `{self.code.service_id}`"


class _Call:
    """One call of a worker. `left` is whether the function was entered."""

    def __init__(
        self, worker: Worker, channel: Channel, order: WorkerRequest, context: CallLimits, number: int
    ) -> None:
        self._worker = worker
        self._channel = channel
        self._order = order
        self._deadline = context.deadline
        self._number = number
        self._left = False

    def answer(self) -> dict[str, Any]:
        """The reply. Raises the error that the worker told, or what its end or its silence means."""
        try:
            return self._exchanged()
        except TimeoutError:
            self._worker.end()
            raise CallTimeoutError("call.timeout", "no answer in time", left=self._left) from None
        except EOFError:
            raise TransportError("call.transport", self._worker.end(), left=self._left) from None
        except (ValueError, JsonRefused) as error:
            self._worker.end()
            text = f"what the worker wrote is no answer: {error}"[:_TEXT]
            raise TransportError("call.transport", text, left=self._left) from error

    def _exchanged(self) -> dict[str, Any]:
        self._channel.put(to_frame(orjson.dumps(self._head())) + to_frame(self._order.payload))
        told = self._told()
        if told.get("entered") is True:
            self._left = True
            told = self._told()
        if self._left and told.get("reply") is True:
            return self._body()
        raise _error_of(told.get("error"), self._left)

    def _head(self) -> dict[str, Any]:
        code, reads = self._order.code, self._order.reads
        return {
            "n": self._number,
            "service": code.service_id,
            "module": code.module,
            "root": code.root,
            "operation": self._order.operation,
            "seconds": max(0.0, self._deadline - time.monotonic()),
            "cap": self._order.cap,
            "reads": [reads.folder, sorted(reads.named)] if reads else None,
        }

    def _told(self) -> dict[str, Any]:
        told = loads(self._channel.frame(_HEAD, self._deadline))
        if type(told) is not dict or told.get("n") != self._number:
            raise ValueError("it belongs to no call")
        return told

    def _body(self) -> dict[str, Any]:
        data = self._channel.frame(self._order.cap, self._deadline)
        body = loads(data, max_bytes=self._order.cap, max_nodes=len(data) + 1)
        if type(body) is not dict:
            raise ValueError("the reply is no object")
        return body


def _started(channel: int, leash: int, out: int, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    flags = ["-I", "-B"] if sys.dont_write_bytecode else ["-I"]
    # Nothing in it comes from data: our interpreter, our program, where we ourselves import from.
    return subprocess.Popen(  # noqa: S603
        [sys.executable, *flags, program.__file__, str(channel), str(leash), *_places()],
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=out,
        pass_fds=(channel, leash),
        env=inherited_variables(environ),
        start_new_session=True,
    )


def _places() -> list[str]:
    """Where we import from, without the working directory."""
    try:
        here = os.getcwd()
    except FileNotFoundError:
        here = ""
    return [place for place in sys.path if os.path.isabs(place) and place != here]


def _error_of(told: Any, left: bool) -> RuntimeErrorBase:
    """The error that a worker told. Raises ValueError for one that it cannot mean."""
    if type(told) is not dict or not all(type(told.get(name)) is str for name in ("code", "message", "hint")):
        raise ValueError("neither reply nor error")
    message, left = told["message"][:_TEXT], left and told.get("left") is not False
    if told["code"] not in _TOLD:
        return ServerFaultError("call.server-error", message, left=left)
    return _TOLD[told["code"]](told["code"], message, hint=told["hint"][:_TEXT], left=left)


def _ending(status: int) -> str:
    """How a process ended; its guard tells a signal as shells do."""
    number = status - 128 if status > 128 else -status
    if number <= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(number).name}"
    except ValueError:
        return f"was killed by signal {number}"
