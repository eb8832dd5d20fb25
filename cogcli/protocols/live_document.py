"""The document that a service publishes now: OpenAPI over HTTP, OpenRPC by `rpc.discover`.

A service file holds no address of the OpenAPI document: it is searched below the base path and at the root of the same
host. The rules of a call hold for these requests too: addresses, headers, deadline, caps.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import orjson

from cogcli.core.calls import Cancellation
from cogcli.core.document_fault import DocumentFault
from cogcli.core.errors import RejectedError, ServerFaultError, ServiceResolutionError
from cogcli.core.strict_json import JsonRefused
from cogcli.documents.loader import MAX_BYTES, parse_document
from cogcli.documents.openapi import openapi_of
from cogcli.protocols.http import headers, reply_body
from cogcli.protocols.http.failures import failure, quote
from cogcli.protocols.http.http_call import HttpCaller, OutgoingRequest
from cogcli.protocols.invoker import CallLimits, InvocationRequest
from cogcli.protocols.openrpc.reply import result_of
from cogcli.specs.binding import Binding

if TYPE_CHECKING:
    from cogcli.core.http import HttpReply
    from cogcli.protocols.invoker import InvokerContext
    from cogcli.specs.service import Service

DOCUMENT_PATHS: Final = ("openapi.json", "openapi.yaml", "swagger.json", "v3/api-docs")
"""The paths at which servers commonly publish their document."""
_JSON: Final = "application/json"
_DISCOVER: Final = {"jsonrpc": "2.0", "method": "rpc.discover", "params": [], "id": 1}


def live_document(service: Service, context: InvokerContext, seconds: float) -> dict[str, Any]:
    """The document that the service publishes now; every `$ref` in it resolves.

    Raises what a call raises; RejectedError where there is none, ServerFaultError where the reply is no document.
    """
    request = _DocumentRequest(service, context, time.monotonic() + seconds)
    try:
        return request.discover() if service.kind == "openrpc" else request.download()
    finally:
        request.close()


class _DocumentRequest:
    """The requests for one service's document, over connections of their own."""

    def __init__(self, service: Service, context: InvokerContext, deadline: float) -> None:
        self._secrets = context.secrets
        self._http = HttpCaller(context)
        self._limits = CallLimits(deadline, Cancellation())
        binding = Binding(
            "refresh",
            "",
            service.id,
            service.kind,
            "",
            {},
            {},
            {"max_response_bytes": MAX_BYTES},
            trusted=True,
        )
        self._request = InvocationRequest(service, binding, "", {}, "none", "", "", "", "", 1)

    def close(self) -> None:
        self._http.close()

    def discover(self) -> dict[str, Any]:
        settings = self._request.service.settings
        reply = self._exchange("POST", settings.get("url") or settings["base_url"], _DISCOVER)
        try:
            value = reply_body.parse_reply(reply.body, MAX_BYTES)
        except JsonRefused:
            value = None
        refusal = failure("`rpc.discover`", reply, value, self._secrets, self._http.now)
        if refusal is not None and not isinstance(value, dict):
            raise refusal
        if value is None:
            raise _document_error("`rpc.discover` is not answered with JSON")
        found = result_of(value, 1, "`rpc.discover`", self._secrets, service=self._request.service.id)
        return self._document(orjson.dumps(found), "by rpc.discover", "discovered.json")

    def download(self) -> dict[str, Any]:
        tried = []
        for url in _addresses(_base(self._request.service)):
            reply = self._exchange("GET", url, None)
            if reply.status == 200 and not reply.fault and not _is_page(reply):
                name = "live.yaml" if "yaml" in reply_body.media_type(reply) else "live"
                return self._document(reply.body, f"at {url}", name)
            refusal = failure(f"GET {url}", reply, None, self._secrets, self._http.now)
            if refusal is not None and not isinstance(refusal, RejectedError):
                raise refusal
            tried.append(f"{url} (HTTP {reply.status})")
            text = f"service `{self._request.service.id}`: no document at {', '.join(tried)}"
        hint = "the service does not publish it: put the document it comes with where spec_ref says"
        raise RejectedError("call.rejected", text, hint=hint, left=True)

    def _exchange(self, method: str, url: str, value: Any) -> HttpReply:
        media = _JSON if value is not None else ""
        ours = headers.default_headers(self._request, accept=f"{_JSON}, */*;q=0.5", content_type=media)
        whole = headers.merge_headers(self._request, self._secrets, ours, {})
        body = b"" if value is None else orjson.dumps(value)
        return self._http.exchange(
            self._request, self._limits, OutgoingRequest(method, url, whole, body, value)
        )[0]

    def _document(self, data: bytes, where: str, name: str) -> dict[str, Any]:
        try:
            return parse_document(data, name)
        except DocumentFault as fault:
            text = quote(fault.message, self._secrets)
            raise _document_error(
                f"service `{self._request.service.id}`: the document {where}: {text}"
            ) from fault


def _base(service: Service) -> str:
    written: str | None = service.settings.get("base_url")
    if written:
        return written
    try:
        document = openapi_of(service)
        if document is None or document.server is None:
            raise DocumentFault("wire.document", "it has no base_url", "write base_url in its file")
    except DocumentFault as fault:
        text = f"service `{service.id}`: {fault.message}"
        raise ServiceResolutionError(fault.code, text, hint=fault.hint, left=False) from fault
    return document.server


def _addresses(base: str) -> list[str]:
    """The URLs to try: below the base path first, then at the root of the host."""
    parts = urlsplit(base)
    origin = f"{parts.scheme}://{parts.netloc}"
    folders = [parts.path.rstrip("/"), ""] if parts.path.strip("/") else [""]
    return [f"{origin}{folder}/{place}" for folder in folders for place in DOCUMENT_PATHS]


def _is_page(reply: HttpReply) -> bool:
    """Whether a reply is HTML: some servers answer every path with a page."""
    return "html" in reply_body.media_type(reply)


def _document_error(text: str) -> ServerFaultError:
    return ServerFaultError("call.server-error", text, left=True)
