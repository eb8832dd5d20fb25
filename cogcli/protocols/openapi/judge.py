"""openapi: checking one request and its reply by their operation (docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from cogcli.core.strict_json import JsonRefused, loads
from cogcli.documents.openapi import OpenApiDocument, OpenApiOperation, openapi_of
from cogcli.protocols.exchange import Check, Judge, ObservedExchange, schema_check
from cogcli.protocols.openapi.mock import match_route, routes_of
from cogcli.protocols.openapi.request_check import body_faults, parameter_faults
from cogcli.specs.binding import Binding
from cogcli.specs.service import Service

_SHOWN: Final = 3


def judge_of(binding: Binding, service: Service) -> Judge | None:
    """The judge of a binding's calls by its service's document; None without one. Raises DocumentFault."""
    document = openapi_of(service)
    if document is None:
        return None
    operation = document.operation(binding.operation, binding.metadata.get("method"))
    base = urlsplit(service.settings.get("base_url") or document.server or "").path
    return lambda exchange: judge_exchange(exchange, document, operation, base)


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
    name = "reply matches its schema"
    media_type = exchange.media_type.partition(";")[0].strip().lower()
    if media_type and not (media_type == "application/json" or media_type.endswith("+json")):
        return Check(name, False, f"found {media_type}, expected JSON")
    try:
        value = loads(exchange.reply)
    except JsonRefused as refused:
        return Check(name, False, str(refused))
    return schema_check(name, schema, value)
