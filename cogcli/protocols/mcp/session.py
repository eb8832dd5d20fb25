"""One server's connection during a run: opened at the first call, shared by all calls, reopened
once if it breaks.

1. Everything here runs on the event loop of the portal thread. Calls run in parallel.
2. A start is cancelled, and the server killed, once no call waits for it.
3. A call ends at its deadline or its cancellation; the SDK then sends `notifications/cancelled`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from cogcli import __version__
from cogcli.base.errors import (
    CallTimeoutError,
    ResponseMappingError,
    ServerFaultError,
    TransportError,
)
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.protocols.invoker import CallLimits
from cogcli.protocols.mcp.errors import CLOSED, NOT_READY, last_lines, translate_error
from cogcli.protocols.mcp.input_forms import ELICIT, SAMPLE, UnfinishedResult
from cogcli.protocols.mcp.methods import ServerListing, request_of
from cogcli.protocols.mcp.tool_definition import ToolDefinition
from cogcli.protocols.mcp.traffic import (
    LOST,
    McpExchange,
    McpFault,
    McpTraffic,
    fault_of,
    in_progress,
)
from cogcli.specs.lock import MEMBERS

if TYPE_CHECKING:
    from types import TracebackType

    import anyio
    from mcp import ClientSession
    from mcp.client._transport import TransportStreams
    from mcp.client.session import ElicitationFnT
    from mcp_types import ElicitResult
    from pydantic import BaseModel

    from cogcli.protocols.mcp.questions import QuestionRelay
    from cogcli.protocols.mcp.sampling import SamplingRelay


MAX_CONNECTIONS: Final = 2
MAX_ROUNDS: Final = 5
"""The most times that a call is sent because its server asks questions."""
LIST_SECONDS: Final = 10.0
"""Seconds that a server may take to list its resources and prompts."""
REASON_SECONDS: Final = 0.5


class OnProgress(Protocol):
    """Receives the progress of a call in the SDK's form."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class McpTransport:
    """One connection to a server, as a transport of the SDK: an asynchronous context manager that
    returns two streams."""

    url = ""
    proxy = ""

    def __init__(self) -> None:
        self.traffic = McpTraffic()
        self.graceful = False
        """Whether the end is orderly: only once the server was ready."""
        self.refused: McpFault | None = None
        """The reason why the last answer to a request was no result; None if it may be one."""
        self.closed_by: McpFault | None = None
        """The reason why the connection is closed; None while it is open."""
        self.on_closed: Callable[[], None] = lambda: None
        self.leftovers: list[str] = []
        """A message about processes of a program that had to be killed."""

    @property
    def stderr_text(self) -> str:
        """The last 64 KiB of the server's stderr, empty without one."""
        return ""

    async def __aenter__(self) -> TransportStreams:
        raise NotImplementedError

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        raise NotImplementedError


class McpLink:
    """One connection, from its start to its end."""

    def __init__(
        self,
        transport: McpTransport,
        questions: QuestionRelay | None,
        sampling: SamplingRelay | None = None,
    ) -> None:
        self.transport = transport
        self.questions = questions
        """The relay of the server's questions; None if no person can answer."""
        self.sampling = sampling
        """The relay of the server's requests to the model; None if it may not ask one."""
        self.service_id = ""
        """The service that it serves, from its first call on."""
        self.ready = asyncio.Event()
        """Set once the start has succeeded or failed."""
        self.session: ClientSession | None = None
        self.tools: list[Json] = []
        self.failure: McpFault | None = None
        self.lost = False
        """Whether the server does not know this session any more. Calls in progress may still be answered."""
        self._stop = asyncio.Event()
        self._scope: anyio.CancelScope | None = None
        self._waiting = 0
        transport.on_closed = self._stop.set
        self.task = asyncio.create_task(self._keep_open())

    @property
    def is_usable(self) -> bool:
        """Whether calls may be made, now or after the start."""
        over = self.lost or self._stop.is_set() or self.transport.closed_by is not None
        return self.failure is None and not over

    def mark_lost(self) -> None:
        """Refuse further calls, and end at once if no call is in progress."""
        self.lost = True
        if self.transport.traffic.is_idle:
            self.stop(gently=False)

    async def wait_started(self, deadline: float) -> None:
        """Wait for the start. Raise the failure of the start, or TransportError at the deadline."""
        import anyio

        self._waiting += 1
        try:
            with anyio.move_on_after(deadline - time.monotonic()) as scope:
                await self.ready.wait()
        finally:
            self._waiting -= 1
            if not self._waiting and not self.ready.is_set() and self._scope is not None:
                self._scope.cancel()
        if scope.cancelled_caught:
            raise _slow_start_error(self.transport.stderr_text)
        if self.failure is not None:
            raise self.failure.error(left=False)

    def stop(self, *, gently: bool) -> None:
        """Begin to end the connection, without waiting."""
        self.transport.graceful = self.transport.graceful and gently
        self._stop.set()
        if not self.ready.is_set() and self._scope is not None:
            self._scope.cancel()

    async def _keep_open(self) -> None:
        import anyio
        from mcp import Client
        from mcp_types import Implementation

        about = Implementation(name="cogcli", version=__version__)
        transport = self.transport
        try:
            with anyio.CancelScope() as self._scope:
                async with Client(
                    transport,
                    mode="auto",
                    client_info=about,
                    cache=None,
                    elicitation_callback=self.questions or _refuse_if(transport.traffic.demands),
                    sampling_callback=self.sampling,
                ) as client:
                    self.tools = await list_tools(client.session)
                    self.session = client.session
                    transport.graceful = True
                    self.ready.set()
                    await self._stop.wait()
                    self.session = None
            if self._scope.cancelled_caught:
                self.failure = fault_of(_slow_start_error(transport.stderr_text))
        except BaseException as error:
            translated = fault_of(translate_error(error, left=False))
            self.failure = transport.closed_by or transport.refused or translated
            if transport.closed_by is None:
                transport.closed_by = self.failure
                transport.traffic.fail_all(self.failure)
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self.session = None
            self.ready.set()


def _refuse_if(demands: Collection[str]) -> ElicitationFnT | None:
    """Return a callback that is never called. It makes the SDK declare elicitation, if results may demand forms."""
    return _refuse_question if ELICIT in demands else None


async def _refuse_question(context: object, params: object) -> ElicitResult:
    """Decline a question."""
    from mcp_types import ElicitResult

    return ElicitResult(action="decline")


class Session:
    """One service's server during a run."""

    def __init__(
        self,
        connect: Callable[[], McpTransport],
        relay: Callable[[McpTraffic], QuestionRelay] | None = None,
        *,
        sampling: Callable[[McpTraffic], SamplingRelay] | None = None,
        pauses_for_input: bool = False,
    ) -> None:
        """`relay` builds the relay for the questions of a connection. None if no person can answer questions.
        `sampling` builds the one for its requests to the model. None if it may not ask one.
        `pauses_for_input`: calls may be left unfinished, until a person has answered.
        """
        self._connect = connect
        self._relay = relay
        self._sampling = sampling
        self._pauses_for_input = pauses_for_input
        self._links: list[McpLink] = []
        self._closed = False

    @property
    def ready_link(self) -> McpLink | None:
        """The open connection, for any thread. None if it is missing or not ready.

        It saves a call the switch to the portal thread and back. If the connection breaks meanwhile, `call` notices.
        """
        link = self._links[-1] if self._links else None
        return link if link is not None and link.is_usable and link.session is not None else None

    async def connect(self, deadline: float) -> McpLink:
        """Return the open connection. Raise RuntimeErrorBase with `left` false."""
        link = self._links[-1] if self._links else None
        if link is None or not link.is_usable:
            broken = link
            if self._closed:
                raise TransportError("call.transport", "the run is over", left=False)
            if sum(not link.lost for link in self._links) >= MAX_CONNECTIONS:
                last = broken and (broken.transport.closed_by or broken.failure)
                why = f": {last.text}" if last else ""
                text = f"the connection broke twice, it is not opened again in this run{why}"
                raise TransportError("call.transport", text, left=False)
            link = self._open_link()
            self._links.append(link)
        await link.wait_started(deadline)
        return link

    def _open_link(self) -> McpLink:
        transport = self._connect()
        if self._pauses_for_input or self._relay is not None:
            transport.traffic.demands = frozenset((ELICIT,))
        questions = sampling = None
        if self._relay is not None:
            transport.traffic.answered |= {ELICIT}
            questions = self._relay(transport.traffic)
        if self._sampling is not None:
            transport.traffic.answered |= {SAMPLE}
            sampling = self._sampling(transport.traffic)
        return McpLink(transport, questions, sampling)

    async def call(
        self,
        link: McpLink,
        operation: str,
        params: Json,
        exchange: McpExchange,
        on_progress: OnProgress | None,
        deadline: float,
    ) -> Json:
        """Return the result of an operation, after checking its form. Members unknown to the SDK are kept. With
        `on_progress` the server is requested to report progress. Raise CallTimeoutError or the errors of the SDK.
        """
        import anyio
        from mcp import MCPError

        if link.session is None:
            raise TransportError("call.transport", "the connection was closed", left=False)
        in_progress.set(exchange)
        questions = None if self._pauses_for_input else link.questions
        relays = [each for each in (questions, link.sampling) if each is not None]
        try:
            with anyio.move_on_after(deadline - time.monotonic()) as exchange.scope:
                return await _send_until_finished(
                    link, link.session, operation, params, exchange, on_progress, relays
                )
        except MCPError as error:
            if error.code == CLOSED and link.transport.closed_by is None:
                # The reason is known once the connection has been closed.
                await asyncio.wait([link.task], timeout=REASON_SECONDS)
            raise
        finally:
            link.transport.traffic.end(exchange)
            if link.lost or exchange.fault == LOST:
                link.mark_lost()
        raise CallTimeoutError("call.timeout", "no answer in time", left=exchange.left)

    async def list_all(self, link: McpLink, deadline: float) -> ServerListing:
        """Return the lists of the server. A list that does not arrive in time is empty."""
        import anyio

        listing, session = ServerListing(link.tools), link.session
        offered = session.server_capabilities if session is not None else None
        if session is None or offered is None:
            return listing
        seconds = min(deadline - time.monotonic(), LIST_SECONDS)
        with anyio.move_on_after(seconds):
            if offered.resources is not None:
                resources = await _list_pages(session.list_resources, "resources")
                templates = await _list_pages(session.list_resource_templates, "resourceTemplates")
                listing = listing._replace(resources=resources, templates=templates)
            if offered.prompts is not None:
                prompts = await _list_pages(session.list_prompts, "prompts")
                listing = listing._replace(prompts=prompts)
        return listing

    @property
    def stderr_text(self) -> str:
        """The stderr of the server that was wait_started last, empty without one."""
        return self._links[-1].transport.stderr_text if self._links else ""

    async def close(self, *, gently: bool) -> list[str]:
        """End the server. Return messages about processes that it left running."""
        self._closed = True
        for link in self._links:
            link.stop(gently=gently)
        await asyncio.gather(*(link.task for link in self._links), return_exceptions=True)
        return [text for link in self._links for text in link.transport.leftovers]


async def _send_until_finished(
    link: McpLink,
    session: ClientSession,
    operation: str,
    params: Json,
    exchange: McpExchange,
    on_progress: OnProgress | None,
    relays: Sequence[QuestionRelay | SamplingRelay],
) -> Json:
    """Return the result of a request. While a result is unfinished, the request is sent again with the answers to its
    questions, as long as one of the relays answers all of them.
    """
    result: Json = {}
    for _ in range(MAX_ROUNDS):
        request = request_of(operation, params)
        result = await session.send_request(request, _plain_json(), progress_callback=on_progress)
        answers: Mapping[str, BaseModel] | None = None
        for relay in relays:
            answers = answers or await relay.answer_all(exchange, result)
        if answers is None:
            break
        link.transport.traffic.end(exchange)
        given = {
            name: answer.model_dump(by_alias=True, exclude_none=True)
            for name, answer in answers.items()
        }
        params = {
            **params,
            "inputResponses": given,
            "requestState": read_record(UnfinishedResult, result).requestState,
        }
    return result


@cache
def _plain_json() -> Any:
    """Return a parser that keeps a result unchanged, because the SDK has checked its form and its models would drop
    unknown members. Building it takes a fifth of a call's time.
    """
    from pydantic import TypeAdapter

    return TypeAdapter(Json)


def _slow_start_error(stderr_text: str) -> CallTimeoutError:
    words = last_lines(stderr_text)
    text = f"{NOT_READY}: {words}" if words else NOT_READY
    hint = "the start is bounded by `timeout_seconds` of its binding, else of its service, else by 60 s"
    return CallTimeoutError("call.timeout", text, hint=hint, left=False)


MAX_PAGES: Final = 50
MAX_TOOLS: Final = 2000
MOST_LIST_PAGES: Final = 10
"""The most pages of a list of resources or prompts. What follows is not listed, but may be read."""


def _keep_members(tool: Json) -> Json:
    """Return the pinned members of a definition, and `execution` if the tool runs only as a task."""
    kept = {name: tool[name] for name in MEMBERS if tool.get(name) is not None}
    if read_record(ToolDefinition, tool).wants_task:
        kept["execution"] = tool["execution"]
    return kept


async def list_tools(session: ClientSession) -> list[Json]:
    """Return the pinned members of every tool's definition, unchanged.

    Raise ResponseMappingError beyond the limits, ServerFaultError if a page repeats."""
    from mcp_types import PaginatedRequestParams

    tools: list[Json] = []
    cursors: set[str] = set()
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.list_tools(
            params=PaginatedRequestParams(cursor=cursor) if cursor else None
        )
        whole = (
            tool.model_dump(by_alias=True, mode="json", exclude_unset=True) for tool in page.tools
        )
        tools += [_keep_members(tool) for tool in whole]
        if len(tools) > MAX_TOOLS:
            raise _too_many_error(f"more than {MAX_TOOLS:,} tools")
        cursor = page.next_cursor
        if not cursor:
            return tools
        if cursor in cursors:
            raise ServerFaultError(
                "call.server-error", "tools/list gives the same page again", left=False
            )
        cursors.add(cursor)
    raise _too_many_error(f"more than {MAX_PAGES} pages")


async def _list_pages(list_page: Callable[..., Awaitable[BaseModel]], member: str) -> list[Json]:
    """Return the entries of all pages of a list that the server returns in time."""
    from mcp import MCPError
    from mcp_types import PaginatedRequestParams

    found: list[Json] = []
    cursor: str | None = None
    for _ in range(MOST_LIST_PAGES):
        params = PaginatedRequestParams(cursor=cursor) if cursor else None
        try:
            page = await list_page(params=params)
        except (MCPError, ValueError):  # no such list, or one of another form
            break
        members = page.model_dump(by_alias=True, mode="json", exclude_none=True)
        found += members[member]
        cursor = members.get("nextCursor")
        if not cursor or len(found) >= MAX_TOOLS:
            break
    return found[:MAX_TOOLS]


def _too_many_error(what: str) -> ResponseMappingError:
    return ResponseMappingError("response.size", f"tools/list has {what}", left=False)


_SLACK_SECONDS: Final = 1.0
"""Seconds after its deadline in which a call may still end by itself."""
_T = TypeVar("_T")


class EventLoopThread:
    """An event loop on a separate thread."""

    def __init__(self) -> None:
        from anyio.from_thread import start_blocking_portal

        self._stack = ExitStack()
        self._portal = self._stack.enter_context(start_blocking_portal(name="mcp"))

    def wait(
        self, limits: CallLimits, action: Callable[..., Awaitable[_T]], *arguments: object
    ) -> _T:
        """Return the result of a coroutine function, which is cancelled together with the call.

        Raise its errors, or CallTimeoutError if it was cancelled or exceeded the deadline by a
        second."""
        if limits.cancel.is_set:
            raise CallTimeoutError("call.timeout", "given up", left=None)
        future: Future[_T] = self._portal.start_task_soon(action, *arguments)

        def give_up() -> None:
            future.cancel()

        with limits.cancel.on_cancel(give_up):
            try:
                return future.result(max(0.0, limits.deadline - time.monotonic()) + _SLACK_SECONDS)
            except (CancelledError, FutureTimeout) as error:
                if isinstance(error, FutureTimeout) and future.done():
                    raise
                future.cancel()
                raise CallTimeoutError("call.timeout", "given up", left=None) from error

    def gather(self, actions: list[Callable[[], Awaitable[_T]]]) -> list[_T]:
        """Return the results of several coroutine functions, which run concurrently."""
        futures: list[Future[_T]] = [self._portal.start_task_soon(action) for action in actions]
        return [future.result() for future in futures]

    def close(self) -> None:
        """End the thread."""
        self._stack.close()
