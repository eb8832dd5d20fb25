"""The rules of the openrpc invoker, each checked with a server on loopback
(docs/reference/protocols.md#openrpc, docs/reference/protocols.md#own-rules)."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import Any, Final

from cogcli.verification.harness import Bench, call_server
from cogcli.verification.loopback_server import Answering, Loopback, Reply, Seen, json_reply
from cogcli.verification.rule_runner import (
    InvokerRule,
    InvokerRules,
    RuleBroken,
    require,
    require_error,
    require_ok,
)

_SHORT: Final = 0.6
_PATIENT: Final = 10.0
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


_run_call = partial(call_server, "/rpc", protocol="openrpc")


def _with_document(bench: Bench) -> dict[str, Any]:
    """Members of a call whose service has a document."""
    with open(os.path.join(bench.directory, "bench.json"), "w", encoding="utf-8") as file:
        json.dump(_DOCUMENT, file)
    return {"root": bench.directory, "service": {"spec_ref": "bench.json"}}


def _call(seen: Seen) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(seen.body)
    return found


def _result_reply(result: Any, **members: Any) -> Answering:
    """A server that answers with this result; `members` replace those of the envelope, None removes one."""

    def answering(seen: Seen) -> Reply:
        told = {"jsonrpc": "2.0", "id": _call(seen).get("id"), "result": result, **members}
        return json_reply({name: value for name, value in told.items() if value is not _LEFT_OUT})

    return answering


_LEFT_OUT: Final = object()


def _error_reply(code: Any, status: int = 200, message: Any = "no") -> Answering:
    def answering(seen: Seen) -> Reply:
        error = {"code": code, "message": message}
        return json_reply({"jsonrpc": "2.0", "id": _call(seen).get("id"), "error": error}, status)

    return answering


def _post(bench: Bench) -> None:
    ran, seen = _run_call(bench, _result_reply({"n": 1}))
    require(require_ok(ran), {"r": {"n": 1}}, "outputs")
    require((seen[0].method, seen[0].path), ("POST", "/rpc"), "request")
    require(_call(seen[0]), {"jsonrpc": "2.0", "method": "op", "params": {"a": 1}, "id": 1}, "call")


def _result_any(bench: Bench) -> None:
    for result in (7, "text", [1], None, False):
        ran, _ = _run_call(bench, _result_reply(result))
        require(require_ok(ran).get("r"), result, "result")


def _id_value(bench: Bench) -> None:
    for wrong in (2, "1", 1.5, None, True, [1]):
        ran, _ = _run_call(bench, _result_reply(7, id=wrong))
        require_error(ran, "call.server-error", left=True)


def _result_one(bench: Bench) -> None:
    error = {"code": -32000, "message": "no"}
    for answering in (
        _result_reply(7, error=error),
        _result_reply(_LEFT_OUT),
        _result_reply(7, jsonrpc="1.0"),
    ):
        ran, _ = _run_call(bench, answering)
        require_error(ran, "call.server-error", left=True)


def _params_position(bench: Bench) -> None:
    given = {"operation": "add", "input": {"a": 1, "b": 2}, "request": {"a": "input.a", "b": "input.b"}}
    ran, seen = _run_call(bench, _result_reply(3), **given, **_with_document(bench))
    require(require_ok(ran), {"r": 3}, "outputs")
    require(_call(seen[0])["params"], [2, 1], "params")


def _notification(bench: Bench) -> None:
    told = {"operation": "tell", "response": {}, **_with_document(bench)}
    for answering in (lambda seen: Reply(204), _result_reply(9)):
        ran, seen = _run_call(bench, answering, **told)
        require_ok(ran)
        require("id" in _call(seen[0]), False, "an id")
    ran, _ = _run_call(bench, lambda seen: Reply(500), **told)
    require_error(ran, "call.server-error")


def _method_names(bench: Bench) -> None:
    for method in ("rpc.discover", "a b", "x\r\ny", "", "x" * 129):
        ran, seen = _run_call(bench, _result_reply(1), operation=method)
        if ran.error is None or seen:
            raise RuleBroken(f"method {method!r} was sent")


def _errors_fault(bench: Bench) -> None:
    for code in (-32603, -32000, -32099):
        ran, _ = _run_call(bench, _error_reply(code))
        require_error(ran, "call.server-error", left=True)


def _errors_rejected(bench: Bench) -> None:
    for code in (-32602, -32700, 1, -31999):
        ran, _ = _run_call(bench, _error_reply(code))
        require_error(ran, "call.rejected", left=True)


def _errors_unknown(bench: Bench) -> None:
    ran, _ = _run_call(bench, _error_reply(-32601))
    error = require_error(ran, "call.rejected")
    require("services refresh" in error.hint, True, "services refresh in the hint")


def _errors_status(bench: Bench) -> None:
    for status in (400, 404, 500, 503):
        ran, _ = _run_call(bench, _error_reply(-32602, status))
        require_error(ran, "call.rejected")
    ran, _ = _run_call(bench, lambda seen: Reply(503))
    require_error(ran, "call.overloaded")


def _errors_malformed(bench: Bench) -> None:
    for code, message in (("-32602", "no"), (-32602, None), (None, "no"), (1.5, "no")):
        ran, _ = _run_call(bench, _error_reply(code, message=message))
        require_error(ran, "call.server-error")


def _not_json(bench: Bench) -> None:
    for media_type, body in (
        ("text/html", b"<p>"),
        ("application/json", b'{"jsonrpc": "2.0", "id": 1, "result": NaN}'),
        ("application/json", b'{"jsonrpc": "2.0", "id": 1, "id": 1, "result": 1}'),
        ("application/json", b""),
    ):
        ran, _ = _run_call(bench, lambda seen, m=media_type, b=body: Reply(200, {"Content-Type": m}, (b,)))  # type: ignore[misc]
        error = require_error(ran, "response.not-json")
        require("200" in error.message, True, "the status in the message")


def _size(bench: Bench) -> None:
    ran, _ = _run_call(bench, _result_reply("x" * 50_000), metadata={"max_response_bytes": 1000})
    require_error(ran, "response.size")


def _headers(bench: Bench) -> None:
    secret = "s3cr3t-of-the-bench"  # noqa: S105
    ran, seen = _run_call(
        bench,
        _result_reply(1),
        service={"auth_ref": "BENCH_KEY"},
        service_metadata={"headers": {"X-Team": "service"}},
        metadata={"headers": {"x-team": "binding"}},
        environ={"BENCH_KEY": secret},
    )
    require_ok(ran)
    got = seen[0].headers
    require((got.get("x-team"), got.get("authorization")), ("binding", f"Bearer {secret}"), "headers")
    require([n for n, data in ran.files.items() if secret.encode() in data], [], "files that hold the secret")


def _timeout(bench: Bench) -> None:
    drip = Reply(200, {"Content-Type": "application/json"}, (b" ",) * 600, pause=0.05)
    for reply in (drip, json_reply({})._replace(delay=30.0)):
        ran, _ = _run_call(bench, lambda seen, r=reply: r, metadata={"timeout_seconds": _SHORT})  # type: ignore[misc]
        require_error(ran, "call.timeout", left=True)
        if ran.seconds > _PATIENT:
            raise RuleBroken(f"ended after {ran.seconds:.1f} s, expected {_SHORT} s")


def _redirect(bench: Bench) -> None:
    with Loopback(_result_reply(1)) as other:
        ran, seen = _run_call(bench, lambda asked: Reply(307, {"Location": other.url}))
        require_error(ran, "call.rejected")
        require((len(seen), len(other.seen)), (1, 0), "requests here, at the target")


def _address(bench: Bench) -> None:
    ran, seen = _run_call(bench, _result_reply(1), network="public")
    require_error(ran, "safety.scope")
    require(seen, [], "requests")


def _retry(bench: Bench) -> None:
    again = {"retry_count": 2, "retry_backoff_base": 0}
    for effect, wanted in (("none", 3), ("idempotent", 3), ("effect", 1)):
        _, seen = _run_call(bench, lambda asked: Reply(503), metadata=again, effect=effect)
        require(len(seen), wanted, f"requests of class {effect}")


LINES: Final[InvokerRules] = {
    "post": InvokerRule("a POST to the url, version 2.0, ids from 1", _post),
    "result.any": InvokerRule("the result is the body, whatever its type", _result_any),
    "result.one": InvokerRule("exactly one of result and error", _result_one),
    "id.match": InvokerRule("an answer's id fits by type and value", _id_value),
    "params.position": InvokerRule("params by position where the document says so", _params_position),
    "notification": InvokerRule("a method without result has no id; answers are ignored", _notification),
    "method.name": InvokerRule("only method names are sent, never rpc.*", _method_names),
    "errors.fault": InvokerRule("-32603 and -32000 to -32099 are server faults", _errors_fault),
    "errors.rejected": InvokerRule("other codes are rejections", _errors_rejected),
    "errors.unknown": InvokerRule("-32601 hints at services refresh", _errors_unknown),
    "errors.status": InvokerRule("an RPC error counts whatever the HTTP status is", _errors_status),
    "errors.malformed": InvokerRule("error members of a wrong type never crash", _errors_malformed),
    "not-json": InvokerRule("what is no strict JSON is told with its status", _not_json),
    "size.reply": InvokerRule("replies over the cap are refused", _size),
    "headers": InvokerRule("headers as for openapi, the token masked in every file", _headers),
    "timeout": InvokerRule("silent and dripping servers end on time", _timeout),
    "redirect": InvokerRule("a redirect is told, never followed", _redirect),
    "retry.effect": InvokerRule("an effect that may have left is not repeated", _retry),
    "address": InvokerRule("private addresses only where the service says so", _address),
}
