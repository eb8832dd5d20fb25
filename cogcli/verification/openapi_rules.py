"""The rules of the openapi invoker, each checked with a server on loopback
(docs/reference/protocols.md#openapi, docs/reference/protocols.md#own-rules)."""

from __future__ import annotations

import gzip
from functools import partial
from typing import Any, Final

from cogcli.verification.harness import Bench, HarnessCall, call_server
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
"""Seconds by which a call with a timeout of a fraction of a second must have ended."""
_SECRET: Final = "s3cr3t-of-the-bench"  # noqa: S105


_call = partial(call_server, "/base")


def _ok(seen: Seen) -> Reply:
    return json_reply({"ok": True})


def _typed(media_type: str, *chunks: bytes, status: int = 200) -> Answering:
    return lambda seen: Reply(status, {"Content-Type": media_type}, chunks)


def _zipped(body: bytes) -> Answering:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    return lambda seen: Reply(200, headers, (gzip.compress(body),))


def _method_default(bench: Bench) -> None:
    ran, seen = _call(bench, _ok)
    require_ok(ran)
    require([(s.method, s.path, s.body) for s in seen], [("POST", "/base/op", b'{"a":1}')], "request")


def _method_get(bench: Bench) -> None:
    ran, seen = _call(bench, _ok, metadata={"method": "GET"})
    require_ok(ran)
    require([(s.method, s.query, s.body) for s in seen], [("GET", "a=1", b"")], "request")


def _slow(seen: Seen) -> Reply:
    return json_reply({})._replace(delay=30.0)


def _cut_off(bench: Bench, **wire: Any) -> None:
    ran, _ = _call(bench, _slow, **wire)
    require_error(ran, "call.timeout", left=True)
    if ran.seconds > _PATIENT:
        raise RuleBroken(f"ended after {ran.seconds:.1f} s, expected {_SHORT} s")


def _timeout_binding(bench: Bench) -> None:
    _cut_off(bench, metadata={"timeout_seconds": _SHORT}, service_metadata={"timeout_seconds": 30})


def _timeout_service(bench: Bench) -> None:
    _cut_off(bench, service_metadata={"timeout_seconds": _SHORT})


def _timeout_default(bench: Bench) -> None:
    ran, _ = _call(bench, _ok)
    require_ok(ran)
    if not 25 < ran.deadlines[0] <= 30:
        raise RuleBroken(f"the invoker was given {ran.deadlines[0]:.1f} s, expected 30")


def _timeout_drip(bench: Bench) -> None:
    drip = Reply(200, {"Content-Type": "application/json"}, (b" ",) * 600 + (b"{}",), pause=0.05)
    ran, _ = _call(bench, lambda seen: drip, metadata={"timeout_seconds": 2 * _SHORT})
    require_error(ran, "call.timeout", left=True)
    if ran.seconds > _PATIENT:
        raise RuleBroken(f"ended after {ran.seconds:.1f} s, expected {2 * _SHORT} s")


def _headers_service(bench: Bench) -> None:
    ran, seen = _call(bench, _ok, service_metadata={"headers": {"X-Team": "harbour"}})
    require_ok(ran)
    require(seen[0].headers.get("x-team"), "harbour", "header X-Team")


def _headers_merge(bench: Bench) -> None:
    ran, seen = _call(
        bench,
        _ok,
        service_metadata={"headers": {"X-Team": "service", "Accept": "application/json"}},
        metadata={"headers": {"x-team": "binding"}},
    )
    require_ok(ran)
    require(seen[0].headers.get("x-team"), "binding", "header X-Team, in both")


def _headers_env(bench: Bench) -> None:
    ran, seen = _call(
        bench,
        lambda asked: json_reply({"echo": asked.headers.get("x-api-key")}),
        service_metadata={"headers": {"X-Api-Key": "${BENCH_KEY}"}},
        environ={"BENCH_KEY": _SECRET},
    )
    require_ok(ran)
    require(seen[0].headers.get("x-api-key"), _SECRET, "header X-Api-Key")
    require(
        [n for n, data in ran.files.items() if _SECRET.encode() in data], [], "files that hold the secret"
    )


def _auth_ref(bench: Bench) -> None:
    ran, seen = _call(bench, _ok, service={"auth_ref": "BENCH_KEY"}, environ={"BENCH_KEY": _SECRET})
    require_ok(ran)
    require(seen[0].headers.get("authorization"), f"Bearer {_SECRET}", "header Authorization")
    require(
        [n for n, data in ran.files.items() if _SECRET.encode() in data], [], "files that hold the secret"
    )


def _headers_sent(bench: Bench) -> None:
    ran, seen = _call(bench, _ok, effect="idempotent")
    require_ok(ran)
    require(bool(seen[0].headers.get("idempotency-key")), True, "an Idempotency-Key")
    require(seen[0].headers.get("traceparent", "")[:3], "00-", "traceparent")


def _mode_json(bench: Bench) -> None:
    ran, _ = _call(bench, _typed("application/problem+json", b'{"a": [1, null]}'))
    require(require_ok(ran), {"r": {"a": [1, None]}}, "outputs")


def _mode_text(bench: Bench) -> None:
    ran, _ = _call(
        bench,
        _typed("text/html", b"<p>hi"),
        metadata={"response_mode": "text"},
        response={"r": "response.text"},
    )
    require(require_ok(ran), {"r": "<p>hi"}, "outputs")


def _mode_raw(bench: Bench) -> None:
    raw = {"response_mode": "raw"}
    ran, _ = _call(bench, _typed("text/csv", b"a,b"), metadata=raw)
    require(require_ok(ran), {"r": {"body": "a,b", "content_type": "text/csv"}}, "outputs")
    ran, _ = _call(bench, _typed("image/png", b"\x89PNG"), metadata=raw)
    require(require_ok(ran), {"r": {"body_base64": "iVBORw==", "content_type": "image/png"}}, "outputs")


def _mode_not_json(bench: Bench) -> None:
    ran, _ = _call(bench, _typed("text/html", b"<p>hi"))
    error = require_error(ran, "response.not-json")
    require("text/html" in error.message, True, "text/html in the message")
    for body in (b'{"a": NaN}', b'{"a": 1, "a": 2}', b"[" * 200 + b"]" * 200, b'{"a": 1'):
        ran, _ = _call(bench, _typed("application/json", body))
        require_error(ran, "response.not-json")


def _mode_empty(bench: Bench) -> None:
    for status in (204, 200):
        ran, _ = _call(bench, _typed("application/json", status=status))
        require(require_ok(ran), {"r": {}}, f"outputs of {status}")
    ran, _ = _call(bench, _ok, metadata={"method": "HEAD"})
    require(require_ok(ran), {"r": {}}, "outputs of HEAD")


def _status_500(bench: Bench) -> None:
    ran, seen = _call(bench, _typed("text/plain", b"no", status=500))
    error = require_error(ran, "call.server-error", left=True)
    require((type(error).__name__, error.retryable, len(seen)), ("ServerFaultError", True, 1), "the error")


def _redirect(bench: Bench) -> None:
    with Loopback(_ok) as other:
        location = f"{other.url}/stolen"
        ran, seen = _call(bench, lambda asked: Reply(302, {"Location": location}))
        error = require_error(ran, "call.rejected")
        require((len(seen), len(other.seen)), (1, 0), "requests here, at the target")
        require("/stolen" in error.message, True, "the target in the message")


def _size_reply(bench: Bench) -> None:
    big = _typed("application/json", b'"' + b"x" * 50_000 + b'"')
    ran, _ = _call(bench, big, metadata={"max_response_bytes": 1000})
    require_error(ran, "response.size")
    ran, seen = _call(bench, _ok, metadata={"max_request_bytes": 10}, input={"a": "x" * 100})
    require_error(ran, "request.size", left=False)
    require(seen, [], "requests")


def _gzip_bomb(bench: Bench) -> None:
    bomb = _zipped(b" " * 20_000_000)
    ran, _ = _call(bench, bomb, metadata={"max_response_bytes": 1_000_000})
    require_error(ran, "response.size")
    ran, _ = _call(bench, _zipped(b'{"a": 1}'))
    require(require_ok(ran), {"r": {"a": 1}}, "outputs of an honest one")


def _retry_after(bench: Bench) -> None:
    replies = iter((Reply(503, {"Retry-After": "0"}), json_reply({"n": 2})))
    patient = {"retry_count": 1, "retry_backoff_base": 30}
    ran, seen = _call(bench, lambda asked: next(replies), metadata=patient)
    require(require_ok(ran), {"r": {"n": 2}}, "outputs")
    require(len(seen), 2, "requests")
    keys = {asked.headers.get("idempotency-key") for asked in seen}
    require(len(keys), 1, "idempotency keys")


def _retry_effect(bench: Bench) -> None:
    again = {"retry_count": 2, "retry_backoff_base": 0}
    for effect, wanted in (("none", 3), ("idempotent", 3), ("effect", 1), ("unknown", 1)):
        _, seen = _call(bench, lambda asked: Reply(503), metadata=again, effect=effect)
        require(len(seen), wanted, f"requests of class {effect}")


def _path_encoding(bench: Bench) -> None:
    named = {"operation": "notes/{id}/text", "request": {"id": "input.id"}, "metadata": {"method": "GET"}}
    ran, seen = _call(bench, _ok, input={"id": "a/b c?d#e%"}, **named)
    require_ok(ran)
    require(seen[0].path, "/base/notes/a%2Fb%20c%3Fd%23e%25/text", "path")
    for bad in ("", ".", "..", None, ["x"]):
        ran, seen = _call(bench, _ok, input={"id": bad}, **named)
        if ran.error is None or seen:
            raise RuleBroken(f"path value {bad!r} was sent")


def _address(bench: Bench) -> None:
    ran, seen = _call(bench, _ok, network="public")
    require_error(ran, "safety.scope")
    require(seen, [], "requests")
    ran = bench.run(HarnessCall(url="http://169.254.169.254/latest"))
    require_error(ran, "safety.scope")


def _proxy(bench: Bench) -> None:
    with Loopback(_ok) as proxy:
        environ = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"), proxy.url)
        ran, seen = _call(bench, _ok, environ=environ)
        require_ok(ran)
        require((len(seen), len(proxy.seen)), (1, 0), "requests here, at the proxy")


def _content_json(bench: Bench) -> None:
    told = {"choices": [{"message": {"content": '```json\n{"risk": 3}\n```'}}]}
    mapped = {"r": "response.choices.0.message.content_json.risk"}
    ran, _ = _call(bench, lambda asked: json_reply(told), response=mapped)
    require(require_ok(ran), {"r": 3}, "outputs")
    prose = {"choices": [{"message": {"content": "I would say three."}}]}
    needed = {"outputs": {"r": {"type": "any", "required": True}}}
    ran, _ = _call(bench, lambda asked: json_reply(prose), response=mapped, capability=needed)
    require_error(ran, "response.missing")


LINES: Final[InvokerRules] = {
    "method.default": InvokerRule("POST with a JSON body", _method_default),
    "method.get": InvokerRule("metadata.method GET puts inputs into the query", _method_get),
    "timeout.binding": InvokerRule("the binding's timeout before the service's", _timeout_binding),
    "timeout.service": InvokerRule("the service's timeout where the binding has none", _timeout_service),
    "timeout.default": InvokerRule("30 seconds where neither has one", _timeout_default),
    "timeout.drip": InvokerRule("a dripping body ends on time", _timeout_drip),
    "headers.service": InvokerRule("headers of the service are sent", _headers_service),
    "headers.merge": InvokerRule("the binding's headers win, without regard to case", _headers_merge),
    "headers.env": InvokerRule("${NAME} is filled in, and masked in every file", _headers_env),
    "headers.auth": InvokerRule("auth_ref gives a bearer token, masked in every file", _auth_ref),
    "headers.sent": InvokerRule("traceparent, and an Idempotency-Key for effects", _headers_sent),
    "mode.json": InvokerRule("JSON by its media type", _mode_json),
    "mode.text": InvokerRule("response_mode text gives {text}", _mode_text),
    "mode.raw": InvokerRule("response_mode raw gives {body or body_base64, content_type}", _mode_raw),
    "mode.not-json": InvokerRule("what is no strict JSON is refused", _mode_not_json),
    "mode.empty": InvokerRule("no body, 204 and HEAD give {}", _mode_empty),
    "status.500": InvokerRule("500 is a server fault, and retryable", _status_500),
    "redirect": InvokerRule("a redirect is told, never followed", _redirect),
    "size.reply": InvokerRule("replies and requests over the cap are refused", _size_reply),
    "gzip.bomb": InvokerRule("compressed replies count as what they inflate to", _gzip_bomb),
    "retry.after": InvokerRule("Retry-After before the binding's own wait", _retry_after),
    "retry.effect": InvokerRule("an effect that may have left is not repeated", _retry_effect),
    "path.encoding": InvokerRule("path values are encoded, and never lead elsewhere", _path_encoding),
    "address": InvokerRule("private addresses only where the service says so", _address),
    "proxy": InvokerRule("proxies of the environment are not used", _proxy),
    "content-json": InvokerRule("JSON in a chat reply's text is read strictly", _content_json),
}
