"""The rules of the openrpc invoker, each checked with a server on loopback
(docs/reference/protocols.md#openrpc, docs/reference/protocols.md#own-rules)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.protocols.exchange import ReceivedRequest, Responder, ServerReply, json_reply
from cogcli.protocols.http.rules import (
    SHORT,
    address_case,
    drip,
    redirect_case,
    retry_cases,
    secret_case,
    slow,
    typed,
)
from cogcli.protocols.invoker_rule import (
    ANY_ERROR,
    PATIENT,
    InvokerRule,
    InvokerRules,
    RuleCall,
    RuleCase,
)
from cogcli.protocols.rpc_messages import RpcCall

_PATH: Final = "/rpc"
_RPC: Final = RuleCall(protocol="openrpc")
_LEFT_OUT: Final = object()
_DOCUMENT: Final = {
    "openrpc": "1.3.2",
    "info": {"title": "Bench", "version": "1"},
    "methods": [
        {
            "name": "add",
            "paramStructure": "by-position",
            "params": [{"name": "b", "schema": True}, {"name": "a", "schema": True}],
            "result": {"name": "sum", "schema": {"type": "number"}},
        },
        {"name": "tell", "params": [{"name": "a", "schema": True}]},
    ],
}
_DESCRIBED: Final = RuleCall(
    files={"bench.json": json.dumps(_DOCUMENT)}, service={"spec_ref": "bench.json"}
)
_ADD: Final = _DESCRIBED._replace(
    operation="add", input={"a": 1, "b": 2}, request={"a": "input.a", "b": "input.b"}
)
_TELL: Final = _DESCRIBED._replace(operation="tell", response={})
_HEADERS: Final = RuleCall(
    service_metadata={"headers": {"X-Team": "service"}}, metadata={"headers": {"x-team": "binding"}}
)
_NO_JSON: Final = (
    ("text/html", b"<p>"),
    ("application/json", b'{"jsonrpc": "2.0", "id": 1, "result": NaN}'),
    ("application/json", b'{"jsonrpc": "2.0", "id": 1, "id": 1, "result": 1}'),
    ("application/json", b""),
)


def _case(
    answering: Responder | Sequence[ServerReply], *, call: RuleCall = _RPC, **wanted: Any
) -> RuleCase:
    return RuleCase(answering, call._replace(protocol="openrpc"), path=_PATH, **wanted)


def _first_message(requests: Sequence[ReceivedRequest]) -> Json:
    """Return the JSON-RPC message of the first request."""
    message: Json = json.loads(requests[0].body)
    return message


def _id_of(seen: ReceivedRequest) -> object:
    return read_record(RpcCall, json.loads(seen.body)).id


def _reply_with(result: Any, **members: Any) -> Responder:
    """Return a server function that responds with this result. `members` replace members of the envelope; `_LEFT_OUT`
    removes one.
    """

    def answering(seen: ReceivedRequest) -> ServerReply:
        answer = {
            "jsonrpc": "2.0",
            "id": _id_of(seen),
            "result": result,
            **members,
        }
        return json_reply({name: value for name, value in answer.items() if value is not _LEFT_OUT})

    return answering


def _respond_error(code: object, status: int = 200, message: object = "no") -> Responder:
    def answering(seen: ReceivedRequest) -> ServerReply:
        error = {"code": code, "message": message}
        return json_reply({"jsonrpc": "2.0", "id": _id_of(seen), "error": error}, status)

    return answering


_broken: Final[Callable[..., RuleCase]] = partial(_case, error="call.server-error", left=True)
_rejected: Final[Callable[..., RuleCase]] = partial(_case, error="call.rejected")

RULES: Final[InvokerRules] = {
    "post": InvokerRule("a POST to the url, version 2.0, ids from 1", (
        _case(_reply_with({"n": 1}), outputs={"r": {"n": 1}},
              sent=lambda seen: (seen[0].method, seen[0].path, _first_message(seen)),
              wanted=("POST", _PATH, {"jsonrpc": "2.0", "method": "op", "params": {"a": 1}, "id": 1})),)),
    "result.any": InvokerRule("the result is the body, whatever its type", (
        *(_case(_reply_with(result), outputs={"r": result}) for result in (7, "text", [1], None, False)),)),
    "result.one": InvokerRule("exactly one of result and error", (
        _broken(_reply_with(7, error={"code": -32000, "message": "no"})),
        _broken(_reply_with(_LEFT_OUT)), _broken(_reply_with(7, jsonrpc="1.0")))),
    "id.match": InvokerRule("an answer's id fits by type and value", (
        *(_broken(_reply_with(7, id=wrong)) for wrong in (2, "1", 1.5, None, True, [1])),)),
    "params.position": InvokerRule("params by position where the document says so", (
        _case(_reply_with(3), call=_ADD, outputs={"r": 3},
              sent=lambda seen: _first_message(seen)["params"], wanted=[2, 1]),)),
    "notification": InvokerRule("a method without result has no id; answers are ignored", (
        *(_case(answering, call=_TELL,
                sent=lambda seen: "id" in _first_message(seen), wanted=False)
          for answering in (lambda seen: ServerReply(204), _reply_with(9))),
        _case(lambda seen: ServerReply(500), call=_TELL, error="call.server-error"))),
    "method.name": InvokerRule("only method names are sent, never rpc.*", (
        *(_case(_reply_with(1), call=RuleCall(operation=name), error=ANY_ERROR, wanted=0)
          for name in ("rpc.discover", "a b", "x\r\ny", "", "x" * 129)),)),
    "errors.fault": InvokerRule("-32603 and -32000 to -32099 are server faults", (
        *(_broken(_respond_error(code)) for code in (-32603, -32000, -32099)),)),
    "errors.rejected": InvokerRule("other codes are rejections", (
        *(_rejected(_respond_error(code), left=True) for code in (-32602, -32700, 1, -31999)),)),
    "errors.unknown": InvokerRule("-32601 hints at services refresh", (
        _rejected(_respond_error(-32601), says="services refresh"),)),
    "errors.status": InvokerRule("an RPC error counts whatever the HTTP status is", (
        *(_rejected(_respond_error(-32602, status)) for status in (400, 404, 500, 503)),
        _case(lambda seen: ServerReply(503), error="call.overloaded"))),
    "errors.malformed": InvokerRule("error members of a wrong type never crash", (
        *(_case(_respond_error(code, message=message), error="call.server-error")
          for code, message in (("-32602", "no"), (-32602, None), (None, "no"), (1.5, "no"))),)),
    "not-json": InvokerRule("what is not strict JSON is told with its status", (
        *(_case(typed(media, body), error="response.not-json", says="200") for media, body in _NO_JSON),)),
    "size.reply": InvokerRule("replies over the cap are refused", (
        _case(_reply_with("x" * 50_000), call=RuleCall(metadata={"max_response_bytes": 1000}),
              error="response.size"),)),
    "headers": InvokerRule("headers as for openapi, the token masked in every file", (
        secret_case(partial(_case, _reply_with(1)), _HEADERS),
        _case(_reply_with(1), call=_HEADERS, sent=lambda seen: seen[0].header("x-team"), wanted="binding"))),
    "timeout": InvokerRule("silent and dripping servers end on time", (
        *(_case(answering, call=RuleCall(metadata={"timeout_seconds": SHORT}), error="call.timeout", left=True,
                within=PATIENT) for answering in (drip, slow)),)),
    "redirect": InvokerRule("a redirect is told, never followed", (redirect_case(_case, _reply_with(1), 307, ""),)),
    "retry.effect": InvokerRule("an effect that may have left is not repeated", tuple(
        retry_cases(_case, _RPC, {"none": 3, "idempotent": 3, "effect": 1}))),
    "address": InvokerRule("private addresses only where the service says so", (
        address_case(partial(_case, _reply_with(1)), _RPC),)),
}  # fmt: skip
