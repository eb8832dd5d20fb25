"""The port of language models: requests, replies, errors (docs/reference/models.md#port).

1. A request and a reply are JSON. The hash of a request covers the members for the model; it finds a recorded answer.
2. A failure is a `ModelError` of one of eight kinds, from which code, exit code and retries follow.
3. No part of an adapter's wire format passes this port.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from hashlib import sha256
from typing import Final, Protocol

from cogcli.base.calls import Cancellation
from cogcli.base.canonical import canonical, compact, digest_of
from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.call_records import error_from_payload
from cogcli.declarations.run_start import PinnedModel
from cogcli.declarations.value_types import Json

KINDS: Final[dict[str, tuple[str, bool]]] = {
    "auth": ("model.auth", False),
    "rate_limited": ("call.overloaded", True),
    "timeout": ("call.timeout", True),
    "unreachable": ("call.transport", True),
    "overloaded": ("call.overloaded", True),
    "bad_request": ("call.rejected", False),
    "context_too_long": ("model.context", False),
    "protocol": ("call.server-error", False),
}
"""The error code of each kind of failure, and whether the same request may be sent again."""
FINISHES: Final = ("stop", "length", "tool_calls", "filtered")
RETRIES: Final = 2
_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 30.0


class ModelRequest(NamedTuple):
    """One request to a model. Messages are `{role, content}` with role `system`, `developer`, `user` or `assistant`;
    tools are `{name, description, parameters}`, the last a JSON Schema."""

    messages: tuple[dict[str, str], ...]
    tools: tuple[Json, ...] = ()
    json_schema: Json | None = None
    max_tokens: int = 2000
    temperature: float = 0.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    timeout_ms: int = 60_000
    call_id: str = ""

    def to_payload(self) -> Json:
        """Return the request as JSON."""
        members = self._asdict()
        return {
            **members,
            "messages": list(self.messages),
            "tools": list(self.tools),
            "stop": list(self.stop),
        }

    @property
    def request_hash(self) -> str:
        """The digest of the members for the model: all but `call_id` and `timeout_ms`."""
        seen = self.to_payload()
        del seen["call_id"], seen["timeout_ms"]
        return digest_of(seen)


class TokenUsage(NamedTuple):
    """The tokens of one exchange. `estimated`: at least one count was estimated here, because the
    provider reported none."""

    tokens_in: int
    tokens_out: int
    estimated: bool = False


class ModelReply(NamedTuple):
    """A complete answer. Tool calls are `{id, name, args}`; `finish` is one of FINISHES."""

    text: str
    tool_calls: tuple[Json, ...]
    finish: str
    usage: TokenUsage
    model: str = ""
    request_id: str = ""

    def to_payload(self) -> Json:
        """Return the reply as JSON; `from_payload` is its inverse."""
        return {
            **self._asdict(),
            "tool_calls": list(self.tool_calls),
            "usage": self.usage._asdict(),
        }

    @classmethod
    def from_payload(cls, payload: Json) -> ModelReply:
        """Return the value whose `to_payload` is this JSON. Raise KeyError or TypeError for other JSON."""
        calls, usage = tuple(payload["tool_calls"]), TokenUsage(**payload["usage"])
        return cls(**{**payload, "tool_calls": calls, "usage": usage})


class Delta(NamedTuple):
    """A piece of an answer's text that is still being written."""

    text: str


class ModelError(Exception):
    """The error of a model call without an answer. `code` is that of the kind, unless the cause has another one
    (`env.missing`); `partial` is the text of an interrupted answer, only for the transcript."""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        code: str = "",
        hint: str = "",
        retryable: bool | None = None,
        retry_after: float | None = None,
        partial: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.code = code or KINDS[kind][0]
        self.hint = hint
        self.retryable = KINDS[kind][1] if retryable is None else retryable
        self.retry_after = retry_after
        self.partial = partial

    def to_error(self) -> RuntimeErrorBase:
        """Return the error of a run that ends with this."""
        error = error_from_payload({"code": self.code, "message": self.message, "hint": self.hint})
        error.retry_after = self.retry_after
        return error

    def to_payload(self) -> Json:
        """Return the error as JSON; `from_payload` is its inverse."""
        names = ("kind", "message", "code", "hint", "retryable", "retry_after", "partial")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_payload(cls, payload: Json) -> ModelError:
        """Return the value whose `to_payload` is this JSON. Raise KeyError or TypeError for other JSON."""
        named = dict(payload)
        return cls(named.pop("kind"), named.pop("message"), **named)


class ModelOutcome(NamedTuple):
    """The outcome of a model call: the reply, or the error. The other one is None."""

    reply: ModelReply | None = None
    error: ModelError | None = None

    @property
    def usage(self) -> TokenUsage:
        """The tokens of the reply. An error has none, because the provider counts none without an answer."""
        return TokenUsage(0, 0) if self.reply is None else self.reply.usage

    def result(self) -> ModelReply:
        """Return the reply, or raise the error."""
        if self.reply is not None:
            return self.reply
        if self.error is None:
            raise ValueError("an outcome has a reply or an error")
        raise ModelError.from_payload(self.error.to_payload())

    def to_payload(self) -> Json:
        """Return `{reply}` or `{error}`."""
        found = {"reply": self.reply, "error": self.error}
        return {name: each.to_payload() for name, each in found.items() if each is not None}


class ModelInfo(NamedTuple):
    """The description of a model. `features` are among `stream`, `tools`, `json`, `json_schema`, `seed`;
    `deterministic`: equal requests get equal answers."""

    adapter: str
    name: str
    context_tokens: int | None = None
    deterministic: bool = False
    features: tuple[str, ...] = ()

    def to_payload(self) -> Json:
        """Return the model in `pins.model` of `run.started`."""
        return {**self._asdict(), "features": list(self.features)}

    @classmethod
    def from_payload(cls, payload: Json) -> ModelInfo:
        """Return the inverse of `to_payload`."""
        pin = PinnedModel.of(payload)
        return cls(
            pin.adapter, pin.name, pin.context_tokens, pin.deterministic, tuple(pin.features)
        )


class LanguageModel(Protocol):
    """Answers requests; safe to use from any thread."""

    def describe(self) -> ModelInfo:
        """Return the description of the model, without a request."""
        ...

    def generate(self, request: ModelRequest, cancel: Cancellation) -> ModelReply:
        """Return the whole answer, in one attempt. Block at most `timeout_ms`. Raise ModelError."""
        ...

    def stream(
        self, request: ModelRequest, cancel: Cancellation
    ) -> Generator[Delta, None, ModelReply]:
        """Return the pieces of the answer's text while they arrive; the generator returns the whole answer, as
        `generate`. Raise ModelError; earlier pieces are not an answer then.
        """
        ...


def finish_stream(pieces: Generator[Delta, None, ModelReply]) -> ModelReply:
    """Return the answer that a stream returns, without its pieces. Raise ModelError."""
    while True:
        try:
            next(pieces)
        except StopIteration as stop:
            reply: ModelReply = stop.value
            return reply


def count_request(count: Callable[[str], int], request: ModelRequest) -> int:
    """Return the tokens of a request: of its messages and tools, without the JSON around them.

    A context is made to fit by this number, so it is also what an estimate charges.
    """
    texts = [message["content"] for message in request.messages]
    return sum(map(count, [*texts, *(compact(tool).decode() for tool in request.tools)]))


def estimate_usage(
    count: Callable[[str], int],
    request: ModelRequest,
    text: str,
    calls: Sequence[Json],
) -> TokenUsage:
    """Return the estimated tokens of a request and its answer."""
    answer = text + (canonical(list(calls)).decode() if calls else "")
    return TokenUsage(count_request(count, request), count(answer), True)


def retry_wait(error: ModelError, attempt: int, seed: int) -> float | None:
    """Return the seconds to wait after the failed attempt number `attempt`, from 1, or None if no other attempt
    follows.

    The provider sets the wait, up to 30 s. Otherwise it is half a second, doubled each time, with a
    jitter of a quarter.
    """
    if not error.retryable or attempt > RETRIES:
        return None
    if error.retry_after is not None:
        return min(error.retry_after, _LONGEST_WAIT)
    fraction = int.from_bytes(sha256(f"{seed}/{attempt}".encode()).digest()[:4]) / 2**32
    wait: float = _FIRST_WAIT * 2 ** (attempt - 1) * (0.75 + fraction / 2)
    return wait
