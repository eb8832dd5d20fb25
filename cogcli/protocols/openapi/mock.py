"""A mock server by an OpenAPI document (docs/reference/protocols.md#mocks).

1. An unknown path is 404, another method 405, a request that breaks its schemas 422 with a pointer for each fault.
2. It answers with the first 2xx: the example written there, else the smallest value the schema allows.
3. `Prefer: code=N` asks for a declared status by number.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from cogcli.core.json_pointer import found_at
from cogcli.documents.loader import DATA_KEYS, NAMING_KEYS, resolve
from cogcli.documents.openapi import OpenApiDocument, OpenApiOperation
from cogcli.protocols.http.observed import Reply, Seen, json_reply
from cogcli.protocols.openapi.judge import (
    RequestFault,
    body_faults,
    declared_status,
    match_route,
    parameter_faults,
    routes_of,
)
from cogcli.schema.sample import NoSample, sample

_PREFER: Final = re.compile(r"(?:^|[,;\s])code=(\d{3})(?:$|[,;\s])")


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
        faults = [*parameter_faults(operation, seen, values), *body_faults(operation, seen)]
        if faults:
            return _problem(422, f"{faults[0].pointer}: {faults[0].message}", faults)
        return self._answer(operation, seen)

    def _answer(self, operation: OpenApiOperation, seen: Seen) -> Reply:
        wanted = _PREFER.search(seen.headers.get("prefer", ""))
        first = next((key for key in operation.responses if key.startswith("2")), None)
        fallback = "default" if "default" in operation.responses else None
        status = declared_status(operation, int(wanted[1])) if wanted else first or fallback
        if status is None:
            return _problem(404, f"status {wanted[1]} is not declared" if wanted else "no 2xx is declared")
        number = int(wanted[1]) if wanted else int(status.replace("XX", "00")) if status != "default" else 200
        item, _ = resolve(self._value, found_at(self._value, ("paths", operation.path)), ())
        responses = item[operation.method.lower()]["responses"]
        key = next(key for key in responses if key == status or key.upper() == status)
        found, _ = resolve(self._value, responses[key], ())
        content = found.get("content") or {}
        if not content or number == 204:
            return Reply(number)
        name = min(content, key=lambda name: "json" not in name)
        media_type = name if "*" not in name else "application/json"
        try:
            body = self._body(operation.responses.get(status), content[name] or {})
        except NoSample as lost:
            return _problem(500, f"reply {status} of {operation.title}: {lost}")
        return Reply(number, {"Content-Type": media_type}, (body,))

    def _body(self, schema: Any, declared: dict[str, Any]) -> bytes:
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
        key: member
        if key in DATA_KEYS and not named
        else add_examples(member, named=not named and key in NAMING_KEYS)
        for key, member in value.items()
    }
    if not named and "example" in copy and "examples" not in copy and not {"schema", "in"} & copy.keys():
        copy["examples"] = [copy["example"]]
    return copy
