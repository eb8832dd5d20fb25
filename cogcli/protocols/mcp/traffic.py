"""The messages between a session and its server, on any transport.

1. A call is found by its request id from the moment its frame is sent until it has its answer.
2. Of a server's requests only `ping` is expected, elicitation if someone takes questions, and sampling if the service
   may ask the model. Otherwise elicitation is declined. All others, such as roots, get -32601. Both are noted, and the
   SDK never sees them.
3. An answer whose id, by type and value, matches no open request is noted and dropped; so is a
   second answer.
4. An answer of more than 1,000 content items is refused before the items are read.
5. The exchange of a failed call holds its fault, as our error; for the SDK the call just ends.
6. A session that the server does not know is lost: the call did not run."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Self

from cogcli.base.calls import QuestionAnswer, SampleNotice, ServerQuestion
from cogcli.base.errors import (
    RequestMappingError,
    ResponseMappingError,
    RuntimeErrorBase,
    ServerFaultError,
    TransportError,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.protocols.mcp.input_forms import ELICIT
from cogcli.protocols.mcp.methods import CALL, METHODS, count_items
from cogcli.protocols.mcp.tool_result import InputDemand
from cogcli.protocols.rpc_messages import read_answer

if TYPE_CHECKING:
    import anyio
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage, JSONRPCResponse

    from cogcli.protocols.invoker import InvocationRequest
    from cogcli.protocols.mcp.open_sample import OpenSample

MAX_FRAME: Final = 8 * 1024 * 1024
MAX_ITEMS: Final = 1000
MAX_NOTICES: Final = 20
_RESULT_DEFAULTS: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""The newest protocol's values of members that a result may leave out."""
METHOD_NOT_FOUND: Final = -32601
INTERNAL: Final = -32603
_UNKNOWN_SESSION: Final = re.compile(
    r"\bsession\b.*\b(not found|not exist|unknown|expired|terminated|invalid|no longer)\b"
    r"|\b(no such|no valid|invalid|unknown|expired|missing)\s+(mcp[ -])?session\b",
    re.IGNORECASE,
)
_LATE: Final = -32001
_HEAD_ID = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([0-9]{1,15})\b')
_TAIL_ID = re.compile(rb'"id"\s*:\s*([0-9]{1,15})\s*\}\s*$')
_HANDSHAKE: Final = "initialize"
"""The first request to a server of a protocol before 2026-07-28."""
LARGE: Final = 256 * 1024
"""Bytes of a frame above which it is parsed on a thread: on the event loop it would delay other
calls."""
MAX_NODES: Final = 500_000
_CANCEL_SECONDS: Final = 0.5
"""Seconds in which a cancelled request to the model may still say what it used."""
_MAX_NAME: Final = 80
_MAX_REFUSALS: Final = 16


class McpFault(NamedTuple):
    """The reason why a call has no usable answer. Calls that share a fault raise separate errors."""

    kind: type[RuntimeErrorBase]
    code: str
    text: str
    hint: str = ""
    retry_after: float | None = None

    def error(self, *, left: bool) -> RuntimeErrorBase:
        """Return a new error of this fault. `left`: whether the request was sent."""
        error = self.kind(self.code, self.text, hint=self.hint, left=left)
        error.retry_after = self.retry_after
        return error


def fault_of(error: RuntimeErrorBase) -> McpFault:
    """Return the fault of an error, so that several calls can raise it."""
    return McpFault(type(error), error.code, error.message, error.hint, error.retry_after)


TOO_LONG: Final = McpFault(
    ResponseMappingError,
    "response.size",
    f"the server sent a frame of more than {MAX_FRAME:,} bytes",
)
LOST: Final = McpFault(
    TransportError, "call.transport", "the server does not know the session any more"
)
"""The fault of a call that did not run and is repeated in a new session."""


class McpExchange:
    """One call: whether its frame went out, the size of both frames, and its fault."""

    def __init__(self) -> None:
        self.id: int | str | None = None
        self.left = False
        self.request_bytes: int | None = None
        self.response_bytes: int | None = None
        self.headers: Mapping[str, str] = {}
        """HTTP headers of this call alone."""
        self.status: int | None = None
        self.fault: McpFault | None = None
        self.notices: list[str] = []
        """Notices of this call besides those of its connection."""
        self.step_id = ""
        """The step of the call."""
        self.capability_id = ""
        self.scope: anyio.CancelScope | None = None
        """What ends the call at its time limit; None while it is not sent."""
        self.answer_seconds = 0.0
        """Seconds for a person's answers that are left. Meanwhile the time limit stands still."""
        self.questions = 0
        """How often the server asked by `elicitation/create`."""
        self.answered: list[tuple[ServerQuestion, QuestionAnswer]] = []
        """The questions that a person at the terminal answered, for the log."""
        self.run_id = ""
        self.binding_id = ""
        self.service_id = ""
        self.attempt = 1
        self.samples: list[SampleNotice] = []
        """The requests of the server to the model, for the log and the usage of the attempt."""
        self.sampling: list[OpenSample] = []
        """The requests of the server to the model, open and ended."""
        self.has_ended = False
        """Whether the call has ended for whom it was made, so that no request to the model is sent."""
        self.noted_from = 0
        self.noise_from = 0

    def end_samples(self, seconds: float = _CANCEL_SECONDS) -> None:
        """Cancel the requests to the model that are open, and wait at most `seconds` for their usage. Afterwards each
        has its notice, and no further one is sent.
        """
        self.has_ended = True
        until = time.monotonic() + seconds
        for sample in self.sampling:
            sample.end_with_call(max(0.0, until - time.monotonic()))

    def drop_samples(self) -> None:
        """Give each open request to the model its notice at once: the engine no longer waits for the call."""
        self.end_samples(0.0)

    def belong_to(self, request: InvocationRequest) -> None:
        """Take over which attempt this is, for its records."""
        self.run_id, self.step_id, self.attempt = request.run_id, request.step_id, request.attempt
        self.capability_id = request.capability_id
        self.binding_id, self.service_id = request.binding.id, request.service.id


in_progress: ContextVar[McpExchange | None] = ContextVar("in_progress", default=None)
"""The exchange of the current task."""


class McpTraffic:
    """The open exchanges of one connection, and notices of unexpected messages from the server."""

    def __init__(self) -> None:
        self._pending: set[int | str] = set()
        self._open: dict[int | str, McpExchange] = {}
        self._notices: list[str] = []
        self.noise = 0
        self.answered = frozenset(("ping",))
        """The requests of the server that are not refused."""
        self.demands = frozenset[str]()
        """The requests that an unfinished result may contain, although the server may not send them directly."""

    def open(self, note: str = "") -> McpExchange:
        """Return a new exchange, and start to collect its notices, beginning with `note` if it is
        given."""
        exchange = McpExchange()
        exchange.noted_from, exchange.noise_from = len(self._notices), self.noise
        if note:
            self.note(note)
        return exchange

    def frame_of(self, message: JSONRPCMessage, end: bytes = b"") -> bytes:
        """Return the bytes of a message with their terminator. A handshake declares elicitation only if questions
        inside a call are answered. Raise RequestMappingError `request.size`.
        """
        from mcp_types import JSONRPCRequest

        if isinstance(message, JSONRPCRequest) and message.method == _HANDSHAKE:
            declared = (message.params or {}).get("capabilities")
            if isinstance(declared, dict) and not self.answered & self.demands:
                declared.pop("elicitation", None)
        return frame_of(message, end)

    def register(self, message: JSONRPCMessage, size: int | None = None) -> McpExchange | None:
        """Register a request by its id before it is sent. Return the current task's exchange if it
        is its call."""
        from mcp_types import JSONRPCRequest

        if not isinstance(message, JSONRPCRequest):
            return None
        self._pending.add(message.id)
        exchange = in_progress.get()
        if exchange is None or (message.method != CALL and message.method not in METHODS):
            return None
        exchange.id, exchange.request_bytes = message.id, size
        self._open[message.id] = exchange
        return exchange

    def is_expected(self, id: int | str | None) -> bool:
        """Return whether this id belongs to an open request. It is expected only once."""
        # An error without an id is about a request that the server could not read; the SDK ignores it.
        expected = id is None or id in self._pending
        self._pending.discard(id if id is not None else "")
        return expected

    def of(self, id: int | str | None) -> McpExchange | None:
        """Return the open exchange with this request id, None without one."""
        return None if id is None else self._open.get(id)

    def end(self, exchange: McpExchange) -> None:
        """Forget an exchange whose caller no longer waits."""
        if exchange.id is not None:
            self._open.pop(exchange.id, None)
        for sample in exchange.sampling:
            sample.cancel.set()

    @property
    def only_open(self) -> McpExchange | None:
        """The exchange that is open; None if none is, or more than one."""
        return next(iter(self._open.values())) if len(self._open) == 1 else None

    @property
    def is_idle(self) -> bool:
        """Whether no exchange is open."""
        return not self._open

    def fail_all(self, fault: McpFault) -> None:
        """Set the fault of all open exchanges that have none, because the connection is lost."""
        for exchange in self._open.values():
            exchange.fault = exchange.fault or fault

    def note(self, text: str) -> None:
        """Add a notice to the records of the open calls; only the first 20 of a connection are kept."""
        if len(self._notices) < MAX_NOTICES:
            self._notices.append(text)

    def notices_of(self, exchange: McpExchange) -> list[str]:
        """Return the notices that were made while an exchange was open."""
        noise = self.noise - exchange.noise_from
        notices = [f"{noise} lines on stdout were no messages"] if noise else []
        return exchange.notices + self._notices[exchange.noted_from :] + notices


class TransportEnd:
    """Base class for one end of a transport: a context manager that calls `aclose` on exit, as the SDK requires."""

    async def aclose(self) -> None:
        """Close this side."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.aclose()


def frame_of(message: JSONRPCMessage, end: bytes = b"") -> bytes:
    """Return the bytes of a message with their terminator. Raise RequestMappingError `request.size`
    beyond 8 MiB."""
    frame = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + end
    if len(frame) > MAX_FRAME:
        text = f"the request has {len(frame):,} bytes, at most {MAX_FRAME:,} are allowed"
        raise RequestMappingError("request.size", text, left=False)
    return frame


class GuardedRead(TransportEnd):
    """The incoming side of a transport, which the SDK reads; it applies the rules of this module."""

    def __init__(
        self,
        inner: ReadStream[SessionMessage | Exception],
        write: WriteStream[SessionMessage],
        traffic: McpTraffic,
    ) -> None:
        self._inner = inner
        self._write = write
        self._traffic = traffic
        self._answers: set[asyncio.Task[None]] = set()
        self._is_newest = False
        """Whether the server uses the protocol version without a handshake."""

    @property
    def last_context(self) -> object:
        """The context of the sender, None where the transport keeps none."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        from mcp_types import JSONRPCError, JSONRPCResponse

        while True:
            item = await self._inner.receive()
            if isinstance(item, Exception):
                return item
            message = item.message
            if isinstance(message, JSONRPCResponse | JSONRPCError):
                if self._traffic.is_expected(message.id):
                    return self._check_message(item)
                self._traffic.note(
                    f"an answer to no request of ours, id {_show_name(message.id)}: dropped"
                )
            elif not self._refuse_request(message):
                return self._check_message(item)

    def _refuse_request(self, message: JSONRPCMessage) -> bool:
        """Return whether this is a request of the server, after refusing it."""
        from mcp_types import JSONRPCRequest

        if not isinstance(message, JSONRPCRequest) or message.method in self._traffic.answered:
            return False
        self._traffic.note(refusal_of(message.method))
        # Only a few refusals are sent at a time: those of a flood could fill our memory.
        if len(self._answers) < _MAX_REFUSALS:
            task = asyncio.create_task(self._refuse(message.id, message.method))
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)
        return True

    async def _refuse(self, id: int | str, method: str) -> None:
        import anyio

        try:
            await self._write.send(_refusal_message(id, method))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the connection is closed

    def _check_message(self, item: SessionMessage) -> SessionMessage:
        """Return the message, or an error instead of it, with the fault in the exchange of its
        call."""
        from mcp_types import JSONRPCError, JSONRPCResponse

        message = item.message
        if isinstance(message, JSONRPCResponse):
            if not self._is_accepted(message):
                return error_message(message.id, INTERNAL, "refused")
        elif isinstance(message, JSONRPCError):
            exchange = self._traffic.of(message.id)
            is_late = message.error.code == _LATE and names_no_session(message.error.message)
            if exchange is not None and is_late:
                exchange.fault = exchange.fault or LOST
        return item

    def _is_accepted(self, message: JSONRPCResponse) -> bool:
        """Add defaults to a result, and note the demands in it. Return whether it has few enough
        items; if not, set the fault of its exchange."""
        self._add_defaults(message.result)
        for method in read_record(InputDemand, message.result).methods:
            if method not in self._traffic.answered | self._traffic.demands:
                self._traffic.note(refusal_of(method))
        exchange = self._traffic.of(message.id)
        count = count_items(message.result)
        if exchange is None or count <= MAX_ITEMS:
            return True
        text = f"the reply has {count:,} content items, at most {MAX_ITEMS:,} are allowed"
        exchange.fault = McpFault(ResponseMappingError, "response.size", text)
        return False

    def _add_defaults(self, result: Json) -> None:
        """Add members that a result of the newest protocol may omit: the SDK would refuse it
        without them."""
        self._is_newest = self._is_newest or "supportedVersions" in result
        if self._is_newest:
            for name, default in _RESULT_DEFAULTS.items():
                result.setdefault(name, default)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        import anyio

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        for task in list(self._answers):
            task.cancel()
        await self._inner.aclose()


def names_no_session(words: str) -> bool:
    """Return whether an error's message means that the session is unknown: then the call did not run."""
    return _UNKNOWN_SESSION.search(words) is not None


def refusal_of(method: str) -> str:
    """Return the notice of a refused request of the server."""
    return f"the server asked for `{_show_name(method)}`: refused"


def _refusal_message(id: int | str, method: str) -> SessionMessage:
    """Return what refuses a request of the server: for a question that no one takes a person's no."""
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCResponse

    if method != ELICIT:
        return error_message(id, METHOD_NOT_FOUND, "this client answers no requests")
    return SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=id, result={"action": "decline"}))


def _show_name(name: object) -> str:
    """Return a foreign name, or its length if it is too long, because half a secret cannot be
    masked."""
    text = str(name)
    return text if len(text) <= _MAX_NAME else f"a name of {len(text):,} characters"


def read_frame(data: bytes) -> JSONRPCMessage | McpFault:
    """Return the message in these bytes, parsed strictly, or the fault."""
    from mcp_types import jsonrpc_message_adapter

    try:
        value = loads(data, max_bytes=MAX_FRAME, max_nodes=MAX_NODES)
        message: JSONRPCMessage = jsonrpc_message_adapter.validate_python(value, by_name=False)
    except InvalidJson as error:
        text = f"the reply is refused: {error}"
        return McpFault(ResponseMappingError, "response.not-json", text)
    except ValueError:
        return McpFault(
            ServerFaultError, "call.server-error", "the reply is not a JSON-RPC message"
        )
    return message


def frame_fault(data: bytes) -> McpFault | None:
    """Return why these bytes are not a message; None if they are a message."""
    found = read_frame(data)
    return found if isinstance(found, McpFault) else None


def error_message(id: int | str, code: int, text: str) -> SessionMessage:
    """Return a JSON-RPC error as an item of the SDK's streams."""
    from mcp.shared.message import SessionMessage
    from mcp_types import ErrorData, JSONRPCError

    return SessionMessage(
        JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=text))
    )


def id_in(line: bytes) -> int | None:
    """Return the id of an answer in a line that strict parsing refuses; None without one."""
    import json

    try:
        value: object = json.loads(line) if len(line) <= LARGE else None
    except (ValueError, RecursionError):
        value = None
    if value is None:
        if b'"method"' in line[:200]:
            return None
        match = _HEAD_ID.match(line) or _TAIL_ID.search(line[-200:])
        return int(match[1]) if match else None
    answer = read_answer(value)
    return answer.id if type(answer.id) is int and "method" not in answer.json else None
