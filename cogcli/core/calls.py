"""What the engine and those who perform its calls say to one another. Plain data, and the way to end a call early."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.core.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Iterator

HARMLESS: Final = ("none", "idempotent")
"""Classes of effect that a call may be repeated of without anybody being asked."""


"""What a step's path goes on with, and a number, in the path of a probe that asked about its call."""


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
    """How long the service's program may take to start, beside the call's own time."""

    @property
    def limit(self) -> float:
        """The seconds after which a call is given up, whatever it waits for."""
        return self.timeout_seconds + self.start_seconds

    def as_record(self) -> dict[str, Any]:
        """What `run.started` tells of it."""
        told = self._asdict()
        if not self.start_seconds:
            del told["start_seconds"]
        return told


class PassedOver(NamedTuple):
    """A binding of a chain that is not called, and why; its place is before that member."""

    binding_id: str
    service_id: str | None
    code: str
    message: str
    before: int


class BindingChain(NamedTuple):
    """The bindings a capability may be called through, in order, and why these
    (docs/reference/binding.md#selection)."""

    members: tuple[Member, ...]
    explanation: dict[str, Any]
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def binding_ids(self) -> list[str]:
        """The whole chain as it was named, those passed over too."""
        ids = [member.binding_id for member in self.members]
        for each in reversed(self.passed_over):
            ids.insert(each.before, each.binding_id)
        return ids

    def as_record(self) -> dict[str, Any]:
        """The chain as `run.started` tells it: the explanation, and beside it what is called."""
        told = {**self.explanation, "members": [member.as_record() for member in self.members]}
        if self.passed_over:
            told["passed_over"] = [each._asdict() for each in self.passed_over]
        return told


def recorded_chain(told: Mapping[str, Any]) -> BindingChain:
    """The chain that `run.started` tells."""
    explanation = {name: value for name, value in told.items() if name not in ("members", "passed_over")}
    return BindingChain(
        tuple(Member(**member) for member in told["members"]),
        explanation,
        tuple(PassedOver(**each) for each in told.get("passed_over") or ()),
    )


class Cancellation:
    """Tells a call that nobody waits for it any more. Set once, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._staying = ""
        self.stayed = ""
        """Why nothing of the call has left, where it was given up inside `staying`."""

    @property
    def is_set(self) -> bool:
        """Whether the call was given up."""
        return self._set

    def set(self) -> None:
        """Give the call up: whoever asked to be told is told, once, on this thread."""
        with self._lock:
            if self._set:
                return
            self._set = True
            self.stayed = self._staying
            callbacks, self._callbacks = list(self._callbacks.values()), {}
        for callback in callbacks:
            with suppress(Exception):  # closing what is closed already
                callback()

    @contextmanager
    def staying(self, why: str) -> Iterator[None]:
        """While inside, nothing of the call has left: `why` says what it still waits for.

        Raises TransportError at the end where the call was given up inside: it must not leave any more.
        """
        with self._lock:
            self._staying = why
        try:
            yield
        finally:
            with self._lock:
                self._staying = ""
        if self.stayed:
            raise TransportError("call.transport", self.stayed, left=False)

    @contextmanager
    def told(self, callback: Callable[[], None]) -> Iterator[None]:
        """While inside, `callback` runs when the call is given up, at once if it was before. It must not block."""
        token = object()
        with self._lock:
            late = self._set
            if not late:
                self._callbacks[token] = callback
        if late:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.pop(token, None)


class Siblings:
    """Calls that may go out together: those of one foreach step, at most `width` at a time.

    The coordinator announces each before it goes to a worker, so that whoever gathers them knows how many to wait for.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.changed = threading.Condition()
        """Told whenever one is announced or is no longer awaited; its lock guards what is gathered."""
        self.awaited = 0
        """How many were announced and have neither come to where they are gathered nor ended."""

    def announce(self) -> BatchSlot:
        """One more call will come."""
        with self.changed:
            self.awaited += 1
            self.changed.notify_all()
        return BatchSlot(self)


class BatchSlot:
    """One announced call's place among its siblings."""

    def __init__(self, siblings: Siblings) -> None:
        self.siblings = siblings
        self._settled = False

    def settle(self) -> None:
        """Nobody need wait for this call any more: it came, or it ended without coming. May be told twice."""
        with self.siblings.changed:
            if not self._settled:
                self._settled = True
                self.siblings.awaited -= 1
                self.siblings.changed.notify_all()


class Attempt(NamedTuple):
    """One wire attempt, as a worker is asked to make it. `input` is the worker's own copy.

    `traceparent` is the W3C header that names the attempt's span (docs/reference/protocols.md#export);
    `place` is its place among those calls that may go out with it.
    """

    capability_id: str
    member: Member
    input: dict[str, Any]
    effect: str
    idempotency_key: str
    run_id: str
    step_id: str
    number: int
    deadline: float
    cancel: Cancellation
    traceparent: str = ""
    place: BatchSlot | None = None


class Answer(NamedTuple):
    """What an attempt gave: the capability's outputs, checked; usage as reported; what went over the wire.

    `record` holds members for the attempt's element in `attempts[]` (docs/reference/protocols.md#record), not
    yet masked.
    """

    output: dict[str, Any]
    usage: Mapping[str, int] | None = None
    record: Mapping[str, Any] | None = None
