"""The stdio transport: a server program of our own, one JSON-RPC message a line
(docs/reference/protocols.md#mcp-stdio).

1. The program runs in a session and process group of its own; the last 64 KiB of its stderr are kept.
2. A line has at most 8 MiB. A longer one fails the calls in progress and kills the program.
3. Each line is parsed strictly. A malformed line fails the call whose id it holds, else it is counted as noise.
4. The end: stdin closed, 2 s, SIGTERM to the group, 2 s, SIGKILL. A server that was never ready is killed at once.
   Its remaining processes are killed and reported. On Linux guards do so, also where this process is killed.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, cast

from cogcli.base.errors import TransportError
from cogcli.protocols.mcp.errors import last_lines
from cogcli.protocols.mcp.process import (
    IS_GUARDED,
    KILL,
    GuardSocket,
    Program,
    descendants,
    kill,
    signal_group,
)
from cogcli.protocols.mcp.session import McpTransport
from cogcli.protocols.mcp.traffic import (
    INTERNAL,
    LARGE,
    MAX_FRAME,
    TOO_LONG,
    GuardedRead,
    McpFault,
    McpTraffic,
    TransportEnd,
    error_message,
    id_in,
    read_frame,
)

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

STOP_SECONDS: Final = 2.0
"""Seconds that a program has after its stdin is closed, and again after SIGTERM."""
_CHUNK: Final = 64 * 1024
_POLL_SECONDS: Final = 0.01
_EXIT_SECONDS: Final = 0.5
_PENDING: Final = 16
_BACKLOG: Final = 1024 * 1024
_STDERR_BYTES: Final = 64 * 1024


class FrameTooLong(Exception):
    """A line exceeds the size of a frame."""


class Stdio(McpTransport):
    """A transport over a program that cogcli starts. A graceful end gives the program time to exit."""

    def __init__(self, program: Program, mask: Callable[[str], str] = str) -> None:
        """`mask` removes the secrets from the program's stderr."""
        super().__init__()
        self._program = program
        self._mask = mask
        self._tasks: list[asyncio.Task[None]] = []
        self._ending = False
        self._stderr = bytearray()
        self._is_stderr_cut = False

    @property
    def stderr_text(self) -> str:
        """The last 64 KiB of stderr, masked, without a first line that is cut: half a secret cannot be masked."""
        text = self._stderr.decode(errors="replace")
        return self._mask(text.partition("\n")[2] if self._is_stderr_cut else text)

    async def __aenter__(self) -> TransportStreams:
        import anyio
        from mcp.shared.message import SessionMessage

        self._process = await self._start_program()
        self._incoming: MemoryObjectSendStream[SessionMessage | Exception]
        self._incoming, outgoing = anyio.create_memory_object_stream[SessionMessage | Exception](
            _PENDING
        )
        self._tasks = [
            asyncio.create_task(self._read_messages()),
            asyncio.create_task(self._read_stderr()),
        ]
        write = _Stdin(self._program_stdin(), self.traffic)
        return GuardedRead(outgoing, write, self.traffic), write

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import anyio

        with anyio.CancelScope(
            shield=True
        ):  # a cancelled caller must not leave the program running
            await self._end_program()

    async def _start_program(self) -> asyncio.subprocess.Process:
        import anyio

        program, pipe, leash = self._program, asyncio.subprocess.PIPE, None
        try:
            leash = GuardSocket()
            theirs = leash.theirs.fileno()
            # A start cancelled halfway would leave pipes open and perhaps a process: it completes, then is ended.
            with anyio.CancelScope(shield=True):
                process = await asyncio.create_subprocess_exec(
                    *program.argv(theirs),
                    stdin=pipe,
                    stdout=pipe,
                    stderr=pipe,
                    cwd=program.cwd or None,
                    env=dict(program.env),
                    start_new_session=True,
                    pass_fds=[theirs] if IS_GUARDED else [],
                )
        except BaseException as error:
            if leash is not None:
                leash.close()
            if not isinstance(error, OSError | ValueError):
                raise
            reason = getattr(error, "strerror", None) or str(error)
            text = f"`{program.command}` cannot be started in `{program.cwd}`: {reason}"
            raise TransportError("call.transport", text, left=False) from error
        leash.theirs.close()  # the guards have inherited it
        self._leash = leash
        return process

    @property
    def _exit_code(self) -> int | None:
        """Return the program's exit status, None while it runs. Its child processes may outlive it."""
        code = self._leash.exit_code
        return self._process.returncode if code is None else code

    def _program_stdin(self) -> asyncio.StreamWriter:
        return cast("asyncio.StreamWriter", self._process.stdin)

    # -- what comes in ------------------------------------------------------------------------------------------------

    async def _read_messages(self) -> None:
        import anyio

        stdout = cast("asyncio.StreamReader", self._process.stdout)
        listening = True
        try:
            async for line in _iterate_lines(stdout):
                # Parsing a large line would block the other calls of the event loop.
                slow = len(line) > LARGE
                message = (
                    await asyncio.to_thread(self._parse_message, line)
                    if slow
                    else self._parse_message(line)
                )
                # The SDK may have stopped reading: further lines are drained, so that the program can end.
                if message is not None and listening:
                    try:
                        await self._incoming.send(message)
                    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                        listening = False
            fault = McpFault(TransportError, "call.transport", await self._end_reason())
        except FrameTooLong:
            fault = TOO_LONG
            self.graceful = False
            self._kill_all()
        if not self._ending:  # else we closed it ourselves
            self.closed_by = fault
            self.traffic.fail_all(fault)
        self._incoming.close()
        self.on_closed()

    def _parse_message(self, line: bytes) -> SessionMessage | None:
        """Return the message in a line; None for noise."""
        from mcp.shared.message import SessionMessage

        if not line.strip():
            return None
        message = read_frame(line)
        id = id_in(line) if isinstance(message, McpFault) else getattr(message, "id", None)
        exchange = self.traffic.of(id)
        if exchange:
            exchange.response_bytes = len(line)
        if not isinstance(message, McpFault):
            return SessionMessage(message)
        if id is None:
            self.traffic.noise += 1
            return None
        # The call whose id a malformed line holds gets an error as its answer.
        if exchange:
            exchange.fault = message
        return error_message(id, INTERNAL, message.text)

    async def _read_stderr(self) -> None:
        stderr = cast("asyncio.StreamReader", self._process.stderr)
        while data := await stderr.read(_CHUNK):
            self._stderr += data
            self._is_stderr_cut |= len(self._stderr) > _STDERR_BYTES
            del self._stderr[:-_STDERR_BYTES]

    async def _end_reason(self) -> str:
        """Return why the connection closed: the program's exit status and the last lines of its
        stderr."""
        await self._wait_until(_EXIT_SECONDS, lambda: self._exit_code is not None)
        code = self._exit_code
        how = "closed the connection" if code is None else "ended"
        if code is not None:
            how += f" by signal {-code}" if code < 0 else f" with exit status {code}"
        stderr_text = last_lines(self.stderr_text)
        return f"the server {how}{f': {stderr_text}' if stderr_text else ''}"

    # -- the end ------------------------------------------------------------------------------------------------------

    async def _end_program(self) -> None:
        self._ending = True
        pid = self._process.pid
        if self.graceful:
            self._program_stdin().close()
            await self._wait_until(STOP_SECONDS, lambda: self._exit_code is not None)
            if not self._is_over():
                left = descendants(self._process.pid) if self._exit_code is not None else ()
                if left:
                    self.leftovers.append(
                        f"`{self._program.command}` left {len(left)} of its processes running: killed"
                    )
                signal_group(pid, signal.SIGTERM)
                await self._wait_until(STOP_SECONDS, self._is_over)
        self._kill_all()
        await self._wait_until(STOP_SECONDS, self._is_over)
        if not self._is_over():  # the guards did not end it
            family = descendants(pid)
            signal_group(pid, KILL)
            kill(family)
        await self._close_pipes()

    def _kill_all(self) -> None:
        """Kill the program and its descendants, without waiting."""
        if IS_GUARDED:
            self._leash.release()
        else:
            signal_group(self._process.pid, KILL)

    def _is_over(self) -> bool:
        return self._process.returncode is not None

    async def _close_pipes(self) -> None:
        # Nothing public closes the pipes that a surviving process may still hold at their other end.
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()
        self._leash.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._incoming.close()

    async def _wait_until(self, seconds: float, done: Callable[[], bool]) -> None:
        """Wait until `done()` is true, at most `seconds`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not done() and loop.time() < until:
            await asyncio.sleep(_POLL_SECONDS)


class _Stdin(TransportEnd):
    """The outgoing side. It writes a frame to the pipe whole, so that a cancelled call leaves no
    partial frame. Closing it does nothing, because the pipe closes with the program."""

    def __init__(self, pipe: asyncio.StreamWriter, traffic: McpTraffic) -> None:
        self._pipe = pipe
        self._traffic = traffic
        self._lock = asyncio.Lock()

    async def send(self, item: SessionMessage, /) -> None:
        import anyio
        from mcp_types import JSONRPCRequest

        message = item.message
        frame = self._traffic.frame_of(message, b"\n")
        if self._pipe.is_closing():
            raise anyio.BrokenResourceError
        is_request = isinstance(message, JSONRPCRequest)
        if not is_request and self._pipe.transport.get_write_buffer_size() > _BACKLOG:
            return  # notifications to a server that does not read would fill our memory
        if exchange := self._traffic.register(message, len(frame)):
            exchange.left = True
        self._pipe.write(frame)
        if is_request:
            with suppress(
                ConnectionError
            ):  # the reading side reports that the server is closed_by, and why
                async with self._lock:
                    await self._pipe.drain()


async def _iterate_lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a stream without their line ends; drop an unfinished last one. Raise
    FrameTooLong."""
    held: list[bytes] = []
    size = 0
    while data := await stream.read(_CHUNK):
        first, *more = data.split(b"\n")
        held.append(first)
        size += len(first)
        for part in more:
            if size > MAX_FRAME:
                raise FrameTooLong
            yield b"".join(held)
            held, size = [part], len(part)
        if size > MAX_FRAME:
            raise FrameTooLong
