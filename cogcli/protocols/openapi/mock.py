"""A mock server by an OpenAPI document (docs/reference/protocols.md#mocks).

1. An unknown path is 404, another method 405, a request that breaks its schemas 422 with a pointer for each fault.
2. It answers with the first 2xx: the example written there, else the smallest value the schema allows.
3. `Prefer: code=N` asks for a declared status by number.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import orjson

from cogcli.core.json_pointer import found_at
from cogcli.documents.loader import resolve
from cogcli.documents.openapi import OpenApiDocument, OpenApiOperation
from cogcli.protocols.http.observed import Reply, Seen, json_reply
from cogcli.protocols.openapi.request_check import RequestFault, faults_of
from cogcli.schema.sample import NoSample, sample

_PREFER: Final = re.compile(r"(?:^|[,;\s])code=(\d{3})(?:$|[,;\s])")


class Route(NamedTuple):
    """One path of the document; the pattern's groups are the values of its parameters, `names` their names."""

    path: str
    pattern: re.Pattern[str]
    names: tuple[str, ...]
    methods: tuple[str, ...]


class DocumentMock:
    """The mock server of one document, its paths below `base`."""

    def __init__(self, value: dict[str, Any], base: str = "") -> None:
        """Raises DocumentFault where the document cannot be used."""
        self._base = base.rstrip("/")
        self._value = add_examples(value)
        self._document = OpenApiDocument(self._value)
        self._routes = routes_of(self._document)

    def __call__(self, seen: Seen) -> Reply:
        """The answer to a request."""
        inside = seen.path.startswith(f"{self._base}/")
        found = match_route(self._routes, seen.path.removeprefix(self._base)) if inside else None
        if found is None:
            return _problem(404, f"no such path: {seen.path}")
        route, values = found
        if seen.method not in route.methods:
            allowed = {"Allow": ", ".join(route.methods)}
            return _problem(405, f"{seen.method} is not allowed here", headers=allowed)
        operation = self._document.operation(route.path, seen.method)
        faults = faults_of(operation, seen, values)
        if faults:
            return _problem(422, f"{faults[0].pointer}: {faults[0].message}", faults)
        return self._answer(operation, seen)

    def _answer(self, operation: OpenApiOperation, seen: Seen) -> Reply:
        wanted = _PREFER.search(seen.headers.get("prefer", ""))
        status = _status(operation, wanted[1] if wanted else None)
        if status is None:
            return _problem(404, f"status {wanted[1]} is not declared" if wanted else "no 2xx is declared")
        number = int(wanted[1]) if wanted else int(status.replace("XX", "00")) if status != "default" else 200
        raw = self._response(operation, status)
        content = raw.get("content") or {}
        media_type, declared = _content(content)
        if not media_type or number == 204:
            return Reply(number)
        try:
            body = self._body(operation.responses.get(status), declared, media_type)
        except NoSample as lost:
            return _problem(500, f"reply {status} of {operation.title}: {lost}")
        return Reply(number, {"Content-Type": media_type}, (body,))

    def _body(self, schema: Any, declared: dict[str, Any], media_type: str) -> bytes:
        """The body of a reply; `schema` is None where it holds no JSON."""
        if "example" in declared:
            value = declared["example"]
        elif declared.get("examples"):
            first, _ = resolve(self._value, next(iter(declared["examples"].values())), ())
            value = first.get("value")
        elif schema is None:
            value = sample(declared["schema"]) if isinstance(declared.get("schema"), dict) else ""
        else:
            value = sample(schema)
        if schema is None and isinstance(value, str):
            return value.encode()
        return orjson.dumps(value)

    def _response(self, operation: OpenApiOperation, status: str) -> dict[str, Any]:
        """The document's response object of a status."""
        item, _ = resolve(self._value, found_at(self._value, ("paths", operation.path)), ())
        responses = item[operation.method.lower()]["responses"]
        key = next(key for key in responses if key == status or key.upper() == status)
        found, _ = resolve(self._value, responses[key], ())
        return found


def routes_of(document: OpenApiDocument) -> tuple[Route, ...]:
    """Every path with its methods; literal ones before those with parameters."""
    methods: dict[str, list[str]] = {}
    for entry in document.entries:
        methods.setdefault(entry.path, []).append(entry.method)
    routes = [_route(path, tuple(here)) for path, here in methods.items()]
    return tuple(sorted(routes, key=lambda route: len(route.names)))


def _route(path: str, methods: tuple[str, ...]) -> Route:
    parts = re.split(r"\{([^{}]+)\}", path)
    texts = parts[2::2]
    pattern = re.escape(parts[0]) + "".join(
        _parameter(text, last=n == len(texts)) for n, text in enumerate(texts, 1)
    )
    return Route(path, re.compile(pattern), tuple(parts[1::2]), methods)


def _parameter(after: str, *, last: bool) -> str:
    """The pattern of a parameter and the text after it: the value ends at its first occurrence, without
    backtracking."""
    inside, slash, beyond = after.partition("/")
    ends = "(?=/)" if slash else r"\Z" if last else ""
    whole = "([^/]++)" if ends else "([^/])"
    value = f"(?>([^/]+?){re.escape(inside)}{ends})" if inside else whole
    return value + re.escape(slash + beyond)


def match_route(routes: tuple[Route, ...], path: str) -> tuple[Route, dict[str, str]] | None:
    """The route of a sent path and the values of its parameters; None without one."""
    for route in routes:
        found = route.pattern.fullmatch(path)
        if found:
            return route, dict(zip(route.names, map(unquote, found.groups()), strict=True))
    return None


def _status(operation: OpenApiOperation, wanted: str | None) -> str | None:
    """The declared status to answer with: the wanted one, else the first 2xx."""
    declared = operation.responses
    if wanted is not None:
        return next((key for key in (wanted, f"{wanted[0]}XX", "default") if key in declared), None)
    return next(
        (key for key in declared if key.startswith("2")), "default" if "default" in declared else None
    )


def _content(content: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The media type of the answer, JSON preferred, and its media type object."""
    named = sorted(content, key=lambda name: "json" not in name)
    if not named:
        return "", {}
    media_type = named[0] if "*" not in named[0] else "application/json"
    return media_type, content[named[0]] or {}


def _problem(
    status: int, message: str, faults: list[RequestFault] | None = None, headers: Any = None
) -> Reply:
    errors = [fault._asdict() for fault in faults or ()]
    return json_reply({"message": message, "errors": errors}, status, headers)


def add_examples(value: Any, *, named: bool = False) -> Any:
    """The document with each schema's `example` as `examples`, which the schema bundler keeps."""
    if isinstance(value, list):
        return [add_examples(item) for item in value]
    if not isinstance(value, dict):
        return value
    copy = {
        key: member if key in _DATA and not named else add_examples(member, named=not named and key in _NAMES)
        for key, member in value.items()
    }
    if not named and "example" in copy and "examples" not in copy and not {"schema", "in"} & copy.keys():
        copy["examples"] = [copy["example"]]
    return copy


_DATA: Final = frozenset(("example", "examples", "default", "const", "enum"))
_NAMES: Final = frozenset(
    (
        "properties",
        "patternProperties",
        "$defs",
        "definitions",
        "schemas",
        "responses",
        "content",
        "paths",
        "contentDescriptors",
    )
)
"""Keys whose members have free names, which may be `example`."""
