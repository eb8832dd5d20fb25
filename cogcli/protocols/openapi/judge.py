"""openapi: checks of one request and its reply by their operation: route, parameters, body, status
and reply (docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

import re
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import HTTP
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from cogcli.base.api_documents.openapi import (
    Body,
    OpenApiDocument,
    OpenApiOperation,
    Parameter,
    PartEncoding,
    load_openapi,
)
from cogcli.base.jsonvalue import object_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.refs import MISSING
from cogcli.base.schema import keywords
from cogcli.base.schema.lookup import members, schema_at
from cogcli.base.schema.validator import errors
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols.exchange import ObservedExchange, ReceivedRequest
from cogcli.protocols.exchange_checks import Check, Judge, find_in_json, schema_check
from cogcli.protocols.openapi.grammar import WebApi
from cogcli.specs.binding_shape import RESPONSE_PATH
from cogcli.state.namespaces import walk

_SHOWN: Final = 3
_DEFINITIONS: Final = "#/$defs/"
_INTEGER: Final = re.compile(r"-?(?:0|[1-9]\d*)")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")


class Route(NamedTuple):
    """One path of the document. The groups of its pattern are the values of its parameters `names`."""

    path: str
    pattern: re.Pattern[str]
    names: tuple[str, ...]
    methods: tuple[str, ...]


class RequestFault(NamedTuple):
    """One fault of a request: its pointer, as `/query/lang` or `/body/data`, and a message."""

    pointer: str
    message: str


def breaches(pointer: str, schema: object, value: object) -> list[RequestFault]:
    """Return the breaches of a schema by the value at a pointer."""
    return [
        RequestFault(f"{pointer}/{place}".rstrip("/"), text)
        for place, text in errors(schema, value)
    ]


def join_faults(faults: list[RequestFault]) -> str:
    """Return the first three faults in one line."""
    return "; ".join(f"{fault.pointer}: {fault.message}" for fault in faults[:_SHOWN])


def parameter_faults(
    operation: OpenApiOperation, seen: ReceivedRequest, path_values: dict[str, str]
) -> list[RequestFault]:
    """Return the faults of path, query and headers, including undeclared query names."""
    query = parse_qs(seen.query, keep_blank_values=True)
    paths = {name: [value] for name, value in path_values.items()}
    headers = {name: [value] for name, value in seen.headers.items()}
    faults: list[RequestFault] = []
    for parameter in operation.parameters:
        sent = {"path": paths, "query": query}.get(parameter.place)
        texts = headers.get(parameter.name.lower()) if sent is None else sent.get(parameter.name)
        faults += _one_parameter_faults(parameter, texts)
    declared = {parameter.name for parameter in operation.parameters if parameter.place == "query"}
    return faults + [
        RequestFault(f"/query/{name}", "not declared") for name in query if name not in declared
    ]


def _one_parameter_faults(parameter: Parameter, texts: list[str] | None) -> list[RequestFault]:
    """Return the faults of a parameter. `texts` are its sent values; None if it was not sent."""
    pointer = f"/{parameter.place}/{parameter.name}"
    if texts is None:
        return [RequestFault(pointer, "required, not sent")] if parameter.required else []
    value = _value_from_texts(parameter.schema, texts, parameter.explode)
    return breaches(pointer, parameter.schema, value)


def body_faults(operation: OpenApiOperation, seen: ReceivedRequest) -> list[RequestFault]:
    """Return the faults of the body: missing, of another form, or breaches of its schema."""
    if operation.body is None:
        return [RequestFault("/body", "none is expected")] if seen.body else []
    if not seen.body:
        return [RequestFault("/body", "required, not sent")] if operation.body.required else []
    return _sent_body_faults(operation.body, seen)


def _sent_body_faults(declared: Body, seen: ReceivedRequest) -> list[RequestFault]:
    """Return the faults of a body that was sent: its form, and breaches of its schema."""
    media_type = _media_type(seen.header("content-type"))
    expected = declared.media_type or "application/json"
    if "*" in expected:
        return []
    if declared.kind == "json" and _is_json(media_type):
        return _json_body_faults(declared, seen.body)
    if declared.kind == "json" or media_type != _media_type(expected):
        message = f"found `{media_type}`, expected {expected}"
        return [RequestFault("/header/content-type", message)]
    if declared.kind in ("text", "bytes"):
        return []
    value = form_value(declared, seen)
    if value is None:
        return [RequestFault("/body", "no form can be read")]
    faults = breaches("/body", declared.schema, value)
    return [*faults, *_file_faults(declared, seen)] if declared.files else faults


def _file_faults(declared: Body, seen: ReceivedRequest) -> list[RequestFault]:
    """Return a fault for each part of a form that should be a file and has no file name, or the other
    way round."""
    faults = []
    for part in _multipart_parts(seen):
        name = str(part.get_param("name", header="content-disposition"))
        if (part.get_filename() is not None) != (name in declared.files):
            expected = "a file" if name in declared.files else "a value"
            faults.append(RequestFault(f"/body/{name}", f"expected {expected}"))
    return faults


def _json_body_faults(declared: Body, body: bytes) -> list[RequestFault]:
    try:
        value = loads(body)
    except InvalidJson as refused:
        return [RequestFault("/body", str(refused))]
    return breaches("/body", declared.schema, value)


def form_value(declared: Body, seen: ReceivedRequest) -> Json | None:
    """Return the members of a form by their types in the document; None if it cannot be read."""
    texts = _multipart_texts(seen) if declared.kind == "multipart" else _form_texts(seen)
    if texts is None:
        return None
    properties = members(declared.schema).properties
    found: Json = {}
    for name, given in texts.items():
        head, _, _ = name.partition("[")
        if declared.encodings.get(head, PartEncoding()).style == "deepObject":
            continue  # its members are in several fields
        schema = properties.get(name, True)
        explode = declared.encodings.get(name, PartEncoding()).explode
        found[name] = _form_member(schema, given, explode=explode)
    return found


def _form_member(schema: object, given: list[str], *, explode: bool) -> object:
    """Return one member of a form: JSON if the document describes an object there."""
    if _schema_types(schema) == {"object"}:
        try:
            return loads(given[-1].encode())
        except InvalidJson:
            return given[-1]
    return _value_from_texts(schema, given, explode)


def _form_texts(seen: ReceivedRequest) -> dict[str, list[str]] | None:
    try:
        return parse_qs(seen.body.decode(), keep_blank_values=True)
    except ValueError:
        return None


def _multipart_texts(seen: ReceivedRequest) -> dict[str, list[str]] | None:
    parts = _multipart_parts(seen)
    if not parts:
        return None
    found: dict[str, list[str]] = {}
    for part in parts:
        name = part.get_param("name", header="content-disposition")
        data = part.get_payload(decode=True)
        text = data.decode(errors="replace") if isinstance(data, bytes) else ""
        found.setdefault(str(name), []).append(text)
    return found


def _multipart_parts(seen: ReceivedRequest) -> list[EmailMessage]:
    """Return the parts of a form; empty if it cannot be read."""
    head = f"Content-Type: {seen.header('content-type')}\r\n\r\n".encode()
    message = BytesParser(EmailMessage, policy=HTTP).parsebytes(head + seen.body)
    parts = message.iter_parts() if message.is_multipart() else ()
    return [part for part in parts if isinstance(part, EmailMessage)]


def _media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or media_type.endswith("+json")


def _value_from_texts(schema: object, texts: list[str], explode: bool) -> object:
    """Return the value of these strings, by the type in the schema."""
    kinds = _schema_types(schema)
    if "array" in kinds:
        parts = texts if len(texts) > 1 or explode else texts[0].split(",")
        items = _resolve_definition(schema).get("items", True)
        return [_scalar_from_text(items, part) for part in parts]
    return _scalar_from_text(schema, texts[-1])


def _scalar_from_text(schema: object, text: str) -> object:
    kinds = _schema_types(schema)
    if "integer" in kinds and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in kinds and _NUMBER.fullmatch(text):
        return float(text)
    if "boolean" in kinds and text in ("true", "false"):
        return text == "true"
    return text


def _schema_types(schema: object) -> frozenset[str]:
    """Return the types that a schema names, or else the types of its alternatives."""
    found = _resolve_definition(schema)
    declared = keywords.types(found)
    if declared:
        return declared
    alternatives = (keywords.items(found, name) for name in ("anyOf", "oneOf", "allOf"))
    return frozenset(
        kind for options in alternatives for each in options for kind in _schema_types(each)
    )


def _resolve_definition(schema: object) -> Json:
    """Return the schema, or the definition that its `$ref` references; empty for a boolean."""
    found = object_of(schema)
    reference = keywords.text(found, "$ref") or ""
    if not reference.startswith(_DEFINITIONS):
        return found
    definitions = keywords.mapping(found, "$defs")
    return keywords.mapping(definitions, reference.removeprefix(_DEFINITIONS))


def routes_of(document: OpenApiDocument) -> tuple[Route, ...]:
    """Return every path with its methods, literal ones before those with parameters."""
    methods: dict[str, list[str]] = {}
    for entry in document.entries:
        methods.setdefault(entry.path, []).append(entry.method)
    routes = []
    for path, here in methods.items():
        first, *rest = re.split(r"\{([^{}]+)\}", path)
        texts = [
            _parameter_pattern(text, last=n == len(rest))
            for n, text in enumerate(rest, 1)
            if n % 2 == 0
        ]
        pattern = re.compile(re.escape(first) + "".join(texts))
        routes.append(Route(path, pattern, tuple(rest[::2]), tuple(here)))
    return tuple(sorted(routes, key=lambda route: len(route.names)))


def _parameter_pattern(after: str, *, last: bool) -> str:
    """Return the pattern of a path parameter followed by the text after it. The parameter ends at the first occurrence
    of that text. The pattern does not backtrack.
    """
    inside, slash, beyond = after.partition("/")
    ends = "(?=/)" if slash else r"\Z" if last else ""
    whole = "([^/]++)" if ends else "([^/])"
    value = f"(?>([^/]+?){re.escape(inside)}{ends})" if inside else whole
    return value + re.escape(slash + beyond)


def match_route(routes: tuple[Route, ...], path: str) -> tuple[Route, dict[str, str]] | None:
    """Return the route of a sent path and the values of its parameters; None without one."""
    for route in routes:
        found = route.pattern.fullmatch(path)
        if found:
            return route, dict(zip(route.names, map(unquote, found.groups()), strict=True))
    return None


def judge_of(binding: Binding, service: Service) -> Judge | None:
    """Return the validator of a binding's calls, based on its service's document; None without a document. Raise
    DocumentFault.
    """
    document = load_openapi(service)
    if document is None:
        return None
    operation = document.operation(binding.operation, binding.metadata.method)
    base = urlsplit(WebApi.of(service.settings).base_url or document.server or "").path
    reads = None if binding.conformance == "strict" else _paths_read(binding)
    return lambda exchange: judge_exchange(exchange, document, operation, base, reads)


Paths = list[tuple[str, ...]]


def _paths_read(binding: Binding) -> Paths | None:
    """Return the paths in the reply that outputs read; None if one reads the whole reply."""
    texts = (each for each in binding.response.values() if isinstance(each, str))
    paths = [tuple(text.split(".")[1:]) for text in texts if RESPONSE_PATH.fullmatch(text)]
    return paths if all(paths) else None


def judge_exchange(
    exchange: ObservedExchange,
    document: OpenApiDocument,
    operation: OpenApiOperation,
    base: str,
    reads: Paths | None = None,
) -> list[Check]:
    """Return the checks of an exchange, in display order. In the reply, the values at `reads` must match their schemas;
    with None, the whole reply must.
    """
    found = [_check_request(exchange, document, operation, base.rstrip("/"))]
    if operation.body is not None or exchange.seen.body:
        faults = body_faults(operation, exchange.seen)
        found.append(Check("request body matches its schema", not faults, join_faults(faults)))
    key = declared_status(operation, exchange.status)
    detail = "" if key else f"declared: {', '.join(operation.responses) or 'none'}"
    found.append(Check(f"status {exchange.status} is declared", key is not None, detail))
    if key is not None and operation.responses[key] is not None:
        found.append(_check_reply(exchange, operation.responses[key], reads))
    return found


def declared_status(operation: OpenApiOperation, status: int) -> str | None:
    """Return the key under which an operation declares a status."""
    choices = (str(status), f"{status // 100}XX", "default")
    return next((key for key in choices if key in operation.responses), None)


def _check_request(
    exchange: ObservedExchange, document: OpenApiDocument, operation: OpenApiOperation, base: str
) -> Check:
    seen, name = exchange.seen, "request matches the operation"
    line = f"{seen.method} {seen.path}"
    values = _path_values(document, operation, seen, base)
    if values is None:
        return Check(name, False, f"{line}, expected {operation.method} {base}{operation.path}")
    if not exchange.whole:
        known = tuple(each for each in operation.parameters if each.place != "header")
        operation = operation._replace(parameters=known)
    faults = parameter_faults(operation, seen, values)
    return Check(name, not faults, f"{line}: {join_faults(faults)}" if faults else line)


def _path_values(
    document: OpenApiDocument, operation: OpenApiOperation, seen: ReceivedRequest, base: str
) -> dict[str, str] | None:
    """Return the values in the path of a request; None if the request is not for this operation."""
    is_inside = seen.path.startswith(f"{base}/") or not base
    if not is_inside or seen.method != operation.method:
        return None
    route = next(route for route in routes_of(document) if route.path == operation.path)
    found = match_route((route,), seen.path.removeprefix(base))
    return None if found is None else found[1]


def _check_reply(exchange: ObservedExchange, schema: object, reads: Paths | None) -> Check:
    name = "reply matches its schema"
    media_type = _media_type(exchange.media_type)
    if media_type and not _is_json(media_type):
        return Check(name, False, f"found {media_type}, expected JSON")
    try:
        value = loads(exchange.reply)
    except InvalidJson as refused:
        return Check(name, False, str(refused))
    whole = schema_check(name, schema, value)
    if whole.passed or reads is None:
        return whole
    for path in reads:
        found, read = schema_at(schema, path), walk(value, path)
        if found is None or read is MISSING:
            continue  # the mapping judges a missing value
        wrong = errors(found.schema, read)
        if wrong:
            place = "/".join(filter(None, (*path, wrong[0][0])))
            detail = f"{place.replace('/', '.')}: {wrong[0][1]}"
            return Check(name, False, detail, find_in_json(value, place))
    return Check(name, True, f"no output reads what differs: {whole.detail}")
