"""Downloads of the document that a service publishes.

These requests follow the rules of calls: addresses, headers, deadline, caps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from cogcli.base.api_documents.changes import ContractChange
from cogcli.base.api_documents.loader import identity_of, load, parse_document
from cogcli.base.api_documents.references import MAX_BYTES
from cogcli.base.calls import Cancellation
from cogcli.base.errors import RuntimeErrorBase, ServerFaultError
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.binding_spec import Binding, BindingMetadata
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.exchange import Responder
from cogcli.protocols.exchange_checks import Judge
from cogcli.protocols.http import headers
from cogcli.protocols.http.failures import error_from_reply, quote
from cogcli.protocols.http.http_call import HttpCaller, OutgoingRequest
from cogcli.protocols.invoker import CallLimits, InvocationRequest, InvokerContext

if TYPE_CHECKING:
    from cogcli.base.http import HttpReply

_JSON: Final = "application/json"


class NamedDocument(Protocol):
    """A parsed document of any protocol."""

    @property
    def names(self) -> tuple[str, ...]: ...


class DocumentKind(NamedTuple):
    """The functions for documents of one protocol.

    `noun` is the word for a described item, such as operation. `parse` converts a value to a document with `names`, or
    raises DocumentFault. `changes` compares an older document, or None, with a newer one. `fetch` downloads the
    published one.
    """

    noun: str
    parse: Callable[[Json], NamedDocument]
    changes: Callable[[Any, Any], tuple[ContractChange, ...]]
    fetch: Callable[[DocumentRequest], Json]
    judge: Callable[[Binding, Service], Judge | None]
    """Returns the checks of a binding's calls by the document, None without one. It raises
    DocumentFault."""
    mock: Callable[[Json, Service], Responder]
    """Returns a server that answers by the document. It raises DocumentFault."""


def document_server(service: Service) -> Responder | None:
    """Return a mock server by the service's document; None without one. Raise DocumentFault."""
    described, identity = PROTOCOLS[service.kind].document, identity_of(service)
    if described is None or identity is None:
        return None
    return described().mock(load(identity).require(), service)


def judge_of(binding: Binding, service: Service) -> Judge | None:
    """Return the checks of a binding's calls by its service's document; None without one. Raise
    DocumentFault."""
    described = PROTOCOLS[service.kind].document
    return described().judge(binding, service) if described else None


def fetch_document(service: Service, context: InvokerContext, seconds: float) -> Json:
    """Return the document that a service publishes now. Every `$ref` in it resolves. Raise the errors of a call,
    RejectedError without a document, and ServerFaultError if the reply is not a document.
    """
    described = PROTOCOLS[service.kind].document
    if described is None:
        text = f"service `{service.id}`: a service of kind {service.kind} publishes no document"
        raise document_error(text)
    request = DocumentRequest(service, context, time.monotonic() + seconds)
    try:
        return described().fetch(request)
    finally:
        request.close()


class DocumentRequest:
    """The requests for one service's document, over separate connections."""

    def __init__(self, service: Service, context: InvokerContext, deadline: float) -> None:
        self.service = service
        self.secrets = context.secrets
        self._http = HttpCaller(context)
        self._limits = CallLimits(deadline, Cancellation())
        binding = Binding(
            id="refresh",
            capability="",
            service=service.id,
            protocol=service.kind,
            operation="",
            metadata=BindingMetadata(max_response_bytes=MAX_BYTES),
            trusted=True,
        )
        self._request = InvocationRequest(service, binding, "", {}, "none", "", "", "", "", 1)

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def failure_of(self, name: str, reply: HttpReply, value: object) -> RuntimeErrorBase | None:
        """Return the error for the HTTP status of a reply. None for success."""
        return error_from_reply(name, reply, value, self.secrets, self._http.now)

    def exchange(self, method: str, url: str, value: object) -> HttpReply:
        """Send a request with this JSON value as its body, None for no body, and return the reply."""
        media = _JSON if value is not None else ""
        ours = headers.default_headers(
            self._request, accept=f"{_JSON}, */*;q=0.5", content_type=media
        )
        whole = headers.merge_headers(self._request, self.secrets, ours, {})
        body = b"" if value is None else orjson.dumps(value)
        outgoing = OutgoingRequest(method, url, whole, body, value)
        return self._http.exchange(self._request, self._limits, outgoing)[0]

    def document(self, data: bytes, where: str, name: str) -> Json:
        """Return the document in these bytes, found at `where`. Raise ServerFaultError."""
        try:
            return parse_document(data, name)
        except DocumentFault as fault:
            text = quote(fault.message, self.secrets)
            raise document_error(
                f"service `{self.service.id}`: the document {where}: {text}"
            ) from fault


def document_error(text: str) -> ServerFaultError:
    """Return the error of a reply that is not a document."""
    return ServerFaultError("call.server-error", text, left=True)
