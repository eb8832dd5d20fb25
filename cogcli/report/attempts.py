"""One attempt of a call as a span of a trace: its name, attributes and times (docs/reference/protocols.md#export)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.call_records import AttemptMade
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.rpc_messages import RpcCall
from cogcli.report.trace_spans import drop_empty, is_count, json_text, microseconds_of

_VERBS: Final = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"))
_URL: Final = re.compile(
    r"https?://(?:[^/?#@]*@)?(\[[^\]/?#]*\]|[^:/?#]*)(?::([0-9]{1,5}))?(/[^?#]*)?"
)
_TOKENS: Final = (
    ("gen_ai.usage.input_tokens", ("input_tokens", "prompt_tokens")),
    ("gen_ai.usage.output_tokens", ("output_tokens", "completion_tokens")),
)


class AttemptSpan(NamedTuple):
    """The name and the attributes of an attempt's span."""

    name: str
    attributes: Json


class _RpcRequest(Record):
    """A recorded request, read as one of JSON-RPC."""

    body: RpcCall


class RetryWait(NamedTuple):
    """The time when the write-ahead record of a repeated attempt was written, and the wait before
    it. Both are in microseconds."""

    at: int
    waited: int


def attempt_span(attempt: AttemptMade, protocol: str, *, io: bool) -> AttemptSpan | None:
    """Return the span of an attempt. None if the attempt sent nothing over a network and used no
    model."""
    if attempt.usage is None and not attempt.method and not attempt.url:
        return None
    attributes: Json = {}
    name = _add_exchange(attributes, attempt, protocol)
    if attempt.usage is not None:
        name = _add_chat(attributes, attempt, attempt.usage)
    attributes["cogcli.binding.id"] = attempt.binding_id
    attributes["cogcli.service.id"] = attempt.service_id
    if io:
        attributes["url.full"] = attempt.url
        attributes["cogcli.request"] = json_text(attempt.request)
        attributes["cogcli.reply"] = json_text(attempt.reply)
    return AttemptSpan(name, drop_empty(attributes))


def attempt_times(
    attempts: Sequence[AttemptMade], start: int, end: int, repeats: Sequence[RetryWait]
) -> list[tuple[int, int]]:
    """Return the start and end of each attempt in microseconds, within the time of the step. Missing times come from
    the write-ahead records before and after the attempt.
    """
    times = []
    begins = [start, *(repeat.at for repeat in repeats)]
    ends = [repeat.at - repeat.waited for repeat in repeats]
    previous = start
    for number, attempt in enumerate(attempts):
        begin = microseconds_of(attempt.started_at)
        took = attempt.duration_ms
        if begin is None:
            begin = begins[number] if number < len(begins) else previous
        if took is not None and took < 2**40:
            finish = begin + took * 1000
        else:
            finish = ends[number] if number < len(ends) else end
        begin = min(max(begin, start), end)
        previous = min(max(finish, begin), end)
        times.append((begin, previous))
    return times


def _add_exchange(attributes: Json, attempt: AttemptMade, protocol: str) -> str:
    """Add attributes of the exchange on the wire. Return the name of the span."""
    path = _add_http(attributes, attempt)
    remote = _remote_method(attempt, protocol)
    if not remote:
        return f"{attempt.method} {path}" if attempt.method else protocol or "call"
    attributes["rpc.system.name"] = "jsonrpc"
    attributes["rpc.method"] = remote
    row = PROTOCOLS.get(protocol)
    if row and row.called_method:
        attributes["mcp.method.name"] = remote
    return remote


def _add_http(attributes: Json, attempt: AttemptMade) -> str:
    """Add attributes of the HTTP request and its response. Return the path of the request."""
    if attempt.method in _VERBS:
        attributes["http.request.method"] = attempt.method
    code = attempt.status_code
    if code is not None and 100 <= code <= 599:
        attributes["http.response.status_code"] = code
    place = _URL.match(attempt.url or "")
    if place is None:
        return "/"
    attributes["server.address"] = place[1].strip("[]")
    if place[2]:
        attributes["server.port"] = int(place[2])
    return place[3] or "/"


def _remote_method(attempt: AttemptMade, protocol: str) -> str:
    """Return the method of a remote procedure call, from the record or the JSON-RPC request. Empty for other calls."""
    if attempt.method and attempt.method not in _VERBS:
        return attempt.method
    row = PROTOCOLS.get(protocol)
    call = read_record(_RpcRequest, attempt.request).body
    return call.method or "" if row and row.json_rpc else ""


def _add_chat(attributes: Json, attempt: AttemptMade, usage: Json) -> str:
    """Add attributes of the model request and its token usage. Return the name of the span."""
    model, finish = attempt.model or "", attempt.finish_reason
    attributes["gen_ai.operation.name"] = "chat"
    attributes["gen_ai.request.model"] = model
    for name, keys in _TOKENS:
        count = next((usage[key] for key in keys if key in usage), None)
        if is_count(count):
            attributes[name] = count
    if finish:
        attributes["gen_ai.response.finish_reasons"] = [finish]
    return f"chat {model}".rstrip()
