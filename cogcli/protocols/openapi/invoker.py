"""openapi: calling an HTTP API, with its document or without (docs/reference/protocols.md#openapi).

1. A document, if there is one, decides method, path, parameters, body and the header of the
   credentials.
2. Request and reply are recorded whatever the status is; of headers only names.
3. A status outside 200-299 is an error whatever the body holds. Redirects are never followed.
4. `response_mode` of the binding decides how a reply is read: strict JSON, text, or raw."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from cogcli.base.api_documents.openapi import OpenApiOperation, Scheme, load_openapi
from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.binding_spec import Binding
from cogcli.protocols.http import headers, reply_body
from cogcli.protocols.http.credentials import PlacedCredentials, place_credentials
from cogcli.protocols.http.failures import document_failure, error_from_reply
from cogcli.protocols.http.http_call import HttpCaller, OutgoingRequest
from cogcli.protocols.http.open_files import OpenFiles
from cogcli.protocols.http.parts import HttpParts, parts_by_document, parts_without_document
from cogcli.protocols.http.url import linked_url, url_of
from cogcli.protocols.invoker import (
    CallLimits,
    CallMeta,
    InvocationRequest,
    InvocationResponse,
    InvokerContext,
)
from cogcli.protocols.model_usage import usage_of
from cogcli.protocols.openapi import model_reply
from cogcli.protocols.openapi.grammar import WebApi
from cogcli.protocols.openapi.paging import Pages
from cogcli.protocols.openapi.security import find_credentials
from cogcli.protocols.sent_file import recorded_value
from cogcli.specs.response_headers import headers_in

if TYPE_CHECKING:
    from cogcli.base.http import HttpReply


class SentRequest(NamedTuple):
    """A request that was answered: its reply, its record, its body as a value, and its credentials."""

    reply: HttpReply
    meta: CallMeta
    value: object
    credentials: PlacedCredentials


class OpenApi:
    """Calls HTTP APIs. One per run."""

    def __init__(self, context: InvokerContext) -> None:
        self._secrets = context.secrets
        self._files = context.files
        self._http = HttpCaller(context)
        self._pages = Pages(context)

    def invoke(self, request: InvocationRequest, limits: CallLimits) -> InvocationResponse:
        return self._pages.invoke(request, limits, self._exchange_once)

    def _exchange_once(self, request: InvocationRequest, limits: CallLimits) -> InvocationResponse:
        """Make one request, and return its reply."""
        sent = self._send_request(request, limits)
        reply, meta = sent.reply, sent.meta
        clients = sent.credentials.clients
        if reply.status == 401 and clients:
            # The service refused the token and did nothing: a new one is tried once.
            for client in clients:
                self._http.tokens.drop(client, sent.credentials.headers[headers.AUTHORIZATION])
            sent = self._send_request(request, limits)
            notices = ["the service refused the access token, which was renewed"]
            reply, meta = sent.reply, sent.meta._replace(notices=notices)
        meta = meta._replace(response_headers=_mapped_headers(request.binding, reply) or None)
        mode = request.response_mode
        value, refused = reply_body.read_json(reply, request.reply_cap)
        meta = meta._replace(
            reply=reply_body.reply_record(reply, value, self._secrets, is_value=not refused)
        )
        # Messages name the path without its query, which may be long.
        place = meta.url.partition("://")[2].partition("?")[0]
        name = f"{meta.method} /{place.partition('/')[2]}"
        try:
            if error := error_from_reply(
                name, reply, value, self._secrets, self._http.now, service=request.service
            ):
                raise error
            body = value if not refused and mode == "json" else self._parse_body(request, reply)
            response = request.binding.response
            model_reply.require_finished_answer(body, response)
            body = reply_body.add_content_json(body, response, self._secrets.mask_text)
            self._secrets.check_quietly(
                lambda each: model_reply.check_schema(sent.value, each, response), body
            )
        except RuntimeErrorBase as error:
            spent = usage_of(value).add_to(meta)
            error.record, error.usage = (
                spent.to_payload(),
                dict(spent.usage) if spent.usage else None,
            )
            raise
        return InvocationResponse(body, usage_of(body).add_to(meta))

    def close(self, grace: float) -> None:
        self._http.close()

    def _parse_body(self, request: InvocationRequest, reply: HttpReply) -> object:
        if request.response_mode == "text":
            return reply_body.text_body(reply)
        if request.response_mode == "raw":
            return reply_body.raw_body(reply._replace(body=self._secrets.mask_bytes(reply.body)))
        return reply_body.json_body(reply, request.reply_cap)

    def _send_request(self, request: InvocationRequest, limits: CallLimits) -> SentRequest:
        """Make the HTTP exchange. The request's files stay open during the exchange."""
        with OpenFiles(self._files, request.request_cap) as files:
            outgoing, placed = self._build_outgoing(request, limits, files)
            reply, meta = self._http.exchange(request, limits, outgoing)
        return SentRequest(reply, meta, outgoing.value, placed)

    def _build_outgoing(
        self, request: InvocationRequest, limits: CallLimits, files: OpenFiles
    ) -> tuple[OutgoingRequest, PlacedCredentials]:
        """Return the request, and the credentials in it."""
        try:
            document = load_openapi(request.service)
            method: str | None = request.binding.metadata.method
            operation = None if document is None else document.operation(request.operation, method)
            if operation is None:
                parts = parts_without_document(request.operation, method, request.payload)
            else:
                parts = parts_by_document(operation, request.payload)
            server = document.server if document else None
            base = WebApi.of(request.service.settings).base_url or server
            if base is None:
                text = "its document names no single absolute server"
                raise DocumentFault("wire.document", text, "add base_url to the service")
        except DocumentFault as fault:
            raise document_failure(request.service, fault) from fault
        accept = "application/json" if request.response_mode == "json" else "*/*"
        body = parts.encoded_body(files)
        ours = headers.default_headers(request, accept=accept, content_type=body.content_type)
        url = url_of(base, parts.path, parts.path_values, parts.query)
        placed = self._place_credentials(request, operation, parts, limits)
        if request.link:
            url = linked_url(base, url, request.link, [name for name, _ in placed.query])
        merged = headers.merge_headers(
            request, self._secrets, ours, parts.headers, placed.headers, placed.cookies
        )
        recorded = recorded_value(parts.body)
        outgoing = OutgoingRequest(parts.method, url, merged, body.data, recorded, placed.query)
        return outgoing, placed

    def _place_credentials(
        self,
        request: InvocationRequest,
        operation: OpenApiOperation | None,
        parts: HttpParts,
        limits: CallLimits,
    ) -> PlacedCredentials:
        """Return the credentials of a call, from `auth` or `auth_ref` of the service."""
        service = request.service
        written = (*service.metadata.headers, *request.binding.metadata.headers, *parts.headers)
        given = {name.lower() for name in written}
        declared = service.credentials
        if not declared:
            scheme = _lacking_scheme(operation, given)
            found = headers.credentials(service, self._secrets, scheme.key, scheme.word)
            return PlacedCredentials(found)
        chosen = find_credentials(
            operation, declared, given, lambda each: all(map(self._secrets.has, each.refs))
        )
        return place_credentials(service, chosen, self._secrets, self._http.tokens, limits)


def _mapped_headers(binding: Binding, reply: HttpReply) -> dict[str, str]:
    """Return the headers of a reply that the binding maps. The values of a repeated header are joined by commas."""
    found = {}
    sources = binding.page.sources if binding.page is not None else ()
    for name in headers_in((*binding.response.values(), *sources)):
        values = [value for key, value in reply.headers if key.lower() == name]
        if values:
            found[name] = ", ".join(values)
    return found


def _lacking_scheme(operation: OpenApiOperation | None, given: Collection[str]) -> Scheme:
    """Return the scheme that the token of `auth_ref` is for: the only one that an alternative of the
    document's security lacks, else a bearer token."""
    for alternative in operation.security if operation else ():
        lacking = [each for each in alternative if (each.header or "").lower() not in given]
        if all(each.header for each in alternative) and len(lacking) == 1:
            return lacking[0]
    return _BEARER


_BEARER: Final = Scheme("", "token")
