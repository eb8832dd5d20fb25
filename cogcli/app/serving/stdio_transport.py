"""The stdio transport of `serve mcp`: it reads frames from standard input and writes frames to
standard output.

1. The server owns file descriptors 0 and 1. The output of functions and child processes never
   becomes a frame, and their standard input is empty.
2. A frame is a line of strict JSON of at most 8 MiB. The reply to any other line is an error.
3. Daemon threads read and write, so that they do not keep the process alive.
4. Frames are handled one at a time. If a client sends faster than the server reads, the pipe slows
   it down. So it does while too many requests are open, or too many replies are unread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from cogcli.app.serving.request_checks import VERSION_KEY, find_request_fault
from cogcli.app.serving.server_socket import redirect_standard_streams
from cogcli.base import threads
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import MAX_BYTES, InvalidJson, loads
from cogcli.specs.unchecked import object_at, value_at

if TYPE_CHECKING:
    import signal

    from anyio.abc import ObjectReceiveStream, ObjectSendStream
    from mcp.server import Server

    Incoming = ObjectReceiveStream[SessionMessage | Exception]
    Outgoing = ObjectSendStream[SessionMessage]

BAD_ID: Final = "the id of a request is a string or an integer"
MAX_UNREAD: Final = 64
"""The replies that may wait until the client reads. No further frame is handled meanwhile."""
MAX_OPEN: Final = 1024
"""The requests that may be without a reply. No further frame is handled meanwhile."""
_CHUNK: Final = 1 << 16
_TICK: Final = 0.01


class RefusedFrame(NamedTuple):
    """A frame that does not reach the server, and the error reply to it."""

    reply: types.JSONRPCError


class ServedRuns(Protocol):
    """The runs of a server, as a transport ends them."""

    @property
    def running(self) -> int:
        """Return the number of runs that have not ended."""
        ...

    def end_all(self, signal: str) -> None:
        """Cancel every run and refuse new ones. A second call ends the grace period of the runs."""
        ...


class FramePipe:
    """Reads frames from one file descriptor and writes frames to another."""

    def __init__(self, readable: int, writable: int) -> None:
        self._readable = readable
        self._writable = writable
        self._queue: SimpleQueue[tuple[bytes, Callable[[bool], object]]] = SimpleQueue()

    def start_writing(self) -> None:
        """Start the thread that writes the messages of `write`, in order."""
        threads.start(self._write_all, name="frames out")

    async def write(self, message: types.JSONRPCMessage) -> bool:
        """Write a message as one frame. Return False if the client has stopped reading."""
        loop = asyncio.get_running_loop()
        written: asyncio.Future[bool] = loop.create_future()

        def settle(worked: bool) -> None:
            if not written.done():
                written.set_result(worked)

        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        self._queue.put((text.encode() + b"\n", lambda ok: loop.call_soon_threadsafe(settle, ok)))
        return await written

    def _write_all(self) -> None:
        """Write the queued messages until the client stops reading."""
        broken = False
        while True:
            data, settle = self._queue.get()
            try:
                rest = memoryview(data)
                while rest and not broken:
                    rest = rest[os.write(self._writable, rest) :]
            except OSError:
                broken = True
            try:
                settle(not broken)
            except RuntimeError:
                return  # the event loop has ended

    def frames(self) -> Iterator[bytes | None]:
        """Yield the lines of the client until it stops sending. A line that is too long becomes
        None.

        Reading blocks the calling thread."""
        kept = b""
        skipping = False
        while chunk := self._read_chunk():
            *lines, kept = (kept + chunk).split(b"\n")
            for line in lines:
                if skipping or len(line) > MAX_BYTES:
                    yield None
                elif line.strip():
                    yield line
                skipping = False
            if len(kept) > MAX_BYTES:
                kept, skipping = b"", True

    def _read_chunk(self) -> bytes:
        """Return the next bytes; empty at the end of the stream or after an error."""
        try:
            return os.read(self._readable, _CHUNK)
        except OSError:
            return b""


@asynccontextmanager
async def open_streams(
    wire: FramePipe, at_end: Callable[[], None]
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Open the streams that an MCP server requires. `at_end` is called when the client stops
    sending or reading."""
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    loop = asyncio.get_running_loop()

    has_begun = False
    open_requests: set[str | int] = set()

    def is_full() -> bool:
        unread = write.statistics().tasks_waiting_send
        return unread > MAX_UNREAD or len(open_requests) >= MAX_OPEN

    async def handle_frame(frame: bytes | None) -> None:
        nonlocal has_begun
        message = parse_frame(frame)
        if isinstance(message, types.JSONRPCRequest) and not has_begun:
            has_begun = may_begin(message)
            if not has_begun and message.method != "ping":
                message = _refuse_early(message)
        while is_full():
            await anyio.sleep(_TICK)
        if isinstance(message, RefusedFrame):
            await wire.write(message.reply)
            return
        if isinstance(message, types.JSONRPCRequest):
            open_requests.add(message.id)
        elif (cancelled := _cancelled_request(message)) is not None:
            open_requests.discard(cancelled)  # it may get no reply
        await incoming.send(SessionMessage(message))

    def read_all() -> None:
        try:
            for frame in wire.frames():
                asyncio.run_coroutine_threadsafe(handle_frame(frame), loop).result()
            loop.call_soon_threadsafe(end)
        except Exception:
            return  # the server has ended before the client did

    def end() -> None:
        at_end()
        incoming.close()

    async def write_all() -> None:
        async with outgoing:
            async for item in outgoing:
                message = item.message
                if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                    open_requests.difference_update((message.id,))
                if not await wire.write(message):
                    end()  # the client has stopped reading

    wire.start_writing()
    threads.start(read_all, name="frames in")
    async with anyio.create_task_group() as group:
        group.start_soon(write_all)
        yield read, write


async def serve_stdio(
    server: Server[Any], wire: FramePipe, runs: ServedRuns, signals: list[signal.Signals]
) -> str:
    """Serve one client until it disconnects or a signal arrives. Return the name of the signal, or
    an empty text.

    A second signal, or a signal after the client has disconnected, ends the grace period of running
    calls."""
    ended_by = ""
    closing = False

    def at_end() -> None:
        nonlocal closing
        closing = True

    async def watch() -> None:
        nonlocal closing, ended_by
        with anyio.open_signal_receiver(*signals) as received:
            async for number in received:
                ended_by = ended_by or number.name
                if closing:
                    runs.end_all(number.name)
                closing = True
                serving.cancel()

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as serving:
            group.start_soon(watch)
            async with open_streams(wire, at_end) as (read, write):
                await server.run(read, write, server.create_initialization_options())
        group.cancel_scope.cancel()
    return ended_by


def parse_frame(frame: bytes | None) -> types.JSONRPCMessage | RefusedFrame:
    """Return the message in a frame. An error that the client sends is a message, too."""
    if frame is None:
        return _refuse(types.PARSE_ERROR, f"a frame may have {MAX_BYTES:,} bytes")
    try:
        value = loads(frame)
    except InvalidJson as refused:
        return _refuse(types.PARSE_ERROR, f"{refused.code}: {refused.message}")
    if has_bad_id(value):
        return _refuse(types.INVALID_REQUEST, BAD_ID)
    id = value_at(value, "id")
    if (fault := find_request_fault(value)) is not None:
        return _refuse(fault.code, fault.message, id, fault.data)
    try:
        return types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        return _refuse(types.INVALID_REQUEST, "this is not a message of the protocol", id)


def may_begin(request: types.JSONRPCRequest) -> bool:
    """Return whether a session may start with this request: a handshake, or a request that contains its
    protocol version."""
    meta = object_at(request.params, "_meta")
    return request.method == "initialize" or VERSION_KEY in meta


def _cancelled_request(message: types.JSONRPCMessage) -> str | int | None:
    """Return the id of the request that a notification cancels; None for any other message."""
    if not isinstance(message, types.JSONRPCNotification):
        return None
    id = value_at(message.params, "requestId")
    return id if message.method == "notifications/cancelled" and _is_valid_id(id) else None


def _refuse_early(request: types.JSONRPCRequest) -> RefusedFrame:
    """Return the error for a request before the handshake."""
    text = f"{request.method[:60]}: `initialize` comes first, then `notifications/initialized`"
    return _refuse(types.INVALID_REQUEST, text, request.id)


def _refuse(code: int, message: str, id: object = None, data: object = None) -> RefusedFrame:
    known = id if _is_valid_id(id) else None
    error = types.ErrorData(code=code, message=message)
    if data is not None:
        error = types.ErrorData(code=code, message=message, data=data)
    return RefusedFrame(types.JSONRPCError(jsonrpc="2.0", id=known, error=error))


def take_descriptors() -> FramePipe:
    """Return a FramePipe on copies of file descriptors 0 and 1, and redirect the originals to the
    null device."""
    wire = FramePipe(os.dup(0), os.dup(1))
    redirect_standard_streams()
    return wire


def has_bad_id(message: object) -> bool:
    """Return whether a message is a request with an id that MCP forbids. The reply to it is an error with
    the id null.

    MCP allows a string or an integer. The SDK treats a request with any other id as a notification
    and sends no reply, so its client would wait forever."""
    if not isinstance(message, dict) or not {"id", "method"} <= message.keys():
        return False
    return not _is_valid_id(message["id"])


def _is_valid_id(id: object) -> TypeGuard[str | int]:
    """Return whether MCP allows this id of a request."""
    return isinstance(id, str) or type(id) is int
