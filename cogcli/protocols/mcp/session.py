"""One server's connection during a run: opened at the first call, shared by all, opened once more if it broke.

1. Everything here runs on the event loop of the portal thread. Calls go on in parallel.
2. A start may take as long as somebody waits for it; then the server is killed.
3. A call ends at its deadline or when nobody waits any more; the SDK then sends `notifications/cancelled`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from cogcli.core.errors import CallTimeoutError, TransportError
from cogcli.protocols.mcp.errors import CLOSED, NOT_READY, last_lines, translate_error
from cogcli.protocols.mcp.tools import listed
from cogcli.protocols.mcp.traffic import LOST, McpExchange, McpFault, McpTraffic, fault_of, in_progress

if TYPE_CHECKING:
    from types import TracebackType

    import anyio
    from mcp import ClientSession
    from mcp.client._transport import TransportStreams

MAX_OPENED: Final = 2
WHY_SECONDS: Final = 0.5


class McpTransport(Protocol):
    """What carries frames to one server and back."""

    url: str
    proxy: str
    wire: McpTraffic
    gentle: bool
    refused: McpFault | None
    gone: McpFault | None
    when_gone: Callable[[], None]
    leftovers: list[str]

    @property
    def said(self) -> str:
        """What the server said beside the protocol, as far as that is kept."""
        ...

    async def __aenter__(self) -> TransportStreams: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None: ...


class McpLink:
    """One opened connection, from its start to its end."""

    def __init__(self, transport: McpTransport) -> None:
        self.transport = transport
        self.settled = asyncio.Event()
        """The start is over, well or not."""
        self.session: ClientSession | None = None
        self.tools: list[dict[str, Any]] = []
        self.failure: McpFault | None = None
        self.lost = False
        """The server does not know this session any more. What is under way may still be answered."""
        self._stop = asyncio.Event()
        self._scope: anyio.CancelScope | None = None
        self._waiting = 0
        transport.when_gone = self._stop.set
        self.task = asyncio.create_task(self._serve())

    @property
    def usable(self) -> bool:
        """Whether calls may be made, or may be soon."""
        over = self.lost or self._stop.is_set() or self.transport.gone is not None
        return self.failure is None and not over

    def lose(self) -> None:
        """Make no more calls here; end once nothing is under way."""
        self.lost = True
        if self.transport.wire.is_idle:
            self.stop(gently=False)

    async def started(self, deadline: float) -> None:
        """Wait for the start. Raises what kept the server from starting, TransportError at the deadline."""
        import anyio

        self._waiting += 1
        try:
            with anyio.move_on_after(deadline - time.monotonic()) as scope:
                await self.settled.wait()
        finally:
            self._waiting -= 1
            if not self._waiting and not self.settled.is_set() and self._scope is not None:
                self._scope.cancel()
        if scope.cancelled_caught:
            raise _slow_start(self.transport.said)
        if self.failure is not None:
            raise self.failure.error(left=False)

    def stop(self, *, gently: bool) -> None:
        """Begin the end."""
        self.transport.gentle = self.transport.gentle and gently
        self._stop.set()
        if not self.settled.is_set() and self._scope is not None:
            self._scope.cancel()

    async def _serve(self) -> None:
        import anyio
        from mcp import Client
        from mcp_types import Implementation

        from cogcli import __version__

        about = Implementation(name="cogcli", version=__version__)
        transport = self.transport
        try:
            with anyio.CancelScope() as self._scope:
                async with Client(transport, mode="auto", client_info=about, cache=None) as client:
                    self.tools = await listed(client.session)
                    self.session = client.session
                    transport.gentle = True
                    self.settled.set()
                    await self._stop.wait()
                    self.session = None
            if self._scope.cancelled_caught:
                self.failure = fault_of(_slow_start(transport.said))
        except BaseException as error:
            self.failure = transport.gone or transport.refused or fault_of(translate_error(error, left=False))
            if transport.gone is None:
                transport.gone = self.failure
                transport.wire.fail_all(self.failure)
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self.session = None
            self.settled.set()


class Session:
    """One service's server during a run."""

    def __init__(self, connect: Callable[[], McpTransport]) -> None:
        self._connect = connect
        self._links: list[McpLink] = []
        self._closed = False

    async def linked(self, deadline: float) -> McpLink:
        """The connection, opened and ready. Raises RuntimeErrorBase with nothing left."""
        link = self._links[-1] if self._links else None
        if link is None or not link.usable:
            link = self._opened(link)
        await link.started(deadline)
        return link

    def _opened(self, broken: McpLink | None) -> McpLink:
        if self._closed:
            raise TransportError("call.transport", "the run is over", left=False)
        if sum(not link.lost for link in self._links) >= MAX_OPENED:
            last = broken and (broken.transport.gone or broken.failure)
            why = f": {last.text}" if last else ""
            text = f"the connection broke twice, it is not opened again in this run{why}"
            raise TransportError("call.transport", text, left=False)
        link = McpLink(self._connect())
        self._links.append(link)
        return link

    async def call(
        self, link: McpLink, params: dict[str, Any], exchange: McpExchange, deadline: float
    ) -> dict[str, Any]:
        """The result of `tools/call`, of the protocol's form but otherwise as it came.

        Raises CallTimeoutError, or what the SDK raises.
        """
        import anyio
        from mcp import MCPError
        from mcp_types import CallToolRequest, CallToolRequestParams

        if link.session is None:
            raise TransportError("call.transport", "the connection was closed", left=False)
        request = CallToolRequest(params=CallToolRequestParams.model_validate(params))
        in_progress.set(exchange)
        try:
            with anyio.move_on_after(deadline - time.monotonic()):
                result: dict[str, Any] = await link.session.send_request(request, _plain())
                return result
        except MCPError as error:
            if error.code == CLOSED and link.transport.gone is None:
                # Why the connection ended is known when its end is through.
                await asyncio.wait([link.task], timeout=WHY_SECONDS)
            raise
        finally:
            link.transport.wire.ended(exchange)
            if link.lost or exchange.fault == LOST:
                link.lose()
        raise CallTimeoutError("call.timeout", "no answer in time", left=exchange.left)

    @property
    def said(self) -> str:
        """What the server that was opened last said beside the protocol."""
        return self._links[-1].transport.said if self._links else ""

    async def close(self, *, gently: bool) -> list[str]:
        """End the server; what it left behind."""
        self._closed = True
        for link in self._links:
            link.stop(gently=gently)
        await asyncio.gather(*(link.task for link in self._links), return_exceptions=True)
        return [text for link in self._links for text in link.transport.leftovers]


def _plain() -> Any:
    """A reply as plain JSON: the SDK has checked its form, and its models would drop what they do not know."""
    from pydantic import TypeAdapter

    return TypeAdapter(dict[str, Any])


def _slow_start(said: str) -> TransportError:
    words = last_lines(said)
    hint = "the start may take as long as `timeout_seconds` of its service says, else 60 s"
    return TransportError(
        "call.transport", f"{NOT_READY}{f': {words}' if words else ''}", hint=hint, left=False
    )
