"""A gateway as a server of one client: its offer, its session and its transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from cogcli.app.registry import open_registry
from cogcli.app.serving.stdio_transport import FramePipe, serve_stdio, take_descriptors
from cogcli.app.settings import Settings
from cogcli.base import threads
from cogcli.declarations.session_events import SessionEnding
from cogcli.gateway.offer import GatewayOffer, find_upstreams, offer_upstreams
from cogcli.gateway.request import GatewayListener, GatewayRequest
from cogcli.gateway.server import HOLD_SECONDS, GatewayHandlers, server_of
from cogcli.gateway.session import MAX_WORKERS, GatewaySession, SessionPlan
from cogcli.gateway.tool_specs import with_tools
from cogcli.specs.catalog import Catalog
from cogcli.specs.pack_skills import reach_pack

if TYPE_CHECKING:
    import signal


class Gateway:
    """The tools behind a gateway, and the session of its client."""

    def __init__(
        self,
        settings: Settings,
        request: GatewayRequest,
        listener: GatewayListener,
    ) -> None:
        """Read the pack and the servers, without starting any.

        Raise the errors of `find_upstreams` and `reach_pack`.
        """
        self._settings = settings
        options = request.options
        self._options = options.replace(max_workers=max(options.max_workers, MAX_WORKERS))
        self._request = request
        self.listener = listener
        self._upstreams = find_upstreams(settings, request.host_file)
        self._base = Catalog()
        if options.pack:
            self._base = reach_pack(open_registry(settings), options.pack)
        self._session: GatewaySession | None = None

    def load_offer(self) -> GatewayOffer:
        """Start the servers, and return what they offer. Blocks."""
        is_governed = bool(self._options.pack)
        return offer_upstreams(self._settings, self._upstreams, is_governed=is_governed)

    def session(self, offer: GatewayOffer) -> GatewaySession:
        """Return the session for the calls of these tools, which is made once."""
        if self._session is None:
            catalog = with_tools(self._base, offer.tools.values())
            plan = SessionPlan(catalog, self._options, self._request.session)
            self._session = GatewaySession(self._settings, plan, self.listener.bug)
        return self._session

    @property
    def hold_seconds(self) -> float:
        """How long a call is held that waits for a person."""
        given = self._request.hold_seconds
        return HOLD_SECONDS if given is None else float(given)

    def close(self, reason: SessionEnding) -> None:
        """End the session, and wait until its episode is sealed."""
        if self._session is not None:
            self._session.close(reason)

    @property
    def running(self) -> int:
        """Return the number of runs that have not ended."""
        return int(self._session is not None and self._session.is_live)

    def end_all(self, signal: str) -> None:
        """Do nothing: the session ends when the transport has ended, within its grace period."""


def run_gateway(
    settings: Settings,
    request: GatewayRequest,
    listener: GatewayListener,
    signals: list[signal.Signals],
    announce: Callable[[GatewayOffer], None],
) -> str:
    """Serve one client over stdio until it disconnects or a signal arrives, and seal its session. Return the name of
    the signal, or an empty text. `announce` is called with what is offered.

    Raise the errors of `Gateway` before the first frame.
    """
    gateway = Gateway(settings, request, listener)
    pipe = take_descriptors()
    ended_by: str = anyio.run(_serve, gateway, pipe, signals, announce)
    gateway.close("signal" if ended_by else "client")
    return ended_by


async def _serve(
    gateway: Gateway,
    pipe: FramePipe,
    signals: list[signal.Signals],
    announce: Callable[[GatewayOffer], None],
) -> str:
    """Serve one client over stdio. Return the name of the signal that ended it, or an empty text."""
    loop = asyncio.get_running_loop()
    offer: asyncio.Future[GatewayOffer] = loop.create_future()

    def settle(found: GatewayOffer | None, error: BaseException | None) -> None:
        if offer.done():
            return
        if found is None:
            offer.set_exception(error or RuntimeError("no offer"))
        else:
            offer.set_result(found)

    def load() -> None:
        try:
            found = gateway.load_offer()
            announce(found)
        except BaseException as error:
            gateway.listener.bug(error)
            loop.call_soon_threadsafe(settle, None, error)
        else:
            loop.call_soon_threadsafe(settle, found, None)

    threads.start(load, name="offer")
    handlers = GatewayHandlers(offer, gateway.session, gateway.listener, gateway.hold_seconds)
    return await serve_stdio(server_of(handlers), pipe, gateway, signals)
