"""One attempt of a call as a span of a trace: how it is called, what it tells, when it was
(docs/reference/protocols.md#export)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

_VERBS: Final = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"))
_URL: Final = re.compile(r"https?://(?:[^/?#@]*@)?(\[[^\]/?#]*\]|[^:/?#]*)(?::([0-9]{1,5}))?(/[^?#]*)?")
_RPC: Final = ("openrpc", "mcp")
_TOKENS: Final = (
    ("gen_ai.usage.input_tokens", ("input_tokens", "prompt_tokens")),
    ("gen_ai.usage.output_tokens", ("output_tokens", "completion_tokens")),
)


class AttemptSpan(NamedTuple):
    """The name and the attributes of an attempt's span."""

    name: str
    attributes: dict[str, Any]


class Bounds(NamedTuple):
    """When something began and ended, in microseconds."""

    start: int
    end: int


class RetryWait(NamedTuple):
    """When the intent of a repeated attempt was written, and how long was waited before; in microseconds."""

    at: int
    waited: int


def attempt_span(attempt: dict[str, Any], protocol: str, *, io: bool) -> AttemptSpan | None:
    """The span of an attempt; None where nothing went over a wire and no model was used."""
    usage, method, url = attempt.get("usage"), _text(attempt.get("method")), _text(attempt.get("url"))
    if not isinstance(usage, dict) and not method and not url:
        return None
    told: dict[str, Any] = {}
    name = _called(told, attempt, protocol)
    if isinstance(usage, dict):
        name = _chat(told, attempt, usage)
    told["cogcli.binding.id"] = _text(attempt.get("binding_id"))
    told["cogcli.service.id"] = _text(attempt.get("service_id"))
    if io:
        told["url.full"] = url
        for side in ("request", "reply"):
            if attempt.get(side) is not None:
                told[f"cogcli.{side}"] = json.dumps(attempt[side], ensure_ascii=False, separators=(",", ":"))
    return AttemptSpan(name, {key: value for key, value in told.items() if value not in ("", None)})


def bounds(
    made: Sequence[dict[str, Any]],
    start: int,
    end: int,
    repeats: Sequence[RetryWait],
    parsed: Callable[[Any], int | None],
) -> list[Bounds]:
    """When each attempt was, always within the step: as it says itself, else as the intents around it tell."""
    found = []
    begins = [start, *(repeat.at for repeat in repeats)]
    ends = [repeat.at - repeat.waited for repeat in repeats]
    previous = start
    for number, attempt in enumerate(made):
        begin = parsed(attempt.get("started_at"))
        took = attempt.get("duration_ms")
        if begin is None:
            begin = begins[number] if number < len(begins) else previous
        if type(took) is int and 0 <= took < 2**40:
            finish = begin + took * 1000
        else:
            finish = ends[number] if number < len(ends) else end
        begin = min(max(begin, start), end)
        previous = min(max(finish, begin), end)
        found.append(Bounds(begin, previous))
    return found


def _called(told: dict[str, Any], attempt: dict[str, Any], protocol: str) -> str:
    """Tell what went over the wire; how the span is called."""
    method = _text(attempt.get("method"))
    place = _URL.match(_text(attempt.get("url")))
    path = (place and place[3]) or "/"
    if method in _VERBS:
        told["http.request.method"] = method
    code = attempt.get("status_code")
    if type(code) is int and 100 <= code <= 599:
        told["http.response.status_code"] = code
    if place:
        told["server.address"] = place[1].strip("[]")
        if place[2]:
            told["server.port"] = int(place[2])
    remote = _remote_method(attempt, protocol)
    if not remote:
        return f"{method} {path}" if method else protocol or "call"
    told["rpc.system.name"] = "jsonrpc"
    told["rpc.method"] = remote
    if protocol == "mcp":
        told["mcp.method.name"] = remote
    return remote


def _remote_method(attempt: dict[str, Any], protocol: str) -> str:
    """The method of a remote procedure call: told as such, or inside the JSON-RPC request."""
    method = _text(attempt.get("method"))
    if method and method not in _VERBS:
        return method
    request = attempt.get("request")
    body = request.get("body") if isinstance(request, dict) else None
    return _text(body.get("method")) if protocol in _RPC and isinstance(body, dict) else ""


def _chat(told: dict[str, Any], attempt: dict[str, Any], usage: dict[str, Any]) -> str:
    model, finish = _text(attempt.get("model")), _text(attempt.get("finish_reason"))
    told["gen_ai.operation.name"] = "chat"
    told["gen_ai.request.model"] = model
    for name, keys in _TOKENS:
        count = next((usage[key] for key in keys if key in usage), None)
        if type(count) is int and 0 <= count < 2**53:
            told[name] = count
    if finish:
        told["gen_ai.response.finish_reasons"] = [finish]
    return f"chat {model}".rstrip()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
