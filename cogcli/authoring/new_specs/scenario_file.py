"""`new scenario BINDING`: a call of a binding with the response of its mock server
(docs/reference/protocols.md#scenarios).
"""

from __future__ import annotations

import os
from contextlib import suppress
from shlex import quote
from typing import Final

import orjson

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.authoring.new_specs.new_files import (
    NewFile,
    NewSpecs,
    project_of,
    require_free,
    written_files,
)
from cogcli.authoring.new_specs.operation_spec import example_inputs
from cogcli.authoring.new_specs.operation_words import operation_words
from cogcli.authoring.openapi_checks import verify_bindings
from cogcli.authoring.scenario_sources import ScenarioSource
from cogcli.authoring.verification.check_result import PASSED, CheckResult
from cogcli.base.api_documents.loader import load_described
from cogcli.base.api_documents.openapi import OpenApiDocument
from cogcli.base.errors import UsageError
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.jsonvalue import list_of, object_of
from cogcli.base.problems import suggestion
from cogcli.base.schema.sample import NoSample, sample
from cogcli.base.terminal_text import visible
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.field_spec import FieldSpec
from cogcli.declarations.scenario_spec import CannedReply, MockServer, Scenario
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.contract_flow import schema_of
from cogcli.run.file_inputs import is_file_field
from cogcli.specs.scenario_folders import directory_of
from cogcli.specs.unchecked import list_at, objects_at

_ORDINARY: Final = ("text", 1, "2024-01-01")
"""Values to try before the smallest ones: an empty text cannot be part of a path."""


def new_scenario(settings: Settings, binding_id: str, *, force: bool) -> NewSpecs:
    """Write a scenario of a binding.

    The inputs are examples of the document, else generated from the capability. The outputs are
    those of the mock server's response. Raise UsageError for an unknown binding, a binding without
    a mock server, and a call that fails.
    """
    root, catalog = project_of(settings), open_registry(settings).everything()
    binding = catalog.bindings.get(binding_id)
    if binding is None:
        hint = suggestion(binding_id, catalog.bindings) or "see cogcli bindings ls"
        raise UsageError(
            "usage.value", f"there is no binding `{visible(binding_id[:80])}`", hint=hint
        )
    if not PROTOCOLS[binding.protocol].rules:
        hint = "give its capability metadata.examples instead"
        raise UsageError("usage.value", f"there are no scenarios for {binding.protocol}", hint=hint)
    capability, service = (
        catalog.capability(binding.capability),
        catalog.services.get(binding.service),
    )
    if capability is None or service is None:
        raise UsageError("usage.value", f"`{binding.id}` has errors", next=("cogcli validate",))
    path = f"{directory_of(binding.protocol)}/{binding.id}.json"
    require_free(settings, root, [NewFile(path, b"")], force=force)
    shown = settings.display_path(os.path.join(root, path))
    scenario = Scenario(
        id=binding.id,
        capability_id=capability.id,
        binding_id=binding.id,
        input=_example_inputs(capability, binding, service),
        expected_output={},
        file=shown,
        expected_service_id=service.id,
        match="subset",
        mock_server=_choose_mock(capability, binding, service),
    )
    with written_files(settings, root, _sample_files(capability, binding), force=force):
        scenario = _with_outputs(settings, scenario, binding.protocol)
        with written_files(settings, root, [NewFile(path, _scenario_bytes(scenario))], force=force):
            pass
    return NewSpecs(
        [shown],
        [],
        [f"cogcli openapi verify-bindings --scenario {quote(shown)} --protocol {binding.protocol}"],
    )


def _with_outputs(settings: Settings, scenario: Scenario, protocol: str) -> Scenario:
    """Return the scenario with the outputs of its call. They are compared exactly if a second call
    returns the same.
    """
    first = _verify_scenario(settings, scenario, protocol)
    outputs = first.outputs
    if first.status != PASSED or outputs is None:
        message = f"a call of `{scenario.binding_id}` gives no outputs to expect: {first.reason}"
        raise UsageError("usage.value", message, next=("cogcli validate",))
    for match in ("exact", "shape"):
        made = scenario.replace(expected_output=outputs, match=match)
        if _verify_scenario(settings, made, protocol).status == PASSED:
            break
    return made


def _verify_scenario(settings: Settings, scenario: Scenario, protocol: str) -> CheckResult:
    source = ScenarioSource(
        os.path.join(project_of(settings), directory_of(protocol)), trusted=False
    )
    return verify_bindings(settings, source, [scenario], protocol=protocol).results[0]


def _scenario_bytes(scenario: Scenario) -> bytes:
    mock = scenario.mock_server
    server = mock and {
        "type": mock.type,
        "replies": [{"body": reply.body} for reply in mock.replies],
    }
    value = {
        "id": scenario.id,
        "capability_id": scenario.capability_id,
        "binding_id": scenario.binding_id,
        "expected_service_id": scenario.expected_service_id,
        "mock_server": {key: each for key, each in server.items() if each} if server else None,
        "input": scenario.input,
        "expected_output": scenario.expected_output,
        "match": scenario.match if scenario.match != "exact" else None,
    }
    present = {key: each for key, each in value.items() if each is not None}
    return orjson.dumps(present, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _example_inputs(capability: Capability, binding: Binding, service: Service) -> Json:
    """Return examples from the service's document or the capability, and a generated value for each
    other required input.
    """
    examples = objects_at(capability.metadata, "examples")
    declared: Json = next((each["inputs"] for _, each in examples if "inputs" in each), {})
    found = {**_document_examples(binding, service), **object_of(declared)}
    found = {name: value for name, value in found.items() if name in capability.inputs}
    for name, field in capability.inputs.items():
        if is_file_field(field) and (name in found or field.needs_value):
            # An example of a document is the text of a file, not its path.
            sample_path = _sample_path(binding)
            found[name] = sample_path if field.type == "file" else [sample_path]
        elif name not in found and field.needs_value:
            found[name] = _example_value(f"input `{name}`", field)
    return found


def _sample_files(capability: Capability, binding: Binding) -> list[NewFile]:
    """Return the file that generated inputs name, if the capability has an input of the type `file`."""
    if not any(is_file_field(field) for field in capability.inputs.values()):
        return []
    return [NewFile(_sample_path(binding), b"A sample.\n", is_listed=False, is_spec=False)]


def _sample_path(binding: Binding) -> str:
    return f"{directory_of(binding.protocol)}/samples/sample.txt"


def _example_value(label: str, field: FieldSpec) -> object:
    schema = schema_of(field)
    try:
        return sample({**schema, "examples": [*list_at(schema, "examples"), *_ORDINARY]})
    except NoSample as lost:
        raise UsageError(
            "usage.value", f"{label}: {lost}", hint="give the capability an example with it"
        ) from lost


def _document_examples(binding: Binding, service: Service) -> Json:
    """Return the examples of the inputs in the service's OpenAPI document."""
    with suppress(
        DocumentFault
    ):  # there is none, it has another protocol, or it has faults, which the call reports
        document, value = load_described(service, OpenApiDocument), load_described(service, dict)
        if document is not None and value is not None:
            operation = document.operation(binding.operation, binding.metadata.method)
            entry = next(
                each for each in document.entries if each[1:] == (operation.method, operation.path)
            )
            return example_inputs(binding.request, operation_words(value, entry))
    return {}


def _choose_mock(capability: Capability, binding: Binding, service: Service) -> MockServer | None:
    """Return the mock server for the service's document. Without a document, return a server whose single reply has a
    value for each output.
    """
    if PROTOCOLS[service.kind].document is None:
        return None
    if service.keys.spec_ref:
        return MockServer()
    mode = binding.metadata.response_mode
    body: object = {} if mode == "json" else "text"
    for name, source in binding.response.items():
        if mode == "json" and isinstance(source, str) and source.startswith("response"):
            body = _with_value(
                body,
                source.split(".")[1:],
                _example_value(f"output `{name}`", capability.outputs[name]),
            )
    return MockServer(replies=(CannedReply(body=body),))


def _with_value(body: object, path: list[str], value: object) -> object:
    """Return the body with a value at a path of keys and indices."""
    if not path:
        return value
    head, *rest = path
    if head.isdecimal() and int(head) < 100:
        items = [*list_of(body)]
        items += [None] * (int(head) + 1 - len(items))
        items[int(head)] = _with_value(items[int(head)], rest, value)
        return items
    members = object_of(body)
    return {**members, head: _with_value(members.get(head), rest, value)}
