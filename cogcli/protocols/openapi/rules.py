"""The rules of the openapi invoker, each checked with a server on loopback
(docs/reference/protocols.md#openapi, docs/reference/protocols.md#own-rules)."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from cogcli.base.errors import ServerFaultError
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
    ELSEWHERE,
    PATIENT,
    SECRET,
    InvokerRule,
    InvokerRules,
    RuleCall,
    RuleCase,
    RuleRun,
    succeed,
)

_PATH: Final = "/base"
_case = partial(RuleCase, path=_PATH)
_late = partial(_case, answering=slow, error="call.timeout", left=True, within=PATIENT)
_RAW: Final = RuleCall(metadata={"response_mode": "raw"})
_TEXT: Final = RuleCall(metadata={"response_mode": "text"}, response={"r": "response.text"})
_HEAD: Final = RuleCall(metadata={"method": "HEAD"})
_NAMED: Final = RuleCall(
    operation="notes/{id}/text", request={"id": "input.id"}, metadata={"method": "GET"}
)
_NO_JSON: Final = (b'{"a": NaN}', b'{"a": 1, "a": 2}', b"[" * 200 + b"]" * 200, b'{"a": 1')
_MAPPED: Final = RuleCall(response={"r": "response.choices.0.message.content_json.risk"})
_NEEDED: Final = _MAPPED._replace(capability={"outputs": {"r": {"type": "any", "required": True}}})
_PROXIES: Final = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


def _gzip_responder(body: bytes) -> Responder:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    return lambda seen: ServerReply(200, headers, (gzip.compress(body),))


def _chat_reply(content: str) -> Responder:
    return lambda seen: json_reply({"choices": [{"message": {"content": content}}]})


def _header_of(name: str) -> Callable[[Sequence[ReceivedRequest]], str]:
    return lambda seen: seen[0].header(name)


def _default_timeout(ran: RuleRun) -> str:
    seconds = ran.time_limits[0]
    return "" if 25 < seconds <= 30 else f"the invoker had {seconds:.1f} s, expected 30"


def _not_retryable(ran: RuleRun) -> str:
    is_retryable = isinstance(ran.error, ServerFaultError) and ran.error.retryable
    return "" if is_retryable else "it is no retryable fault of the server"


def _count_keys(seen: Sequence[ReceivedRequest]) -> tuple[int, int]:
    """Return the number of requests, and the number of their distinct idempotency keys."""
    return len(seen), len({request.header("idempotency-key") for request in seen})


RULES: Final[InvokerRules] = {
    "method.default": InvokerRule("POST with a JSON body", (
        _case(sent=lambda seen: [(s.method, s.path, s.body) for s in seen],
              wanted=[("POST", "/base/op", b'{"a":1}')]),)),
    "method.get": InvokerRule("metadata.method GET puts inputs into the query", (
        _case(call=RuleCall(metadata={"method": "GET"}), wanted=[("GET", "a=1", b"")],
              sent=lambda seen: [(s.method, s.query, s.body) for s in seen]),)),
    "timeout.binding": InvokerRule("the binding's timeout before the service's", (
        _late(call=RuleCall(metadata={"timeout_seconds": SHORT}, service_metadata={"timeout_seconds": 30})),)),
    "timeout.service": InvokerRule("the service's timeout where the binding has none", (
        _late(call=RuleCall(service_metadata={"timeout_seconds": SHORT})),)),
    "timeout.default": InvokerRule("30 seconds where neither has one", (_case(fault=_default_timeout),)),
    "timeout.drip": InvokerRule("a dripping body ends on time", (
        _late(answering=drip, call=RuleCall(metadata={"timeout_seconds": 2 * SHORT})),)),
    "headers.service": InvokerRule("headers of the service are sent", (
        _case(call=RuleCall(service_metadata={"headers": {"X-Team": "harbour"}}),
              sent=_header_of("x-team"), wanted="harbour"),)),
    "headers.merge": InvokerRule("the binding's headers win, without regard to case", (
        _case(call=RuleCall(service_metadata={"headers": {"X-Team": "service", "Accept": "application/json"}},
                    metadata={"headers": {"x-team": "binding"}}),
              sent=_header_of("x-team"), wanted="binding"),)),
    "headers.env": InvokerRule("${NAME} is filled in, and masked in every file", (
        _case(lambda seen: json_reply({"echo": seen.header("x-api-key")}), hidden=SECRET,
              call=RuleCall(service_metadata={"headers": {"X-Api-Key": "${BENCH_KEY}"}},
                    environ={"BENCH_KEY": SECRET}),
              sent=_header_of("x-api-key"), wanted=SECRET),)),
    "headers.auth": InvokerRule("auth_ref gives a bearer token, masked in every file", (
        secret_case(_case, RuleCall()),)),
    "headers.sent": InvokerRule("traceparent, and an Idempotency-Key for effects", (
        _case(call=RuleCall(effect="idempotent"), wanted=(True, "00-"),
              sent=lambda seen: (bool(_header_of("idempotency-key")(seen)), _header_of("traceparent")(seen)[:3])),)),
    "mode.json": InvokerRule("JSON by its media type", (
        _case(typed("application/problem+json", b'{"a": [1, null]}'), outputs={"r": {"a": [1, None]}}),)),
    "mode.text": InvokerRule("response_mode text gives {text}", (
        _case(typed("text/html", b"<p>hi"), call=_TEXT, outputs={"r": "<p>hi"}),)),
    "mode.raw": InvokerRule("response_mode raw gives {body or body_base64, content_type}", (
        _case(typed("text/csv", b"a,b"), call=_RAW,
              outputs={"r": {"body": "a,b", "content_type": "text/csv"}}),
        _case(typed("image/png", b"\x89PNG"), call=_RAW,
              outputs={"r": {"body_base64": "iVBORw==", "content_type": "image/png"}}))),
    "mode.not-json": InvokerRule("what is not strict JSON is refused", (
        _case(typed("text/html", b"<p>hi"), error="response.not-json", says="text/html"),
        *(_case(typed("application/json", body), error="response.not-json") for body in _NO_JSON))),
    "mode.empty": InvokerRule("no body, 204 and HEAD give {}", (
        *(_case(typed("application/json", status=n), outputs={"r": {}}) for n in (204, 200)),
        _case(call=_HEAD, outputs={"r": {}}))),
    "status.500": InvokerRule("500 is a server fault, and retryable", (
        _case(typed("text/plain", b"no", status=500), error="call.server-error", left=True, wanted=1,
              fault=_not_retryable),)),
    "redirect": InvokerRule("a redirect is told, never followed", (
        redirect_case(_case, succeed, 302, "/stolen"),)),
    "size.reply": InvokerRule("replies and requests over the cap are refused", (
        _case(typed("application/json", b'"' + b"x" * 50_000 + b'"'), error="response.size",
              call=RuleCall(metadata={"max_response_bytes": 1000})),
        _case(call=RuleCall(metadata={"max_request_bytes": 10}, input={"a": "x" * 100}),
              error="request.size", left=False, wanted=0))),
    "gzip.bomb": InvokerRule("compressed replies count as what they inflate to", (
        _case(_gzip_responder(b" " * 20_000_000), call=RuleCall(metadata={"max_response_bytes": 1_000_000}),
              error="response.size"),
        _case(_gzip_responder(b'{"a": 1}'), outputs={"r": {"a": 1}}))),
    "retry.after": InvokerRule("Retry-After before the binding's own wait", (
        _case((ServerReply(503, {"Retry-After": "0"}), json_reply({"n": 2})), outputs={"r": {"n": 2}},
              call=RuleCall(metadata={"retry_count": 1, "retry_backoff_base": 30}),
              sent=_count_keys, wanted=(2, 1)),)),
    "retry.effect": InvokerRule("an effect that may have left is not repeated", tuple(
        retry_cases(_case, RuleCall(), {"none": 3, "idempotent": 3, "effect": 1, "unknown": 1}))),
    "path.encoding": InvokerRule("path values are encoded, and never lead elsewhere", (
        _case(call=_NAMED._replace(input={"id": "a/b c?d#e%"}), sent=lambda seen: seen[0].path,
              wanted="/base/notes/a%2Fb%20c%3Fd%23e%25/text"),
        *(_case(call=_NAMED._replace(input={"id": bad}), error=ANY_ERROR, wanted=0)
          for bad in ("", ".", "..", None, ["x"])))),
    "address": InvokerRule("private addresses only where the service says so", (
        address_case(_case, RuleCall()),
        RuleCase(None, call=RuleCall(url="http://169.254.169.254/latest"), error="safety.scope"))),
    "proxy": InvokerRule("proxies of the environment are not used", (
        _case(call=RuleCall(environ=dict.fromkeys(_PROXIES, ELSEWHERE)), wanted=1, elsewhere=succeed),)),
    "content-json": InvokerRule("JSON in a chat reply's text is read strictly", (
        _case(_chat_reply('```json\n{"risk": 3}\n```'), call=_MAPPED, outputs={"r": 3}),
        _case(_chat_reply("I would say three."), call=_NEEDED, error="response.missing"))),
}  # fmt: skip
