"""openrpc: a mock server by a document (docs/reference/protocols.md#mocks), the checks of calls by it
(docs/reference/protocols.md#own-rules), and the document that a service publishes
(docs/reference/protocols.md#mcp-pins).

1. For the mock an unknown method is -32601, parameters that break their schemas -32602 with a pointer for each fault.
2. It answers with the method's first example result, else the smallest value that the result's schema allows; a method
   without a result is answered with 204.
3. Arrays of calls are answered one by one, in one array.
4. A service gives its document by `rpc.discover`.
"""

from __future__ import annotations

from typing import Final

import orjson

from cogcli.base.api_documents.changes import find_openrpc_changes
from cogcli.base.api_documents.openrpc import OpenRpcDocument, RpcMethod, load_openrpc
from cogcli.base.api_documents.parts import resolve
from cogcli.base.api_documents.references import MAX_BYTES
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.schema.sample import NoSample, sample
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols.exchange import ObservedExchange, ReceivedRequest, ServerReply, json_reply
from cogcli.protocols.exchange_checks import Check, Judge, schema_check
from cogcli.protocols.http import reply_body
from cogcli.protocols.live_document import DocumentKind, DocumentRequest, document_error
from cogcli.protocols.openapi.document import DeclaredExample, add_examples
from cogcli.protocols.openapi.judge import RequestFault, breaches, join_faults
from cogcli.protocols.openrpc.grammar import address_of
from cogcli.protocols.openrpc.reply import result_of
from cogcli.protocols.rpc_messages import RpcCall, read_answer

PARSE, INVALID, UNKNOWN, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603


class DeclaredMethod(Record):
    """A method in a document, with its pairs of example parameters and result."""

    name: str
    examples: list[object]


class RpcMock:
    """The mock server of one document, on every path."""

    def __init__(self, value: Json) -> None:
        """Raise DocumentFault if the document cannot be used."""
        self._value = value
        self._document = OpenRpcDocument(add_examples(value))

    def __call__(self, seen: ReceivedRequest) -> ServerReply:
        """Return the reply to a request."""
        if seen.method != "POST":
            return json_reply(
                {"message": f"{seen.method} is not allowed here"}, 405, {"Allow": "POST"}
            )
        try:
            asked = loads(seen.body)
        except InvalidJson as refused:
            return json_reply(_rpc_error(None, PARSE, str(refused)))
        answer = self._answer_call(asked)
        return ServerReply(204) if answer is None else json_reply(answer)

    def _answer_call(self, value: object) -> Json | None:
        """Return the answer to one call, None for a notification."""
        call = read_record(RpcCall, value)
        if call.method is None:
            return _rpc_error(None, INVALID, "this is not a call")
        try:
            method = self._document.method(call.method)
        except DocumentFault as fault:
            return _rpc_error(call.id, UNKNOWN, fault.message)
        faults = param_faults(method, call.params)
        if faults:
            members = [fault._asdict() for fault in faults]
            return _rpc_error(call.id, PARAMS, f"{faults[0].pointer}: {faults[0].message}", members)
        if call.is_notification:
            return None
        try:
            return {"jsonrpc": "2.0", "id": call.id, "result": self._sample_result(method)}
        except NoSample as lost:
            return _rpc_error(call.id, INTERNAL, f"result of {method.name}: {lost}")

    def _sample_result(self, method: RpcMethod) -> object:
        for item in self._value["methods"]:
            raw, _ = resolve(self._value, item, ())
            declared = read_record(DeclaredMethod, raw)
            for example in declared.examples if declared.name == method.name else ():
                pairing, _ = resolve(self._value, example, ())
                if "result" in pairing:
                    result, _ = resolve(self._value, pairing["result"], ())
                    return read_record(DeclaredExample, result).value
        return sample(method.result)


def param_faults(method: RpcMethod, params: object) -> list[RequestFault]:
    """Return the faults of a call's parameters, given by name or by position."""
    if isinstance(params, list):
        if len(params) > len(method.params):
            text = f"{len(params)} are too many, expected {len(method.params)}"
            return [RequestFault("/params", text)]
        params = {param.name: value for param, value in zip(method.params, params, strict=False)}
    if not isinstance(params, dict):
        return [RequestFault("/params", "expected an object or a list")]
    return _named_param_faults(method, params)


def _named_param_faults(method: RpcMethod, given: Json) -> list[RequestFault]:
    known = {param.name: param for param in method.params}
    faults = [
        RequestFault(f"/params/{name}", "not declared") for name in given if name not in known
    ]
    for name, param in known.items():
        if name in given:
            faults += breaches(f"/params/{name}", param.schema, given[name])
        elif param.required:
            faults.append(RequestFault(f"/params/{name}", "required, not sent"))
    return faults


def _rpc_error(id: object, code: int, message: str, data: object = None) -> Json:
    error: Json = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": id, "error": {**error, **({"data": data} if data else {})}}


def judge_of(binding: Binding, service: Service) -> Judge | None:
    """Return the validator of a binding's calls, based on its service's document; None without a document. Raise
    DocumentFault.
    """
    document = load_openrpc(service)
    if document is None:
        return None
    method = document.method(binding.operation)
    return lambda exchange: judge_exchange(exchange, method)


def judge_exchange(exchange: ObservedExchange, method: RpcMethod) -> list[Check]:
    """Return the checks of an exchange, in display order."""
    sent = _parse_value(exchange.seen.body)
    call = read_record(RpcCall, sent)
    # A value that is no object has the fault of parameters that are none.
    faults = param_faults(method, call.params if call.json is sent else None)
    parameters = Check("parameters match their schemas", not faults, join_faults(faults))
    checks = [_check_request(exchange, call, method), parameters]
    if method.is_notification:
        taken = 200 <= exchange.status < 300
        return [*checks, Check("the notification is taken", taken, f"{exchange.status}")]
    answer = read_answer(_parse_value(exchange.reply))
    if "result" in answer.json:
        result = schema_check("result matches its schema", method.result, answer.result)
        return [*checks, Check("the answer has a result", True), result]
    found = f"RPC error {answer.error.code}" if answer.error else "it holds none"
    return [*checks, Check("the answer has a result", False, found)]


def _check_request(exchange: ObservedExchange, call: RpcCall, method: RpcMethod) -> Check:
    name = "request matches the method"
    if exchange.seen.method != "POST" or call.method != method.name:
        sent = f"{exchange.seen.method} {exchange.seen.path}"
        return Check(name, False, f"{sent}, expected POST of {method.name}")
    wrong = call.is_notification is not method.is_notification
    detail = (
        f"it {'lacks' if call.is_notification else 'has'} an id" if wrong else f"POST {method.name}"
    )
    return Check(name, not wrong, detail)


def _parse_value(data: bytes) -> object:
    try:
        return loads(data)
    except InvalidJson:
        return None


_DISCOVER: Final = {"jsonrpc": "2.0", "method": "rpc.discover", "params": [], "id": 1}


def discover(request: DocumentRequest) -> Json:
    reply = request.exchange("POST", address_of(request.service), _DISCOVER)
    try:
        value = reply_body.parse_reply(reply.body, MAX_BYTES)
    except InvalidJson:
        value = None
    refusal = request.failure_of("`rpc.discover`", reply, value)
    if refusal is not None and not isinstance(value, dict):
        raise refusal
    if value is None:
        raise document_error("`rpc.discover` is not answered with JSON")
    found = result_of(value, 1, "`rpc.discover`", request.secrets, service=request.service.id)
    return request.document(orjson.dumps(found), "by rpc.discover", "discovered.json")


KIND: Final = DocumentKind(
    "method",
    OpenRpcDocument,
    find_openrpc_changes,
    discover,
    judge_of,
    lambda value, _: RpcMock(value),
)
