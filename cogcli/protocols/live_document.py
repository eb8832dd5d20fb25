"""What a service says about itself now: its OpenAPI document over HTTP, its OpenRPC one by `rpc.discover`.

An OpenAPI document has no address of its own in a service's file: it is looked for where servers serve it, below the
base path and at the root of the same host. Everything a call obeys holds here: addresses, headers, deadline, caps.
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
from cogcli.documents.loader import MAX_BYTES, document_in
from cogcli.documents.openapi import openapi_of
from cogcli.protocols.http import headers, reply_body
from cogcli.protocols.http.failures import failure, quote
from cogcli.protocols.http.http_call import HttpCaller, Sent
from cogcli.protocols.invoker import CallLimits, InvocationRequest
from cogcli.protocols.openrpc.reply import result_of
from cogcli.specs.binding import Binding

if TYPE_CHECKING:
    from cogcli.core.http import HttpReply
    from cogcli.protocols.invoker import InvokerContext
    from cogcli.specs.service import Service

PLACES: Final = ("openapi.json", "openapi.yaml", "swagger.json", "v3/api-docs")
"""Where servers commonly serve their document."""
_JSON: Final = "application/json"
_DISCOVER: Final = {"jsonrpc": "2.0", "method": "rpc.discover", "params": [], "id": 1}


def live_document(service: Service, surroundings: InvokerContext, seconds: float) -> dict[str, Any]:
    """The document as the service gives it now, every `$ref` in it leading somewhere.

    Raises what a call raises; RejectedError where there is none, ServerFaultError where it is no document.
    """
    asking = _Asking(service, surroundings, time.monotonic() + seconds)
    try:
        return asking.by_discovery() if service.kind == "openrpc" else asking.by_address()
    finally:
        asking.close()


class _Asking:
    """One service, and the connections to it."""

    def __init__(self, service: Service, surroundings: InvokerContext, deadline: float) -> None:
        self._secrets = surroundings.secrets
        self._wire = HttpCaller(surroundings)
        self._context = CallLimits(deadline, Cancellation())
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
        self._wire.close()

    def by_discovery(self) -> dict[str, Any]:
        settings = self._request.service.settings
        reply = self._sent("POST", settings.get("url") or settings["base_url"], _DISCOVER)
        try:
            value = reply_body.parse_reply(reply.body, MAX_BYTES)
        except JsonRefused:
            value = None
        refusal = failure("`rpc.discover`", reply, value, self._secrets, self._wire.now)
        if refusal is not None and not isinstance(value, dict):
            raise refusal
        if value is None:
            raise _unusable("`rpc.discover` is not answered with JSON")
        found = result_of(value, 1, "`rpc.discover`", self._secrets, service=self._request.service.id)
        return self._document(orjson.dumps(found), "by rpc.discover", "discovered.json")

    def by_address(self) -> dict[str, Any]:
        told = []
        for url in _addresses(_base(self._request.service)):
            reply = self._sent("GET", url, None)
            if reply.status == 200 and not reply.fault and not _is_page(reply):
                name = "live.yaml" if "yaml" in reply_body.media_type(reply) else "live"
                return self._document(reply.body, f"at {url}", name)
            refusal = failure(f"GET {url}", reply, None, self._secrets, self._wire.now)
            if refusal is not None and not isinstance(refusal, RejectedError):
                raise refusal
            told.append(f"{url} (HTTP {reply.status})")
        text = f"service `{self._request.service.id}`: no document at {', '.join(told)}"
        hint = "the service does not publish it: put the document it comes with where spec_ref says"
        raise RejectedError("call.rejected", text, hint=hint, left=True)

    def _sent(self, method: str, url: str, value: Any) -> HttpReply:
        media = _JSON if value is not None else ""
        ours = headers.default_headers(self._request, accept=f"{_JSON}, */*;q=0.5", content_type=media)
        whole = headers.merge_headers(self._request, self._secrets, ours, {})
        body = b"" if value is None else orjson.dumps(value)
        return self._wire.exchange(self._request, self._context, Sent(method, url, whole, body, value))[0]

    def _document(self, data: bytes, where: str, name: str) -> dict[str, Any]:
        try:
            return document_in(data, name)
        except DocumentFault as fault:
            text = quote(fault.message, self._secrets)
            raise _unusable(f"service `{self._request.service.id}`: the document {where}: {text}") from fault


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
    """Below the base path first, then at the root of the host."""
    parts = urlsplit(base)
    origin = f"{parts.scheme}://{parts.netloc}"
    folders = [parts.path.rstrip("/"), ""] if parts.path.strip("/") else [""]
    return [f"{origin}{folder}/{place}" for folder in folders for place in PLACES]


def _is_page(reply: HttpReply) -> bool:
    """Whether a server answers everything with a page for people."""
    return "html" in reply_body.media_type(reply)


def _unusable(text: str) -> ServerFaultError:
    return ServerFaultError("call.server-error", text, left=True)
