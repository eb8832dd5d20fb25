"""openapi: checks of one request and its reply by their operation: route, parameters, body, status
and reply (docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from cogcli.base.api_documents.openapi import OpenApiDocument, OpenApiOperation, load_openapi
from cogcli.base.schema.validator import errors
from cogcli.base.strict_json import JsonRefused, loads
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.protocols.exchange import ObservedExchange, ReceivedRequest
from cogcli.protocols.exchange_checks import Check, Judge, schema_check

_SHOWN: Final = 3
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


def breaches(pointer: str, schema: Any, value: Any) -> list[RequestFault]:
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
        pointer = f"/{parameter.place}/{parameter.name}"
        sent = {"path": paths, "query": query}.get(parameter.place)
        texts = headers.get(parameter.name.lower()) if sent is None else sent.get(parameter.name)
        if texts is None:
            if parameter.required:
                faults.append(RequestFault(pointer, "required, not sent"))
            continue
        value = _value_from_texts(parameter.schema, texts, parameter.explode)
        faults += breaches(pointer, parameter.schema, value)
    declared = {parameter.name for parameter in operation.parameters if parameter.place == "query"}
    return faults + [
        RequestFault(f"/query/{name}", "not declared") for name in query if name not in declared
    ]


def body_faults(operation: OpenApiOperation, seen: ReceivedRequest) -> list[RequestFault]:
    """Return the faults of the body: missing, no JSON, or breaches of its schema."""
    if operation.body is None:
        return [RequestFault("/body", "none is expected")] if seen.body else []
    if not seen.body:
        return [RequestFault("/body", "required, not sent")] if operation.body.required else []
    media_type = seen.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not (media_type == "application/json" or media_type.endswith("+json")):
        return [
            RequestFault("/header/content-type", f"found `{media_type}`, expected application/json")
        ]
    try:
        value = loads(seen.body)
    except JsonRefused as refused:
        return [RequestFault("/body", str(refused))]
    return breaches("/body", operation.body.schema, value)


def _value_from_texts(schema: Any, texts: list[str], explode: bool) -> Any:
    """Return the value of these texts, by the type in the schema."""
    kinds = _schema_types(schema)
    if "array" in kinds:
        parts = texts if len(texts) > 1 or explode else texts[0].split(",")
        items = _resolve(schema).get("items", True)
        return [_scalar_from_text(items, part) for part in parts]
    return _scalar_from_text(schema, texts[-1])


def _scalar_from_text(schema: Any, text: str) -> Any:
    kinds = _schema_types(schema)
    if "integer" in kinds and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in kinds and _NUMBER.fullmatch(text):
        return float(text)
    if "boolean" in kinds and text in ("true", "false"):
        return text == "true"
    return text


def _schema_types(schema: Any) -> list[str]:
    """Return the types that a schema names, else those of its alternatives."""
    found = _resolve(schema)
    declared = found.get("type")
    if declared:
        return declared if isinstance(declared, list) else [declared]
    options = [
        *(found.get("anyOf") or ()),
        *(found.get("oneOf") or ()),
        *(found.get("allOf") or ()),
    ]
    return [
        kind for option in options if isinstance(option, dict) for kind in _schema_types(option)
    ]


def _resolve(schema: Any) -> dict[str, Any]:
    """Return the schema, or the definition in it that its `$ref` names."""
    if not isinstance(schema, dict):
        return {}
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return schema
    found = (schema.get("$defs") or {}).get(reference.removeprefix("#/$defs/"))
    return found if isinstance(found, dict) else {}


def routes_of(document: OpenApiDocument) -> tuple[Route, ...]:
    """Return every path with its methods, literal ones before those with parameters."""
    methods: dict[str, list[str]] = {}
    for entry in document.entries:
        methods.setdefault(entry.path, []).append(entry.method)
    routes = []
    for path, here in methods.items():
        first, *rest = re.split(r"\{([^{}]+)\}", path)
        texts = [
            _parameter(text, last=n == len(rest)) for n, text in enumerate(rest, 1) if n % 2 == 0
        ]
        pattern = re.compile(re.escape(first) + "".join(texts))
        routes.append(Route(path, pattern, tuple(rest[::2]), tuple(here)))
    return tuple(sorted(routes, key=lambda route: len(route.names)))


def _parameter(after: str, *, last: bool) -> str:
    """Return the pattern of a parameter and the text after it, where the value ends first. It does
    not backtrack."""
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
    """Return the judge of a binding's calls by its service's document; None without one. Raise
    DocumentFault."""
    document = load_openapi(service)
    if document is None:
        return None
    operation = document.operation(binding.operation, binding.metadata.method)
    base = urlsplit(service.settings.get("base_url") or document.server or "").path
    return lambda exchange: judge_exchange(exchange, document, operation, base)


def judge_exchange(
    exchange: ObservedExchange, document: OpenApiDocument, operation: OpenApiOperation, base: str
) -> list[Check]:
    """Return the checks of an exchange, in display order."""
    found = [_request(exchange, document, operation, base.rstrip("/"))]
    if operation.body is not None or exchange.seen.body:
        faults = body_faults(operation, exchange.seen)
        found.append(Check("request body matches its schema", not faults, join_faults(faults)))
    key = declared_status(operation, exchange.status)
    said = "" if key else f"declared: {', '.join(operation.responses) or 'none'}"
    found.append(Check(f"status {exchange.status} is declared", key is not None, said))
    if key is not None and operation.responses[key] is not None:
        found.append(_reply(exchange, operation.responses[key]))
    return found


def declared_status(operation: OpenApiOperation, status: int) -> str | None:
    """Return the key under which an operation declares a status."""
    choices = (str(status), f"{status // 100}XX", "default")
    return next((key for key in choices if key in operation.responses), None)


def _request(
    exchange: ObservedExchange, document: OpenApiDocument, operation: OpenApiOperation, base: str
) -> Check:
    seen, name = exchange.seen, "request matches the operation"
    asked = f"{seen.method} {seen.path}"
    route = next(r for r in routes_of(document) if r.path == operation.path)
    inside = seen.path.startswith(f"{base}/") or not base
    found = match_route((route,), seen.path.removeprefix(base)) if inside else None
    if found is None or seen.method != operation.method:
        return Check(name, False, f"{asked}, expected {operation.method} {base}{operation.path}")
    if not exchange.whole:
        known = tuple(each for each in operation.parameters if each.place != "header")
        operation = operation._replace(parameters=known)
    faults = parameter_faults(operation, seen, found[1])
    return Check(name, not faults, f"{asked}: {join_faults(faults)}" if faults else asked)


def _reply(exchange: ObservedExchange, schema: Any) -> Check:
    name = "reply matches its schema"
    media_type = exchange.media_type.partition(";")[0].strip().lower()
    if media_type and not (media_type == "application/json" or media_type.endswith("+json")):
        return Check(name, False, f"found {media_type}, expected JSON")
    try:
        value = loads(exchange.reply)
    except JsonRefused as refused:
        return Check(name, False, str(refused))
    return schema_check(name, schema, value)
