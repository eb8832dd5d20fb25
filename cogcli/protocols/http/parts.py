"""The parts of an HTTP request from a binding's payload, with and without a document
(docs/reference/protocols.md#openapi)."""

from __future__ import annotations

from typing import Final

from cogcli.base.api_documents.openapi import Body, OpenApiOperation, Parameter
from cogcli.base.errors import RequestMappingError
from cogcli.base.jsonvalue import items_of, kind_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json
from cogcli.protocols.http.body import EncodedBody, encode_body
from cogcli.protocols.http.open_files import OpenFiles
from cogcli.protocols.http.url import (
    encode,
    names_in,
    path_of,
    path_value,
    scalar,
    unsendable_value_error,
)
from cogcli.protocols.sent_file import sent_value
from cogcli.specs.request_locations import locate_keys

_IN_QUERY: Final = ("GET", "HEAD", "DELETE")
JSON: Final = Body(required=False, schema=True)


class HttpParts(NamedTuple):
    """The parts of a request. Path and query values are percent-encoded; no body is sent unless `has_body`."""

    method: str
    path: str
    path_values: dict[str, str]
    query: list[tuple[str, str]]
    headers: dict[str, str]
    body: object = None
    has_body: bool = False
    declared: Body = JSON

    def encoded_body(self, files: OpenFiles) -> EncodedBody:
        """Return the encoded body, empty if no body is sent. `files` opens the files in it."""
        if not self.has_body:
            return EncodedBody(b"", "")
        return encode_body(self.declared, sent_value(self.body), files)


def parts_without_document(operation: str, method: str | None, payload: Json) -> HttpParts:
    """Return the parts without a document: `{name}` keys fill the path, the others form the query
    or a JSON object.

    Raise RequestMappingError `request.value` or `request.missing`."""
    path = path_of(operation)
    if path is None:
        raise unsendable_value_error(f"operation `{operation}` is not a path")
    method = method or "POST"
    values = {name: _read_path_value(operation, name, payload) for name in names_in(path)}
    rest = {key: value for key, value in payload.items() if key not in values}
    if method not in _IN_QUERY:
        return HttpParts(method, path, values, [], {}, rest, True)
    query = [pair for key, value in rest.items() for pair in _query_pairs(key, value, explode=True)]
    return HttpParts(method, path, values, query, {})


def _read_path_value(operation: str, name: str, payload: Json) -> str:
    value = payload.get(name)
    if value is None:
        text = f"`{operation}` needs a value for `{{{name}}}` and was given none"
        raise RequestMappingError("request.missing", text, left=False)
    if isinstance(value, list | dict):
        raise unsendable_value_error(
            f"path value `{name}` is {kind_of(value)}, expected text, a number or a boolean"
        )
    return path_value(value, name)


def parts_by_document(operation: OpenApiOperation, payload: Json) -> HttpParts:
    """Return the parts by a document, each key at its parameter's location. Raise
    RequestMappingError or DocumentFault."""
    locations = locate_keys(payload, operation)
    known = {(parameter.place, parameter.name): parameter for parameter in operation.parameters}
    parts = HttpParts(operation.method, operation.path, {}, [], {})
    body: Json = {}
    given: set[tuple[str, str]] = set()
    whole: list[object] = []
    for key, value in payload.items():
        kind, name = locations[key]
        if kind == "whole":
            whole.append(value)
        elif kind == "body":
            body[name] = value
        elif value is not None:
            given.add((kind, name))
            _put_parameter(parts, known[kind, name], value)
    _require_given_parameters(operation, given)
    declared = operation.body
    if declared is None or not (whole or body or declared.required):
        return parts
    return _add_body(parts, operation.title, declared, whole[0] if whole else body)


def _add_body(parts: HttpParts, title: str, declared: Body, value: object) -> HttpParts:
    if declared.refused:
        raise unsendable_value_error(f"the body of `{title}` cannot be sent: {declared.refused}")
    return parts._replace(body=value, has_body=True, declared=declared)


def _require_given_parameters(operation: OpenApiOperation, given: set[tuple[str, str]]) -> None:
    for parameter in operation.parameters:
        if parameter.required and (parameter.place, parameter.name) not in given:
            text = f"`{parameter.place}.{parameter.name}` is required by `{operation.title}` and was not given"
            raise RequestMappingError("request.missing", text, left=False)


def _put_parameter(parts: HttpParts, parameter: Parameter, value: object) -> None:
    name = parameter.name
    if parameter.refused:
        raise unsendable_value_error(f"`{name}` cannot be sent: {parameter.refused}")
    if parameter.place == "path":
        parts.path_values[name] = path_value(value, name)
    elif parameter.place == "query":
        parts.query.extend(_query_pairs(name, value, explode=parameter.explode))
    else:
        parts.headers[name] = ",".join(scalar(item, name) for item in items_of(value))


def _query_pairs(name: str, value: object, *, explode: bool) -> list[tuple[str, str]]:
    """Return a query value as pairs. A list becomes one pair per item, or one joined by commas; null becomes none."""
    if value is None:
        return []
    items = [encode(item, name) for item in items_of(value)]
    if items and not explode:
        items = [",".join(items)]
    return [(name, item) for item in items]
