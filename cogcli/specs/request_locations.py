"""Finds where each key of a binding's request belongs in the operation (docs/reference/protocols.md#openapi)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from cogcli.base.api_documents.openapi import OpenApiOperation, Parameter
from cogcli.base.json_pointer import DocumentFault, find_at, parse_reference
from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.specs.unchecked import list_at, object_at, text_at

WHOLE: Final = "body"
_PREFIXES: Final = ("path", "query", "header", "cookie", "body")


class RequestLocation(NamedTuple):
    """The location of a value in a request: a named parameter, a named property of the body, or the whole body. The
    name is empty for the whole body.
    """

    kind: Literal["path", "query", "header", "body", "whole"]
    name: str


def locate_keys(keys: Iterable[str], operation: OpenApiOperation) -> dict[str, RequestLocation]:
    """Return the location of each key.

    Raise DocumentFault `wire.parameter` for a key that has no location, or if two keys have the same location.
    """
    found: dict[str, RequestLocation] = {}
    taken: dict[RequestLocation, str] = {}
    for key in keys:
        place = found[key] = place_of(key, operation)
        other = taken.setdefault(place, key)
        if other != key:
            raise DocumentFault(
                "wire.parameter", f"`{other}` and `{key}` are the same value", "keep one of them"
            )
    whole = next((key for key, place in found.items() if place.kind == "whole"), None)
    part = next((key for key, place in found.items() if place.kind == "body"), None)
    if whole and part:
        message = f"`{whole}` is the whole body, `{part}` a part of it"
        raise DocumentFault("wire.parameter", message, "keep one of them")
    return found


def place_of(key: str, operation: OpenApiOperation) -> RequestLocation:
    """Return the location of one key. Raise DocumentFault `wire.parameter` if it has none."""
    if key == WHOLE and operation.body is not None:
        return RequestLocation("whole", "")
    prefix, dot, name = key.partition(".")
    if dot and prefix in _PREFIXES:
        return _locate_by_prefix(prefix, name, operation)
    here = [parameter for parameter in operation.parameters if parameter.name == key]
    in_body = operation.body is not None and key in properties_of(operation.body.schema)
    if len(here) + in_body > 1:
        raise _explain_ambiguous_key(key, here, operation, in_body=in_body)
    if here:
        return _locate_parameter(here[0])
    if operation.body is not None:
        return RequestLocation("body", key)
    raise _explain_unknown_key(key, operation)


def _explain_ambiguous_key(
    key: str, here: list[Parameter], operation: OpenApiOperation, *, in_body: bool
) -> DocumentFault:
    choices = [f"{parameter.place}.{key}" for parameter in here]
    choices += [f"body.{key}"] if in_body else []
    message = f"`{key}` is in several places of `{operation.title}`"
    return DocumentFault("wire.parameter", message, f"say {' or '.join(choices)}")


def _locate_by_prefix(prefix: str, name: str, operation: OpenApiOperation) -> RequestLocation:
    if prefix == "body":
        if operation.body is None:
            raise DocumentFault(
                "wire.parameter", f"`body.{name}`: `{operation.title}` takes no body"
            )
        return RequestLocation("body", name)
    for parameter in operation.parameters:
        same = parameter.name == name or (
            prefix == "header" and parameter.name.lower() == name.lower()
        )
        if parameter.place == prefix and same:
            return _locate_parameter(parameter)
    raise _explain_unknown_key(f"{prefix}.{name}", operation)


def _locate_parameter(parameter: Parameter) -> RequestLocation:
    if parameter.place == "cookie":
        raise DocumentFault("wire.parameter", f"`{parameter.name}`: {parameter.refused}")
    return RequestLocation(parameter.place, parameter.name)


def _explain_unknown_key(key: str, operation: OpenApiOperation) -> DocumentFault:
    known = [f"{parameter.place}.{parameter.name}" for parameter in operation.parameters]
    if operation.body is not None:
        known += [f"body.{name}" for name in properties_of(operation.body.schema)]
    takes = f"it takes {', '.join(known[:6])}" if known else "it takes nothing"
    message = f"`{key}`: `{operation.title}` has no such parameter"
    return DocumentFault("wire.parameter", message, _suggest_key(key, known) or takes)


def _suggest_key(key: str, known_keys: list[str]) -> str:
    """Return a hint with a known key that is similar, with or without its prefix."""
    prefix, dot, bare = key.partition(".")
    if not dot or prefix not in _PREFIXES:
        return suggestion(key, [*known_keys, *(name.partition(".")[2] for name in known_keys)])
    elsewhere = [name for name in known_keys if name.partition(".")[2] == bare]
    return f"did you mean `{elsewhere[0]}`?" if elsewhere else suggestion(key, known_keys)


def properties_of(schema: object) -> Json:
    """Return the properties that a schema declares for an object, including those in `$ref` and `allOf`."""
    found: Json = {}
    waiting, seen = [schema], set[str]()
    while waiting:
        part = waiting.pop()
        found = {**object_at(part, "properties"), **found}
        waiting += list_at(part, "allOf")
        reference = text_at(part, "$ref")
        if reference is not None and reference not in seen:
            seen.add(reference)
            waiting.append(find_at(schema, parse_reference(reference)))
    return found
