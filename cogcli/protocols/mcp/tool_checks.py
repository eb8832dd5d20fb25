"""A tool that a call names, its arguments before they leave, and its reply (docs/reference/protocols.md#mcp)."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from cogcli.base.errors import (
    RejectedError,
    RequestMappingError,
    ResponseMappingError,
    ServerFaultError,
)
from cogcli.base.jsonvalue import NotJson, to_plain_json
from cogcli.base.problems import suggestion
from cogcli.base.schema import validator
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.protocols.invoker import InvocationRequest
from cogcli.protocols.mcp.methods import METHODS
from cogcli.protocols.mcp.session import McpLink
from cogcli.protocols.mcp.tool_definition import ToolDefinition
from cogcli.protocols.mcp.tool_result import ToolResult


def require_size(request: InvocationRequest) -> None:
    """Raise RequestMappingError `request.size` for arguments beyond the binding's limit."""
    cap, size = request.request_cap, len(orjson.dumps(request.payload))
    if size > cap:
        text = f"the arguments have {size:,} bytes, at most {cap:,} are allowed"
        raise RequestMappingError("request.size", text, left=False)


def tool_of(link: McpLink, request: InvocationRequest) -> Json:
    """Return the tool that a call names. Raise RejectedError for an unknown one, ServerFaultError
    for one listed twice."""
    found = [tool for tool in link.tools if tool["name"] == request.operation]
    if request.operation in METHODS:  # a tool of this name could stand in its place
        found.append(METHODS[request.operation])
    if len(found) == 1:
        return found[0]
    name, service = request.operation, request.service.id
    if found:
        text = f"service `{service}` lists tool `{name}` {len(found)} times"
        raise ServerFaultError("call.server-error", text, left=False)
    some = ", ".join(sorted(tool["name"] for tool in link.tools)[:20]) or "none"
    text = f"service `{service}` has no tool `{name}`; it has {some}"
    hint = suggestion(name, [tool["name"] for tool in link.tools])
    raise RejectedError("call.rejected", text, hint=hint, left=False)


def require_patterns(tool: Json) -> None:
    """Raise RejectedError for a tool with a pattern that cannot be applied, because its arguments
    cannot be checked.

    A lock makes such a tool ineligible (`wire.pattern`)."""
    definition = read_record(ToolDefinition, tool)
    for schema in (definition.inputSchema, definition.outputSchema):
        for said in validator.refused_patterns(schema):
            hint = "use a tool without it: cogcli explain wire.pattern"
            raise RejectedError(
                "call.rejected", f"tool `{tool['name']}` has {said}", hint=hint, left=False
            )


def require_no_task(tool: Json) -> None:
    """Raise RejectedError for a tool that runs only as a task, because no task is started here."""
    if read_record(ToolDefinition, tool).wants_task:
        text = f"tool `{tool['name']}` runs only as a task (taskSupport: required), and no task is started here"
        hint = "use another tool, or a server that answers the call itself"
        raise RejectedError("call.rejected", text, hint=hint, left=False)


def unusable_schema_notices(tool: Json) -> Iterator[str]:
    """Yield a notice per schema that cannot be applied. The call is made without that check."""
    for member, word in (("inputSchema", "input"), ("outputSchema", "output")):
        if member in tool and not validator.is_usable(tool[member]):
            yield f"the {word} schema of tool `{tool['name']}` cannot be applied: nothing was checked by it"


def require_arguments(tool: Json, request: InvocationRequest) -> None:
    """Raise RequestMappingError `request.value` for arguments that break the tool's input schema."""
    problems = _violation_text(read_record(ToolDefinition, tool).inputSchema, request.payload)
    if problems:
        text = f"tool `{request.operation}` does not take these arguments: {problems}"
        raise RequestMappingError("request.value", text, left=False)


def _violation_text(schema: object, value: object) -> str:
    """Return how a value breaks a server's schema; empty if it fits, or if the schema cannot be
    applied."""
    found = [] if schema is None else validator.errors(schema, value)
    if any(message == validator.UNUSABLE for _, message in found):
        return ""
    return "; ".join(f"`{place}`: {message}" if place else message for place, message in found)


def plain_reply(request: InvocationRequest, reply: Json, tool: Json) -> ToolResult:
    """Return a copy of a reply as plain JSON. Raise ResponseMappingError `response.not-json`, `response.size`. Raise
    ServerFaultError for a violation of the tool's own output schema.
    """
    try:
        result: Json = to_plain_json(reply)
    except NotJson as error:
        raise ResponseMappingError(
            "response.not-json", f"the reply holds {error}", left=True
        ) from error
    cap, size = request.reply_cap, len(orjson.dumps(result))
    if size > cap:
        text = f"the reply has {size:,} bytes, at most {cap:,} are allowed"
        raise ResponseMappingError("response.size", text, left=True)
    read = read_record(ToolResult, result)
    if read.structuredContent is None or read.isError:
        return read
    schema = read_record(ToolDefinition, tool).outputSchema
    if problems := _violation_text(schema, read.structuredContent):
        text = f"the reply breaks the tool's own output schema: {problems}"
        raise ServerFaultError("call.server-error", text, left=True)
    return read
