"""A gateway as a server of one client: its offer, its session and its transport."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from cogcli.app.registry import open_registry
from cogcli.app.serving.http_transport import http_server, serve_http
from cogcli.app.serving.server_socket import redirect_standard_streams
from cogcli.app.serving.stdio_transport import FramePipe, serve_stdio, take_descriptors
from cogcli.app.settings import Settings
from cogcli.base import threads
from cogcli.declarations.session_events import SessionEnding
from cogcli.gateway.clients import ClientIdentity, SessionPool
from cogcli.gateway.narrowing import find_constraints, narrow_schema
from cogcli.gateway.offer import GatewayOffer, find_upstreams, offer_upstreams
from cogcli.gateway.own_episode import list_own, read_own
from cogcli.gateway.request import GatewayListener, GatewayRequest, HttpListener
from cogcli.gateway.server import HOLD_SECONDS, GatewayHandlers, server_of
from cogcli.gateway.session import MAX_WORKERS, GatewaySession, SessionPlan
from cogcli.gateway.tool_specs import SKILL, OfferedTool, with_tools
from cogcli.policy.pack_policy import Policy
from cogcli.run.policy import pack_of
from cogcli.run.prepare import RunRequest, call_policy
from cogcli.specs.catalog import Catalog
from cogcli.specs.pack_skills import reach_pack
from cogcli.specs.unchecked import object_at

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server import Server


class Gateway:
    """The tools behind a gateway, and the session of its client."""

    def __init__(
        self,
        settings: Settings,
        request: GatewayRequest,
        listener: GatewayListener,
    ) -> None:
        """Read the pack and the servers, without starting any.

        Raise the errors of `find_upstreams`, `reach_pack` and `call_policy`.
        """
        self._settings = settings
        options = request.options
        self._options = options.replace(max_workers=max(options.max_workers, MAX_WORKERS))
        self._request = request
        self.listener = listener
        self._upstreams = find_upstreams(settings, request.host_file)
        self._base = Catalog()
        self._policy: Policy | None = None
        if options.pack:
            self._base = reach_pack(open_registry(settings), options.pack)
            policy = RunRequest(SKILL, {}, options).policy
            call_policy(self._base, policy, SKILL, {})  # raises what the first call would raise
            if policy is not None and not options.shadow:  # a trial narrows nothing
                self._policy = Policy.of(pack_of(self._base, policy))
        self._catalog: Catalog | None = None
        self._sessions = SessionPool(self._begin_session, request.rule, request.session)

    def load_offer(self) -> GatewayOffer:
        """Start the servers, and return their tools as narrowed by the rules of the pack. Blocks."""
        is_governed = bool(self._options.pack)
        offer = offer_upstreams(self._settings, self._upstreams, is_governed=is_governed)
        tools = {name: self._narrow_tool(tool) for name, tool in offer.tools.items()}
        return offer._replace(tools=tools)

    def _narrow_tool(self, tool: OfferedTool) -> OfferedTool:
        """Return a tool with the input schema that a client reads."""
        if self._policy is None:
            return tool
        schema = object_at(tool.definition, "inputSchema")
        found = find_constraints(self._policy, self._options.intent, tool.capability)
        if not found:
            return tool
        return tool._replace(listed_schema=narrow_schema(schema, found, tool.input_fields))

    def session(self, offer: GatewayOffer, client: ClientIdentity) -> GatewaySession:
        """Return the session of a client for the calls of these tools. Raise the errors of `SessionPool.find`."""
        if self._catalog is None:
            self._catalog = with_tools(self._base, offer.tools.values())
        return self._sessions.find(client)

    def list_own(self, client: ClientIdentity) -> list[types.Resource]:
        """Return the episode of a client's session as a resource."""
        return list_own(self._sessions.peek(client))

    def read_own(self, client: ClientIdentity, uri: str) -> types.ReadResourceResult:
        """Return the calls of a client's session. Raise the errors of `own_episode.read_own`."""
        return read_own(self._settings, self._sessions.peek(client), uri)

    def _begin_session(self, name: str, client: str) -> GatewaySession:
        plan = SessionPlan(
            self._catalog or Catalog(),
            self._options,
            name,
            client,
            self._request.limits,
            reports_progress=True,
            takes_questions=self._request.asks_client,
        )
        return GatewaySession(self._settings, plan, self.listener.bug)

    @property
    def hold_seconds(self) -> float:
        """The seconds for which a call that waits for a person is held."""
        given = self._request.hold_seconds
        return HOLD_SECONDS if given is None else float(given)

    @property
    def asks_client(self) -> bool:
        """Whether the person at the client may approve calls."""
        return self._request.asks_client

    def close(self, reason: SessionEnding) -> None:
        """End the sessions, and wait until their episodes are sealed."""
        self._sessions.close(reason)

    @property
    def running(self) -> int:
        """Return the number of runs that have not ended."""
        return self._sessions.live_count

    def end_all(self, signal: str) -> None:
        """Begin to end the sessions of HTTP clients. That of a stdio client ends after its transport."""
        if self._request.http is not None:
            self._sessions.stop_all("signal")


def run_gateway(
    settings: Settings,
    request: GatewayRequest,
    listener: GatewayListener,
    signals: list[signal.Signals],
    announce: Callable[[GatewayOffer], None],
) -> str:
    """Serve until the client on stdio disconnects or a signal arrives, and seal the sessions. Return the name of the
    signal, or an empty text. `announce` is called with the offered tools. Raise the errors of `Gateway` before the
    first frame.
    """
    gateway = Gateway(settings, request, listener)
    http = request.http
    if http is None:
        pipe = take_descriptors()
        ended_by: str = anyio.run(
            _serve_transport, gateway, announce, partial(_serve_stdio, pipe, signals)
        )
    else:
        redirect_standard_streams()
        ended_by = anyio.run(
            _serve_transport, gateway, announce, partial(_serve_http, http, signals)
        )
    # A host that has closed the stream sends a signal soon after. The episode is sealed first.
    for number in signals:
        signal.signal(number, lambda *_: None)
    gateway.close("signal" if ended_by else "client")
    return ended_by


async def _serve_stdio(
    pipe: FramePipe, signals: list[signal.Signals], server: Server[Any], gateway: Gateway
) -> str:
    return await serve_stdio(server, pipe, gateway, signals)


async def _serve_http(
    http: HttpListener, signals: list[signal.Signals], server: Server[Any], gateway: Gateway
) -> str:
    web = http_server(server, http.address, http.token)
    return await serve_http(web, http.socket, gateway, signals)


async def _serve_transport(
    gateway: Gateway,
    announce: Callable[[GatewayOffer], None],
    serve: Callable[[Server[Any], Gateway], Awaitable[str]],
) -> str:
    """Serve one transport. Return the name of the signal that ended it, or an empty text."""
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
    handlers = GatewayHandlers(
        offer,
        gateway.session,
        gateway,
        gateway.listener,
        gateway.hold_seconds,
        asks_client=gateway.asks_client,
    )
    return await serve(server_of(handlers), gateway)
