"""mcp: tools of MCP servers through the official SDK (docs/reference/protocols.md#mcp).

1. One session per service and run, on one portal thread; the SDK is imported at the first call of a real server.
2. A tool is named by service and name. A server's descriptions of its tools decide nothing and enter no prompt.
3. Before a call goes out, the tool equals its lock or pin, and the arguments fit its input schema.
4. `server:` names a table of functions of the package; those need neither SDK nor process.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import orjson

from cogcli.core.addresses import literal_refusal
from cogcli.core.errors import (
    CallTimeoutError,
    RejectedError,
    RequestMappingError,
    ResponseMappingError,
    RuntimeErrorBase,
    SafetyScopeError,
    ServerFaultError,
    ServiceResolutionError,
    TransportError,
)
from cogcli.core.jsonvalue import NotJson, to_plain_json
from cogcli.core.problems import suggestion
from cogcli.protocols.http import headers
from cogcli.protocols.http.failures import quote
from cogcli.protocols.invoker import (
    DEFAULT_BYTES,
    CallLimits,
    CallMeta,
    InvocationRequest,
    InvocationResponse,
    InvokerContext,
)
from cogcli.protocols.mcp import bundled_tools
from cogcli.protocols.mcp.body import body_of, result_usage
from cogcli.protocols.mcp.errors import NOT_READY, translate_error
from cogcli.protocols.mcp.pins import Pins, require_locked
from cogcli.protocols.mcp.process import Program, environment
from cogcli.protocols.mcp.session import McpLink, McpTransport, Session
from cogcli.protocols.mcp.stdio import Stdio
from cogcli.protocols.mcp.thread import Portal
from cogcli.protocols.mcp.tool_lock import read_locked
from cogcli.protocols.mcp.traffic import McpExchange, McpTraffic
from cogcli.protocols.pythoncall.invoker import PythonCall
from cogcli.schema import validator
from cogcli.specs.service import Service, network_of

if TYPE_CHECKING:
    from cogcli.protocols.mcp.http import McpEndpoint

_JSON: Final = "application/json"
_UNANSWERED: Final = ("call.transport", "call.timeout")
"""Codes of failures whose record gets the server's stderr: it may hold the reason."""
_REPEATABLE: Final = ("idempotent", "effect")


class Mcp:
    """Calls tools. A server is started at its first call, and ends with the run."""

    def __init__(self, context: InvokerContext) -> None:
        self._context = context
        self._functions = PythonCall(context)
        self._lock = threading.Lock()
        self._sessions: dict[tuple[str, bool], Session] = {}
        self._portal: Portal | None = None
        self._closed = False
        self.leftovers: list[str] = []
        """After `close`: a message per server whose processes outlived it and were killed."""

    def invoke(self, request: InvocationRequest, limits: CallLimits) -> InvocationResponse:
        server = request.service.settings.get("server")
        if server is not None:
            return bundled_tools.call_tool(self._functions, server, request, limits)
        with self._quoted_errors():
            _require_trust(request.service)
            _require_size(request)
            return self._call(request, limits)

    def tools(self, service: Service, limits: CallLimits) -> list[dict[str, Any]]:
        """The definitions of the tools that a service's server lists, sorted by name. Raises RuntimeErrorBase."""
        with self._quoted_errors():
            _require_trust(service)
            return sorted(self._connect(service, limits)[2].tools, key=lambda tool: str(tool["name"]))

    def close(self, grace: float) -> None:
        """End all servers in parallel; without grace they are killed."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            portal, sessions = self._portal, list(self._sessions.values())
        if portal is not None:
            ends = portal.gather([partial(session.close, gently=grace > 0) for session in sessions])
            self.leftovers += [text for left in ends for text in left]
            portal.close()
        self._functions.close(grace)

    @contextmanager
    def _quoted_errors(self) -> Iterator[None]:
        """Mask, then cut the messages of errors raised inside: they quote servers."""
        try:
            yield
        except RuntimeErrorBase as error:
            error.message = quote(error.message, self._context.secrets)
            error.args = (error.message,)
            raise

    # -- one call -----------------------------------------------------------------------------------------------------

    def _call(self, request: InvocationRequest, limits: CallLimits) -> InvocationResponse:
        """Make the call; once more in a new session where the server does not know the old one."""
        try:
            return self._exchange_once(request, limits)
        except _SessionLost as lost:
            first = lost.error
        try:
            return self._exchange_once(request, limits, note=f"{first.message}: opened anew")
        except _SessionLost as lost:
            raise lost.error from first

    def _exchange_once(
        self, request: InvocationRequest, limits: CallLimits, *, note: str = ""
    ) -> InvocationResponse:
        is_http = "url" in request.service.settings
        own = dict(headers.merge_headers(request, self._context.secrets, {}, {})) if is_http else {}
        started, began = self._context.clock.now(), time.monotonic()
        portal, session, link = self._connect(request.service, limits)
        exchange = link.transport.traffic.open(note)
        exchange.headers = own
        about = CallMeta(
            method="tools/call",
            url=link.transport.url,
            started_at=started,
            request=_request_record(request),
            proxy=link.transport.proxy,
        )
        try:
            tool = _tool(link, request)
            self._require_agreed(request.service, tool)
            _require_patterns(tool)
            exchange.notices += _unusable_schema_notices(tool)
            _require_arguments(tool, request)
            call = partial(portal.wait, limits, session.call, link, _params(request), exchange)
            result = _result(lambda: call(limits.within(limits.seconds)), link, exchange)
            meta = _complete_record(about, link, exchange, began, result)
            return _response(request, result, tool, meta)
        except RuntimeErrorBase as error:
            error.record = error.record or _complete_record(about, link, exchange, began, None).to_payload()
            if error.code in _UNANSWERED and link.transport.stderr_text:
                error.record["stderr"] = link.transport.stderr_text
            if exchange.fault is not None and exchange.fault.is_lost:
                raise _SessionLost(error) from error
            raise

    def _connect(self, service: Service, limits: CallLimits) -> tuple[Portal, Session, McpLink]:
        if time.monotonic() >= limits.deadline:
            raise CallTimeoutError("call.timeout", "no time was left for the call", left=False)
        session: Session | None = None
        try:
            with limits.cancel.staying(NOT_READY):
                portal, session = self._session(service)
                until = limits.within(limits.start_seconds)
                return portal, session, portal.wait(limits, session.connect, until)
        except CallTimeoutError as error:  # the server did not start: that is no call that ran late
            raise TransportError("call.transport", NOT_READY, left=False) from error
        except RuntimeErrorBase as error:
            error.left = False
            if session is not None and session.stderr_text:
                error.record = {**(error.record or {}), "stderr": session.stderr_text}
            raise

    def _require_agreed(self, service: Service, tool: dict[str, Any]) -> None:
        agreed = read_locked(service.root, service.id)
        if agreed is not None:
            require_locked(service.id, agreed, tool)
        else:
            Pins(self._context.state_dir).require_same(service.id, identity(service), tool)

    # -- sessions -----------------------------------------------------------------------------------------------------

    def _session(self, service: Service) -> tuple[Portal, Session]:
        with self._lock:
            if self._closed:
                raise TransportError("call.transport", "the run is over", left=False)
            portal = self._portal = self._portal or _portal()
            # A call of an untrusted layer shares no session with one of a trusted layer.
            key = (service.id, service.trusted)
            session = self._sessions.get(key)
            if session is None:
                # Secrets are resolved before anything starts: a missing one has an error of its own.
                connect = transport_of(service, self._context)
                session = self._sessions[key] = Session(connect)
            return portal, session


class _SessionLost(Exception):
    """A call did not run, since the server did not know the session; `error` is the error to raise for it."""

    def __init__(self, error: RuntimeErrorBase) -> None:
        super().__init__(error.message)
        self.error = error


def _portal() -> Portal:
    require_sdk()

    return Portal()


def require_sdk() -> None:
    """Import the SDK. Raises ServiceResolutionError `env.extra` with the line that installs it."""
    import logging

    try:
        import mcp  # noqa: F401
    except ImportError as error:
        hint = "pip install 'cogcli[mcp]'"
        text = "this needs `mcp`, which is not installed"
        raise ServiceResolutionError("env.extra", text, hint=hint, left=False) from error
    # The SDK logs what our records hold already; without a handler, Python would print it to stderr.
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def transport_of(service: Service, context: InvokerContext) -> Callable[[], McpTransport]:
    """A factory of connections to a service's server.

    Raises ServiceResolutionError where a secret is missing, SafetyScopeError for an address that is not allowed.
    """
    if "url" in service.settings:
        from cogcli.protocols.mcp.http import StreamableHttp

        address = _address(service, context)
        return lambda: StreamableHttp(address, McpTraffic())

    settings = service.settings
    own = {name: context.secrets.expand(text) for name, text in (settings.get("env") or {}).items()}
    program = Program(
        settings["command"],
        tuple(settings.get("args") or ()),
        _directory(service),
        environment(context.environ, own),
    )
    return lambda: Stdio(program, McpTraffic())


def _address(service: Service, context: InvokerContext) -> McpEndpoint:
    from urllib.parse import urlsplit

    from cogcli.core.http import proxy_for
    from cogcli.protocols.mcp.http import McpEndpoint
    from cogcli.protocols.mcp.refusals import Refusals

    url, secrets, network = service.settings["url"], context.secrets, network_of(service)
    parts = urlsplit(url)
    if refusal := literal_refusal(parts.hostname or "", network):
        raise SafetyScopeError("safety.scope", f"{parts.hostname} {refusal}", left=False)
    own = {
        **headers.declared_headers(service, secrets, service.metadata, trusted=service.trusted),
        **headers.credentials(service, secrets),
    }
    environ = context.environ if context.use_env_proxy else {}
    proxy = proxy_for(environ, parts.scheme, parts.hostname or "") if environ else ""
    refusals = Refusals(service, secrets, context.clock)
    return McpEndpoint(url, network, own, environ, proxy, refusals)


def identity(service: Service) -> Any:
    """The key of a server's pins: its URL, or its command line and directory. The service's id is no part of it."""
    settings = service.settings
    if "url" in settings:
        return {"url": settings["url"]}
    return {
        "command": settings["command"],
        "args": list(settings.get("args") or ()),
        "cwd": _directory(service),
    }


def _directory(service: Service) -> str:
    """The working directory of a server: its layer's root, or `cwd` below it."""
    return os.path.abspath(os.path.join(service.root or os.curdir, service.settings.get("cwd") or ""))


# -- before a call leaves ---------------------------------------------------------------------------------------------


def _require_trust(service: Service) -> None:
    if "command" in service.settings and not service.trusted:
        raise ServiceResolutionError(
            "service.untrusted",
            f"service `{service.id}`: this project may not start programs of its own",
            hint="cogcli config trust",
            left=False,
        )


def _require_size(request: InvocationRequest) -> None:
    cap = request.binding.metadata.get("max_request_bytes") or DEFAULT_BYTES
    size = len(orjson.dumps(request.payload))
    if size > cap:
        text = f"the arguments have {size:,} bytes, at most {cap:,} are allowed"
        raise RequestMappingError("request.size", text, left=False)


def _tool(link: McpLink, request: InvocationRequest) -> dict[str, Any]:
    found = [tool for tool in link.tools if tool["name"] == request.operation]
    if len(found) == 1:
        return found[0]
    name, service = request.operation, request.service.id
    if found:
        text = f"service `{service}` lists tool `{name}` {len(found)} times"
        raise ServerFaultError("call.server-error", text, left=False)
    some = ", ".join(sorted(tool["name"] for tool in link.tools)[:20]) or "none"
    text = f"service `{service}` has no tool `{name}`; it has {some}"
    hint = suggestion(name, [tool["name"] for tool in link.tools])
    raise RejectedError("call.rejected", text[:500], hint=hint, left=False)


_SCHEMAS = (("inputSchema", "input"), ("outputSchema", "output"))


def _require_patterns(tool: dict[str, Any]) -> None:
    """Raise RejectedError for a tool with a pattern that cannot be applied: its arguments could not be checked. A lock
    makes such a tool ineligible (`wire.pattern`)."""
    for member, _ in _SCHEMAS:
        for said in validator.refused_patterns(tool.get(member)):
            hint = "use a tool without it: cogcli explain wire.pattern"
            raise RejectedError("call.rejected", f"tool `{tool['name']}` has {said}", hint=hint, left=False)


def _unusable_schema_notices(tool: dict[str, Any]) -> Iterator[str]:
    """A notice per schema that cannot be applied; the call is made without that check."""
    for member, word in _SCHEMAS:
        schema = tool.get(member)
        if isinstance(schema, dict) and not validator.is_usable(schema):
            yield f"the {word} schema of tool `{tool['name']}` cannot be applied: nothing was checked by it"


def _require_arguments(tool: dict[str, Any], request: InvocationRequest) -> None:
    problems = _violation_text(tool.get("inputSchema"), request.payload)
    if problems:
        text = f"tool `{request.operation}` does not take these arguments: {problems}"
        raise RequestMappingError("request.value", text, left=False)


def _violation_text(schema: Any, value: Any) -> str:
    """How a value breaks a server's schema; empty if it fits, or if the schema cannot be applied."""
    found = validator.errors(schema, value) if isinstance(schema, dict) else []
    if any(message == validator.UNUSABLE for _, message in found):
        return ""
    return "; ".join(f"`{place}`: {message}" if place else message for place, message in found)[:500]


def _params(request: InvocationRequest) -> dict[str, Any]:
    return {"name": request.operation, "arguments": request.payload, "_meta": _meta(request)}


def _meta(request: InvocationRequest) -> dict[str, str]:
    meta = {}
    if request.effect in _REPEATABLE:
        meta["cogcli/idempotency-key"] = request.idempotency_key
    if request.traceparent:
        meta["traceparent"] = request.traceparent
    return meta


# -- after it came back -----------------------------------------------------------------------------------------------


def _result(call: Callable[[], dict[str, Any]], link: McpLink, exchange: McpExchange) -> dict[str, Any]:
    """The result of a call. Raises the fault that the transport recorded, else the SDK's error translated."""
    try:
        return call()
    except Exception as error:
        if exchange.fault is not None:
            raise exchange.fault.error(left=exchange.left and not exchange.fault.is_lost) from error
        gone = link.transport.closed_by
        if gone is not None and not isinstance(error, RuntimeErrorBase):
            raise gone.error(left=exchange.left) from error
        translated = translate_error(error, left=exchange.left)
        translated.left = exchange.left if translated.left is None else translated.left
        raise translated from error


def _request_record(request: InvocationRequest) -> dict[str, Any]:
    return {"media_type": _JSON, "body": {"name": request.operation, "arguments": request.payload}}


def _complete_record(
    about: CallMeta, link: McpLink, exchange: McpExchange, began: float, result: dict[str, Any] | None
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


def _response(
    request: InvocationRequest, result: dict[str, Any], tool: dict[str, Any], meta: CallMeta
) -> InvocationResponse:
    try:
        result = to_plain_json(result)
        _require_reply(request, result, tool)
        body = body_of(result, request.binding.metadata.get("response_mode") or "json")
    except NotJson as error:
        _fail(
            ResponseMappingError("response.not-json", f"the reply holds {error}", left=True), meta, kept=False
        )
    except RuntimeErrorBase as error:
        _fail(error, meta, kept=error.code != "response.size")
    return InvocationResponse(body, result_usage(result, body).add_to(meta))


def _fail(error: RuntimeErrorBase, meta: CallMeta, *, kept: bool) -> NoReturn:
    error.record = (meta if kept else meta._replace(reply=None)).to_payload()
    raise error


def _require_reply(request: InvocationRequest, result: dict[str, Any], tool: dict[str, Any]) -> None:
    cap, size = request.binding.metadata.get("max_response_bytes") or DEFAULT_BYTES, len(orjson.dumps(result))
    if size > cap:
        text = f"the reply has {size:,} bytes, at most {cap:,} are allowed"
        raise ResponseMappingError("response.size", text, left=True)
    structured = result.get("structuredContent")
    if structured is None or result.get("isError") is True:
        return
    if problems := _violation_text(tool.get("outputSchema"), structured):
        text = f"the reply breaks the tool's own output schema: {problems}"
        raise ServerFaultError("call.server-error", text, left=True)
