"""Whether a request fits an operation of an API document: its parameters and its body
(docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from cogcli.core.strict_json import JsonRefused, loads
from cogcli.documents.openapi import OpenApiOperation, Parameter
from cogcli.protocols.http.observed import Seen
from cogcli.schema.validator import errors

_INTEGER: Final = re.compile(r"-?(?:0|[1-9]\d*)")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")


class RequestFault(NamedTuple):
    """One fault of a request: its pointer, as `/query/lang` or `/body/data`, and a message."""

    pointer: str
    message: str


def faults_of(operation: OpenApiOperation, seen: Seen, path_values: dict[str, str]) -> list[RequestFault]:
    """The faults of a request: those of parameters first, then those of the body."""
    return [*parameter_faults(operation, seen, path_values), *body_faults(operation, seen)]


def parameter_faults(
    operation: OpenApiOperation, seen: Seen, path_values: dict[str, str]
) -> list[RequestFault]:
    """The faults of path, query and headers, including undeclared query names."""
    query = _query(seen.query)
    faults: list[RequestFault] = []
    for parameter in operation.parameters:
        pointer = f"/{parameter.place}/{parameter.name}"
        texts = _sent_texts(parameter, seen, path_values, query)
        if texts is None:
            if parameter.required:
                faults.append(RequestFault(pointer, "required, not sent"))
            continue
        value = _value(parameter.schema, texts, parameter.explode)
        faults += [_fault(pointer, place, said) for place, said in errors(parameter.schema, value)]
    declared = {parameter.name for parameter in operation.parameters if parameter.place == "query"}
    return faults + [RequestFault(f"/query/{name}", "not declared") for name in query if name not in declared]


def body_faults(operation: OpenApiOperation, seen: Seen) -> list[RequestFault]:
    """The faults of the body: missing, no JSON, or breaches of its schema."""
    if operation.body is None:
        return [RequestFault("/body", "none is expected")] if seen.body else []
    if not seen.body:
        return [RequestFault("/body", "required, not sent")] if operation.body.required else []
    media_type = seen.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not (media_type == "application/json" or media_type.endswith("+json")):
        return [RequestFault("/header/content-type", f"found `{media_type}`, expected application/json")]
    try:
        value = loads(seen.body)
    except JsonRefused as refused:
        return [RequestFault("/body", str(refused))]
    return [_fault("/body", place, said) for place, said in errors(operation.body.schema, value)]


def _fault(pointer: str, place: str, said: str) -> RequestFault:
    return RequestFault(f"{pointer}/{place}" if place else pointer, said)


def _query(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        found.setdefault(name, []).append(value)
    return found


def _sent_texts(
    parameter: Parameter, seen: Seen, path_values: dict[str, str], query: dict[str, list[str]]
) -> list[str] | None:
    """The texts of a parameter as sent, None if it was not sent."""
    if parameter.place == "path":
        return [path_values[parameter.name]] if parameter.name in path_values else None
    if parameter.place == "query":
        return query.get(parameter.name)
    value = seen.headers.get(parameter.name.lower())
    return None if value is None else [value]


def _value(schema: Any, texts: list[str], explode: bool) -> Any:
    """The value of these texts, by the type in the schema."""
    kinds = _kinds(schema)
    if "array" in kinds:
        parts = texts if len(texts) > 1 or explode else texts[0].split(",")
        items = _resolve(schema).get("items", True)
        return [_scalar(items, part) for part in parts]
    return _scalar(schema, texts[-1])


def _scalar(schema: Any, text: str) -> Any:
    kinds = _kinds(schema)
    if "integer" in kinds and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in kinds and _NUMBER.fullmatch(text):
        return float(text)
    if "boolean" in kinds and text in ("true", "false"):
        return text == "true"
    return text


def _kinds(schema: Any) -> list[str]:
    """The types that a schema names, else those of its alternatives."""
    found = _resolve(schema)
    declared = found.get("type")
    if declared:
        return declared if isinstance(declared, list) else [declared]
    options = [*(found.get("anyOf") or ()), *(found.get("oneOf") or ()), *(found.get("allOf") or ())]
    return [kind for option in options if isinstance(option, dict) for kind in _kinds(option)]


def _resolve(schema: Any) -> dict[str, Any]:
    """The schema, or the definition inside it that its `$ref` names."""
    if not isinstance(schema, dict):
        return {}
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return schema
    found = (schema.get("$defs") or {}).get(reference.removeprefix("#/$defs/"))
    return found if isinstance(found, dict) else {}
