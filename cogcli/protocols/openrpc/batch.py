"""Several JSON-RPC calls in one array (docs/reference/protocols.md#batch).

1. Only calls that may be repeated and have an answer, of a service whose document has `x-batch: true`.
2. Answers are matched by type and value of their id, in any order; one with another id is ignored. Two answers to one
   call make it fail.
3. Where the reply is no array, lacks answers or is too large, those calls are made one by one, and so is every further
   call to that service for the rest of the run.
4. A connection that fails, times out or is overloaded fails each call as it would fail a single one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.core.errors import OverloadedError, ResponseMappingError, RuntimeErrorBase, ServerFaultError
from cogcli.core.strict_json import JsonRefused
from cogcli.protocols.http import reply_body
from cogcli.protocols.http.failures import failure
from cogcli.protocols.http.http_call import OutgoingRequest
from cogcli.protocols.invoker import CallMeta, InvocationRequest
from cogcli.protocols.openrpc.reply import result_of
from cogcli.protocols.secrets import Secrets

if TYPE_CHECKING:
    from cogcli.core.http import HttpReply

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
    own_records = _records_per_call(meta, calls, reply_body.reply_record(reply, None, is_value=True))
    return [
        _outcome(call, found.get(call.id, []), own, secrets)
        for call, own in zip(calls, own_records, strict=True)
    ]


def outcomes_of_failure(calls: list[RpcCall], error: RuntimeErrorBase) -> list[RpcOutcome]:
    """The outcome of each call where the exchange failed, in order."""
    if isinstance(error, ResponseMappingError):
        return [SINGLY] * len(calls)  # too large, or not to be decoded: one by one they may fit
    return [RpcOutcome(error=_with_record(_copy_of(error), call, len(calls), error.record)) for call in calls]


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


def _with_record(
    error: RuntimeErrorBase, call: RpcCall, count: int, record: dict[str, object] | None
) -> RuntimeErrorBase:
    """The error with the record of one call: its own request and `batch`."""
    if record is not None:
        request: Any = record.get("request") or {}
        own = {**request, "body": call.outgoing.value}
        error.record = {**record, "request": own, "request_bytes": len(call.outgoing.body)}
        error.record["batch"] = {"calls": count, "request_bytes": record.get("request_bytes")}
    return error


def _copy_of(error: RuntimeErrorBase) -> RuntimeErrorBase:
    same = type(error)(error.code, error.message, hint=error.hint, left=error.left)
    same.retry_after = error.retry_after
    return same
