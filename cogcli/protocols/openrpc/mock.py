"""A mock server by an OpenRPC document (docs/reference/protocols.md#mocks).

1. An unknown method is -32601, parameters that break their schemas -32602 with a pointer for each fault.
2. It answers with the method's first example result, else the smallest value that the result's schema allows; a method
   without a result is answered with 204.
3. Arrays of calls are answered one by one, in one array.
"""

from __future__ import annotations

from typing import Any, Final

from cogcli.core.document_fault import DocumentFault
from cogcli.core.strict_json import JsonRefused, loads
from cogcli.documents.loader import resolve
from cogcli.documents.openrpc import OpenRpcDocument, RpcMethod
from cogcli.protocols.http.observed import Reply, Seen, json_reply
from cogcli.protocols.openapi.mock import add_examples
from cogcli.protocols.openapi.request_check import RequestFault
from cogcli.schema.sample import NoSample, sample
from cogcli.schema.validator import errors

PARSE, INVALID, UNKNOWN, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603


class RpcMock:
    """The mock server of one document, on every path."""

    def __init__(self, value: dict[str, Any]) -> None:
        """Raises DocumentFault where the document cannot be used."""
        self._value = value
        self._document = OpenRpcDocument(add_examples(value))

    def __call__(self, seen: Seen) -> Reply:
        """The answer to a request."""
        if seen.method != "POST":
            return json_reply({"message": f"{seen.method} is not allowed here"}, 405, {"Allow": "POST"})
        try:
            asked = loads(seen.body)
        except JsonRefused as refused:
            return json_reply(_error(None, PARSE, str(refused)))
        calls = asked if isinstance(asked, list) else [asked]
        answers = [answer for answer in map(self._answer, calls) if answer is not None]
        if not answers:
            return Reply(204)
        return json_reply(answers if isinstance(asked, list) else answers[0])

    def _answer(self, call: Any) -> dict[str, Any] | None:
        """The answer to one call, None for a notification."""
        if not isinstance(call, dict) or not isinstance(call.get("method"), str):
            return _error(None, INVALID, "this is no call")
        id = call.get("id")
        try:
            method = self._document.method(call["method"])
        except DocumentFault as fault:
            return _error(id, UNKNOWN, fault.message)
        faults = param_faults(method, call.get("params", {}))
        if faults:
            told = [fault._asdict() for fault in faults]
            return _error(id, PARAMS, f"{faults[0].pointer}: {faults[0].message}", told)
        if "id" not in call:
            return None
        try:
            return {"jsonrpc": "2.0", "id": id, "result": self._result(method)}
        except NoSample as lost:
            return _error(id, INTERNAL, f"result of {method.name}: {lost}")

    def _result(self, method: RpcMethod) -> Any:
        for item in self._value["methods"]:
            raw, _ = resolve(self._value, item, ())
            for example in raw.get("examples") or () if raw.get("name") == method.name else ():
                pairing, _ = resolve(self._value, example, ())
                if "result" in pairing:
                    told, _ = resolve(self._value, pairing["result"], ())
                    return told.get("value")
        return sample(method.result)


def param_faults(method: RpcMethod, params: Any) -> list[RequestFault]:
    """The faults of a call's parameters, given by name or by position."""
    if isinstance(params, list):
        if len(params) > len(method.params):
            return [RequestFault("/params", f"{len(params)} are too many, expected {len(method.params)}")]
        given = {param.name: value for param, value in zip(method.params, params, strict=False)}
    elif isinstance(params, dict):
        given = params
    else:
        return [RequestFault("/params", "expected an object or a list")]
    known = {param.name: param for param in method.params}
    faults = [RequestFault(f"/params/{name}", "not declared") for name in given if name not in known]
    for name, param in known.items():
        if name not in given:
            faults += [RequestFault(f"/params/{name}", "required, not sent")] if param.required else []
            continue
        wrong = errors(param.schema, given[name])
        faults += [RequestFault(f"/params/{name}/{place}".rstrip("/"), said) for place, said in wrong]
    return faults


def _error(id: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": id, "error": {**error, **({"data": data} if data else {})}}


_SHOWN: Final = 3


def join_faults(faults: list[RequestFault]) -> str:
    """Faults in one line."""
    return "; ".join(f"{fault.pointer}: {fault.message}" for fault in faults[:_SHOWN])
