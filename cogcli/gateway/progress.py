"""The progress of a call, on its way to the client (docs/reference/gateway.md#answers)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.exceptions import MCPError

from cogcli.base.calls import ProgressNotice
from cogcli.gateway.calls import CallTicket

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    ClientRequest = ServerRequestContext[Any, Any]

_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, MCPError)


@asynccontextmanager
async def relay_progress(client: ClientRequest, ticket: CallTicket) -> AsyncIterator[None]:
    """Pass the progress of a call to its client within the `with` block."""
    relay = ProgressRelay(client)
    ticket.watchers.append(relay.note)
    try:
        yield
    finally:
        ticket.watchers.remove(relay.note)
        await relay.close()


class ProgressRelay:
    """Passes the progress of one call to its client, if the client asks for it.

    One message is sent at a time; values that arrive meanwhile are left out. A client reads growing
    numbers only.
    """

    def __init__(self, client: ClientRequest) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._last = float("-inf")
        self._sending: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Send no further progress, and wait for the message being sent, because no progress may
        follow the reply.
        """
        self._last = float("inf")
        if self._sending is not None:
            await self._sending

    def note(self, notice: ProgressNotice) -> None:
        """Pass on a report, from any thread."""
        with suppress(RuntimeError):  # the server has ended
            self._loop.call_soon_threadsafe(self._queue_notice, notice)

    def _queue_notice(self, notice: ProgressNotice) -> None:
        is_free = self._sending is None or self._sending.done()
        if is_free and notice.progress > self._last:
            self._last = notice.progress
            self._sending = asyncio.ensure_future(self._send_notice(notice))

    async def _send_notice(self, notice: ProgressNotice) -> None:
        with suppress(*_GONE):
            await self._client.session.report_progress(
                notice.progress, notice.total, notice.message
            )
