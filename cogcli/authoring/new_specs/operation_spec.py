"""An operation of an OpenAPI document as fields of a capability and the mappings of a binding
(docs/reference/command-line.md#new).

1. Each parameter and each property of the body is an input; a body that is not a plain object is
   one input, `body`.
2. Each property of the reply is an output; a reply that is not a plain object is one output,
   `result`.
3. Valid field names stay unchanged; in others each invalid character becomes `_`. Of two equal
   names the later one gets its place as a prefix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from cogcli.authoring.new_specs.operation_words import OperationDescriptions
from cogcli.authoring.new_specs.schema_field import field_of, may_be_null
from cogcli.base.api_documents.openapi import OpenApiOperation, Parameter, is_file_list
from cogcli.base.api_documents.openrpc import RpcParam
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import list_known_words, suggestion
from cogcli.base.schema.candidates import TYPES, types_of
from cogcli.base.schema.lookup import Members, members
from cogcli.base.terminal_text import visible
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.protocols.openapi.contract import good_statuses
from cogcli.specs.id_grammar import FIELD_NAME, is_settable
from cogcli.specs.shape import is_ignored
from cogcli.specs.unchecked import object_at, text_at

_LONGEST_KEY: Final = 200
_SEGMENT: Final = re.compile(r"[^.\s]+")
"""A segment that a path into a reply can contain."""
_SAFE: Final = ("GET", "HEAD")
_REPEATABLE: Final = (*_SAFE, "PUT", "DELETE")


class NotBindable(Exception):
    """The error for an operation that no binding can express. The message is the reason."""


class OperationSpec(NamedTuple):
    """The declarations of capability and binding for an operation. `notes` lists omissions and
    renamed fields.
    """

    inputs: dict[str, Json]
    outputs: dict[str, Json]
    request: dict[str, str]
    response: dict[str, str]
    properties: dict[str, bool]
    mode: str
    notes: list[str]

    def with_outputs(self, names: Sequence[str]) -> OperationSpec:
        """Return the spec with these outputs only. Raise NotBindable for a name that is none."""
        for name in names:
            if name not in self.outputs:
                known = suggestion(name, self.outputs) or list_known_words(list(self.outputs))
                raise NotBindable(f"it has no output `{visible(name[:80])}`; {known}")
        outputs = {name: self.outputs[name] for name in self.outputs if name in names}
        response = {name: self.response[name] for name in self.response if name in names}
        return self._replace(outputs=outputs, response=response)


def operation_spec(
    operation: OpenApiOperation, descriptions: OperationDescriptions
) -> OperationSpec:
    """Return the spec of an operation. Raise NotBindable."""
    if descriptions.calls_back:
        raise NotBindable("it calls back, which nothing here answers")
    builder = _OperationSpecBuilder(descriptions)
    builder.take(operation)
    mode = builder.give(operation)
    effects = {
        "deterministic": False,
        "side_effects": operation.method not in _SAFE,
        "idempotent": operation.method in _REPEATABLE,
    }
    return OperationSpec(
        builder.inputs,
        builder.outputs,
        builder.sent,
        builder.response,
        effects,
        mode,
        builder.notes,
    )


class ToolShape(NamedTuple):
    """The inputs and the reply of a tool or a method. `reply` is None if the method never replies."""

    params: tuple[RpcParam, ...]
    reply: object
    mode: str = ""
    side_effects: bool = True
    idempotent: bool = False


def tool_spec(shape: ToolShape, descriptions: OperationDescriptions) -> OperationSpec:
    """Return the spec of a tool or a method. Raise NotBindable."""
    builder = _OperationSpecBuilder(descriptions)
    builder.add_params(shape.params)
    builder.add_tool_reply(shape.reply, shape.mode)
    effects = {
        "deterministic": False,
        "side_effects": shape.side_effects,
        "idempotent": shape.idempotent,
    }
    return OperationSpec(
        builder.inputs,
        builder.outputs,
        builder.sent,
        builder.response,
        effects,
        shape.mode,
        builder.notes,
    )


class PropertyMarks(Record):
    """The marks of a property that allow omitting it from a request."""

    readOnly: bool
    deprecated: bool


def _omission_reason(parameter: Parameter) -> str:
    """Return why a parameter is omitted; empty if it is used."""
    if parameter.place == "header" and not is_settable(parameter.name):
        return "such a header cannot be set"
    return parameter.refused or ("it is deprecated" if parameter.deprecated else "")


class _OperationSpecBuilder:
    def __init__(self, descriptions: OperationDescriptions) -> None:
        self._descriptions = descriptions
        self.inputs: dict[str, Json] = {}
        self.outputs: dict[str, Json] = {}
        self.sent: dict[str, str] = {}
        self.response: dict[str, str] = {}
        self.notes: list[str] = []

    def take(self, operation: OpenApiOperation) -> None:
        """Add the inputs of an operation."""
        for parameter in operation.parameters:
            key = f"{parameter.place}.{parameter.name}"
            refused = _omission_reason(parameter)
            if refused and (parameter.required and not parameter.deprecated):
                raise NotBindable(f"it needs `{key}`: {refused}")
            if refused and not parameter.required:
                self.notes.append(f"`{key}` is left out: {refused}")
            else:
                self._declare_input(
                    key, parameter.name, parameter.schema, required=parameter.required
                )
        self._add_body(operation)

    def add_params(self, params: Iterable[RpcParam]) -> None:
        """Add the inputs of a tool or a method."""
        for param in params:
            if param.deprecated and not param.required:
                self.notes.append(f"`{param.name}` is left out: it is deprecated")
            else:
                self._declare_input(param.name, param.name, param.schema, required=param.required)

    def add_tool_reply(self, reply: object, mode: str) -> None:
        """Add the outputs of a tool or a method."""
        if mode == "text":
            self._types_text(["text/plain"])
        elif reply is not None:
            self._add_reply(reply)

    def _add_body(self, operation: OpenApiOperation) -> None:
        body = operation.body
        if body is None:
            return
        if body.refused and body.required:
            raise NotBindable(f"its body cannot be sent: {body.refused}")
        if body.refused:
            self.notes.append(f"the body is left out: {body.refused}")
            return
        if body.kind == "bytes":
            self._add_file("body", "body", None, required=body.required)
            return
        inside = members(body.schema)
        if not _is_flat(inside, body.schema) or (inside.required and not body.required):
            self._declare_input("body", "body", body.schema, required=body.required)
            return
        for name, schema in inside.properties.items():
            is_required = name in inside.required
            if name not in body.files:
                self._add_property(name, schema, required=is_required)
            elif body.kind == "multipart":
                self._add_file(f"body.{name}", name, schema, required=is_required)
            else:
                self.notes.append(f"`body.{name}` is left out: it is a file")

    def _add_property(self, name: str, schema: object, *, required: bool) -> None:
        """Add the input of a body property, unless the service sets the property or omits it."""
        marks = read_record(PropertyMarks, schema)
        if marks.readOnly:
            return
        if marks.deprecated and not required:
            self.notes.append(f"`body.{name}` is left out: it is deprecated")
            return
        self._declare_input(f"body.{name}", name, schema, required=required)

    def _declare_input(self, key: str, name: str, schema: object, *, required: bool) -> None:
        if not _is_writable(name):
            if required:
                raise NotBindable(f"it needs `{visible(key[:80])}`, a name that no file can hold")
            self.notes.append(f"`{visible(key[:80])}` is left out: no file can hold such a name")
            return
        text = self._descriptions.texts.get(key, "")
        self._add_input(key, name, field_of(schema, text, required=required))

    def _add_file(self, key: str, name: str, schema: object, *, required: bool) -> None:
        """Add the input of a file, or of a list of files."""
        if not _is_writable(name):
            self._declare_input(key, name, schema, required=required)
            return
        field: Json = {"type": "file"}
        if is_file_list(schema):
            field = {"type": "array", "items": {"type": "file"}}
        if required:
            field["required"] = True
        if text := self._descriptions.texts.get(key, ""):
            field["description"] = text
        self._add_input(key, name, field)

    def _add_input(self, key: str, name: str, declaration: Json) -> None:
        field = self._field_name(name, key.partition(".")[0], self.inputs)
        self.sent[key] = f"input.{field}"
        self.inputs[field] = declaration

    def give(self, operation: OpenApiOperation) -> str:
        """Add the outputs, and return the response mode of the binding; empty for JSON."""
        replies = {status: operation.responses[status] for status in good_statuses(operation)}
        schemas = [schema for schema in replies.values() if schema is not None]
        types = [kind for status in replies for kind in self._descriptions.replies.get(status, ())]
        if operation.method == "HEAD" or not (schemas or types):
            return ""
        if not schemas:
            return self._types_text(types)
        is_only_one = len({repr(schema) for schema in replies.values()}) == 1
        if is_only_one:
            self._add_reply(schemas[0])
        else:
            self._add_output("result", "response", True, required=False)
        return ""

    def _add_reply(self, schema: object) -> None:
        """Add an output for each property of the reply, or one output for the whole reply."""
        inside = members(schema)
        usable = [
            name for name in inside.properties if _is_writable(name) and _SEGMENT.fullmatch(name)
        ]
        if not usable or not _is_flat(inside, schema):
            self._add_output("result", "response", schema, required=not may_be_null(schema))
            return
        for name in usable:
            part = inside.properties[name]
            required = name in inside.required and not may_be_null(part)
            field = self._field_name(name, "response", self.outputs)
            self._add_output(field, f"response.{name}", part, required=required)
        if unusable := len(inside.properties) - len(usable):
            self.notes.append(
                f"{unusable} of the reply's properties cannot be named in a path and are left out"
            )

    def _add_output(self, field: str, path: str, schema: object, *, required: bool) -> None:
        self.outputs[field] = field_of(
            schema, self._descriptions.texts.get(path, ""), required=required
        )
        self.response[field] = path

    def _types_text(self, types: list[str]) -> str:
        if not all(kind.lower().startswith("text/") for kind in types):
            raise NotBindable(f"its reply is {' or '.join(types)}, neither JSON nor text")
        self.outputs["text"] = {"type": "string", "required": True, "description": "The reply."}
        self.response["text"] = "response.text"
        return "text"

    def _field_name(self, name: str, place: str, existing_fields: Json) -> str:
        field, number = field_name(name), 1
        while field in existing_fields:
            field = field_name(f"{place}_{name[:40]}{'' if number == 1 else f'_{number}'}")
            number += 1
        if field != name:
            self.notes.append(f"`{place}.{name[:80]}` is `{field}` here")
        return field


def field_name(text: str) -> str:
    """Return the text as a valid field name; a valid one is unchanged."""
    if FIELD_NAME.fullmatch(text) and not is_ignored(text):
        return text
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")[:60] or "value"
    return name if FIELD_NAME.fullmatch(name) else f"_{name}"


def _is_writable(name: str) -> bool:
    return len(name) <= _LONGEST_KEY and visible(name) == name


def _is_flat(members: Members, schema: object) -> bool:
    """Return whether a schema describes an object only by its properties."""
    is_object = types_of(schema) in (
        {"object"},
        frozenset(TYPES),
    )  # many documents omit the type
    return is_object and members.plain and bool(members.properties)


def example_inputs(request: Json, descriptions: OperationDescriptions) -> Json:
    """Return the examples in the document, by the input whose whole value the request sends there."""
    body_example = object_at(descriptions.examples, "body")
    examples = {}
    for key, source in request.items():
        value = descriptions.examples.get(key)
        if value is None and key.startswith("body."):
            value = body_example.get(key.removeprefix("body."))
        scope, _, name = (text_at(source) or "").partition(".")
        if value is not None and scope == "input" and "." not in name:
            examples[name] = value
    return examples
