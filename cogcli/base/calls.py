"""The values that the engine and its capability runner exchange: binding chains, attempts, answers,
cancellations.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from cogcli.base.canonical import span_of, trace_of
from cogcli.base.errors import TransportError
from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple

if TYPE_CHECKING:
    from concurrent.futures import Future

HARMLESS: Final = ("none", "idempotent")
"""Effect classes whose calls may be repeated without an approval."""

NOT_BEGUN: Final = "no time was left for the call: nothing was sent"

STEP_SECONDS: Final = 60.0
"""The default time limit of a step, in seconds. A longer limit of one attempt extends it."""


class Member(NamedTuple):
    """One binding of a pinned chain."""

    binding_id: str
    service_id: str
    protocol: str
    timeout_seconds: float
    retry_count: int = 0
    retry_backoff_base: float = 1.0
    retry_backoff_factor: float = 2.0
    start_seconds: float = 0.0
    """Seconds that the service's program may take to start, in addition to the call's own time."""
    fallback_on: str = "any"
    """The errors after which the next binding is tried: `any`, or `unanswered` for errors without a
    readable reply."""
    repeats_faults: bool = False
    """Whether `retry_count` repeats after a fault of the server, too. It is False in the chains of
    older logs, whose runs did not."""
    pages: int = 1
    """The most pages that one attempt reads; each has the time limit of a call."""
    answer_seconds: float = 0.0
    """Seconds that a person at this terminal may take to answer the service, in addition. No log records them."""

    @property
    def limit(self) -> float:
        """Return the seconds after which a call is cancelled, including all waiting."""
        return self.timeout_seconds * self.pages + self.start_seconds + self.answer_seconds

    def to_payload(self) -> Json:
        """Return the member as `run.started` records it."""
        payload = self._asdict()
        del payload["answer_seconds"]
        if not self.start_seconds:
            del payload["start_seconds"]
        if self.fallback_on == "any":
            del payload["fallback_on"]
        if not self.repeats_faults:
            del payload["repeats_faults"]
        if self.pages == 1:
            del payload["pages"]
        return payload


class SkippedBinding(NamedTuple):
    """A binding of a chain that is not called, with the reason. `before` is the index of the next member of the
    chain.
    """

    binding_id: str
    service_id: str | None
    code: str
    message: str
    before: int


class BindingChain(NamedTuple):
    """The bindings through which a capability may be called, in order.

    `explanation` records why they were chosen (docs/reference/binding.md#selection).
    """

    members: tuple[Member, ...]
    explanation: Json
    passed_over: tuple[SkippedBinding, ...] = ()

    @property
    def binding_ids(self) -> list[str]:
        """Return the ids of all declared bindings of the chain, including those passed over."""
        ids = [member.binding_id for member in self.members]
        for each in reversed(self.passed_over):
            ids.insert(each.before, each.binding_id)
        return ids

    def to_payload(self) -> Json:
        """Return the chain as `run.started` records it: explanation, members, and bindings passed
        over.
        """
        payload = {**self.explanation, "members": [member.to_payload() for member in self.members]}
        if self.passed_over:
            payload["passed_over"] = [each._asdict() for each in self.passed_over]
        return payload


def chain_from_payload(payload: Mapping[str, Any]) -> BindingChain:
    """Return the chain that `run.started` records: the inverse of `BindingChain.to_payload`."""
    explanation = {
        name: value for name, value in payload.items() if name not in ("members", "passed_over")
    }
    members = tuple(Member(**member) for member in payload["members"])
    passed_over = tuple(SkippedBinding(**each) for each in payload.get("passed_over") or ())
    return BindingChain(members, explanation, passed_over)


class Cancellation:
    """The signal that a call is cancelled because its result is no longer needed.

    Any thread may set it. It is set once.
    """

    __slots__ = ("_callbacks", "_lock", "_reason", "_set", "unsent_reason")

    def __init__(self, held_back: str = "") -> None:
        """`held_back` is the reason why the request has not been sent yet, as for `hold_back`."""
        self._lock = threading.Lock()
        self._set = False
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._reason = held_back
        self.unsent_reason = ""
        """The reason why the request was not sent, if the call was cancelled between `hold_back` and `release`."""

    @property
    def is_set(self) -> bool:
        """Whether the call is cancelled."""
        return self._set

    def set(self) -> None:
        """Cancel the call. Each callback of `on_cancel` runs once, on this thread."""
        with self._lock:
            if self._set:
                return
            self._set = True
            self.unsent_reason = self._reason
            callbacks, self._callbacks = list(self._callbacks.values()), {}
        for callback in callbacks:
            with suppress(Exception):  # the callback closed something that was closed already
                callback()

    def hold_back(self, reason: str) -> None:
        """Delay sending the request until `release`. `reason` is the missing condition, for messages."""
        with self._lock:
            self._reason = reason

    @contextmanager
    def held_back(self, reason: str) -> Iterator[None]:
        """Delay sending the request within the `with` block. `reason` is the missing condition, for messages. Raise
        TransportError at the end if the call was cancelled in the meantime, because it must not be sent.

        After an error inside the block, the request still is not sent. The waiting thread often cancels at that very
        moment, since both have the same deadline, and must not treat the call as in doubt.
        """
        self.hold_back(reason)
        yield
        self.release()

    def release(self) -> None:
        """Allow the request to be sent. Raise TransportError if the call was cancelled before."""
        with self._lock:
            self._reason = ""
        if self.unsent_reason:
            raise TransportError("call.transport", self.unsent_reason, left=False)

    def on_cancel(self, callback: Callable[[], None]) -> CancelCallback:
        """Return a context in which `callback` runs when the call is cancelled, or at once if it already is.

        The callback must not block.
        """
        return CancelCallback(self, callback)

    def add_callback(self, token: object, callback: Callable[[], None]) -> None:
        """Run `callback` when the call is cancelled, or at once if it already is. `token` names it."""
        with self._lock:
            late = self._set
            if not late:
                self._callbacks[token] = callback
        if late:
            callback()

    def remove_callback(self, token: object) -> None:
        """Unregister the callback of `token`. A callback that has run is unregistered already."""
        with self._lock:
            self._callbacks.pop(token, None)


class CancelCallback:
    """The context of `Cancellation.on_cancel`. Each call enters one, and a generator would cost it twice as much."""

    __slots__ = ("_callback", "_cancel")

    def __init__(self, cancel: Cancellation, callback: Callable[[], None]) -> None:
        self._cancel = cancel
        self._callback = callback

    def __enter__(self) -> None:
        self._cancel.add_callback(self, self._callback)

    def __exit__(self, *raised: object) -> None:
        self._cancel.remove_callback(self)


class Continuation(NamedTuple):
    """The data for sending an unfinished call again."""

    answers: Json
    """By the service's name of a form: `action`, and with `accept` the `content`."""
    request_state: str | None = None
    """The state that the service wants returned, unchanged."""


class Attempt(NamedTuple):
    """One wire attempt for a worker to make. `input` is the worker's private copy."""

    capability_id: str
    member: Member
    input: Json
    effect: str
    idempotency_key: str
    run_id: str
    step_id: str
    number: int
    deadline: float
    cancel: Cancellation
    trace_id: str = ""
    intent: str = ""
    """The id of the event that announces the call. Empty if none does."""
    continuation: Continuation | None = None
    """The answer to the input request of the previous attempt. None if that attempt had no input request."""

    @property
    def traceparent(self) -> str:
        """Return the W3C header that names the attempt's span, with the span id that the exported trace will use
        (docs/reference/protocols.md#export). Return an empty string without an intent.
        """
        if not self.intent:
            return ""
        return f"00-{trace_of(self.trace_id)}-{span_of(self.intent, self.number)}-01"


class AskedCall(NamedTuple):
    """A call that needs an approval, as its request would describe it."""

    step_id: str
    capability: str
    bindings: tuple[str, ...]
    """The chain of the call; empty for a skill."""
    gate: str
    values: dict[str, Any]
    evidence_hash: str


class ServiceNotice(NamedTuple):
    """A notice that a server started or stopped.

    If the server started, it names the run and step whose call started it.
    """

    service_id: str
    protocol: str
    run_id: str = ""
    step_id: str = ""
    reason: str = ""
    """The reason why a server stopped before the end of the run."""


class ProgressNotice(NamedTuple):
    """The progress of a call, as its service reports it. No log records it."""

    step_id: str
    progress: float
    total: float | None
    message: str | None


class ServerQuestion(NamedTuple):
    """A question of a service for a person, during a call. All members are foreign data."""

    step_id: str
    service_id: str
    message: str
    schema: Json
    """The form of the answer, as a JSON Schema of an object."""
    capability_id: str = ""
    url: str = ""
    """The address that the service asks the person to open, instead of a form. Empty for a form."""


class QuestionAnswer(NamedTuple):
    """The answer of a person. `cancel` means that no person decided."""

    action: Literal["accept", "decline", "cancel"]
    content: Json | None = None
    by: str = ""
    """The user of the command who answered, for the log. Empty if the log does not record the answer as theirs."""


NO_ANSWER: Final = QuestionAnswer("cancel")
TakeQuestion = Callable[[ServerQuestion], "Future[QuestionAnswer]"]
"""Passes a question to a person. It must not block. A question that is over cancels its future."""


class PersonAtTerminal(NamedTuple):
    """A person who answers questions while a call is open."""

    take: TakeQuestion
    seconds: float
    """The seconds for all answers of one call. The time limit of the call stands still meanwhile."""


class QuestionNotice(NamedTuple):
    """A notice that a person answered a question of a service inside an open call."""

    run_id: str
    asked: ServerQuestion
    answer: QuestionAnswer
    binding_id: str
    attempt: int


class SampleRequest(NamedTuple):
    """A request of a service to the configured model, inside an open call. Its texts are foreign data."""

    messages: tuple[tuple[str, str], ...]
    """By role, `user`, `assistant` or `system`, the text of each message."""
    max_tokens: int
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    seconds: float = 60.0
    """The longest time that the answer may take."""


class SampleReply(NamedTuple):
    """The answer of the configured model to a service, and its usage."""

    text: str
    finish: str
    model: str
    tokens_in: int
    tokens_out: int
    cost_microusd: int | None = None
    """Millionths of a dollar. None if the prices of the model are not known."""


class SampleRefused(Exception):
    """The reason why a service gets no answer of a model. `code` is one of the codes of errors."""

    def __init__(self, code: str, message: str, reply: SampleReply | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reply = reply
        """What was charged for a request that failed; None if none was sent."""


TakeSample = Callable[[SampleRequest, Cancellation], SampleReply]
"""Returns the answer of the configured model, after at most `seconds`. Raises SampleRefused."""


class SampleNotice(NamedTuple):
    """A notice that a service asked the configured model inside an open call."""

    run_id: str
    step_id: str
    capability_id: str
    binding_id: str
    service_id: str
    attempt: int
    number: int
    """The number of the request in its call, from 1."""
    request: SampleRequest | None
    """None for a request that was refused before it was read whole."""
    reply: SampleReply | None
    """None if no request was sent to the model, or if it is not known what it used."""
    duration_ms: int
    code: str = ""
    message: str = ""
    """Why the service got no answer. Empty if it got one."""


class PageNotice(NamedTuple):
    """A notice that one page of a call was read. `items` counts those of the page, `total` all items so far."""

    run_id: str
    step_id: str
    attempt: int
    page: int
    items: int
    total: int
    url: str
    status: int | None
    response_bytes: int | None
    duration_ms: int | None

    def to_payload(self) -> Json:
        """Return the members of the event `call.page`."""
        members = self._asdict()
        members["status_code"] = members.pop("status")
        del members["run_id"]
        return {name: value for name, value in members.items() if value not in ("", None)}


ServiceChange = ServiceNotice | PageNotice | QuestionNotice | SampleNotice
"""What the services of a run report while it goes on."""


class Answer(NamedTuple):
    """The result of an attempt: the capability's checked outputs, and the usage that the service
    reports.

    `record` contains members for the attempt's entry in `attempts[]`
    (docs/reference/protocols.md#record). They are not masked yet.
    """

    output: Json
    usage: Mapping[str, int] | None = None
    record: Mapping[str, Any] | None = None
