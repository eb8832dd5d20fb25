"""JSON-RPC calls of one foreach that go out as one array (docs/reference/protocols.md#batch).

1. The first call opens a group. It waits at most 1 s for calls that the coordinator announced, and 10 ms for calls
   that follow from answers just given, never past its own deadline. A later call opens the next group.
2. The first call makes the exchange for all. The exchange is cancelled once no call of the group waits for it.
3. Each call keeps its own deadline, cancellation and outcome.
4. Only calls that may be repeated and have an answer, of a service whose document has `x-batch: true`.
5. Answers are matched by type and value of their id, in any order; one with another id is ignored. Two answers to one
   call make it fail.
6. Where the reply is no array, lacks answers or is too large, those calls are made one by one, and so is every further
   call to that service for the rest of the run.
7. A connection that fails, times out or is overloaded fails each call as it would fail a single one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.core.calls import BatchSlot, Cancellation, Siblings
from cogcli.core.connections import GIVEN_UP
from cogcli.core.errors import (
    CallTimeoutError,
    OverloadedError,
    ResponseMappingError,
    RuntimeErrorBase,
    ServerFaultError,
    TransportError,
)
from cogcli.core.strict_json import JsonRefused
from cogcli.protocols.http import reply_body
from cogcli.protocols.http.failures import failure
from cogcli.protocols.http.http_call import OutgoingRequest
from cogcli.protocols.invoker import CallLimits, CallMeta, InvocationRequest
from cogcli.protocols.openrpc.reply import result_of
from cogcli.protocols.secrets import Secrets

if TYPE_CHECKING:
    from cogcli.core.http import HttpReply


MAX_CALLS: Final = 64
"""The most calls in one array, whatever `max_parallel` allows."""
_ANNOUNCED_SECONDS: Final = 1.0
_FOLLOWING_SECONDS: Final = 0.01


class BatchMember:
    """One call of a group. `outcome` is set before `done`."""

    def __init__(self, call: Any, size: int, deadline: float) -> None:
        self.call = call
        self.size = size
        self.deadline = deadline
        self.outcome: Any = None
        self.done = threading.Event()
        self.given_up = False


class _Group:
    """The calls gathered so far. `full`: a further call would exceed the size or number allowed."""

    def __init__(self) -> None:
        self.members: list[BatchMember] = []
        self.size = 0
        self.full = False
        self.closed = False
        self.cancel = Cancellation()

    def give_up(self, member: BatchMember) -> None:
        """Mark one call as given up; once every call of a closed group is, its exchange is cancelled."""
        member.given_up = True
        member.done.set()
        if self.closed and all(member.given_up for member in self.members):
            self.cancel.set()


Send = Callable[[list[Any], float, Cancellation], list[Any]]
"""Makes one exchange for several calls until a deadline: an outcome for each, in their order."""


class Batcher:
    """Joins calls of the same foreach and the same kind into groups. One per run."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], _Group] = {}

    def outcome(
        self, call: Any, *, size: int, cap: int, kind: str, place: BatchSlot, limits: CallLimits, send: Send
    ) -> Any:
        """This call's outcome of the exchange; None where `send` raised in another call's thread.

        Raises CallTimeoutError at its deadline, TransportError where it was given up, and, for the call that makes the
        exchange, what `send` raises.
        """
        own = BatchMember(call, size, limits.deadline)
        group = self._join(own, (id(place.siblings), kind), place, cap)
        with limits.cancel.on_cancel(lambda: group.give_up(own)):
            if group.members[0] is own:
                self._close(group, (id(place.siblings), kind), place.siblings, limits)
                _exchange(group, send)
            elif not own.done.wait(max(0.0, limits.deadline - time.monotonic())):
                group.give_up(own)
                raise CallTimeoutError("call.timeout", "no answer in time", left=group.closed)
        if own.given_up:
            raise TransportError("call.transport", GIVEN_UP, left=group.closed)
        return own.outcome

    def _join(self, own: BatchMember, key: tuple[int, str], place: BatchSlot, cap: int) -> _Group:
        with place.siblings.changed:
            group = self._open.get(key)
            if group is not None and (group.size + own.size > cap or len(group.members) >= MAX_CALLS):
                group.full = True
                group = None
            if group is None:
                group = self._open[key] = _Group()
            group.members.append(own)
            group.size += own.size
        place.settle()
        return group

    def _close(self, group: _Group, key: tuple[int, str], siblings: Siblings, limits: CallLimits) -> None:
        """Wait for the other calls, then close the group."""
        until = min(limits.deadline, time.monotonic() + _ANNOUNCED_SECONDS)
        with siblings.changed:
            while len(group.members) < siblings.width and not group.full and not limits.cancel.is_set:
                rest = until - time.monotonic()
                if rest <= 0:
                    break
                announced = siblings.awaited > 0
                changed = siblings.changed.wait(rest if announced else min(rest, _FOLLOWING_SECONDS))
                if not changed and not announced:
                    break
            group.closed = True
            if self._open.get(key) is group:
                del self._open[key]


def _exchange(group: _Group, send: Send) -> None:
    """Make one exchange for all calls of a group; every call is woken, also where `send` raises."""
    waiting = [member for member in group.members if not member.given_up]
    try:
        if waiting:
            deadline = max(member.deadline for member in waiting)
            outcomes = send([member.call for member in waiting], deadline, group.cancel)
            for member, outcome in zip(waiting, outcomes, strict=True):
                member.outcome = outcome
    finally:
        for member in group.members:
            member.done.set()


REPEATABLE: Final = ("none", "idempotent")
BROKEN: Final = "the service did not answer an array of calls with an array of answers: called singly"


class RpcCall(NamedTuple):
    """One call of an array: its attempt, its id, and the request that it would send alone."""

    request: InvocationRequest
    id: int
    outgoing: OutgoingRequest


class RpcOutcome(NamedTuple):
    """The result or the error of one call; with neither, it has to be made alone."""

    meta: CallMeta | None = None
    body: Any = None
    error: RuntimeErrorBase | None = None


SINGLY: Final = RpcOutcome()


def join_calls(calls: list[RpcCall]) -> OutgoingRequest:
    """All calls as one request with the headers of the first; its Idempotency-Key holds all keys in order."""
    first = calls[0].outgoing
    keys = ", ".join(call.request.idempotency_key for call in calls)
    headers = tuple(
        (name, keys if name.lower() == "idempotency-key" else value) for name, value in first.headers
    )
    body = b"[" + b",".join(call.outgoing.body for call in calls) + b"]"
    return first._replace(headers=headers, body=body, value=[call.outgoing.value for call in calls])


def match_answers(
    calls: list[RpcCall], reply: HttpReply, meta: CallMeta, secrets: Secrets, now: str, cap: int
) -> list[RpcOutcome]:
    """The outcome of each call by one reply, in order."""
    refusal = failure("an array of calls", reply, None, secrets, now)
    if isinstance(refusal, OverloadedError):
        return [RpcOutcome(own, error=_copy_of(refusal)) for own in _records_per_call(meta, calls)]
    try:
        value = reply_body.parse_reply(reply.body, cap)
    except JsonRefused:
        value = None
    if refusal is not None or not isinstance(value, list):
        return [SINGLY] * len(calls)
    found: dict[int, list[dict[str, Any]]] = {}
    for answer in value:
        id = answer.get("id") if isinstance(answer, dict) else None
        if type(id) is int:
            found.setdefault(id, []).append(answer)
    own_records = _records_per_call(meta, calls, reply_body.reply_record(reply, None, secrets, is_value=True))
    return [
        _outcome(call, found.get(call.id, []), own, secrets)
        for call, own in zip(calls, own_records, strict=True)
    ]


def outcomes_of_failure(calls: list[RpcCall], error: RuntimeErrorBase) -> list[RpcOutcome]:
    """The outcome of each call where the exchange failed, in order."""
    if isinstance(error, ResponseMappingError):
        return [SINGLY] * len(calls)  # too large, or not to be decoded: one by one they may fit
    outcomes = []
    for call in calls:
        own = _copy_of(error)
        if error.record is not None:
            request: Any = error.record.get("request") or {}
            own.record = {
                **error.record,
                "request": {**request, "body": call.outgoing.value},
                "request_bytes": len(call.outgoing.body),
                "batch": {"calls": len(calls), "request_bytes": error.record.get("request_bytes")},
            }
        outcomes.append(RpcOutcome(error=own))
    return outcomes


def _outcome(call: RpcCall, answers: list[dict[str, Any]], meta: CallMeta, secrets: Secrets) -> RpcOutcome:
    if not answers:
        return SINGLY
    name = f"`{call.request.operation}`"
    meta = meta._replace(reply={**(meta.reply or {}), "body": answers[0] if len(answers) == 1 else answers})
    try:
        if len(answers) > 1:
            text = f"{name}: malformed answer: {len(answers)} answers with the id {call.id}"
            raise ServerFaultError("call.server-error", text, left=True)
        body = result_of(answers[0], call.id, name, secrets, service=call.request.service.id)
    except RuntimeErrorBase as error:
        return RpcOutcome(meta, error=error)
    return RpcOutcome(meta, body)


def _records_per_call(
    meta: CallMeta, calls: list[RpcCall], reply: dict[str, Any] | None = None
) -> list[CallMeta]:
    """The record of each call: its own request and `batch`, the array that it was part of."""
    arrays = {"calls": len(calls), "request_bytes": meta.request_bytes, "response_bytes": meta.response_bytes}
    batch = {name: value for name, value in arrays.items() if value is not None}
    return [
        meta._replace(
            request={**(meta.request or {}), "body": call.outgoing.value},
            request_bytes=len(call.outgoing.body),
            response_bytes=None,
            reply=reply,
            batch=batch,
        )
        for call in calls
    ]


def _copy_of(error: RuntimeErrorBase) -> RuntimeErrorBase:
    same = type(error)(error.code, error.message, hint=error.hint, left=error.left)
    same.retry_after = error.retry_after
    return same
