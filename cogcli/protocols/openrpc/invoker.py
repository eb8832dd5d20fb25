"""openrpc: calling JSON-RPC 2.0 methods over HTTP POST (docs/reference/protocols.md#openrpc).

1. Ids count up from 1 within a run. Parameters are sent by name, or by position where the document demands it.
2. A method without a result is a notification: it has no id, any 2xx is success, the reply's body is ignored.
3. Each call is a request of its own.
4. A well-formed JSON-RPC error counts whatever the HTTP status is; else the status decides.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from cogcli.base.api_documents.openrpc import RpcMethod, load_openrpc
from cogcli.base.errors import RequestMappingError, RuntimeErrorBase
from cogcli.base.json_pointer import DocumentFault
from cogcli.declarations.value_types import Json
from cogcli.protocols.http import headers, reply_body
from cogcli.protocols.http.failures import document_failure, error_from_reply, quote
from cogcli.protocols.http.http_call import HttpCaller, OutgoingRequest
from cogcli.protocols.http.url import json_bytes
from cogcli.protocols.invoker import (
    CallLimits,
    InvocationRequest,
    InvocationResponse,
    InvokerContext,
)
from cogcli.protocols.model_usage import usage_of
from cogcli.protocols.openrpc.grammar import METHOD_NAME, address_of
from cogcli.protocols.openrpc.reply import is_error, result_of

if TYPE_CHECKING:
    from cogcli.base.http import HttpReply

_JSON: Final = "application/json"
_SHOWN: Final = 80


class OpenRpc:
    """Calls JSON-RPC methods. One per run."""

    def __init__(self, context: InvokerContext) -> None:
        self._secrets = context.secrets
        self._http = HttpCaller(context)
        self._ids = itertools.count(1)

    def invoke(self, request: InvocationRequest, limits: CallLimits) -> InvocationResponse:
        method = _find_method(request)
        is_notification = method is not None and method.is_notification
        id = None if is_notification else next(self._ids)
        reply, meta = self._http.exchange(
            request, limits, self._build_outgoing(request, method, id)
        )
        value, refused = reply_body.read_json(reply, request.reply_cap)
        meta = meta._replace(
            reply=reply_body.reply_record(reply, value, self._secrets, is_value=not refused)
        )
        try:
            body = self._parse_body(request, reply, id, value, refused)
        except RuntimeErrorBase as error:
            error.record = meta.to_payload()
            raise
        return InvocationResponse(body, usage_of(body).add_to(meta))

    def close(self, grace: float) -> None:
        self._http.close()

    def _build_outgoing(
        self, request: InvocationRequest, method: RpcMethod | None, id: int | None
    ) -> OutgoingRequest:
        params: object = request.payload
        if method and method.by_position:
            params = _positional_params(method, request.payload)
        call = {"jsonrpc": "2.0", "method": request.operation, "params": params}
        if id is not None:
            call["id"] = id
        ours = headers.default_headers(request, accept=_JSON, content_type=_JSON)
        url = address_of(request.service)
        merged = headers.merge_headers(request, self._secrets, ours, {})
        return OutgoingRequest("POST", url, merged, json_bytes(call, "the call"), call)

    def _parse_body(
        self,
        request: InvocationRequest,
        reply: HttpReply,
        id: int | None,
        value: object,
        refused: str,
    ) -> object:
        name = f"`{request.operation}`"
        if id is None or not is_error(value, id):
            error = error_from_reply(
                name, reply, value, self._secrets, self._http.now, service=request.service
            )
            if error is not None:
                raise error
        if id is None:
            return {}
        if refused:
            start = quote(reply.body.decode("utf-8", "replace"), self._secrets)[:_SHOWN]
            raise reply_body.not_json_error(f"{name}: HTTP {reply.status} with {refused}: {start}")
        return result_of(value, id, name, self._secrets, service=request.service.id)


def _positional_params(method: RpcMethod, payload: Json) -> list[object]:
    """Return the parameters in the order of the document, without absent ones at the end. Raise
    RequestMappingError `request.value` for an unknown one."""
    names = [param.name for param in method.params]
    unknown = payload.keys() - set(names)
    if unknown:
        text = f"`{method.name}` has no parameter `{min(unknown)}`"
        raise RequestMappingError("request.value", text, left=False)
    last = max((number for number, name in enumerate(names) if name in payload), default=-1)
    return [payload.get(name) for name in names[: last + 1]]


def _find_method(request: InvocationRequest) -> RpcMethod | None:
    """Return the method in the service's document, None without a document.

    Raise RequestMappingError `request.value` for an operation that is not a method name,
    ServiceResolutionError for a faulty document."""
    if not METHOD_NAME.fullmatch(request.operation):
        raise RequestMappingError("request.value", "the operation is not a method name", left=False)
    try:
        document = load_openrpc(request.service)
        return None if document is None else document.method(request.operation)
    except DocumentFault as fault:
        raise document_failure(request.service, fault) from fault
