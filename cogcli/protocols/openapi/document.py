"""openapi: a mock server by a document (docs/reference/protocols.md#mocks), and the document that a service publishes
(docs/reference/protocols.md#mcp-pins).

1. For the mock an unknown path is 404, another method 405, a request that breaks its schemas 422 with a pointer for
   each fault.
2. It answers with the first 2xx: the example written there, else the smallest value the schema allows.
3. `Prefer: code=N` asks for a declared status by number.
4. A service file holds no address of its document: it is searched below the base path and at the root of the same host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

import orjson

from cogcli.base.api_documents.changes import find_openapi_changes
from cogcli.base.api_documents.openapi import OpenApiDocument, OpenApiOperation, load_openapi
from cogcli.base.api_documents.parts import resolve
from cogcli.base.api_documents.references import DATA_KEYS, NAMING_KEYS
from cogcli.base.errors import RejectedError, ServiceResolutionError
from cogcli.base.json_pointer import DocumentFault, find_at
from cogcli.base.schema.sample import NoSample, sample
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols.exchange import ReceivedRequest, ServerReply, json_reply
from cogcli.protocols.http import reply_body
from cogcli.protocols.live_document import DocumentKind, DocumentRequest
from cogcli.protocols.openapi.grammar import WebApi
from cogcli.protocols.openapi.judge import (
    RequestFault,
    body_faults,
    declared_status,
    judge_of,
    match_route,
    parameter_faults,
    routes_of,
)

_PREFER: Final = re.compile(r"(?:^|[,;\s])code=(\d{3})(?:$|[,;\s])")


class DeclaredReply(Record):
    """A reply in a document."""

    content: Json
    """By media type; the value has the members of `DeclaredContent`."""


class DeclaredContent(Record):
    """The content of a reply for one media type."""

    example: object = None
    examples: Json
    schema: Json | None = None


class DeclaredExample(Record):
    """One of several examples."""

    value: object = None


class DocumentMock:
    """The mock server of one document, its paths below `base`."""

    def __init__(self, value: Json, base: str = "") -> None:
        """Raise DocumentFault if the document cannot be used."""
        self._base = base.rstrip("/")
        self._value = add_examples(value)
        self._document = OpenApiDocument(self._value)
        self._routes = routes_of(self._document)

    def __call__(self, seen: ReceivedRequest) -> ServerReply:
        """Return the reply to a request."""
        inside = seen.path.startswith(f"{self._base}/")
        found = match_route(self._routes, seen.path.removeprefix(self._base)) if inside else None
        if found is None:
            return _problem_reply(404, f"no such path: {seen.path}")
        route, values = found
        if seen.method not in route.methods:
            allowed = {"Allow": ", ".join(route.methods)}
            return _problem_reply(405, f"{seen.method} is not allowed here", headers=allowed)
        operation = self._document.operation(route.path, seen.method)
        faults = [*parameter_faults(operation, seen, values), *body_faults(operation, seen)]
        if faults:
            return _problem_reply(422, f"{faults[0].pointer}: {faults[0].message}", faults)
        return self._answer_operation(operation, seen)

    def _answer_operation(self, operation: OpenApiOperation, seen: ReceivedRequest) -> ServerReply:
        wanted = _PREFER.search(seen.header("prefer"))
        status = declared_status(operation, int(wanted[1])) if wanted else _good_status(operation)
        if status is None:
            return _problem_reply(
                404, f"status {wanted[1]} is not declared" if wanted else "no 2xx is declared"
            )
        number = int(wanted[1]) if wanted else _status_number(status)
        content = self._declared_content(operation, status)
        if not content or number == 204:
            return ServerReply(number)
        name = min(content, key=lambda name: "json" not in name)
        media_type = name if "*" not in name else "application/json"
        try:
            body = self._reply_body(
                operation.responses.get(status), read_record(DeclaredContent, content[name])
            )
        except NoSample as lost:
            return _problem_reply(500, f"reply {status} of {operation.title}: {lost}")
        return ServerReply(number, {"Content-Type": media_type}, (body,))

    def _declared_content(self, operation: OpenApiOperation, status: str) -> Json:
        """Return the content that the document declares for a status, by media type."""
        item, _ = resolve(self._value, find_at(self._value, ("paths", operation.path)), ())
        responses = item[operation.method.lower()]["responses"]
        key = next(key for key in responses if key.upper() == status.upper())
        found, _ = resolve(self._value, responses[key], ())
        return read_record(DeclaredReply, found).content

    def _reply_body(self, schema: object, declared: DeclaredContent) -> bytes:
        """Return the body of a reply; `schema` is None if it contains no JSON."""
        if "example" in declared.json:
            value = declared.example
        elif declared.examples:
            first, _ = resolve(self._value, next(iter(declared.examples.values())), ())
            value = read_record(DeclaredExample, first).value
        elif schema is None:
            value = "" if declared.schema is None else sample(declared.schema)
        else:
            value = sample(schema)
        if schema is None and isinstance(value, str):
            return value.encode()
        return orjson.dumps(value)


def _good_status(operation: OpenApiOperation) -> str | None:
    """Return the status of the reply if no status is requested: the first 2xx, or else the default."""
    good = (key for key in operation.responses if key.startswith("2"))
    return next(good, "default" if "default" in operation.responses else None)


def _status_number(status: str) -> int:
    return 200 if status == "default" else int(status.replace("XX", "00"))


def _problem_reply(
    status: int,
    message: str,
    faults: Sequence[RequestFault] = (),
    headers: Mapping[str, str] | None = None,
) -> ServerReply:
    errors = [fault._asdict() for fault in faults]
    return json_reply({"message": message, "errors": errors}, status, headers)


def add_examples(part: Json, *, named: bool = False) -> Json:
    """Return an object of a document with each schema's `example` as `examples`, which the schema
    bundler keeps. In a `named` object the keys are names that the author chose, not keywords."""
    copy: Json = {
        key: member
        if key in DATA_KEYS and not named
        else _add_examples_inside(member, named=not named and key in NAMING_KEYS)
        for key, member in part.items()
    }
    is_schema = not named and {"examples", "schema", "in"}.isdisjoint(copy)
    if is_schema and "example" in copy:
        copy["examples"] = [copy["example"]]
    return copy


def _add_examples_inside(value: object, *, named: bool = False) -> object:
    if isinstance(value, list):
        return [_add_examples_inside(item) for item in value]
    return add_examples(value, named=named) if isinstance(value, dict) else value


DOCUMENT_PATHS: Final = ("openapi.json", "openapi.yaml", "swagger.json", "v3/api-docs")
"""The paths at which servers commonly publish their document."""


def download(request: DocumentRequest) -> Json:
    tried = []
    for url in _possible_urls(request.service):
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


def _possible_urls(service: Service) -> Iterator[str]:
    """Yield the URLs at which a service may publish its document: below its base path first, then
    at the root of its host."""
    parts = urlsplit(_base_path(service))
    folders = [parts.path.rstrip("/"), ""] if parts.path.strip("/") else [""]
    for folder in folders:
        for name in DOCUMENT_PATHS:
            yield f"{parts.scheme}://{parts.netloc}{folder}/{name}"


def _base_path(service: Service) -> str:
    written = WebApi.of(service.settings).base_url
    if written:
        return written
    try:
        document = load_openapi(service)
        if document is None or document.server is None:
            raise DocumentFault("wire.document", "it has no base_url", "write base_url in its file")
    except DocumentFault as fault:
        text = f"service `{service.id}`: {fault.message}"
        raise ServiceResolutionError(fault.code, text, hint=fault.hint, left=False) from fault
    return document.server


def _build_mock(value: Json, service: Service) -> DocumentMock:
    return DocumentMock(value, urlsplit(WebApi.of(service.settings).base_url or "").path)


KIND: Final = DocumentKind(
    "operation", OpenApiDocument, find_openapi_changes, download, judge_of, _build_mock
)
