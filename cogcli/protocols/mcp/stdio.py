"""The stdio transport: a server program of our own, one JSON-RPC message a line
(docs/reference/protocols.md#mcp-stdio).

1. The program runs in a session and process group of its own; its stderr is drained, the last 64 KiB are kept.
2. A line holds at most 8 MiB. A longer one fails what is under way and ends the program at once.
3. Each line is parsed strictly. A bad one is noise, unless it can be told whose answer it was meant to be: then that
   call fails.
4. The end: stdin closed, 2 s, SIGTERM to the group, 2 s, SIGKILL. A server that never got ready is killed at once.
   What it left behind is killed and told. On Linux guards do that, also where we are killed ourselves.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self, cast

from cogcli.core.errors import RequestMappingError, ResponseMappingError, TransportError
from cogcli.protocols.mcp.errors import last_lines
from cogcli.protocols.mcp.process import IS_GUARDED, Leash, Program, kill, relatives, signal_group
from cogcli.protocols.mcp.traffic import (
    INTERNAL,
    LARGE,
    MAX_FRAME,
    GuardedRead,
    McpFault,
    McpTraffic,
    error_message,
    id_in,
    read_frame,
)

if TYPE_CHECKING:
    from types import TracebackType

    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

STEP_SECONDS: Final = 2.0
"""How long each of the gentler ways to end a program is given."""
_CHUNK: Final = 64 * 1024
_POLL_SECONDS: Final = 0.01
_EXIT_SECONDS: Final = 0.5
_PENDING: Final = 16
_BACKLOG: Final = 1024 * 1024


class FrameTooLong(Exception):
    """A line grew beyond what a frame may hold."""


class StderrTail:
    """The last 64 KiB of what a program says on stderr, from a line's beginning on."""

    CAP: Final = 64 * 1024

    def __init__(self) -> None:
        self._kept = bytearray()
        self._cut = False

    def add(self, data: bytes) -> None:
        """Keep more, and let go of the oldest."""
        self._kept += data
        if len(self._kept) > self.CAP:
            del self._kept[: len(self._kept) - self.CAP]
            self._cut = True

    @property
    def text(self) -> str:
        """What was kept. A line whose beginning is lost is left out: half a secret cannot be masked."""
        text = self._kept.decode(errors="replace")
        return text.partition("\n")[2] if self._cut else text


class Stdio:
    """One started program as a transport of the SDK: an asynchronous context manager giving two streams."""

    url = ""
    proxy = ""

    def __init__(self, program: Program, wire: McpTraffic) -> None:
        self.wire = wire
        self.gentle = False
        """Whether the program is given time to end: only once it was ready."""
        self.refused: McpFault | None = None
        """Nothing is refused before it is read."""
        self.gone: McpFault | None = None
        """Why the connection is over, if it is over."""
        self.when_gone: Callable[[], None] = lambda: None
        self.leftovers: list[str] = []
        """What had to be killed besides the program itself."""
        self.stderr = StderrTail()
        self._program = program
        self._tasks: list[asyncio.Task[None]] = []
        self._ending = False

    @property
    def said(self) -> str:
        """The last 64 KiB of stderr."""
        return self.stderr.text

    async def __aenter__(self) -> TransportStreams:
        import anyio
        from mcp.shared.message import SessionMessage

        self._process = await self._started()
        self._incoming: MemoryObjectSendStream[SessionMessage | Exception]
        self._incoming, outgoing = anyio.create_memory_object_stream[SessionMessage | Exception](_PENDING)
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._drain())]
        write = _Stdin(self._pipe(), self.wire)
        return GuardedRead(outgoing, write, self.wire), write

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import anyio

        with anyio.CancelScope(shield=True):  # a cancelled caller must not leave a program behind
            await self._end()

    async def _started(self) -> asyncio.subprocess.Process:
        import anyio

        program = self._program
        try:
            # A start that is cut off halfway leaves its pipes open, and who knows whether a process: it is ended after.
            with anyio.CancelScope(shield=True):
                process = await self._spawned()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            text = f"`{program.command}` cannot be started in `{program.cwd}`: {reason}"
            raise TransportError("call.transport", text, left=False) from error
        return process

    async def _spawned(self) -> asyncio.subprocess.Process:
        program, pipe = self._program, asyncio.subprocess.PIPE
        leash = Leash()
        try:
            process = await asyncio.create_subprocess_exec(
                *program.argv(leash.theirs.fileno()),
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                cwd=program.cwd or None,
                env=dict(program.env),
                start_new_session=True,
                pass_fds=[leash.theirs.fileno()] if IS_GUARDED else [],
            )
        except BaseException:
            leash.close()
            raise
        leash.started()
        self._leash = leash
        return process

    @property
    def _exit_code(self) -> int | None:
        """How the program ended; what it left behind may live on."""
        code = self._leash.exit_code
        return self._process.returncode if code is None else code

    def _pipe(self) -> asyncio.StreamWriter:
        return cast("asyncio.StreamWriter", self._process.stdin)

    # -- what comes in ------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        stdout = cast("asyncio.StreamReader", self._process.stdout)
        listening = True
        try:
            async for line in _lines(stdout):
                # Refusing a large line takes long enough for others to notice.
                slow = len(line) > LARGE
                message = await asyncio.to_thread(self._understood, line) if slow else self._understood(line)
                # The SDK may have stopped listening: what still comes is drained, so that the program can end.
                if message is not None and listening:
                    listening = await self._passed_on(message)
            fault = McpFault(TransportError, "call.transport", await self._last_words())
        except FrameTooLong:
            text = f"the server sent a frame of more than {MAX_FRAME:,} bytes"
            fault = McpFault(ResponseMappingError, "response.size", text)
            self.gentle = False
            self._kill()
        if not self._ending:  # else it is our own doing
            self.gone = fault
            self.wire.fail_all(fault)
        self._incoming.close()
        self.when_gone()

    async def _passed_on(self, message: SessionMessage) -> bool:
        import anyio

        try:
            await self._incoming.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True

    def _understood(self, line: bytes) -> SessionMessage | None:
        """The message of a line; None for noise."""
        from mcp.shared.message import SessionMessage

        if not line.strip():
            return None
        message = read_frame(line)
        if isinstance(message, McpFault):
            return self._torn(line, message)
        if exchange := self.wire.of(getattr(message, "id", None)):
            exchange.response_bytes = len(line)
        return SessionMessage(message)

    def _torn(self, line: bytes, fault: McpFault) -> SessionMessage | None:
        """A failed answer in place of one that cannot be read, if it can be told whose it was."""
        id = id_in(line)
        if id is None:
            self.wire.noise += 1
            return None
        if exchange := self.wire.of(id):
            exchange.response_bytes = len(line)
            exchange.fault = fault
        return error_message(id, INTERNAL, fault.text)

    async def _drain(self) -> None:
        stderr = cast("asyncio.StreamReader", self._process.stderr)
        while data := await stderr.read(_CHUNK):
            self.stderr.add(data)

    async def _last_words(self) -> str:
        """Why the connection is closed, as far as the program tells."""
        await self._within(_EXIT_SECONDS, lambda: self._exit_code is not None)
        code = self._exit_code
        how = "closed the connection" if code is None else "ended"
        if code is not None:
            how += f" by signal {-code}" if code < 0 else f" with exit status {code}"
        said = last_lines(self.stderr.text)
        return f"the server {how}{f': {said}' if said else ''}"

    # -- the end ------------------------------------------------------------------------------------------------------

    async def _end(self) -> None:
        self._ending = True
        pid = self._process.pid
        if self.gentle:
            self._pipe().close()
            await self._within(STEP_SECONDS, lambda: self._exit_code is not None)
            if not self._is_over():
                self._tell_left()
                signal_group(pid, signal.SIGTERM)
                await self._within(STEP_SECONDS, self._is_over)
        self._kill()
        await self._within(STEP_SECONDS, self._is_over)
        if not self._is_over():  # what holds out against its guards
            family = relatives(pid)
            signal_group(pid, signal.SIGKILL)
            kill(family)
        await self._close_pipes()

    def _kill(self) -> None:
        """End everything at once, without waiting."""
        if IS_GUARDED:
            self._leash.let_go()
        else:
            signal_group(self._process.pid, signal.SIGKILL)

    def _is_over(self) -> bool:
        return self._process.returncode is not None

    def _tell_left(self) -> None:
        """Processes that outlived a server which ended of itself."""
        left = relatives(self._process.pid) if self._exit_code is not None else ()
        if left:
            self.leftovers.append(
                f"`{self._program.command}` left {len(left)} of its processes running: killed"
            )

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

    async def _within(self, seconds: float, done: Callable[[], bool]) -> None:
        """Wait until something is so, at most that long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not done() and loop.time() < until:
            await asyncio.sleep(_POLL_SECONDS)


class _Stdin:
    """The outgoing side. A frame is handed to the pipe whole, so that a cancelled call leaves no half of one."""

    def __init__(self, pipe: asyncio.StreamWriter, wire: McpTraffic) -> None:
        self._pipe = pipe
        self._wire = wire
        self._lock = asyncio.Lock()

    async def send(self, item: SessionMessage, /) -> None:
        import anyio
        from mcp_types import JSONRPCRequest

        message = item.message
        frame = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        if len(frame) > MAX_FRAME:
            text = f"the request has {len(frame):,} bytes, at most {MAX_FRAME:,} are allowed"
            raise RequestMappingError("request.size", text, left=False)
        if self._pipe.is_closing():
            raise anyio.BrokenResourceError
        is_request = isinstance(message, JSONRPCRequest)
        if not is_request and self._pipe.transport.get_write_buffer_size() > _BACKLOG:
            return  # a server that does not listen gets no courtesies
        if exchange := self._wire.leaving(message, len(frame)):
            exchange.left = True
        self._pipe.write(frame)
        if is_request:
            with suppress(ConnectionError):  # the reading side tells that the server is gone, and why
                async with self._lock:
                    await self._pipe.drain()

    async def aclose(self) -> None:
        """Nothing: the pipe is closed when the program is ended."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a stream without their ends. An unfinished last one is dropped. Raises FrameTooLong."""
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
