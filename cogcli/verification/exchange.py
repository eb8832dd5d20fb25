"""Checking one request and its reply by their operation (docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import orjson

from cogcli.documents.openapi import OpenApiDocument, OpenApiOperation
from cogcli.schema.validator import errors
from cogcli.verification.document_mock import match_route, routes_of
from cogcli.verification.loopback_server import Reply, Seen
from cogcli.verification.request_check import body_faults, parameter_faults
from cogcli.verification.verdict import Check, find_in_json

_SHOWN: Final = 3


class ObservedExchange(NamedTuple):
    """One request and its reply, unmasked; `status` is 0 without a reply.

    `whole`: whether header values are known; a record holds only their names.
    """

    seen: Seen
    status: int
    media_type: str
    reply: bytes
    whole: bool = True


def exchange_from_mock(seen: Seen, reply: Reply) -> ObservedExchange:
    """The exchange of a request to a mock server."""
    media_type = next((v for n, v in reply.headers.items() if n.lower() == "content-type"), "")
    return ObservedExchange(seen, reply.status, media_type, b"".join(reply.chunks))


def exchange_from_record(record: Mapping[str, Any]) -> ObservedExchange | None:
    """The exchange in the record of an attempt; None where no request was made."""
    url, status = record.get("url"), record.get("status_code")
    if not url:
        return None
    request, reply = record.get("request") or {}, record.get("reply") or {}
    parts = urlsplit(str(url))
    names = {str(name).lower(): "" for name in request.get("headers") or ()}
    names["content-type"] = str(request.get("media_type") or "")
    seen = Seen(str(record.get("method")), parts.path, parts.query, names, _bytes(request.get("body")))
    media_type = str(record.get("media_type") or reply.get("media_type") or "")
    return ObservedExchange(
        seen, status if isinstance(status, int) else 0, media_type, _bytes(reply.get("body")), whole=False
    )


def _bytes(body: Any) -> bytes:
    if body is None:
        return b""
    return body.encode() if isinstance(body, str) else orjson.dumps(body)


def judge_exchange(
    exchange: ObservedExchange, document: OpenApiDocument, operation: OpenApiOperation, base: str
) -> list[Check]:
    """The checks of an exchange, in display order."""
    found = [_request(exchange, document, operation, base.rstrip("/"))]
    found += _body(exchange, operation)
    key = declared_status(operation, exchange.status)
    said = "" if key else f"declared: {', '.join(operation.responses) or 'none'}"
    found.append(Check(f"status {exchange.status} is declared", key is not None, said))
    if key is not None and operation.responses[key] is not None:
        found.append(_reply(exchange, operation.responses[key]))
    return found


def declared_status(operation: OpenApiOperation, status: int) -> str | None:
    """The key under which an operation declares a status."""
    choices = (str(status), f"{status // 100}XX", "default")
    return next((key for key in choices if key in operation.responses), None)


def _request(
    exchange: ObservedExchange, document: OpenApiDocument, operation: OpenApiOperation, base: str
) -> Check:
    seen, name = exchange.seen, "request matches the operation"
    asked = f"{seen.method} {seen.path}"
    route = next(r for r in routes_of(document) if r.path == operation.path)
    inside = seen.path.startswith(f"{base}/") or not base
    found = match_route((route,), seen.path.removeprefix(base)) if inside else None
    if found is None or seen.method != operation.method:
        return Check(name, False, f"{asked}, expected {operation.method} {base}{operation.path}")
    known = operation if exchange.whole else _without_headers(operation)
    faults = parameter_faults(known, seen, {k: unquote(v) for k, v in found[1].items()})
    said = "; ".join(f"{fault.pointer}: {fault.message}" for fault in faults[:_SHOWN])
    return Check(name, not faults, f"{asked}: {said}" if faults else asked)


def _without_headers(operation: OpenApiOperation) -> OpenApiOperation:
    return operation._replace(parameters=tuple(p for p in operation.parameters if p.place != "header"))


def _body(exchange: ObservedExchange, operation: OpenApiOperation) -> Iterator[Check]:
    if operation.body is None and not exchange.seen.body:
        return
    faults = body_faults(operation, exchange.seen)
    said = "; ".join(f"{fault.pointer}: {fault.message}" for fault in faults[:_SHOWN])
    yield Check("request body matches its schema", not faults, said)


def _reply(exchange: ObservedExchange, schema: Any) -> Check:
    from cogcli.core.strict_json import JsonRefused, loads

    name = "reply matches its schema"
    media_type = exchange.media_type.partition(";")[0].strip().lower()
    if media_type and not (media_type == "application/json" or media_type.endswith("+json")):
        return Check(name, False, f"found {media_type}, expected JSON")
    try:
        value = loads(exchange.reply)
    except JsonRefused as refused:
        return Check(name, False, str(refused))
    wrong = errors(schema, value)
    if not wrong:
        return Check(name, True)
    place, message = wrong[0]
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    said = f"{place.replace('/', '.')}: {message}{more}" if place else f"{message}{more}"
    return Check(name, False, said, find_in_json(value, place))
