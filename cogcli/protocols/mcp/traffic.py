"""What passes between a session and its server, on any transport.

1. A call is known here by its request id from the moment its frame is handed over until somebody has its answer.
2. A server may ask us for nothing but a sign of life: sampling, roots, elicitation and whatever else it demands get
   -32601 and are noted. The SDK never sees them.
3. An answer to nothing we asked, by type and value of its id, or a second one, is noted and dropped.
4. An answer of more than 1,000 content items is refused before anything looks at the items.
5. What goes wrong with a call is kept as its fault, in our own terms; the SDK only learns that it ended.
6. A session that a server says it does not know is lost: the call did not run.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from cogcli.core.errors import ResponseMappingError, RuntimeErrorBase, ServerFaultError, TransportError
from cogcli.core.strict_json import JsonRefused, loads

if TYPE_CHECKING:
    from types import TracebackType

    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

MAX_FRAME: Final = 8 * 1024 * 1024
MAX_ITEMS: Final = 1000
MAX_NOTICES: Final = 20
_MEANT: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What the newest protocol means where a result does not say it."""
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
_ALLOWED: Final = ("ping",)
LARGE: Final = 256 * 1024
"""Reading a frame above this takes long enough for others to notice: not on the event loop."""
MAX_NODES: Final = 500_000
SHOWN: Final = 4000
"""More than is told in the end: secrets are masked before a text is cut to its last length."""
_SHOWN: Final = 80
_ANSWERS: Final = 16


class McpFault(NamedTuple):
    """Why a call got no answer that can be used. Calls that share a fault each raise an error of their own."""

    kind: type[RuntimeErrorBase]
    code: str
    text: str
    hint: str = ""
    retry_after: float | None = None

    @property
    def is_lost(self) -> bool:
        """Whether it is a session that the server does not know: the call did not run."""
        return self == LOST

    def error(self, *, left: bool) -> RuntimeErrorBase:
        """This fault, to be raised."""
        error = self.kind(self.code, self.text, hint=self.hint, left=left)
        error.retry_after = self.retry_after
        return error


def fault_of(error: RuntimeErrorBase) -> McpFault:
    """An error that several calls have to raise."""
    return McpFault(type(error), error.code, error.message, error.hint, error.retry_after)


LOST: Final = McpFault(TransportError, "call.transport", "the server does not know the session any more")
"""The call did not run: it is made again in a new session."""


class McpExchange:
    """One `tools/call`: whether its frame went out, how large both frames were, and what went wrong."""

    def __init__(self) -> None:
        self.id: int | str | None = None
        self.left = False
        self.request_bytes: int | None = None
        self.response_bytes: int | None = None
        self.headers: Mapping[str, str] = {}
        """What goes with this call alone, where the transport has headers."""
        self.status: int | None = None
        self.fault: McpFault | None = None
        self.told: list[str] = []
        """What is told of this call besides what its wire notes."""
        self.noted_from = 0
        self.noise_from = 0


in_progress: ContextVar[McpExchange | None] = ContextVar("in_progress", default=None)
"""The exchange of the task that is calling."""


class McpTraffic:
    """The exchanges under way on one connection, and what the server did that nobody asked for."""

    def __init__(self) -> None:
        self._asked: set[int | str] = set()
        self._open: dict[int | str, McpExchange] = {}
        self._notices: list[str] = []
        self.noise = 0

    def begin(self, note: str = "") -> McpExchange:
        """A new exchange, told from now on what is noted: `note` first, if there is one."""
        exchange = McpExchange()
        exchange.noted_from, exchange.noise_from = len(self._notices), self.noise
        if note:
            self.note(note)
        return exchange

    def leaving(self, message: JSONRPCMessage, size: int | None = None) -> McpExchange | None:
        """Know a request by its id before it goes out; the exchange of the calling task, if it is its `tools/call`."""
        from mcp_types import JSONRPCRequest

        if not isinstance(message, JSONRPCRequest):
            return None
        self._asked.add(message.id)
        exchange = in_progress.get()
        if exchange is None or message.method != "tools/call":
            return None
        exchange.id, exchange.request_bytes = message.id, size
        self._open[message.id] = exchange
        return exchange

    def answered(self, id: int | str | None) -> bool:
        """Whether this answers a request of ours for the first time."""
        # A request without an id can only be one the server could not read; the SDK passes such an error over.
        expected = id is None or id in self._asked
        self._asked.discard(id if id is not None else "")
        return expected

    def of(self, id: Any) -> McpExchange | None:
        """The exchange with this request id."""
        return self._open.get(id) if isinstance(id, int | str) else None

    def ended(self, exchange: McpExchange) -> None:
        """Nobody waits for this exchange any more."""
        if exchange.id is not None:
            self._open.pop(exchange.id, None)

    @property
    def is_idle(self) -> bool:
        """Whether no exchange is under way."""
        return not self._open

    def fail_all(self, fault: McpFault) -> None:
        """The connection is lost to all exchanges under way for the same reason."""
        for exchange in self._open.values():
            exchange.fault = exchange.fault or fault

    def note(self, text: str) -> None:
        """Remember something for the records of the calls under way."""
        if len(self._notices) < MAX_NOTICES:
            self._notices.append(text)

    def noted(self, exchange: McpExchange) -> list[str]:
        """What was noted while an exchange was under way."""
        noise = self.noise - exchange.noise_from
        told = [f"{noise} lines on stdout were no messages"] if noise else []
        return exchange.told + self._notices[exchange.noted_from :] + told


class GuardedRead:
    """A transport's incoming side with the rules above applied; what the SDK reads from."""

    def __init__(
        self,
        inner: ReadStream[SessionMessage | Exception],
        write: WriteStream[SessionMessage],
        wire: McpTraffic,
    ) -> None:
        self._inner = inner
        self._write = write
        self._wire = wire
        self._answers: set[asyncio.Task[None]] = set()
        self._is_newest = False
        """Whether the server speaks the protocol without a handshake."""

    @property
    def last_context(self) -> Any:
        """The context of the sender, where the transport keeps it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        while True:
            item = await self._inner.receive()
            if isinstance(item, Exception):
                return item
            if not self._asks_us(item.message) and not self._is_foreign(item.message):
                return self._judged(item)

    def _asks_us(self, message: JSONRPCMessage) -> bool:
        """Whether this was a demand of the server, which is answered here."""
        from mcp_types import JSONRPCRequest

        if not isinstance(message, JSONRPCRequest) or message.method in _ALLOWED:
            return False
        self._wire.note(refusal_of(message.method))
        # A flood of demands is not answered beyond a few at a time: answers could fill our memory.
        if len(self._answers) < _ANSWERS:
            task = asyncio.create_task(self._refuse(message.id))
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)
        return True

    def _is_foreign(self, message: JSONRPCMessage) -> bool:
        from mcp_types import JSONRPCError, JSONRPCResponse

        if not isinstance(message, JSONRPCResponse | JSONRPCError) or self._wire.answered(message.id):
            return False
        self._wire.note(f"an answer to no request of ours, id {str(message.id)[:_SHOWN]}: dropped")
        return True

    async def _refuse(self, id: int | str) -> None:
        import anyio

        try:
            await self._write.send(error_message(id, METHOD_NOT_FOUND, "this client answers no requests"))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # nobody is there any more

    def _judged(self, item: SessionMessage) -> SessionMessage:
        """The message, or a refusal in its place: whoever waits for it finds why in the exchange."""
        from mcp_types import JSONRPCError, JSONRPCResponse

        message = item.message
        if isinstance(message, JSONRPCResponse):
            self._complete(message.result)
            for method in required_methods(message.result):
                self._wire.note(refusal_of(method))
            exchange = self._wire.of(message.id)
            content = message.result.get("content")
            if exchange is not None and isinstance(content, list) and len(content) > MAX_ITEMS:
                text = f"the reply has {len(content):,} content items, at most {MAX_ITEMS:,} are allowed"
                exchange.fault = McpFault(ResponseMappingError, "response.size", text)
                return error_message(message.id, INTERNAL, "refused")
        elif isinstance(message, JSONRPCError):
            exchange = self._wire.of(message.id)
            said = message.error
            if exchange is not None and said.code == _LATE and names_no_session(said.message):
                exchange.fault = exchange.fault or LOST
        return item

    def _complete(self, result: dict[str, Any]) -> None:
        """Add what a result of the newest protocol may lack; the SDK would refuse it for that."""
        self._is_newest = self._is_newest or "supportedVersions" in result
        if self._is_newest:
            for name, meant in _MEANT.items():
                result.setdefault(name, meant)

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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def names_no_session(words: str) -> bool:
    """Whether an error's words say that a session is not known: no call runs in such a one."""
    return _UNKNOWN_SESSION.search(words) is not None


def refusal_of(method: str) -> str:
    """How it is noted that a server asked for something."""
    return f"the server asked for `{method[:_SHOWN]}`: refused"


def required_methods(result: Mapping[str, Any]) -> list[str]:
    """What a result demands before it can be one: the methods, each once."""
    wanted = result.get("inputRequests") if result.get("resultType") == "input_required" else None
    requests = list(wanted.values()) if isinstance(wanted, dict) else []
    methods = [request.get("method") for request in requests[:MAX_NOTICES] if isinstance(request, dict)]
    return list(dict.fromkeys(method for method in methods if isinstance(method, str)))


def read_frame(data: bytes) -> JSONRPCMessage | McpFault:
    """The message that these bytes are, read strictly; else why they are none."""
    from mcp_types import jsonrpc_message_adapter

    try:
        value = loads(data, max_bytes=MAX_FRAME, max_nodes=MAX_NODES)
        message: JSONRPCMessage = jsonrpc_message_adapter.validate_python(value, by_name=False)
    except JsonRefused as error:
        return McpFault(ResponseMappingError, "response.not-json", f"the reply is refused: {error}"[:SHOWN])
    except ValueError:
        return McpFault(ServerFaultError, "call.server-error", "the reply is no JSON-RPC message")
    return message


def frame_fault(data: bytes) -> McpFault | None:
    """Why these bytes are no message; None where they are one."""
    found = read_frame(data)
    return found if isinstance(found, McpFault) else None


def error_message(id: int | str, code: int, text: str) -> SessionMessage:
    """A JSON-RPC error as the SDK's streams carry it."""
    from mcp.shared.message import SessionMessage
    from mcp_types import ErrorData, JSONRPCError

    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=text)))


def id_in(line: bytes) -> int | None:
    """The id of what looks like an answer, in a line that cannot be read strictly."""
    import json

    try:
        value: Any = json.loads(line) if len(line) <= LARGE else None
    except (ValueError, RecursionError):
        value = None
    if value is None:
        if b'"method"' in line[:200]:
            return None
        match = _HEAD_ID.match(line) or _TAIL_ID.search(line[-200:])
        return int(match[1]) if match else None
    if not isinstance(value, dict) or "method" in value or type(value.get("id")) is not int:
        return None
    return int(value["id"])
