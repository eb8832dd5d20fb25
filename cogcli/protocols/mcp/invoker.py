"""mcp: tools of MCP servers through the official SDK (docs/reference/protocols.md#mcp).

1. One session per service and run, on one portal thread; the SDK is imported at the first call of a real server.
2. A tool is named by service and name. A server's descriptions of its tools decide nothing and enter no prompt.
3. Before a call goes out, the tool equals its lock or pin, and the arguments fit its input schema.
4. `server:` names a table of functions of the package; those need neither SDK nor process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from cogcli.base.calls import ProgressNotice, QuestionNotice, SampleNotice, ServiceNotice
from cogcli.base.canonical import compact
from cogcli.base.errors import (
    CallTimeoutError,
    RejectedError,
    RuntimeErrorBase,
    ServiceResolutionError,
    TransportError,
)
from cogcli.base.problems import suggestion
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols.http import headers
from cogcli.protocols.http.failures import quote
from cogcli.protocols.invoker import (
    CallLimits,
    CallMeta,
    InvocationRequest,
    InvocationResponse,
    Invoker,
    InvokerContext,
)
from cogcli.protocols.mcp.connect import identity, require_sdk, require_trust, transport_of
from cogcli.protocols.mcp.errors import NOT_READY, translate_error
from cogcli.protocols.mcp.grammar import McpServer
from cogcli.protocols.mcp.input_forms import continuation_members, find_demand
from cogcli.protocols.mcp.methods import ServerListing, method_of, params_of, result_as_tool
from cogcli.protocols.mcp.pins import Pins, read_locked, require_locked
from cogcli.protocols.mcp.questions import QuestionRelay
from cogcli.protocols.mcp.sampling import SamplingRelay
from cogcli.protocols.mcp.session import EventLoopThread, McpLink, OnProgress, Session
from cogcli.protocols.mcp.tool_checks import (
    plain_reply,
    require_arguments,
    require_no_task,
    require_patterns,
    require_size,
    tool_of,
    unusable_schema_notices,
)
from cogcli.protocols.mcp.traffic import LOST, McpExchange, McpTraffic
from cogcli.protocols.model_usage import ModelUsage
from cogcli.protocols.pythoncall.invoker import PythonCall
from cogcli.specs.service import MODULES, TABLES

_JSON: Final = "application/json"
_UNANSWERED: Final = ("call.transport", "call.timeout")
"""Codes of failures whose record includes the server's stderr, which may contain the reason."""
_PROGRESS_SECONDS: Final = 0.1
"""Between two reports of progress of a call that are passed on."""
_REPEATABLE: Final = ("idempotent", "effect")


class Mcp:
    """Calls tools. A server is started at its first call, and ends with the run."""

    def __init__(self, context: InvokerContext) -> None:
        self._context = context
        self._functions = PythonCall(context)
        self._lock = threading.Lock()
        self._sessions: dict[tuple[str, bool], Session] = {}
        self._noted: dict[Session, McpLink] = {}
        """By session the connection whose start was noted."""
        self._portal: EventLoopThread | None = None
        self._closed = False
        self.leftovers: list[str] = []
        """After `close`: a message per server whose processes outlived it and were killed."""

    def invoke(self, request: InvocationRequest, limits: CallLimits) -> InvocationResponse:
        server = McpServer.of(request.service.settings).server
        if server is not None:
            return call_tool(self._functions, server, request, limits)
        with self._mask_errors():
            require_trust(request.service)
            require_size(request)
            try:
                return self._exchange_once(request, limits)
            except _SessionLost as lost:
                first = lost.error
            try:
                return self._exchange_once(request, limits, note=f"{first.message}: opened again")
            except _SessionLost as lost:
                raise lost.error from first

    def tools(self, service: Service, limits: CallLimits) -> list[Json]:
        """Return the masked definitions of the tools and methods that a server offers, sorted by name.
        Raise RuntimeErrorBase."""
        listing = self.listing(service, limits)
        return sorted(listing.tools + listing.methods, key=lambda tool: str(tool["name"]))

    def listing(self, service: Service, limits: CallLimits) -> ServerListing:
        """Return the lists of a server, masked. Raise RuntimeErrorBase."""
        with self._mask_errors():
            require_trust(service)
            portal, session, link = self._open_link(service, limits)
            until = limits.within(limits.start_seconds)
            listing = portal.wait(limits, session.list_all, link, until)
            mask = self._context.secrets.mask_known
            return ServerListing(
                mask(listing.tools),
                mask(listing.resources),
                mask(listing.templates),
                mask(listing.prompts),
            )

    def close(self, grace: float) -> None:
        """End all servers in parallel. Without grace they are killed."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            portal, sessions = self._portal, list(self._sessions.values())
        if portal is not None:
            ends = portal.gather([partial(session.close, gently=grace > 0) for session in sessions])
            self.leftovers += [text for left in ends for text in left]
            portal.close()
        for link in self._noted.values():
            self._add_notice(ServiceNotice(link.service_id, "mcp"))
        self._functions.close(grace)

    @contextmanager
    def _mask_errors(self) -> Iterator[None]:
        """Mask and then cut the messages of errors raised inside, because they quote servers."""
        try:
            yield
        except RuntimeErrorBase as error:
            error.message = quote(error.message, self._context.secrets)
            error.hint = quote(error.hint, self._context.secrets)
            error.args = (error.message,)
            raise

    # -- one call -----------------------------------------------------------------------------------------------------

    def _exchange_once(
        self, request: InvocationRequest, limits: CallLimits, *, note: str = ""
    ) -> InvocationResponse:
        is_http = "url" in request.service.settings
        own = dict(headers.merge_headers(request, self._context.secrets, {}, {})) if is_http else {}
        started, began = self._context.clock.now(), time.monotonic()
        portal, session, link = self._open_link(request.service, limits)
        self._note_start(request, session, link)
        exchange = link.transport.traffic.open(note)
        exchange.headers, exchange.answer_seconds = own, limits.answer_seconds
        exchange.belong_to(request)
        body = params_of(request.operation, request.payload)
        body |= continuation_members(request.continuation)
        about = CallMeta(
            method=method_of(request.operation),
            url=link.transport.url,
            started_at=started,
            request={"media_type": _JSON, "body": body},
            proxy=link.transport.proxy,
        )
        try:
            tool = tool_of(link, request)
            self._require_agreed(request.service, self._context.secrets.mask_known(tool))
            require_patterns(tool)
            require_no_task(tool)
            exchange.notices += unusable_schema_notices(tool)
            require_arguments(tool, request)
            params = {**body, "_meta": _request_meta(request)}
            call = partial(
                portal.wait, limits, session.call, link, request.operation, params, exchange,
                self._progress_of(request),
            )  # fmt: skip
            with limits.cancel.on_cancel(exchange.drop_samples):
                try:
                    answer = _result_of_call(
                        lambda: call(limits.within(limits.seconds)), link, exchange
                    )
                finally:
                    exchange.end_samples()
            meta = _complete_record(about, link, exchange, began, answer)
            self._require_finished(request, answer, meta)
            result = result_as_tool(request.operation, answer)
            response = self._context.secrets.check_quietly(
                lambda each: _build_response(request, each, tool, meta), result
            )
            return _with_sampled_usage(response, exchange) if exchange.samples else response
        except RuntimeErrorBase as error:
            if exchange.samples:
                error.usage = add_sampled_usage(exchange.samples, error.usage)
            error.record = (
                error.record or _complete_record(about, link, exchange, began, None).to_payload()
            )
            if error.code in _UNANSWERED and link.transport.stderr_text:
                error.record["stderr"] = link.transport.stderr_text
            if exchange.fault == LOST:
                raise _SessionLost(error) from error
            raise
        finally:
            for asked, given in exchange.answered:
                self._add_notice(
                    QuestionNotice(
                        request.run_id, asked, given, request.binding.id, request.attempt
                    )
                )

    def _open_link(
        self, service: Service, limits: CallLimits
    ) -> tuple[EventLoopThread, Session, McpLink]:
        if time.monotonic() >= limits.within(None):
            raise CallTimeoutError("call.timeout", "no time was left for the call", left=False)
        session: Session | None = None
        try:
            with limits.cancel.held_back(NOT_READY):
                portal, session = self._find_session(service)
                link = session.ready_link
                if link is None:
                    until = limits.within(limits.start_seconds)
                    link = portal.wait(limits, session.connect, until)
                return portal, session, link
        except RuntimeErrorBase as error:
            if error.code == "call.timeout" and not error.message.startswith(NOT_READY):
                error.message = NOT_READY
            error.left = False  # nothing of the call has left
            if session is not None and session.stderr_text:
                error.record = {**(error.record or {}), "stderr": session.stderr_text}
            raise

    def _note_start(self, request: InvocationRequest, session: Session, link: McpLink) -> None:
        """Record a connection at its first call, and before it the end of a lost one."""
        with self._lock:
            before = self._noted.get(session)
            if before is link or self._closed:
                return
            self._noted[session] = link
            link.service_id = request.service.id
        if before is not None:
            self._add_notice(
                ServiceNotice(before.service_id, "mcp", reason="the connection was lost")
            )
        self._add_notice(ServiceNotice(link.service_id, "mcp", request.run_id, request.step_id))

    def _progress_of(self, request: InvocationRequest) -> OnProgress | None:
        """Return the receiver of a call's progress; None if no caller waits for it. Frequent reports are thinned
        out.
        """
        pass_on = self._context.on_progress
        if pass_on is None:
            return None
        quiet_until = 0.0

        async def report(progress: float, total: float | None, message: str | None) -> None:
            nonlocal quiet_until
            now = time.monotonic()
            if now >= quiet_until:
                quiet_until = now + _PROGRESS_SECONDS
                text = quote(message, self._context.secrets) if message else None
                pass_on(ProgressNotice(request.step_id, progress, total, text))

        return report

    def _add_notice(self, change: ServiceNotice | QuestionNotice | SampleNotice) -> None:
        if self._context.note is not None:
            self._context.note(change)

    def _require_agreed(self, service: Service, tool: Json) -> None:
        agreed = read_locked(service.root, service.id)
        if agreed is not None:
            require_locked(service.id, agreed, tool)
        else:
            Pins(self._context.state_dir).require_same(service.id, identity(service), tool)

    def _require_finished(self, request: InvocationRequest, answer: Json, meta: CallMeta) -> None:
        """Raise InputRequiredError for a result that asks a person for input, if the run can wait for the answer."""
        if not self._context.pauses_for_input:
            return
        demand = find_demand(answer, request.operation, self._context.secrets.mask_known)
        if demand is not None:
            demand.record = meta._replace(reply=None).to_payload()
            raise demand

    # -- sessions -----------------------------------------------------------------------------------------------------

    def _find_session(self, service: Service) -> tuple[EventLoopThread, Session]:
        with self._lock:
            if self._closed:
                raise TransportError("call.transport", "the run is over", left=False)
            if self._portal is None:
                require_sdk()
                self._portal = EventLoopThread()
            # A call of an untrusted layer shares no session with one of a trusted layer.
            key = (service.id, service.trusted)
            session = self._sessions.get(key)
            if session is None:
                # Secrets are resolved before anything starts: a missing one has an error of its own.
                connect = transport_of(service, self._context)
                session = self._sessions[key] = Session(
                    connect,
                    self._relay_of(service),
                    sampling=self._sampling_of(service),
                    pauses_for_input=self._context.pauses_for_input,
                )
            return self._portal, session

    def _relay_of(self, service: Service) -> Callable[[McpTraffic], QuestionRelay] | None:
        """Return a factory for the relay of a connection's questions; None if no person can answer."""
        person = self._context.person
        take = person.take if person is not None else self._context.on_question
        if take is None:
            return None
        mask = self._context.secrets.mask_known
        return lambda traffic: QuestionRelay(
            take, service.id, traffic, mask, shows_addresses=person is not None
        )

    def _sampling_of(self, service: Service) -> Callable[[McpTraffic], SamplingRelay] | None:
        """Return a factory for the relay of a connection's requests to the model; None if it may not ask one."""
        may_ask = service.trusted and McpServer.of(service.settings).sampling == "allow"
        if not may_ask or self._context.open_sampler is None:
            return None
        take = self._context.open_sampler()
        if take is None:
            return None
        mask = self._context.secrets.mask_known
        return lambda traffic: SamplingRelay(take, traffic, mask, self._add_notice)


class _SessionLost(Exception):
    """The server did not know the session, so that a call did not run. `error` is the error to
    raise for it."""

    def __init__(self, error: RuntimeErrorBase) -> None:
        super().__init__(error.message)
        self.error = error


# -- before a call leaves ---------------------------------------------------------------------------------------------


def _request_meta(request: InvocationRequest) -> dict[str, str]:
    meta = {}
    if request.effect in _REPEATABLE:
        meta["cogcli/idempotency-key"] = request.idempotency_key
    if request.traceparent:
        meta["traceparent"] = request.traceparent
    return meta


# -- after it came back -----------------------------------------------------------------------------------------------


def _result_of_call(call: Callable[[], Json], link: McpLink, exchange: McpExchange) -> Json:
    """Return the result of a call. Raise the fault that the transport recorded, else the translated
    error of the SDK."""
    try:
        return call()
    except Exception as error:
        if exchange.fault is not None:
            raise exchange.fault.error(left=exchange.left and exchange.fault != LOST) from error
        gone = link.transport.closed_by
        if gone is not None and not isinstance(error, RuntimeErrorBase):
            raise gone.error(left=exchange.left) from error
        translated = translate_error(error, left=exchange.left)
        translated.left = exchange.left if translated.left is None else translated.left
        raise translated from error


def _complete_record(
    about: CallMeta,
    link: McpLink,
    exchange: McpExchange,
    began: float,
    result: Json | None,
) -> CallMeta:
    return about._replace(
        status=exchange.status,
        media_type=_JSON,
        request_bytes=exchange.request_bytes,
        response_bytes=exchange.response_bytes,
        duration_ms=max(0, round((time.monotonic() - began) * 1000)),
        reply=None if result is None else {"media_type": _JSON, "body": result},
        notices=link.transport.traffic.notices_of(exchange) or None,
    )


def _build_response(
    request: InvocationRequest, result: Json, tool: Json, meta: CallMeta
) -> InvocationResponse:
    try:
        plain = plain_reply(request, result, tool)
        body = plain.body(request.response_mode)
    except RuntimeErrorBase as error:
        # A reply that is not JSON or too large is not recorded.
        kept = error.code not in ("response.not-json", "response.size")
        error.record = (meta if kept else meta._replace(reply=None)).to_payload()
        raise
    return InvocationResponse(body, plain.usage(body).add_to(meta))


def _with_sampled_usage(response: InvocationResponse, exchange: McpExchange) -> InvocationResponse:
    usage = add_sampled_usage(exchange.samples, response.meta.usage)
    return response._replace(meta=response.meta._replace(usage=usage))


def add_sampled_usage(
    samples: Sequence[SampleNotice], reported: Mapping[str, int] | None
) -> dict[str, int] | None:
    """Return the usage that a server reports, and the tokens of its requests to our model. None if neither is known."""
    replies = [each.reply for each in samples if each.reply is not None]
    if not replies:
        return None if reported is None else dict(reported)
    tokens_in, tokens_out = (
        sum(each.tokens_in for each in replies),
        sum(each.tokens_out for each in replies),
    )
    return ModelUsage.add_tokens(reported, tokens_in, tokens_out)


def call_tool(
    functions: Invoker, server: str, request: InvocationRequest, limits: CallLimits
) -> InvocationResponse:
    """Call a bundled tool and return its response. `functions` is the invoker of Python functions.
    Raise RuntimeErrorBase."""
    table = TABLES.get(server)
    if table is None:
        text = f"service `{request.service.id}`: there is no shipped server `{server}`"
        raise ServiceResolutionError("service.unknown", text, left=False)
    if request.operation not in table:
        text = f"`{server}` has no tool `{request.operation}`; it has {', '.join(sorted(table))}"
        raise RejectedError(
            "call.rejected", text, hint=suggestion(request.operation, table), left=False
        )
    module, function = table[request.operation]
    service = Service(
        id=request.service.id, kind="pythoncall", module=MODULES + module, trusted=True
    )
    body, meta = functions.invoke(request._replace(service=service, operation=function), limits)
    if request.response_mode == "json":
        return InvocationResponse(body, meta)
    text = compact(body).decode()
    whole = {"structured": body, "text": text, "content": []}
    return InvocationResponse({"text": text} if request.response_mode == "text" else whole, meta)
