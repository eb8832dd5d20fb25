"""The files of one operation of an API: a new or existing capability, and its binding
(docs/reference/command-line.md#new)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from cogcli.authoring.new_specs.new_files import NewFile, spec_file
from cogcli.authoring.new_specs.operation_spec import NotBindable, OperationSpec, example_inputs
from cogcli.authoring.new_specs.operation_words import OperationDescriptions
from cogcli.base.api_documents.openapi import Entry
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import names_secret
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.field_spec import FieldSpec
from cogcli.declarations.value_types import Json


def id_word_candidates(entry: Entry) -> list[str]:
    """Return the possible last words of an operation's id, best first: `getOrder` becomes `get-order`.

    Path and method that a framework appended to the name are removed, if the remaining name still identifies one
    operation.
    """
    name = entry.id or f"{entry.method} {entry.path}"
    suffix = re.sub(r"\W", "_", f"{entry.path}_{entry.method.lower()}")
    name_without_suffix = name.removesuffix(suffix) or name
    return [id_word(each) for each in dict.fromkeys((name_without_suffix, name))]


def id_word(text: str) -> str:
    """Return a text as one word of an id."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", text)
    return re.sub(r"[^a-z0-9]+", "-", parted.lower()).strip("-") or "operation"


def _require_inputs(
    capability: Capability, unsent: Mapping[str, str], required_names: Collection[str]
) -> None:
    """Raise NotBindable if no input of the capability supplies a required parameter."""
    missing = [
        f"`{key}`"
        for key, source in unsent.items()
        if source.removeprefix("input.") in required_names
    ]
    if missing:
        raise NotBindable(
            f"`{capability.id}` has no input named as the required {', '.join(missing[:6])}"
        )


def fit_capability(spec: OperationSpec, capability: Capability) -> OperationSpec:
    """Return the spec with the fields of an existing capability, matched by equal names.

    Raise NotBindable for a required parameter without an input, and a required output without a
    value in the reply.
    """
    known = {f"input.{name}" for name in capability.inputs}
    required = _required_inputs(spec)
    sent = {key: source for key, source in spec.request.items() if source in known}
    unsent = {key: source for key, source in spec.request.items() if key not in sent}
    _require_inputs(capability, unsent, required)
    _require_outputs(spec, capability)
    response = {name: path for name, path in spec.response.items() if name in capability.outputs}
    notes = [
        f"input `{name}` is not sent"
        for name in capability.inputs
        if f"input.{name}" not in sent.values()
    ]
    return spec._replace(request=sent, response=response, notes=[*spec.notes, *notes])


def _require_outputs(spec: OperationSpec, capability: Capability) -> None:
    lost = [
        f"`{name}`"
        for name, field in capability.outputs.items()
        if field.needs_value and name not in spec.response
    ]
    if lost:
        raise NotBindable(
            f"`{capability.id}` requires the outputs {', '.join(lost[:6])}, which the reply lacks"
        )


def _required_inputs(spec: OperationSpec) -> set[str]:
    return {name for name, field in spec.inputs.items() if FieldSpec.of(field).required}


def capability_file(
    path: str, id: str, spec: OperationSpec, descriptions: OperationDescriptions, remark: str = ""
) -> NewFile:
    """Return the file of a capability. `remark` is a comment about its properties."""
    example = example_inputs(spec.request, descriptions)
    is_complete = _required_inputs(spec) <= example.keys()
    value: Json = {
        "id": id,
        "version": "1.0.0",
        "description": descriptions.summary,
        "inputs": spec.inputs,
        "outputs": spec.outputs,
        "properties": spec.properties,
    }
    comment = f"# What a step may ask for and gets, whoever does it.\n{remark}"
    if spec.properties["side_effects"]:
        comment += (
            "# To ask a person before each call, add: safety: {requires_confirmation: true}\n"
        )
    elif example and is_complete and not any(map(names_secret, example)):
        # Checks run the examples, so that an operation with effects gets none.
        value["metadata"] = {"examples": [{"name": "of the API's document", "inputs": example}]}
    return spec_file("capability", path, comment, value)


class BoundCall(NamedTuple):
    """The target of a binding. `method` is empty if the operation determines it."""

    protocol: str
    operation: str
    method: str = ""


def binding_file(
    path: str, id: str, capability: str, service: str, call: BoundCall, spec: OperationSpec
) -> NewFile:
    """Return the file of a binding."""
    value: Json = {
        "id": id,
        "capability": capability,
        "service": service,
        "protocol": call.protocol,
        "operation": call.operation,
        "request": spec.request,
        "response": spec.response,
    }
    metadata: Json = {"method": call.method} if call.method else {}
    if spec.mode:
        metadata["response_mode"] = spec.mode
    if metadata:
        value["metadata"] = metadata
    comment = (
        f"# How {service} does it: where each input goes, and where each output is in the reply.\n"
    )
    return spec_file("binding", path, comment, value)
