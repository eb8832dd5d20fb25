"""Checking one JSON-RPC call and its answer by their method (docs/reference/protocols.md#openrpc,
docs/reference/protocols.md#own-rules)."""

from __future__ import annotations

from typing import Any

from cogcli.core.strict_json import JsonRefused, loads
from cogcli.documents.openrpc import RpcMethod, openrpc_of
from cogcli.protocols.exchange import Check, Judge, ObservedExchange, schema_check
from cogcli.protocols.openrpc.mock import join_faults, param_faults
from cogcli.specs.binding import Binding
from cogcli.specs.service import Service


def judge_of(binding: Binding, service: Service) -> Judge | None:
    """The judge of a binding's calls by its service's document; None without one. Raises DocumentFault."""
    document = openrpc_of(service)
    if document is None:
        return None
    method = document.method(binding.operation)
    return lambda exchange: judge_exchange(exchange, method)


def judge_exchange(exchange: ObservedExchange, method: RpcMethod) -> list[Check]:
    """The checks of an exchange, in display order."""
    call = _value(exchange.seen.body)
    checks = [_request(exchange, call, method), _params(call, method)]
    if method.is_notification:
        return [
            *checks,
            Check("the notification is taken", 200 <= exchange.status < 300, f"{exchange.status}"),
        ]
    return [*checks, *_result(exchange, method)]


def _request(exchange: ObservedExchange, call: Any, method: RpcMethod) -> Check:
    name = "request matches the method"
    if exchange.seen.method != "POST" or not isinstance(call, dict) or call.get("method") != method.name:
        return Check(
            name, False, f"{exchange.seen.method} {exchange.seen.path}, expected POST of {method.name}"
        )
    wrong = ("id" in call) is method.is_notification
    said = f"it {'has' if 'id' in call else 'lacks'} an id" if wrong else f"POST {method.name}"
    return Check(name, not wrong, said)


def _params(call: Any, method: RpcMethod) -> Check:
    faults = param_faults(method, call.get("params", {}) if isinstance(call, dict) else None)
    return Check("parameters match their schemas", not faults, join_faults(faults))


def _result(exchange: ObservedExchange, method: RpcMethod) -> list[Check]:
    answer = _value(exchange.reply)
    if not isinstance(answer, dict) or "result" not in answer:
        error = answer.get("error") if isinstance(answer, dict) else None
        said = f"RPC error {error.get('code')}" if isinstance(error, dict) else "it holds none"
        return [Check("the answer has a result", False, said)]
    result = schema_check("result matches its schema", method.result, answer["result"])
    return [Check("the answer has a result", True), result]


def _value(data: bytes) -> Any:
    try:
        return loads(data)
    except JsonRefused:
        return None
