"""Requests that read a resource or get a prompt, as tools of their server (docs/reference/protocols.md#mcp-methods).

A lock, a pin, a mark, a rule and a binding name such a method as they name a tool, so that none of them exists twice.
The definitions are ours, so that no server changes them. A changed one would end the locks of users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from cogcli.base.jsonvalue import list_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.protocols.mcp.input_forms import UnfinishedResult

if TYPE_CHECKING:
    from mcp_types import Request

CALL: Final = "tools/call"
READ: Final = "resources/read"
PROMPT: Final = "prompts/get"
_TEXT: Final[Json] = {"type": "string"}
_ITEMS: Final = ("content", "contents", "messages")
"""The members of a result that contain a list of any length."""
_REPLY: Final = ("contents", "messages", "description")
"""The members of a result of a method that are its value."""


def _define_method(name: str, description: str, inputs: Json, required: str, output: str) -> Json:
    return {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": inputs,
            "required": [required],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {output: {"type": "array"}},
            "required": [output],
        },
    }


METHODS: Final[dict[str, Json]] = {
    READ: _define_method(READ, "Read a resource of the server.", {"uri": _TEXT}, "uri", "contents"),
    PROMPT: _define_method(
        PROMPT,
        "Get a prompt of the server.",
        {"name": _TEXT, "arguments": {"type": "object", "additionalProperties": _TEXT}},
        "name",
        "messages",
    ),
}
"""The methods by name, each defined as a tool."""


class ServerListing(NamedTuple):
    """The lists of a server: its tools and methods, resources, templates and prompts."""

    tools: list[Json]
    resources: Sequence[Json] = ()
    templates: Sequence[Json] = ()
    prompts: Sequence[Json] = ()

    @property
    def methods(self) -> list[Json]:
        """The definitions of the methods for which the server lists something."""
        found = []
        if self.resources or self.templates:
            found.append(METHODS[READ])
        if self.prompts:
            found.append(METHODS[PROMPT])
        return found


def method_of(operation: str) -> str:
    """Return the method of MCP that calls an operation of a binding."""
    return operation if operation in METHODS else CALL


def params_of(operation: str, arguments: Json) -> Json:
    """Return the parameters of the request for an operation."""
    if operation in METHODS:
        return dict(arguments)
    return {"name": operation, "arguments": arguments}


def request_of(operation: str, params: Json) -> Request[Any, Any]:
    """Return the request of the SDK for an operation."""
    import mcp_types as types

    if operation == READ:
        read = types.ReadResourceRequestParams.model_validate(params)
        return types.ReadResourceRequest(params=read)
    if operation == PROMPT:
        return types.GetPromptRequest(params=types.GetPromptRequestParams.model_validate(params))
    return types.CallToolRequest(params=types.CallToolRequestParams.model_validate(params))


def result_as_tool(operation: str, result: Json) -> Json:
    """Return the result of an operation in the form of a tool's result. A request for input is unchanged."""
    if (
        operation not in METHODS
        or read_record(UnfinishedResult, result).resultType == "input_required"
    ):
        return result
    value = {name: result[name] for name in _REPLY if result.get(name) is not None}
    return {"content": [], "structuredContent": value}


def count_items(result: Json) -> int:
    """Return how many items a result has."""
    return max(len(list_of(result.get(name))) for name in _ITEMS)
