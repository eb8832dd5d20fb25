"""mcp: checks of a binding against the locked tools of its service, or the bundled ones
(docs/reference/protocols.md#mcp, docs/reference/protocols.md#mcp-bundled,
docs/reference/protocols.md#wire-checks)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Final

from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.problems import list_known_words, suggestion
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.reading import read_record
from cogcli.declarations.service_spec import Service
from cogcli.protocols.contract_finding import (
    ContractFinding,
    ContractJudges,
    OperationContract,
    OperationInput,
    document_finding,
)
from cogcli.protocols.mcp.tool_definition import ToolDefinition, ToolHints
from cogcli.protocols.openapi.contract import check_object_members
from cogcli.protocols.pythoncall.contract import function_findings
from cogcli.specs.lock import READ_ONLY, read_locked_tools
from cogcli.specs.module_lookup import module_file
from cogcli.specs.service import MODULES, TABLES

_TEXT = {"type": "string"}
_LIST = {"type": "array"}
_LONGEST: Final = 4 * 1024 * 1024


def lock_findings(service: Service) -> Iterator[ContractFinding]:
    """Yield the finding `wire.document` for a damaged lock."""
    if "server" in service.settings:
        return
    try:
        read_locked_tools(service.root, service.id)
    except DocumentFault as fault:
        fault.hint = fault.hint.replace(" ID ", f" {service.id} ")
        yield document_finding(fault, ("id",))


def mcp_findings(
    binding: Binding, capability: Capability, service: Service, source: bytes
) -> Iterator[ContractFinding | OperationContract]:
    """Yield the findings about tool and arguments, then the tool's contract."""
    mode = binding.metadata.response_mode
    if "server" in service.settings:
        for found in bundled_findings(binding, service.settings["server"]):
            reply = None if mode == "json" else (_body_schema(mode, None),)
            yield found._replace(reply=reply) if isinstance(found, OperationContract) else found
        return
    try:
        tools = read_locked_tools(service.root, service.id)
    except DocumentFault:  # the check of the service reports it
        return
    if tools is None:
        message = f"service `{service.id}` is not locked, so that nothing of tool `{binding.operation}` is known"
        hint = f"cogcli services refresh {service.id} --accept"
        yield ContractFinding("wire.unpinned", "W", ("service",), message, hint)
        return
    if binding.operation in tools:
        tool = tools[binding.operation]
        yield from _effect_findings(binding, capability, tool)
        yield from _tool_findings(binding, tool)
        return
    message = f"no tool `{binding.operation}` among those that service `{service.id}` is locked to"
    refresh = f"cogcli services refresh {service.id}"
    hint = suggestion(binding.operation, tools) or f"{list_known_words(sorted(tools))}; {refresh}"
    yield ContractFinding("wire.operation", "E", ("operation",), message, hint)


def _effect_findings(
    binding: Binding, capability: Capability, tool: Mapping[str, object]
) -> Iterator[ContractFinding]:
    """Yield a warning if a capability without side effects is bound to a tool that may have some.

    A person's mark in the lock outweighs the annotations. These decide nothing."""
    if capability.effect != "none" or tool.get(READ_ONLY) is True:
        return
    hints = read_record(ToolHints, tool.get("annotations"))
    if hints.readOnlyHint and not hints.destructiveHint:
        return
    found = "has `destructiveHint`" if hints.destructiveHint else "has no `readOnlyHint`"
    message = f"tool `{binding.operation}` {found}, but `{capability.id}` declares no side effects"
    mark = f"cogcli gateway accept {binding.service} --read-only {quote(binding.operation)}"
    hint = f"declare `properties.side_effects: true`; or look at the tool, then mark it: {mark}"
    yield ContractFinding("wire.side-effects", "W", ("operation",), message, hint)


def _tool_findings(
    binding: Binding, tool: Mapping[str, object]
) -> Iterator[ContractFinding | OperationContract]:
    taken: dict[str, OperationInput] = {}
    title = f"tool `{binding.operation}`"
    parts = {key: key for key in binding.request}
    definition = read_record(ToolDefinition, tool)
    described = (_usable_schema(definition.inputSchema), _usable_schema(definition.outputSchema))
    yield from check_object_members(described[0], parts, taken, title, "wire.parameter")
    reply = _body_schema(binding.metadata.response_mode, definition.outputSchema)
    yield OperationContract(title, taken, (reply,), described=described)


def _usable_schema(schema: object) -> object:
    """Return the schema, or one that allows everything if the value is not a schema."""
    return schema if isinstance(schema, dict | bool) else True


def _body_schema(mode: str, output: object) -> object:
    """Return the schema of the body by response mode. Without an output schema, a tool returns text and blocks, or any
    object.
    """
    if mode == "text":
        return {"type": "object", "required": ["text"], "properties": {"text": _TEXT}}
    if mode == "raw":
        inner = {"structured": True, "text": _TEXT, "content": _LIST}
        return {"type": "object", "required": [*inner], "properties": inner}
    unknown = {"properties": {"text": _TEXT, "content": _LIST}, "required": ["text"]}
    return output if isinstance(output, dict) else unknown


def bundled_findings(
    binding: Binding, server: str
) -> Iterator[ContractFinding | OperationContract]:
    """Yield the findings about tool and arguments, then the tool's contract. The check of the
    service reports an unknown server."""
    tools = TABLES.get(server, {})
    target = tools.get(binding.operation)
    if target is None:
        if tools:
            message = f"shipped server `{server}` has no tool `{binding.operation}`"
            hint = suggestion(binding.operation, tools) or list_known_words(sorted(tools))
            yield ContractFinding("wire.operation", "E", ("operation",), message, hint)
        return
    module, function = target
    file = module_file(MODULES + module, "")
    try:
        source = read_regular(file, limit=_LONGEST) if file else b""
    except UnreadableFile:
        return
    yield from function_findings(binding, source, function, f"tool `{binding.operation}`")


JUDGES: Final = ContractJudges(mcp_findings, lock_findings)
