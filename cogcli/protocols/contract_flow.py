"""Type checks of a call: request values against an operation, its reply against outputs
(docs/reference/protocols.md#wire-checks)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Severity, suggest_path
from cogcli.base.schema.bundle import SchemaBundler
from cogcli.base.schema.candidates import TYPES, types_of
from cogcli.base.schema.containment import disjoint
from cogcli.base.schema.lookup import SchemaAtPath, members, schema_at
from cogcli.base.schema.validator import refused_patterns
from cogcli.base.schema.visitor import Bundle, any_of
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.field_spec import Fields, FieldSpec
from cogcli.declarations.value_types import Json
from cogcli.protocols.contract_finding import (
    UNDESCRIBED,
    ContractFinding,
    OperationContract,
    OperationInput,
)
from cogcli.protocols.type_fit import describe_schema, drop_null, find_misfit, find_misfit_as_text
from cogcli.specs.binding_shape import RESPONSE_PATH
from cogcli.specs.template import (
    DATA,
    FILE,
    LITERAL,
    TemplateFault,
    is_data,
    is_file,
    is_literal,
    parse_template,
    slots_of,
)

_EVERY: Final = frozenset(TYPES)
_OURS: Final = "content_json"
"""Paths to `content_json`, which cogcli parses from the text next to it
(docs/reference/protocols.md#replies)."""


def complete_findings(
    binding: Binding, capability: Capability, found: Iterable[ContractFinding | OperationContract]
) -> Iterator[ContractFinding]:
    """Yield findings, and replace each contract by the findings about its patterns and types."""
    for each in found:
        if isinstance(each, OperationContract):
            for text in dict.fromkeys(
                text for schema in each.described for text in refused_patterns(schema)
            ):
                hint = "write it without that in the service's document, or bind another operation"
                yield ContractFinding(
                    "wire.pattern", "E", ("operation",), f"{each.title} has {text}", hint
                )
            yield from flow_findings(binding, capability, each)
        else:
            yield each


def flow_findings(
    binding: Binding, capability: Capability, wire: OperationContract
) -> Iterator[ContractFinding]:
    """Yield the findings about types and absent values of all request keys and response outputs."""
    if wire.deprecated:
        yield ContractFinding("wire.deprecated", "W", ("operation",), f"{wire.title} is deprecated")
    for key, taken in wire.taken.items():
        value = request_schema(binding.request[key], capability.inputs)
        if value is not None:
            yield from _request_findings(key, value, taken, wire)
    if wire.reply is not None:
        yield from _response_findings(binding, capability, wire, wire.reply)


def _request_findings(
    key: str, value: RequestType, taken: OperationInput, wire: OperationContract
) -> Iterator[ContractFinding]:
    path = ("request", key)
    if taken.deprecated:
        message = f"`{taken.label}` of {wire.title} is deprecated"
        yield ContractFinding("wire.deprecated", "W", path, message, key=True)
    if taken.required and value.maybe:
        message = f"`{key}`: `{value.source}` is optional, {wire.title} requires `{taken.label}`"
        hint = "make the input required, or give it a default"
        yield ContractFinding("wire.optional", "W", path, message, hint)
    if taken.schema is None:
        return
    subject = f"`{value.source}` " if value.source else ""
    if wire.reply is None:
        # Python does not enforce annotations, so that only contradictions are reported.
        if disjoint(taken.schema, value.schema):
            explanation = f"gives {describe_schema(value.schema)}, {wire.title} expects {describe_schema(taken.schema)}"
            yield ContractFinding("wire.type", "E", path, f"`{key}`: {subject}{explanation}")
        return
    compare = find_misfit_as_text if taken.as_text else find_misfit
    found = compare(taken.schema, value.schema, who="the service")
    if found:
        yield ContractFinding("wire.type", found.severity, path, f"`{key}`: {subject}{found.said}")


def _response_findings(
    binding: Binding, capability: Capability, wire: OperationContract, reply: tuple[object, ...]
) -> Iterator[ContractFinding]:
    for name, source in binding.response.items():
        field = capability.outputs.get(name)
        if field is None or not isinstance(source, str) or not RESPONSE_PATH.fullmatch(source):
            continue
        segments = source.split(".")[1:]
        if not reply:
            if field.needs_value:
                message = f"`{source}`: {wire.title} is a notification and is never answered"
                hint = "map no required output"
                yield ContractFinding("wire.response", "E", ("response", name), message, hint)
        elif _OURS not in segments:
            yield from _path_findings(name, source, segments, field, wire, reply)


def _path_findings(
    name: str, source: str, segments: list[str], field: FieldSpec, wire: OperationContract,
    reply: tuple[object, ...],
) -> Iterator[ContractFinding]:  # fmt: skip
    """Yield the findings about the path of one output in a reply."""
    path = ("response", name)
    steps = [schema_at(schema, segments) for schema in reply]
    found = [step for step in steps if step is not None]
    named = [step for step in found if not step.undeclared]
    undescribed = sum(schema is UNDESCRIBED for schema in reply)
    if undescribed and len(named) == undescribed:
        message = f"`{source}`: nothing describes the reply of {wire.title}"
        hint = "look at a real reply, whether this is in it"
        yield ContractFinding("wire.response", "W", path, message, hint)
    elif named:
        yield from _output_findings(name, source, named, len(named) < len(steps), field, wire)
    else:
        severity: Severity = "W" if found else "E"
        explanation = "is not described in" if found else "is not in"
        message = f"`{source}` {explanation} the reply of {wire.title}"
        hint = _nearby_members_hint(reply, segments)
        yield ContractFinding("wire.response", severity, path, message, hint)


def _output_findings(
    name: str,
    source: str,
    steps: list[SchemaAtPath],
    partly: bool,
    field: FieldSpec,
    wire: OperationContract,
) -> Iterator[ContractFinding]:
    """Yield the findings about one output. `partly`: only some replies have the `steps` that lead
    to its value."""
    path = ("response", name)
    narrow = any_of([step.schema for step in steps])
    types = types_of(narrow)
    null = "null" in types and types != _EVERY
    explanation = _absence_text(steps, partly=partly, null=null)
    if field.needs_value and explanation:
        message = (
            f"`{source}` {explanation} in the reply of {wire.title}, output `{name}` is required"
        )
        hint = "make the output optional, or give it a default"
        yield ContractFinding("wire.optional", "W", path, message, hint)
    if null and types != {"null"}:
        narrow = drop_null(narrow)
    found = find_misfit(schema_of(field), narrow, who=f"output `{name}`")
    if found:
        yield ContractFinding("wire.type", found.severity, path, f"`{source}` {found.said}")


def _absence_text(steps: list[SchemaAtPath], *, partly: bool, null: bool) -> str:
    """Return why a reply may lack the value, as text; empty if it always has one."""
    if partly or any(step.maybe for step in steps):
        return "may be absent"
    return "may be null" if null else ""


def _nearby_members_hint(reply: tuple[object, ...], segments: list[str]) -> str:
    """Return a hint with the members at the place where a path leaves the described reply."""
    for schema in reply:
        for length in range(len(segments)):
            above = schema_at(schema, segments[:length])
            names = members(above.schema).properties if above else {}
            below = schema_at(schema, segments[: length + 1])
            if names and (below is None or below.undeclared):
                where = ".".join(["response", *segments[:length]])
                after = "".join(f".{segment}" for segment in segments[length + 1 :])
                near = suggest_path(segments[length], names, prefix=f"{where}.", suffix=after)
                return near or f"`{where}` holds {', '.join(list(names)[:6])}"
    return ""


class RequestType(NamedTuple):
    """The type of a value that a request sends. `maybe`: the value may be absent, without an
    optional input."""

    schema: object
    maybe: bool = False
    source: str = ""
    """The name of the input, if the value is a whole input."""


def request_schema(value: object, inputs: Fields) -> RequestType | None:
    """Return the type of a request value; None for a faulty template, which the binding's shape
    check reports."""
    if isinstance(value, str):
        return _type_of_text(value, inputs)
    if is_literal(value):
        return RequestType({"const": value[LITERAL]})
    if is_file(value) or is_data(value):
        inner = request_schema(value.get(FILE, value.get(DATA)), inputs)
        return inner and RequestType({"type": "string"}, inner.maybe)
    if isinstance(value, dict):
        return _type_of_object(value, inputs)
    if isinstance(value, list):
        return _type_of_list(value, inputs)
    return RequestType({"const": value})


def _type_of_text(text: str, inputs: Fields) -> RequestType | None:
    try:
        parts, slots = parse_template(text), slots_of(text)
    except TemplateFault:
        return None
    if not slots:
        return RequestType({"const": "".join(literal for literal, _ in parts)})
    own = [slot for slot in slots if not slot.of_service]
    if any(slot.path[0] not in inputs for slot in own):
        return None
    is_whole_input = len(parts) == len(own) == 1 and own[0].is_whole_value
    return _input_at(own[0].path, inputs) if is_whole_input else RequestType({"type": "string"})


def _input_at(path: tuple[str, ...], inputs: Fields) -> RequestType | None:
    """Return the type of the value at a path of an input."""
    field = inputs[path[0]]
    found = schema_at(schema_of(field), path[1:])
    if found is None:
        return None
    maybe = not field.required and field.default is None
    return RequestType(found.schema, maybe, f"input.{'.'.join(path)}")


def _type_of_object(value: Json, inputs: Fields) -> RequestType | None:
    bundle = Bundle()
    properties: Json = {}
    required = []
    for name, item in value.items():
        inner = request_schema(item, inputs)
        if inner is None:
            return None
        properties[name] = bundle.part(inner.schema)
        if not inner.maybe:
            required.append(name)
    shape = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return RequestType(bundle.whole(shape))


def _type_of_list(value: list[object], inputs: Fields) -> RequestType | None:
    """Return the type of a list. Absent items are dropped, so that only its minimum and maximum length are known."""
    bundle = Bundle()
    items = [request_schema(item, inputs) for item in value]
    known = [item for item in items if item is not None]
    if len(known) < len(items):
        return None
    schemas = [bundle.part(item.schema) for item in known]
    shape: Json = {"type": "array", "minItems": sum(not item.maybe for item in known)}
    if not any(item.maybe for item in known):
        shape |= {"prefixItems": schemas, "items": False} if schemas else {"maxItems": 0}
    else:
        shape |= {"items": {"anyOf": schemas}, "maxItems": len(schemas)}
    return RequestType(bundle.whole(shape))


def schema_of(field: FieldSpec) -> Json:
    """Return the schema of the values that fit a field. It admits null only for the type `any`."""
    bundle = Bundle()
    return bundle.whole(_field_schema(field, bundle))


_JSON_TYPES: Final = {"file": "object"}
"""The types of JSON for those of fields that JSON has not: a file is its path, name, size and SHA-256."""


def _field_schema(field: FieldSpec, bundle: Bundle) -> Json:
    found: Json = {} if field.type == "any" else {"type": _JSON_TYPES.get(field.type, field.type)}
    if field.enum is not None:
        found["enum"] = field.enum
    if field.items is not None:
        found["items"] = _field_schema(field.items, bundle)
    if field.schema is not None:
        fragment = field.schema
        closed = SchemaBundler(fragment if isinstance(fragment, dict) else {}).bundle(fragment, ())
        part = bundle.part(closed)
        if isinstance(part, dict) and not part.keys() & found.keys():
            return {**found, **part}
        found["allOf"] = [part]
    return found
