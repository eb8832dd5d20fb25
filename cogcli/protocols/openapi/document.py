"""The OpenAPI document that a service publishes over HTTP (docs/reference/protocols.md#mcp-pins).

A service file holds no address of it: it is searched below the base path and at the root of the same host.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from cogcli.core.errors import RejectedError, ServiceResolutionError
from cogcli.core.json_pointer import DocumentFault
from cogcli.documents.changes import openapi_changes
from cogcli.documents.openapi import OpenApiDocument, openapi_of
from cogcli.protocols.http import reply_body
from cogcli.protocols.live_document import DocumentKind, DocumentRequest
from cogcli.protocols.openapi.judge import judge_of
from cogcli.protocols.openapi.mock import DocumentMock
from cogcli.specs.service import Service

DOCUMENT_PATHS: Final = ("openapi.json", "openapi.yaml", "swagger.json", "v3/api-docs")
"""The paths at which servers commonly publish their document."""


def download(request: DocumentRequest) -> dict[str, Any]:
    tried = []
    # Below the base path first, then at the root of the host.
    parts = urlsplit(_base(request.service))
    folders = [parts.path.rstrip("/"), ""] if parts.path.strip("/") else [""]
    for place in (f"{folder}/{name}" for folder in folders for name in DOCUMENT_PATHS):
        url = f"{parts.scheme}://{parts.netloc}{place}"
        reply = request.exchange("GET", url, None)
        if reply.status == 200 and not reply.fault and "html" not in reply_body.media_type(reply):
            name = "live.yaml" if "yaml" in reply_body.media_type(reply) else "live"
            return request.document(reply.body, f"at {url}", name)
        refusal = request.failure_of(f"GET {url}", reply, None)
        if refusal is not None and not isinstance(refusal, RejectedError):
            raise refusal
        tried.append(f"{url} (HTTP {reply.status})")
        text = f"service `{request.service.id}`: no document at {', '.join(tried)}"
    hint = "the service does not publish it: put the document it comes with where spec_ref says"
    raise RejectedError("call.rejected", text, hint=hint, left=True)


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


def _mock(value: dict[str, Any], service: Service) -> DocumentMock:
    return DocumentMock(value, urlsplit(service.settings.get("base_url") or "").path)


KIND: Final = DocumentKind("operation", OpenApiDocument, openapi_changes, download, judge_of, _mock)
